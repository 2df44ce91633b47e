/**
 * @file Whole programs as block programs, emulated in C: training steps have the bits of `native`, with and without fused
 * multiply-add; random graphs, gradients and loops those of WebAssembly.
 */
import { describe, expect, test } from "vitest";
import { compile } from "../src/api/compile.ts";
import { vjp } from "../src/autodiff/vjp.ts";
import { at } from "../src/base/invariant.ts";
import { type AnyProgram, BUILT_IN } from "../src/cli/programs/built-in.ts";
import type { DeviceClass } from "../src/codegen/block/program.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import type { Reference } from "../src/ir/op.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import type { Target, TargetAnswer } from "../src/runtime/device.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import type { Tensor } from "../src/trace/tensor.ts";
import { flatten } from "../src/trace/tree.ts";
import { LARGE_DEVICE, SMALL_DEVICE } from "./support/blocks.ts";
import { blocksTarget } from "./support/blocks-target.ts";
import { randomGraph, randomInputs, together } from "./support/random-graph.ts";
import { looped, randomCase } from "./support/random-loops.ts";
import { runGraph } from "./support/run-graph.ts";

function found(answer: TargetAnswer): Target {
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

const missing = typeof nativeTarget() === "string" && !process.env.CI;

/** Bytes of the loss and of the state after a step. */
function afterStep({ step, init, batch }: AnyProgram, target: Target): readonly Buffer[] {
  const run = compile(step as never, { donate: [0], target }) as (...args: unknown[]) => readonly [object, Tensor];
  const [state, loss] = run(init(), ...batch());
  return [loss, ...flatten(state, "state").leaves].map((t) => {
    const { buffer, byteOffset, byteLength } = t.data() as Float32Array;
    return Buffer.from(new Uint8Array(buffer, byteOffset, byteLength));
  });
}

function expectBitsOfNative(program: AnyProgram, device: DeviceClass): void {
  const { fma } = device;
  const want = afterStep(program, found(nativeTarget({ fma, winograd: "never" })));
  const got = afterStep(program, found(blocksTarget(device)));
  expect(got.length).toBe(want.length);
  const different = got.flatMap((bytes, i) => (bytes.equals(at(want, i)) ? [] : [i]));
  expect(different, "leaves of the state with other bits").toEqual([]);
}

describe.skipIf(missing)("a training step as a block program", () => {
  const [mlp, cnn, lstm, gpt] = BUILT_IN as readonly [AnyProgram, AnyProgram, AnyProgram, AnyProgram];

  for (const program of [mlp, cnn, lstm, gpt]) {
    test(`has the bits of native with fused multiply-add: ${program.name}`, () => {
      expectBitsOfNative(program, { ...LARGE_DEVICE, fma: true });
    });
  }

  test("has the bits of native without fused multiply-add, on another device", () => {
    expectBitsOfNative(mlp, { ...SMALL_DEVICE, fma: false });
  });
});

const seeds = (count: number, from = 0): readonly number[] => Array.from({ length: count }, (_, i) => from + i);

function expectBitsOfWasm(graphs: readonly Graph[], special: boolean, threads = 1): void {
  const all = together(graphs);
  const inputs = graphs.flatMap((graph, i) =>
    randomInputs(graph, i, { special }).map((data, p) =>
      graph.params[p]?.type.dtype === "f32" ? data.map(Math.fround) : data,
    ),
  );
  const input = (_: Value, i: number): Reference => at(inputs, i);
  const target = found(blocksTarget(SMALL_DEVICE, { quick: true, threads }));
  expect(runGraph(target, all, input)).toEqual(runGraph(wasmTarget(false), all, input));
}

describe.skipIf(missing)("random programs as block programs", () => {
  test("have the bits of WebAssembly's, special numbers too", () => {
    const graphs = seeds(14).map((seed) => randomGraph(seed, { nodes: 5 + (seed % 30) }));
    expectBitsOfWasm(graphs, true);
  });

  test("and gradients do", () => {
    const gradients = seeds(8, 100).map((seed) => {
      const graph = randomGraph(seed, { nodes: 4 + (seed % 20), smooth: true, scalar: true, regions: false });
      return vjp(
        graph,
        graph.params.map((p) => isFloat(p.type.dtype)),
      );
    });
    expectBitsOfWasm(gradients, false);
  });

  test("and loops over random bodies do, their blocks shared by threads", () => {
    const graphs = seeds(8, 200).map((seed) => looped(randomCase(seed)));
    expectBitsOfWasm(graphs, false, 3);
  });
});
