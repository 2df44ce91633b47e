/**
 * @file Functions of one element and their gradients against PyTorch and NumPy (tests/fixtures/torch/elementwise.py), at zeros,
 * infinities, NaN and where functions have corners. Where this library differs on purpose, the list below says how.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as activations from "../src/api/activations.ts";
import * as tm from "../src/api/index.ts";
import { type Tensor, tensor } from "../src/api/index.ts";

type Written = number | string;

interface Case {
  readonly inputs: readonly (readonly Written[])[];
  readonly values: readonly Written[];
  readonly grads: readonly (readonly Written[])[];
}

const fixture = JSON.parse(readFileSync(new URL("./fixtures/torch/elementwise.json", import.meta.url), "utf8")) as {
  readonly floats: Readonly<Record<string, Case>>;
  readonly integers: Readonly<Record<string, Omit<Case, "grads">>>;
};

type Function = (...inputs: Tensor[]) => Tensor;

/** Under the names of this library, except where the fixture has options. */
const CALLS: Readonly<Record<string, Function>> = {
  leakyRelu: (x) => tm.leakyRelu(x!, 0.1),
  "elu alpha": (x) => tm.elu(x!, 1.5),
  celu: (x) => tm.celu(x!, 0.5),
  "softplus options": (x) => tm.softplus(x!, { beta: 2, threshold: 1 }),
  prelu: (x) => tm.prelu(x!, tensor([0.25], { dtype: "f64" })),
};

const functionOf = (name: string): Function => CALLS[name] ?? (tm as unknown as Record<string, Function>)[name]!;

/** Calls whose result is another, and why. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "d0 acosh(-1)": "-∞, not ∞, where the function itself is NaN",
  "d0 digamma(-1)": "∞, not 10³², at a pole",
  "d0 digamma(-3)": "∞, not 10³¹, at a pole",
  "mish(-Infinity)": "-0, not NaN",
  "d0 mish(-Infinity)": "0, not NaN",
  "d0 mish(Infinity)": "1, not NaN",
  "softShrink(NaN)": "NaN, not 0",
};

/** Activations. */
const RELUS = { ...activations, "elu alpha": 0, "softplus options": 0 };

/** How far PyTorch's own gradients are off. */
const GRADIENT_ERRORS: Readonly<Record<string, number>> = { digamma: 1e-9, hardSigmoid: 1e-7 };

const numbers = (list: readonly Written[]): readonly number[] => list.map(Number);

function expectClose(found: number, wanted: number, tolerance: number, what: string): void {
  if (wanted === 0 || !Number.isFinite(wanted)) expect(found, what).toBe(wanted);
  else
    expect(Math.abs(found - wanted), `${what}: ${found} is not ${wanted}`).toBeLessThan(
      tolerance * Math.abs(wanted) + 1e-15,
    );
}

describe("functions of floats follow PyTorch", () => {
  it.each(Object.entries(fixture.floats))("%s", (name, { inputs, values, grads }) => {
    const lists = inputs.map(numbers);
    const tensors = lists.map((list) => tensor(list, { dtype: "f64" }));
    const found = functionOf(name)(...tensors).data();
    const at = (i: number): string => `${name}(${lists.map((list) => list[i]).join(", ")})`;
    numbers(values).forEach((wanted, i) => {
      // activations of zero are a zero of either sign
      const sign = name in RELUS ? 0 : -0;
      if (!(at(i) in DIFFERENCES)) expectClose(found[i]! + sign, wanted + sign, 1e-13, at(i));
    });
    const sum = (...x: Tensor[]): Tensor => functionOf(name)(...x).sum();
    grads.forEach((list, input) => {
      const slopes = tm.grad(sum, { argnums: input })(...(tensors as [Tensor])) as unknown as Tensor;
      numbers(list).forEach((wanted, i) => {
        const what = `d${input} ${at(i)}`;
        // the sign of a zero gradient says nothing, and little that of NaN
        if (!(what in DIFFERENCES) && !(name in RELUS && Number.isNaN(lists[0]![i])))
          expectClose(slopes.data()[i]! + 0, wanted + 0, GRADIENT_ERRORS[name] ?? 1e-11, what);
      });
    });
  });
});

describe("functions of integers follow NumPy", () => {
  it.each(Object.entries(fixture.integers))("%s", (name, { inputs, values }) => {
    const [a, b] = inputs.map((list) => tensor(numbers(list), { dtype: "i32" })) as [Tensor, Tensor];
    expect([...functionOf(name)(a, b).data()]).toEqual(numbers(values));
  });
});
