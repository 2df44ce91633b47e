/**
 * @file Second derivatives of scalars made of every API function, on every smooth sample: forward over reverse, reverse
 * over reverse and differences of gradients agree.
 */
import { describe, test } from "vitest";
import { grad, hvp, type Tensor } from "../../src/api/index.ts";
import { expectClose } from "./compare.ts";
import { differentiable, floatType, scalarOf, some } from "./differentiable.ts";
import { dataFor, doubles, draw, type FunctionSample, labelOf, tensorOf, tensorsFor } from "./sample.ts";

/** Shapes and strides matter to first derivatives; these rest on the same rules. */
const SAMPLES = 8;

function checkSecond(sample: FunctionSample, label: string): void {
  const data = dataFor(sample, 5);
  const tensors = tensorsFor(sample, data);
  const loss = scalarOf(sample, tensors);
  const x = tensors.filter((_, i) => floatType(sample.inputs[i]!));
  const v = x.map((e, i) => tensorOf(e, draw(e, 90 + i, [-1, 1])));
  const forward = hvp(loss, [x], v);
  const inner = (floats: readonly Tensor[]): Tensor =>
    grad(loss)(floats)
      .map((g, i) => g.mul(v[i]!).sum())
      .reduce((a, b) => a.add(b));
  const reverse = grad(inner)(x);
  const h = 1e-5;
  const gradient = grad(loss);
  const moved = (e: Tensor, along: Tensor, by: number): Tensor => {
    const t = along.data();
    return tensorOf(
      e,
      doubles(e).map((value, k) => value + by * t[k]!),
    );
  };
  const at = (by: number): readonly Float64Array[] => gradient(x.map((e, i) => moved(e, v[i]!, by))).map(doubles);
  const [up, down] = [at(h), at(-h)];
  forward.forEach((product, i) => {
    const numeric = up[i]!.map((e, k) => (e - down[i]![k]!) / (2 * h));
    expectClose(doubles(reverse[i]!), doubles(product), 1e-10, `${label}, input ${i}: reverse over reverse`);
    expectClose(doubles(product), numeric, 1e-5, `${label}, input ${i}: differences of gradients`);
  });
}

describe("second derivatives agree", () => {
  for (const [name, samples] of differentiable("f64")) {
    test(`of ${name}`, () => {
      some(samples, SAMPLES).forEach((sample, i) => {
        checkSecond(sample, labelOf(sample, i));
      });
    });
  }
});
