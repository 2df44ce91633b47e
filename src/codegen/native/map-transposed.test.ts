/** @file Maps that read across memory give what WebAssembly gives: sizes around blocks, several operands, types, threads. */
import { describe, expect, it } from "vitest";
import { runGraph } from "../../../tests/support/run-graph.ts";
import { plainTargets } from "../../../tests/support/targets.ts";
import { at } from "../../base/invariant.ts";
import { hostRandom } from "../../base/random.ts";
import { Build } from "../../ir/build.ts";
import type { Graph, Value } from "../../ir/graph.ts";
import { elementsOf, tensorType } from "../../ir/type.ts";
import { add, mul } from "../../ops/elementwise.ts";
import { transpose } from "../../ops/movement.ts";
import type { Target } from "../../runtime/device.ts";
import type { Elements } from "../../runtime/executable.ts";

type Type = "f32" | "f64" | "i32";

/** Many transpositions side by side: alone, beside something read straight, two of one order and two of different ones. */
function graphOf(): Graph {
  const b = new Build("transpositions");
  const results: Value[] = [];
  const transposed = (dtype: Type, shape: readonly number[], perm: readonly number[]): Value => {
    const from = perm.map((_, axis) => at(shape, perm.indexOf(axis)));
    return b.call(transpose, [b.param(tensorType(dtype, from))], { perm });
  };
  const sizes = [
    [16, 16],
    [15, 40],
    [17, 33],
    [50, 64],
    [300, 70],
    [64, 1024],
  ];
  for (const shape of sizes) {
    for (const dtype of ["f32", "i32", "f64"] as const) {
      const straight = b.param(tensorType(dtype, shape));
      const sum = b.call(add, [transposed(dtype, shape, [1, 0]), straight], {});
      results.push(sum, b.call(mul, [transposed(dtype, shape, [1, 0]), transposed(dtype, shape, [1, 0])], {}));
    }
  }
  for (const perm of [
    [2, 0, 1],
    [1, 2, 0],
    [2, 1, 0],
    [0, 2, 1],
  ]) {
    const shape = [19, 35, 48];
    results.push(b.call(add, [transposed("f32", shape, perm), transposed("f32", shape, [2, 1, 0])], {}));
  }
  return b.finish(results);
}

/** Whole numbers, the same in every run. */
function run(target: Target, graph: Graph): readonly Elements[] {
  const random = hostRandom(9);
  const whole = (): number => Math.floor(random.next() * 1000) - 500;
  return runGraph(target, graph, ({ type }) => Array.from({ length: elementsOf(type.shape) }, whole));
}

describe("a map that reads across memory", () => {
  const graph = graphOf();
  const want = run(at(plainTargets, 0).target(), graph);

  for (const { name, missing, target } of plainTargets.slice(1)) {
    it.skipIf(missing !== null)(`has the bits of WebAssembly's on ${name}`, () => {
      run(target(), graph).forEach((bits, i) => {
        expect(Buffer.from(bits.buffer).equals(Buffer.from(at(want, i).buffer)), `result ${i}`).toBe(true);
      });
    });
  }
});
