/**
 * @file The targets that tests run over. Without fused multiply-add, which the interpreter does not have, unless asked for.
 * A machine without a C compiler skips the tests of `native` with a word; under CI it fails them.
 */
import type { PlacedStep } from "../../src/codegen/placed.ts";
import { nativeTarget } from "../../src/node/native/target.ts";
import type { PlacedProgram } from "../../src/runtime/assembler.ts";
import type { Machine, Target } from "../../src/runtime/target.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";

export interface TestedTarget {
  readonly name: string;
  /** Why it cannot be tested here. */
  readonly missing: string | null;
  target(): Target;
}

function nativeFor(name: string, options: Parameters<typeof nativeTarget>[0]): TestedTarget {
  const found = nativeTarget(options);
  if (typeof found !== "string") return { name, missing: null, target: () => found };
  if (!process.env.CI) console.warn(`tests of ${name} are skipped: ${found}`);
  return {
    name,
    missing: process.env.CI ? null : found,
    target: () => {
      throw new Error(`${name} cannot be tested: ${found}`);
    },
  };
}

/** Both, computing the same bits. */
export const plainTargets: readonly TestedTarget[] = [
  { name: "wasm", missing: null, target: () => wasmTarget(false) },
  nativeFor("native", { fma: false }),
  nativeFor("native on three threads that share everything", { fma: false, threads: 3, shareFrom: 0 }),
];

/** Steps at addresses of the test's own. */
export function loadSteps(target: Target, kernels: readonly PlacedStep[], height: number): Machine {
  return target.load({ kernels, copies: [], plan: { height } } as unknown as PlacedProgram, { stepwise: false });
}
