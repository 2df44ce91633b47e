/**
 * @file The targets that tests run over. Without fused multiply-add, which the interpreter does not have, unless asked for.
 * A machine without a C compiler skips the tests of `native` with a word; under CI it fails them.
 */
import type { PlacedProgram, PlacedStep } from "../../src/codegen/placed.ts";
import { nodeHost } from "../../src/node/host.ts";
import { compilerFor, systemCompiler } from "../../src/node/native/compiler.ts";
import { type NativeRequest, nativeTarget } from "../../src/node/native/target.ts";
import type { Machine, Target } from "../../src/runtime/device.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";

export interface TestedTarget {
  readonly name: string;
  /** Why it cannot be tested here. */
  readonly missing: string | null;
  target(): Target;
}

/** `native` as these options make it, or why it cannot be tested. */
export function nativeFor(name: string, options: NativeRequest): TestedTarget {
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

/** All of them, computing the same bits. */
export const plainTargets: readonly TestedTarget[] = [
  { name: "wasm", missing: null, target: () => wasmTarget(false, { winograd: null }) },
  nativeFor("native", { fma: false }),
  nativeFor("native on three threads that share everything", { fma: false, threads: 3, shareFrom: 0 }),
  {
    name: "wasm on three threads that share everything",
    missing: null,
    target: () => wasmTarget(false, { winograd: null, threads: 3, shareFrom: 0, workers: nodeHost.workers }),
  },
];

/** Code for machines with narrower registers than this one's, which runs it too. */
export const narrowTargets: readonly TestedTarget[] = (
  [
    ["native in registers of 256 bits", "-march=x86-64-v3", 8],
    ["native in registers of 128 bits", "-march=x86-64-v2", 4],
  ] as const
).flatMap(([name, machine, lanes]) => {
  const here = systemCompiler();
  const fits = process.arch === "x64" && typeof here !== "string" && here.lanes >= lanes;
  return fits ? [nativeFor(name, { fma: false, compiler: compilerFor(here, machine, lanes) })] : [];
});

/** Steps at addresses of the test's own. */
export function loadSteps(target: Target, kernels: readonly PlacedStep[], height: number): Machine {
  const plan = { height, program: { name: "steps", steps: [] } };
  return target.load({ kernels, copies: [], base: 0, plan } as unknown as PlacedProgram, {
    stepwise: false,
  });
}
