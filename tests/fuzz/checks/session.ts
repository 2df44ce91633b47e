/** @file What the checks of one program share: the program, its arguments and bits, and where findings and counts go. */
import { type CompileOptions, compile, TidemarkError, type Tree } from "../../../src/api/index.ts";
import type { Random } from "../../support/random.ts";
import type { Counts, Kind } from "../findings.ts";
import { type Arguments, type FuzzProgram, leavesOf } from "../program.ts";

export type TargetName = "wasm" | "native";

export interface Session {
  readonly program: FuzzProgram;
  readonly target: TargetName;
  readonly random: Random;
  readonly counts: Counts;
  found(kind: Kind, what: string): void;
  /** Said before what may take long, so that a process that had to be ended can be blamed on it. */
  begin(stage: string): void;
}

/** Elements of all leaves as bytes; all NaNs are alike. */
export function bitsOf(tree: Tree): readonly Uint8Array[] {
  return leavesOf(tree).map((leaf) => {
    const data = leaf.data();
    // halves have one NaN in memory
    if (leaf.dtype === "f32" || leaf.dtype === "f64") {
      for (let i = 0; i < data.length; i++) if (Number.isNaN(data[i])) data[i] = Number.NaN;
    }
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  });
}

/** Where bits differ, in words; null where they do not. */
export function difference(a: readonly Uint8Array[], b: readonly Uint8Array[]): string | null {
  if (a.length !== b.length) return `${a.length} results and ${b.length}`;
  const leaf = a.findIndex((bytes, i) => Buffer.compare(bytes, b[i] as Uint8Array) !== 0);
  if (leaf < 0) return null;
  const [x, y] = [a[leaf] as Uint8Array, b[leaf] as Uint8Array];
  const byte = x.findIndex((value, i) => value !== y[i]);
  return `result ${leaf} from byte ${byte} of ${x.length}`;
}

export function compileFor({ program, target }: Session, options: CompileOptions = {}) {
  return compile<Arguments, Tree>(program.fn, { target, cache: false, validate: true, ...options });
}

export const isRefusal = (error: unknown): error is TidemarkError =>
  error instanceof TidemarkError && error.code === "PlanInfeasible";

export const textOf = (options: object): string => JSON.stringify(options);

/** The first lines of an error, with where it was thrown unless it is meant for users. */
export function errorText(error: unknown): string {
  if (error instanceof TidemarkError) return `${error.code} ${error.message}`.slice(0, 400);
  return error instanceof Error ? String(error.stack).slice(0, 700) : String(error);
}
