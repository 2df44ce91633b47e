/**
 * @file What a program on WebAssembly needs of the devices that run it together. Its code says at each collective which one it is by a number
 * (codegen/wasm/exchange.ts); who carries it out is one of these:
 *
 *   workers of one process    through memory that they share (parallel/mailbox.ts)
 *   processes of mpirun       MPI (node/mpi/exchange.ts)
 */
import { TidemarkError } from "../base/errors.ts";
import type { Exchange } from "../codegen/wasm/exchange.ts";
import { hashText } from "../ir/hash.ts";
import { type DeviceGroup, groupText, meshSize } from "../kernel/device-group.ts";
import type { ProgramCode } from "./device.ts";
import type { Devices } from "./devices.ts";

/** A program's code with its name. */
export type ConnectedCode = Pick<ProgramCode, "bytes" | "exchanges"> & { readonly name: string };

/** A program with collectives, as devices compare it. */
export interface ConnectedProgram {
  readonly name: string;
  /** Equal for equal code and plans. */
  readonly digest: string;
  readonly exchanges: readonly Exchange[];
}

/** The part of a device in a program. */
export interface Connection {
  /** The program runs from now on. */
  enter(): void;
  /** Carries out a collective, by its number, between addresses of the memory; returns when it is done. */
  exchange(number: number, memory: ArrayBuffer, to: number, from: number): void;
}

/** One device among others. */
export interface Communicator {
  /** Of a program that was loaded: throws unless all devices of its meshes have the same one. */
  connect(program: ConnectedProgram): Connection;
}

/** A mesh, for messages. */
export const meshText = ({ mesh }: Pick<DeviceGroup, "mesh">): string =>
  mesh.map(([name, extent]) => `${name}=${extent}`).join(",");

/** The different meshes of some groups. */
export const meshesOf = (groups: readonly DeviceGroup[]): readonly Pick<DeviceGroup, "mesh">[] => [
  ...new Map(groups.map((group) => [meshText(group), group])).values(),
];

/** A collective, for messages. */
export const exchangeText = ({ what, elements, storage, group, place }: Exchange): string =>
  `${what} of ${elements} ${storage} over ${groupText(group)}${place === "" ? "" : `, ${place}`}`;

/** What is asked for in messages: `train, on the mesh data=4,`. */
export const askedText = (name: string, groups: readonly DeviceGroup[]): string =>
  `${name}, on the mesh ${meshesOf(groups).map(meshText).join(" and ")},`;

/** Joins a program with the devices that run it; an error that says how to start them where this thread is none. */
export function connected({ name, bytes, exchanges = [] }: ConnectedCode, devices: Devices | undefined): Connection {
  const groups = exchanges.map(({ group }) => group);
  const communicator = devices?.communicator(askedText(name, groups)) ?? null;
  if (communicator === null) {
    const places = new Set(exchanges.map((exchange) => `  ${exchange.what} ${exchange.place}`));
    const devices = Math.max(...groups.map(meshSize));
    const asked = `${askedText(name, groups)} needs ${devices} devices, and this thread is none of them`;
    const summary = [asked, ...places].join("\n");
    const help =
      "run it in onDevice(…), in workers that runDevices(…) starts, or on native by mpirun (docs/devices.md)";
    throw new TidemarkError("TargetUnsupported", summary, { help });
  }
  const said = exchanges.map(({ place: _, ...exchange }) => exchange);
  return communicator.connect({ name, digest: hashText(`${bytesText(bytes)}${JSON.stringify(said)}`), exchanges });
}

/** Bytes as characters. */
function bytesText(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let from = 0; from < bytes.length; from += 8192) {
    parts.push(String.fromCharCode(...bytes.subarray(from, from + 8192)));
  }
  return parts.join("");
}

/** Throws unless a rank is one of the devices of a mesh, of so many that run. `start` says how to run as many as it takes. */
export function requireMember(
  mesh: Pick<DeviceGroup, "mesh">,
  { rank, size }: { readonly rank: number; readonly size: number },
  words: { readonly running: string; readonly start: (devices: number) => string },
): void {
  const devices = meshSize(mesh);
  if (rank < devices && devices <= size) return;
  const own = `the mesh ${meshText(mesh)} has ${devices} devices`;
  const summary =
    devices > size ? `${own}, and ${words.running}` : `${own}, the first of ${size}: rank ${rank} is none of them`;
  throw new TidemarkError("TargetUnsupported", summary, { help: words.start(devices) });
}

/** Throws unless all devices of a mesh have the same program, by the digests of all in the order of ranks. */
export function requireSame(name: string, mesh: Pick<DeviceGroup, "mesh">, digests: readonly string[]): void {
  const ranksOf = new Map<string, number[]>();
  for (const [rank, digest] of digests.entries()) ranksOf.set(digest, [...(ranksOf.get(digest) ?? []), rank]);
  if (ranksOf.size <= 1) return;
  const sides = [...ranksOf].map(([digest, ranks]) => `${digest.slice(0, 12)} on rank ${ranks.join(", ")}`);
  const summary = `${name}: the devices of the mesh ${meshText(mesh)} do not have the same program and plan: ${sides.join("; ")}`;
  const help =
    "every device has to compile the same functions in the same order, with equal shapes, options, budgets, rates and processor features";
  throw new TidemarkError("TargetUnsupported", summary, { help });
}
