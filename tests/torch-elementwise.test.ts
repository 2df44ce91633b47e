/**
 * @file Functions of one element and their gradients against PyTorch and NumPy (tests/fixtures/torch/elementwise.py), at zeros,
 * infinities, NaN and where functions have corners. Where this library differs on purpose, the list below says how.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
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
const CALLS: Readonly<Record<string, Function>> = {};

const functionOf = (name: string): Function => CALLS[name] ?? (tm as unknown as Record<string, Function>)[name]!;

/** Calls whose result is another, and why. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "d0 acosh(-1)": "-∞, not ∞, where the function itself is NaN",
  "d0 digamma(-1)": "∞, not 10³², at a pole",
  "d0 digamma(-3)": "∞, not 10³¹, at a pole",
};

const numbers = (list: readonly Written[]): readonly number[] => list.map(Number);

function expectClose(found: number, wanted: number, tolerance: number, what: string): void {
  if (wanted === 0 || !Number.isFinite(wanted)) expect(found, what).toBe(wanted);
  else expect(Math.abs(found / wanted - 1), `${what}: ${found} is not ${wanted}`).toBeLessThan(tolerance);
}

describe("functions of floats follow PyTorch", () => {
  it.each(Object.entries(fixture.floats))("%s", (name, { inputs, values, grads }) => {
    const lists = inputs.map(numbers);
    const tensors = lists.map((list) => tensor(list, { dtype: "f64" }));
    const found = functionOf(name)(...tensors).data();
    const at = (i: number): string => `${name}(${lists.map((list) => list[i]).join(", ")})`;
    numbers(values).forEach((wanted, i) => {
      if (!(at(i) in DIFFERENCES)) expectClose(found[i]!, wanted, 1e-13, at(i));
    });
    const sum = (...x: Tensor[]): Tensor => functionOf(name)(...x).sum();
    grads.forEach((list, input) => {
      const slopes = tm.grad(sum, { argnums: input })(...(tensors as [Tensor])) as unknown as Tensor;
      numbers(list).forEach((wanted, i) => {
        const what = `d${input} ${at(i)}`;
        // the sign of a zero gradient says nothing
        if (!(what in DIFFERENCES)) expectClose(slopes.data()[i]! + 0, wanted + 0, 1e-9, what);
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
