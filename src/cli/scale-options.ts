/** @file What `tidemark scale` is asked, as far as configs and programs have it in common. */
import { RATES, type Rates } from "../fit/scale/time.ts";
import { type Arguments, integerOption, usageError } from "./command.ts";

export const AXES = ["data", "tensor", "pipeline", "context"] as const;
export type Axis = (typeof AXES)[number];

/** `data=64,tensor=8` → `{ data: 64, tensor: 8 }`; axes that are not named have one device. */
export function meshOf(args: Arguments): Readonly<Record<Axis, number>> | null {
  const text = args.value("mesh");
  if (text === undefined) return null;
  const mesh = { data: 1, tensor: 1, pipeline: 1, context: 1 };
  for (const part of text.split(",")) {
    const [, name, extent] = /^\s*([a-z]+)=(\d+)\s*$/.exec(part) ?? [];
    const axis = AXES.find((known) => known === name);
    if (!axis || !(Number(extent) > 0)) {
      throw usageError(`--mesh ${text}`, `give extents of ${AXES.join(", ")}: data=64,tensor=8`);
    }
    mesh[axis] = Number(extent);
  }
  return mesh;
}

function number(args: Arguments, name: string, fallback: number): number {
  const text = args.value(name);
  if (text === undefined) return fallback;
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw usageError(`--${name} ${text}`, "give a number above 0, as 4e14");
}

export const ratesOf = (args: Arguments): Rates => ({
  flops: number(args, "flops", RATES.flops),
  linkBytes: number(args, "link", RATES.linkBytes),
  networkBytes: number(args, "network", RATES.networkBytes),
});

/** The number of devices; with a mesh it is the mesh's. */
export function devicesAsked(args: Arguments, ofMesh: number | null): number {
  const asked = args.has("devices") ? integerOption(args, "devices", 1, { least: 1 }) : null;
  if (ofMesh !== null && asked !== null && asked !== ofMesh) {
    throw usageError(`--devices ${asked} with a mesh of ${ofMesh}`, "give one of them, or equal numbers");
  }
  return ofMesh ?? asked ?? 1;
}
