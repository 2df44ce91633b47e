/** @file Linear algebra beyond small regular matrices: middle sizes, matrices that are not what a function asks for, and what is kept. */
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { linalg, type Tensor, tensor } from "../src/api/index.ts";
import { hostRandom } from "../src/base/random.ts";
import { plainTargets } from "./support/targets.ts";

const source = hostRandom(5);
const drawn = (shape: readonly number[], dtype: "f32" | "f64" = "f64"): Tensor => {
  const data = Float64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 2 * source.next() - 1);
  return tensor(data, { shape, dtype });
};

const farthest = (a: Tensor, b: Tensor): number => Number(a.sub(b).abs().max().item());
const identity = (n: number, dtype: "f32" | "f64"): Tensor => tm.eye(n, { dtype });
const LIMIT = { f64: 1e-12, f32: 1e-4 } as const;
const t = (a: Tensor): Tensor => a.swapAxes(-1, -2);

describe.each(["f64", "f32"] as const)("middle matrices of %s, across blocks and panels", (dtype) => {
  const limit = LIMIT[dtype];

  test.each([33, 70, 150])("%i rows: factors multiply to the matrix", (n) => {
    const a = drawn([n, n], dtype);
    const positive = a.matmul(t(a)).add(identity(n, dtype));
    const l = linalg.cholesky(positive);
    expect(farthest(l.matmul(t(l)), positive)).toBeLessThan(n * limit);
    const { q, r } = linalg.qr(a);
    expect(farthest(q.matmul(r), a)).toBeLessThan(n * limit);
    expect(farthest(t(q).matmul(q), identity(n, dtype))).toBeLessThan(n * limit);
    const x = linalg.solve(a.add(identity(n, dtype).mul(n / 4)), a);
    expect(farthest(a.add(identity(n, dtype).mul(n / 4)).matmul(x), a)).toBeLessThan(n * limit);
  });

  test.each([
    [70, 70],
    [130, 41],
    [20, 90],
  ])("%i rows, %i columns: singular values and vectors", (m, n) => {
    const a = drawn([m, n], dtype);
    const { u, s, vh } = linalg.svd(a);
    const k = Math.min(m, n);
    expect(farthest(u.mul(s).matmul(vh), a)).toBeLessThan(k * limit);
    expect(farthest(t(u).matmul(u), identity(k, dtype))).toBeLessThan(k * limit);
    expect(farthest(vh.matmul(t(vh)), identity(k, dtype))).toBeLessThan(k * limit);
    const values = Array.from(s.data(), Number);
    expect(values).toEqual([...values].sort((x, y) => y - x));
    expect(farthest(linalg.svdvals(a), s)).toBeLessThan(k * limit);
  });

  test.each([40, 101])("%i rows: eigenvalues and eigenvectors", (n) => {
    const half = drawn([n, n], dtype);
    const a = half.add(t(half));
    const { values, vectors } = linalg.eigh(a);
    expect(farthest(vectors.mul(values).matmul(t(vectors)), a)).toBeLessThan(n * limit);
    expect(farthest(t(vectors).matmul(vectors), identity(n, dtype))).toBeLessThan(n * limit);
    expect(farthest(linalg.eigvalsh(a), values)).toBeLessThan(n * limit);
  });
});

const native = plainTargets.find(({ name }) => name === "native");

test.skipIf(!native || native.missing)("native code has the bits of WebAssembly, across blocks of reflections", () => {
  const a = drawn([2, 40, 36]);
  const all = (x: Tensor): Tensor[] => {
    // not of a product, which may be contracted
    const { values, vectors } = linalg.eigh(x.slice([0, [0, 36]]));
    return [...(Object.values(linalg.svd(x)) as Tensor[]), values, vectors];
  };
  const [wasm, other] = (["wasm", native!.target()] as const).map((target) =>
    tm.compile((x: Tensor) => all(x), { target })(a),
  );
  wasm!.forEach((x, i) => {
    expect(other![i]!.toArray()).toEqual(x.toArray());
  });
});

describe("matrices that are not what is asked for", () => {
  test("a matrix that is not positive definite is NaN from its first bad column on", () => {
    const l = linalg
      .cholesky(
        tensor([
          [4, 2, 2],
          [2, 1, 3],
          [2, 3, 1],
        ]),
      )
      .toArray() as number[][];
    expect(l[0]).toEqual([2, 0, 0]);
    expect([l[1]![0], l[2]![0]]).toEqual([1, 1]);
    expect(linalg.cholesky(tensor([[-1]])).toArray()).toEqual([[Number.NaN]]);
  });

  test("one matrix of a batch does not disturb the others", () => {
    const batch = tensor([[[4]], [[-4]], [[9]]]);
    expect(linalg.cholesky(batch).reshape([3]).toArray()).toEqual([2, Number.NaN, 3]);
  });

  test("singular matrices have the determinant 0 and no finite inverse", () => {
    const a = tensor([
      [1, 2],
      [2, 4],
    ]);
    expect(Math.abs(Number(linalg.det(a).item()))).toBe(0);
    const { sign, logabsdet } = linalg.slogdet(a);
    expect([sign.item(), logabsdet.item()]).toEqual([0, Number.NEGATIVE_INFINITY]);
    expect(Array.from(linalg.inv(a).data(), Number).every((x) => !Number.isFinite(x))).toBe(true);
  });

  test("of rank one, zero, and with equal singular values", () => {
    const one = tensor(
      [
        [1, 2],
        [2, 4],
        [3, 6],
      ],
      { dtype: "f64" },
    );
    const { u, s, vh } = linalg.svd(one);
    expect(farthest(u.mul(s).matmul(vh), one)).toBeLessThan(1e-14);
    expect(farthest(t(u).matmul(u), identity(2, "f64"))).toBeLessThan(1e-14);
    const p = linalg.pinv(one);
    expect(farthest(one.matmul(p).matmul(one), one)).toBeLessThan(1e-14);
    expect(linalg.svd(tm.zeros([3, 2])).s.toArray()).toEqual([0, 0]);
    expect(linalg.pinv(tm.zeros([3, 2])).toArray()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    const three = linalg.svd(tm.eye(3).mul(3));
    expect(three.s.toArray()).toEqual([3, 3, 3]);
    expect(linalg.eigh(tm.eye(3)).values.toArray()).toEqual([1, 1, 1]);
  });

  test("an upper bidiagonal matrix with zeros on its diagonal", () => {
    const a = tensor(
      [
        [1, 2, 0, 0],
        [0, 0, 3, 0],
        [0, 0, 0, 4],
        [0, 0, 0, 5],
      ],
      { dtype: "f64" },
    );
    const { u, s, vh } = linalg.svd(a);
    expect(farthest(u.mul(s).matmul(vh), a)).toBeLessThan(1e-14);
  });

  test("NaN and infinities stay, and nothing runs forever", () => {
    const bad = drawn([12, 12]).mul(Number.NaN);
    const all = [
      ...[linalg.cholesky(bad), linalg.inv(bad), linalg.det(bad), linalg.svd(bad).s, linalg.eigh(bad).values],
      ...[linalg.pinv(bad), linalg.matrixExp(bad), linalg.solve(bad, bad), linalg.qr(bad).r.slice([[0, 1]])],
    ];
    for (const x of all) expect(Array.from(x.data(), Number).some(Number.isNaN)).toBe(true);
    expect(linalg.svd(tensor([[Number.POSITIVE_INFINITY]])).s.shape).toEqual([1]);
  });

  test("one element, one column", () => {
    expect(linalg.svd(tensor([[-3]])).vh.toArray()).toEqual([[-1]]);
    expect(linalg.qr(tensor([[-3]])).r.toArray()).toEqual([[-3]]);
    expect(linalg.eigh(tensor([[-3]])).values.toArray()).toEqual([-3]);
    expect(linalg.solve(tensor([[4]]), tensor([2])).toArray()).toEqual([0.5]);
    expect(
      linalg
        .pinv(tensor([[3], [4]], { dtype: "f64" }))
        .mul(25)
        .round()
        .toArray(),
    ).toEqual([[3, 4]]);
    expect(linalg.svd(tensor([[3], [4]])).s.toArray()).toEqual([5]);
  });

  test("no rows, no columns, no matrices", () => {
    expect(linalg.cholesky(tm.zeros([0, 0])).shape).toEqual([0, 0]);
    expect(linalg.det(tm.zeros([2, 0, 0])).toArray()).toEqual([1, 1]);
    expect(linalg.slogdet(tm.zeros([0, 0])).logabsdet.item()).toBe(0);
    expect(linalg.solve(tm.zeros([0, 3, 3]), tm.zeros([0, 3, 2])).shape).toEqual([0, 3, 2]);
    const { u, s, vh } = linalg.svd(tm.zeros([2, 4, 0]));
    expect([u.shape, s.shape, vh.shape]).toEqual([
      [2, 4, 0],
      [2, 0],
      [2, 0, 0],
    ]);
    expect(linalg.eigh(tm.zeros([0, 0])).values.shape).toEqual([0]);
    expect(linalg.qr(tm.zeros([0, 3])).r.shape).toEqual([0, 3]);
    expect(linalg.pinv(tm.zeros([0, 3])).shape).toEqual([3, 0]);
    expect(linalg.matrixExp(tm.zeros([0, 0])).shape).toEqual([0, 0]);
  });

  test("are refused with their shapes", () => {
    expect(() => linalg.cholesky(tm.zeros([2, 3]))).toThrow("cholesky: a is f32[2,3], which is not square");
    expect(() => linalg.inv(tm.zeros([3]))).toThrow("inv: a is f32[3]");
    expect(() => linalg.solve(tm.eye(3), tm.zeros([2, 1]))).toThrow("solve: a is f32[3,3], b is f32[2,1]");
    expect(() => linalg.solve(tm.zeros([2, 3, 3]), tm.zeros([4, 3, 1]))).toThrow("do not broadcast");
    expect(() => linalg.svd(tm.zeros([2, 2], "i32"))).toThrow("svd");
    expect(() => linalg.pinv(tm.eye(2), { rtol: -1 })).toThrow("pinv: rtol is -1");
    expect(() => linalg.cholesky(tm.eye(2), { lower: true } as never)).toThrow("upper");
  });
});

describe("derivatives", () => {
  test("of eigenvectors of equal eigenvalues are not numbers, of eigenvalues they are", () => {
    const of = (f: (a: Tensor) => Tensor): number[] =>
      Array.from(
        tm
          .grad((a) => f(a))(tm.eye(2))
          .data(),
        Number,
      );
    expect(of((a) => linalg.eigvalsh(a).sum())).toEqual([1, 0, 0, 1]);
    expect(of((a) => linalg.eigh(a).vectors.slice([0, 1])).every(Number.isFinite)).toBe(false);
  });

  test("a backward pass of inv keeps the inverse, and of cholesky the factor, not the matrix", () => {
    const n = 64;
    const bytes = (f: (a: Tensor) => Tensor): number =>
      tm.plan(
        tm.grad((x: Tensor) =>
          f(x.exp().add(tm.eye(n).mul(99)))
            .square()
            .sum(),
        ),
      )(tm.spec([n, n])).arenaBytes /
      (4 * n * n);
    // the argument, the result, its cotangent, and workspace: products need no more than two matrices of it
    expect(bytes(linalg.inv)).toBeLessThan(7);
    expect(bytes(linalg.cholesky)).toBeLessThan(8);
  });

  test("the gradient of a Gaussian's log density in its covariance", () => {
    const x = drawn([6]);
    const half = drawn([6, 6]);
    const covariance = half.matmul(t(half)).add(identity(6, "f64"));
    const direct = (s: Tensor): Tensor => linalg.slogdet(s).logabsdet.add(x.mul(linalg.solve(s, x)).sum());
    const factored = (s: Tensor): Tensor => {
      const l = linalg.cholesky(s);
      return l.diagonal().log().sum().mul(2).add(linalg.solveTriangular(l, x).square().sum());
    };
    expect(farthest(tm.grad(direct)(covariance), tm.grad(factored)(covariance))).toBeLessThan(1e-12);
  });
});
