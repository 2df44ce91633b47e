/** @file Products, running sums and permutations, lowered and interpreted element by element, against their references. */
import { describe, expect, it } from "vitest";
import { runLowering, runReference } from "../../tests/support/lowering.ts";
import { ownSamples } from "../../tests/support/own-samples.ts";
import { at } from "../base/invariant.ts";
import { hostRandom } from "../base/random.ts";
import type { AnyOp } from "../ir/op.ts";
import { elementsOf, type TensorType, typeText } from "../ir/type.ts";
import { conv, convInput, convWeight } from "./conv.ts";
import { matmul } from "./matmul.ts";
import { randomBernoulli, randomBits, randomNormal, randomUniform, shuffle } from "./random.ts";
import { cumsum } from "./scan.ts";

const OPS: readonly AnyOp[] = [
  matmul,
  conv,
  convInput,
  convWeight,
  cumsum,
  randomBits,
  randomUniform,
  randomNormal,
  randomBernoulli,
  shuffle,
];

function draw(type: TensorType, [lo, hi]: readonly [number, number], seed: number): Float64Array {
  const random = hostRandom(seed);
  const values = Float64Array.from({ length: elementsOf(type.shape) }, () => lo + random.next() * (hi - lo));
  if (type.dtype === "f64") return values;
  return values.map(type.dtype === "f32" ? Math.fround : Math.floor);
}

describe("lowerings", () => {
  for (const op of OPS) {
    it(`of ${op.name} compute its reference on every sample`, () => {
      for (const { inputs, attrs, range } of ownSamples(op)) {
        const data = inputs.map((type, i) => draw(type, (range ?? [-2, 2]) as readonly [number, number], 31 + i));
        const found = runLowering(op, inputs, attrs, data);
        const expected = runReference(op, inputs, attrs, data);
        const { dtype } = at(op.infer(inputs, attrs, []), 0);
        const label = `${op.name}(${inputs.map(typeText).join(", ")}) ${JSON.stringify(attrs)}`;
        expect(found.length, label).toBe(expected.length);
        if (dtype === "i32" || dtype === "bool") {
          expect([...found], label).toEqual([...expected]);
          continue;
        }
        for (const [i, value] of expected.entries()) {
          expect(found[i], `${label} element ${i}`).toBeCloseTo(value, dtype === "f32" ? 4 : 11);
        }
      }
    });
  }
});
