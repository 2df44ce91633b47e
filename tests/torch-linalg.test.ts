/**
 * @file Linear algebra against PyTorch, with gradients, in f64 and f32 (tests/fixtures/torch/linalg.py made the figures). tests/kernels.test.ts
 * compares the operations on all targets bit by bit.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { linalg, type Tensor, tensor } from "../src/api/index.ts";

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

interface Case {
  readonly name: string;
  readonly inputs: readonly Stored[];
  readonly results: readonly Stored[];
  readonly gradients: readonly Stored[];
}

const { cases } = JSON.parse(readFileSync(new URL("fixtures/torch/linalg.json", import.meta.url), "utf8")) as {
  readonly cases: readonly Case[];
};

const CALLS: Readonly<Record<string, (a: Tensor, b: Tensor) => readonly Tensor[]>> = {
  cholesky: (a) => [linalg.cholesky(a)],
  "cholesky upper": (a) => [linalg.cholesky(a, { upper: true })],
  solveTriangular: (a, b) => [linalg.solveTriangular(a, b)],
  "solveTriangular upper": (a, b) => [linalg.solveTriangular(a, b, { upper: true })],
  "solveTriangular transposed": (a, b) => [linalg.solveTriangular(a, b, { transposed: true })],
  solve: (a, b) => [linalg.solve(a, b)],
  inv: (a) => [linalg.inv(a)],
  det: (a) => [linalg.det(a)],
  slogdet: (a) => Object.values(linalg.slogdet(a)) as Tensor[],
  qr: (a) => Object.values(linalg.qr(a)) as Tensor[],
  eigh: (a) => Object.values(linalg.eigh(a)) as Tensor[],
  eigvalsh: (a) => [linalg.eigvalsh(a)],
  svd: (a) => Object.values(linalg.svd(a)) as Tensor[],
  svdvals: (a) => [linalg.svdvals(a)],
  // a rank of one shows only with the rounding of the figures left out
  pinv: (a) => [linalg.pinv(a, { rtol: 1e-6 })],
  matrixExp: (a) => [linalg.matrixExp(a)],
};

function expectClose(got: Tensor, { shape, data }: Stored, name: string, limit: number): void {
  expect(got.shape, name).toEqual(shape);
  const largest = Math.max(1, ...data.map(Math.abs));
  const numbers = Array.from(got.data(), Number);
  data.forEach((wanted, i) => {
    if (!(Math.abs(numbers[i]! - wanted) <= limit * largest)) expect(numbers[i], `${name}, element ${i}`).toBe(wanted);
  });
}

/** How far results and gradients may be off, of the largest element. */
const LIMITS = { f64: [1e-10, 1e-9], f32: [2e-5, 3e-3] } as const;

describe.each(["f64", "f32"] as const)("linear algebra in %s agrees with PyTorch", (dtype) => {
  test.each(cases.map((c, i) => [`${c.name} #${i}`, c] as const))("%s", (_, { name, inputs, results, gradients }) => {
    const call = CALLS[name]!;
    const given = inputs.map(({ shape, data }) => tensor(data, { shape, dtype }));
    const weighted = (...xs: Tensor[]): Tensor =>
      call(...(xs as [Tensor, Tensor]))
        .map((y) => y.mul(tm.arange(y.elements, dtype).cos().reshape(y.shape)).sum())
        .reduce((a, b) => a.add(b));
    const made = tm.compile((...xs: Tensor[]) => [...call(...(xs as [Tensor, Tensor]))])(...given);
    expect(made.length).toBe(results.length);
    const [value, derivative] = LIMITS[dtype];
    made.forEach((y, i) => {
      expectClose(y, results[i]!, `result ${i}`, value);
    });
    const argnums = given.map((__, i) => i);
    const found = tm.compile((...xs: Tensor[]) => [...(tm.grad(weighted, { argnums })(...xs) as unknown as Tensor[])])(
      ...given,
    );
    found.forEach((g, i) => {
      expectClose(g, gradients[i]!, `gradient ${i}`, derivative);
    });
  });
});
