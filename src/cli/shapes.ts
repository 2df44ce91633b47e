/** @file `--shapes`: the peak of a program by the extents of its named dimensions. */
import { compile } from "../api/compile.ts";
import type { NamedShapes } from "../api/shape-axes.ts";
import type { ShapeFamilyInfo } from "../api/shape-family.ts";
import type { OptionSpec } from "./command.ts";
import { usageError } from "./command.ts";
import type { Loaded } from "./load.ts";
import { compileOptions, type PlanSettings } from "./plan-figures.ts";
import { argumentsOf } from "./target-settings.ts";

export const SHAPES_OPTION = {
  shapes: {
    value: "T=64,128",
    help: "the peak for each extent of a named dimension, in one arena; several as in 'B=4,8 T=64,128'; T=..128 for all up to 128",
  },
} as const satisfies Record<string, OptionSpec>;

/** `B=4,8 T=..64` → `{ B: [4, 8], T: { max: 64 } }`. */
function shapesOf(text: string): NamedShapes {
  return Object.fromEntries(
    text
      .trim()
      .split(/\s+/)
      .map((part) => {
        const [, name, max, extents] = /^([A-Za-z_]\w*)=(?:\.\.(\d+)|(\d+(?:,\d+)*))$/.exec(part) ?? [];
        if (name === undefined) {
          throw usageError(`--shapes ${text}`, "give extents by name: T=64,128, or 'B=4,8 T=64,128', or T=..128");
        }
        return [name, extents === undefined ? { max: Number(max) } : extents.split(",").map(Number)];
      }),
  );
}

/** Plans a program for all of these extents. */
export function planShapes(loaded: Loaded, settings: PlanSettings, text: string): ShapeFamilyInfo {
  const shapes = shapesOf(text);
  const axes = loaded.kind === "training" ? loaded.program.axes : undefined;
  if (loaded.kind !== "training" || !axes) {
    throw usageError(`--shapes: ${loaded.name} names no axes`, 'a module says them: axes: [null, [null, "T"]]');
  }
  const { program } = loaded;
  const named = Object.keys(shapes).length;
  const members = Object.values(shapes).reduce(
    (product, extents) => product * ("max" in extents ? 1 : extents.length),
    Math.min(1, named),
  );
  const options = { ...compileOptions(settings), donate: [0], name: program.name, shapes, axes, programs: members };
  return compile(program.step as (...args: object[]) => unknown, options).family(...(argumentsOf(program) as object[]));
}
