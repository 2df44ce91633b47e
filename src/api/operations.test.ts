/** @file Operations as users call them: values against plain loops, on tensors and as methods, and their gradients. */
import { describe, expect, test } from "vitest";
import { close as closeTo, data } from "../../tests/support/api-values.ts";
import * as tm from "./index.ts";
import { type Tensor, tensor } from "./index.ts";

const f64 = (data: tm.NestedArray): Tensor => tensor(data, { dtype: "f64" });
const i32 = (data: tm.NestedArray): Tensor => tensor(data, { dtype: "i32" });

/** To the digits that these values are known to. */
const close = (actual: Tensor, expected: ArrayLike<number>, digits = 6): void => closeTo(actual, expected, digits);

/** Gradient of Σ c·f(x) against central differences, for fixed weights c. */
function checkGradient(f: (x: Tensor) => Tensor, x: Tensor): void {
  const weights = data(f(x).shape, 9);
  const loss = (v: Tensor): Tensor => f(v).mul(weights).sum();
  const base = x.data() as Float64Array;
  const h = 1e-5;
  const numeric = Array.from(base, (_, i) => {
    const at = (by: number): number => {
      const moved = Float64Array.from(base);
      moved[i]! += by;
      return loss(tensor(moved, { shape: x.shape })).item();
    };
    return (at(h) - at(-h)) / (2 * h);
  });
  close(tm.grad(loss)(x), numeric, 6);
}

describe("running products", () => {
  // [2, 0, 3, 0]: sum of y = 2 + 0 + 0 + 0; by hand, with each element taken out in turn
  const total = (x: Tensor): Tensor => x.cumprod().sum();

  test("have derivatives of every order where elements are zero", () => {
    const x = f64([2, 0, 3, 0]);
    // d/dx_1 of (x_0 + x_0 x_1 + x_0 x_1 x_2 + …) = x_0 + x_0 x_2 + x_0 x_2 x_3
    expect(tm.grad(total)(x).toArray()).toEqual([1, 2 + 2 * 3, 0, 0]);
    // d²/dx_1 dx_2 = x_0 + x_0 x_3, which is not zero although both gradients beside are
    const second = tm.grad((y: Tensor) =>
      tm
        .grad(total)(y)
        .mul(tensor([0, 1, 0, 0], { dtype: "f64" }))
        .sum(),
    )(x);
    expect(second.toArray()).toEqual([1 + 3, 0, 2, 2 * 3]);
    expect(
      tm
        .grad((y: Tensor) =>
          tm
            .grad(total)(y)
            .mul(tensor([0, 0, 1, 0], { dtype: "f64" }))
            .sum(),
        )(x)
        .toArray(),
    ).toEqual([0, 2, 0, 0]);
  });

  test("keep the sign of zero", () => {
    expect(f64([-0, 2]).cumprod().data()).toEqual(Float64Array.of(-0, -0));
  });
});

describe("elementwise operations", () => {
  const x = f64([
    [-1.5, 0.5],
    [2, -0.25],
  ]);

  test("broadcast like numpy and take numbers", () => {
    expect(tm.add(tensor([[1], [2]]), tensor([10, 20])).toArray()).toEqual([
      [11, 21],
      [12, 22],
    ]);
    expect(tensor([1, 2]).sub(1).toArray()).toEqual([0, 1]);
    expect(tm.div(1, tensor([2, 4])).toArray()).toEqual([0.5, 0.25]);
    expect(i32([7, -7]).div(2).toArray()).toEqual([3, -3]);
    expect(tm.add(1, 2).item()).toBe(3);
    expect(tensor([true, false]).logicalXor(true).toArray()).toEqual([false, true]);
  });

  test("compute what their names say", () => {
    const table: [(v: Tensor) => Tensor, (v: number) => number][] = [
      [tm.neg, (v) => -v],
      [tm.exp, Math.exp],
      [tm.expm1, Math.expm1],
      [tm.sin, Math.sin],
      [tm.cos, Math.cos],
      [tm.tan, Math.tan],
      [tm.tanh, Math.tanh],
      [tm.sigmoid, (v) => 1 / (1 + Math.exp(-v))],
      [tm.abs, Math.abs],
      [tm.sign, Math.sign],
      [tm.floor, Math.floor],
      [tm.ceil, Math.ceil],
      [tm.square, (v) => v * v],
      [tm.relu, (v) => Math.max(v, 0)],
      [tm.silu, (v) => v / (1 + Math.exp(-v))],
      [tm.softplus, (v) => Math.log1p(Math.exp(v))],
    ];
    for (const [fn, f] of table) {
      close(fn(x), Array.from(x.data(), f), 9);
      close((x as unknown as Record<string, () => Tensor>)[fn.name]!(), Array.from(x.data(), f), 9);
    }
    close(
      x.pow(3),
      Array.from(x.data(), (v) => v ** 3),
      9,
    );
    close(
      x.abs().pow(1.7),
      Array.from(x.data(), (v) => Math.abs(v) ** 1.7),
      9,
    );
    close(x.clamp(-1, 1), [-1, 0.5, 1, -0.25]);
    close(tm.minimum(x, 0), [-1.5, 0, 0, -0.25]);
    expect(tm.round(f64([0.5, 1.5, 2.4])).toArray()).toEqual([0, 2, 2]);
    expect(tm.isnan(f64([Number.NaN, 1])).toArray()).toEqual([true, false]);
    expect(x.cast("i32").toArray()).toEqual([
      [-1, 0],
      [2, 0],
    ]);
  });

  test("have gradients", () => {
    for (const f of [tm.gelu, tm.erf, tm.silu, tm.softplus, (v: Tensor) => v.square().add(1).log().rsqrt()]) {
      checkGradient(f, x);
    }
    checkGradient((v) => tm.where(v.greater(0), v.square(), v.mul(3)), x);
  });
});

describe("reductions", () => {
  const x = f64([
    [1, 5, 3],
    [4, 2, 6],
  ]);

  test("take axes from either end and keep dimensions on request", () => {
    expect(x.sum().item()).toBe(21);
    expect(x.sum(-1).toArray()).toEqual([9, 12]);
    expect(x.mean(0, { keepDims: true }).toArray()).toEqual([[2.5, 3.5, 4.5]]);
    expect(x.max([0, 1]).item()).toBe(6);
    expect(x.min(1).toArray()).toEqual([1, 2]);
    expect(x.prod(0).toArray()).toEqual([4, 10, 18]);
    expect(x.greater(4).any(1).toArray()).toEqual([true, true]);
    expect(x.greater(4).all(1).toArray()).toEqual([false, false]);
    expect(x.greater(2).sum().item()).toBe(4);
    close(x.var(1), [8 / 3, 8 / 3]);
    close(x.var(1, { ddof: 1 }), [4, 4]);
    close(x.std(), [Math.sqrt(35 / 12)]);
    expect(x.cumsum(1).toArray()).toEqual([
      [1, 6, 9],
      [4, 6, 12],
    ]);
    expect(x.cumprod(1, { reverse: true }).toArray()).toEqual([
      [15, 15, 3],
      [48, 12, 6],
    ]);
    close(
      x.logsumexp(1),
      [
        [1, 5, 3],
        [4, 2, 6],
      ].map((r) => Math.log(r.reduce((s, v) => s + Math.exp(v), 0))),
    );
    expect(
      f64([-1 / 0, -1 / 0])
        .logsumexp()
        .item(),
    ).toBe(-1 / 0);
    close(x.norm(), [Math.sqrt(91)]);
  });

  test("find the first extremum, NaN first of all", () => {
    expect(x.argmax(1).toArray()).toEqual([1, 2]);
    expect(x.argmin().item()).toBe(0);
    expect(f64([3, 3, 1]).argmax().item()).toBe(0);
    expect(f64([3, Number.NaN, 5]).argmax().item()).toBe(1);
    expect(
      i32([
        [3, 9],
        [8, 2],
      ])
        .argmax(0, { keepDims: true })
        .toArray(),
    ).toEqual([[1, 0]]);
  });

  test("have gradients", () => {
    checkGradient((v) => v.logsumexp(0), x);
    checkGradient((v) => v.std(1), x);
    checkGradient((v) => v.max(1), x);
    checkGradient((v) => v.prod(0), x);
    checkGradient((v) => v.norm(1), x);
    expect(
      tm
        .grad((v) => v.norm())(f64([0, 0]))
        .toArray(),
    ).toEqual([0, 0]);
  });
});

describe("movement", () => {
  const x = tm.arange(12).reshape([3, 4]);

  test("reshapes, transposes, repeats", () => {
    expect(x.T.shape).toEqual([4, 3]);
    expect(x.reshape([2, -1]).shape).toEqual([2, 6]);
    expect(x.expandDims([0, -1]).shape).toEqual([1, 3, 4, 1]);
    expect(x.expandDims([0, -1]).squeeze().shape).toEqual([3, 4]);
    expect(tm.swapAxes(tm.zeros([1, 2, 3]), 0, -1).shape).toEqual([3, 2, 1]);
    expect(i32([1, 2]).tile([2, 2]).toArray()).toEqual([
      [1, 2, 1, 2],
      [1, 2, 1, 2],
    ]);
    expect(i32([1, 2]).repeat(2).toArray()).toEqual([1, 1, 2, 2]);
    expect(
      i32([[1], [2]])
        .broadcastTo([2, 2])
        .toArray(),
    ).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  test("slices like numpy", () => {
    const rows = x.toArray() as number[][];
    const cases: [tm.Range, (r: number[]) => number[]][] = [
      [null, (r) => r],
      [[1, 3], (r) => r.slice(1, 3)],
      [[-2], (r) => r.slice(-2)],
      [[null, -1], (r) => r.slice(0, -1)],
      [[null, null, 2], (r) => [r[0]!, r[2]!]],
      [[null, null, -1], (r) => r.toReversed()],
      [[-1, 0, -2], (r) => [r[3]!, r[1]!]],
      [[3, 1], () => []],
      [[-100, 100], (r) => r],
      [[0, 4, -1], () => []],
    ];
    for (const [range, expected] of cases) {
      expect(x.slice([null, range]).toArray()).toEqual(rows.map(expected));
    }
    expect(x.slice([-1, 2]).item()).toBe(10);
    checkGradient(
      (v) =>
        v.slice([
          [null, null, -1],
          [1, null, 2],
        ]),
      data([3, 4]),
    );
  });

  test("joins and cuts", () => {
    const [a, b] = x.split([1, 3], 1);
    expect(tm.concat([a!, b!], 1).toArray()).toEqual(x.toArray());
    expect(tm.stack([i32([1, 2]), i32([3, 4])], 1).toArray()).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(
      i32([1, 2])
        .pad([[1, 2]], 9)
        .toArray(),
    ).toEqual([9, 1, 2, 9, 9]);
    expect(i32([1, 2, 3]).flip().toArray()).toEqual([3, 2, 1]);
  });

  test("makes tensors from nothing", () => {
    expect(tm.arange(2, 8, 3).toArray()).toEqual([2, 5]);
    expect(tm.linspace(0, 1, 3).toArray()).toEqual([0, 0.5, 1]);
    expect(tm.eye(2).toArray()).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(tm.ones([2, 2]).tril().toArray()).toEqual([
      [1, 0],
      [1, 1],
    ]);
    expect(tm.ones([2, 2]).triu(1).toArray()).toEqual([
      [0, 1],
      [0, 0],
    ]);
    expect(tm.full([2], true).toArray()).toEqual([true, true]);
  });

  test("indexes by data", () => {
    expect(x.take(i32([[2, 0]]), 1).shape).toEqual([3, 1, 2]);
    expect(x.gather(i32([[3], [2], [1]]), 1).toArray()).toEqual([[3], [6], [9]]);
    expect(
      tm
        .zeros([3])
        .scatterAdd(i32([1, 1, 2]), tensor([1, 2, 3]))
        .toArray(),
    ).toEqual([0, 3, 3]);
    expect(tm.oneHot(i32([1, 0]), 3).toArray()).toEqual([
      [0, 1, 0],
      [1, 0, 0],
    ]);
    expect(x.dynamicSlice([1, 2], [2, 2]).toArray()).toEqual([
      [6, 7],
      [10, 11],
    ]);
    expect(
      i32([0, 0, 0])
        .dynamicUpdate(i32([5]), [1])
        .toArray(),
    ).toEqual([0, 5, 0]);
    expect(tm.arange(8).reshape([2, 2, 2]).diagonal().toArray()).toEqual([
      [0, 3],
      [4, 7],
    ]);
    checkGradient((v) => v.take(i32([2, 0, 2])), data([3, 2]));
  });
});

describe("products", () => {
  const a = data([2, 3], 1);
  const b = data([3, 4], 2);

  /** einsum by loops over all indices. */
  function loops(spec: string, operands: readonly Tensor[]): number[] {
    const [left, output] = spec.split("->") as [string, string];
    const inputs = left.split(",");
    const letters = [...new Set(left.replaceAll(",", ""))];
    const extent = new Map<string, number>();
    inputs.forEach((s, i) => {
      [...s].forEach((c, k) => {
        extent.set(c, operands[i]!.shape[k]!);
      });
    });
    const offset = (s: string, at: Map<string, number>): number =>
      [...s].reduce((o, c) => o * extent.get(c)! + at.get(c)!, 0);
    const out = new Array<number>([...output].reduce((n, c) => n * extent.get(c)!, 1)).fill(0);
    const arrays = operands.map((x) => x.data());
    const at = new Map<string, number>();
    const walk = (depth: number): void => {
      const c = letters[depth];
      if (c === undefined) {
        out[offset(output, at)]! += inputs.reduce((p, s, i) => p * arrays[i]![offset(s, at)]!, 1);
        return;
      }
      for (let i = 0; i < extent.get(c)!; i++) {
        at.set(c, i);
        walk(depth + 1);
      }
    };
    walk(0);
    return out;
  }

  test("einsum equals loops over its indices", () => {
    const s = data([3, 3], 4);
    const t = data([2, 3, 4], 5);
    const u = data([2, 4, 5], 6);
    const cases: [string, Tensor[]][] = [
      ["ij,jk->ik", [a, b]],
      ["ij,jk->ki", [a, b]],
      ["ii->i", [s]],
      ["ii->", [s]],
      ["ij->ji", [a]],
      ["ij->", [a]],
      ["ij,ij->ij", [a, a]],
      ["bij,bjk->bik", [t, u]],
      ["bij,bjk->ikb", [t, u]],
      ["bij,bjk->", [t, u]],
      ["ab,bc,cd->ad", [a, b, data([4, 2], 7)]],
      ["ai,bi,ci->abc", [a, a, a]],
      ["i,j->ij", [data([2]), data([3])]],
      ["iij,j->i", [data([2, 2, 3]), data([3])]],
    ];
    for (const [spec, operands] of cases) close(tm.einsum(spec, ...operands), loops(spec, operands), 9);
    expect(tm.einsum("ji,jk", a, a).shape).toEqual([3, 3]);
    checkGradient(
      (v) =>
        tm.einsum(
          "ij,jk,kk->i",
          v,
          b.T.matmul(b).slice([
            [0, 3],
            [0, 3],
          ]),
          s,
        ),
      a,
    );
  });

  test("matmul takes vectors, batches and transposed sides", () => {
    close(a.matmul(b), loops("ij,jk->ik", [a, b]), 9);
    const v = data([3], 3);
    close(a.matmul(v), loops("ij,j->i", [a, v]), 9);
    close(v.matmul(b), loops("j,jk->k", [v, b]), 9);
    expect(v.matmul(v).shape).toEqual([]);
    const t = data([5, 2, 3], 4);
    close(t.matmul(b), loops("bij,jk->bik", [t, b]), 9);
    close(a.matmul(data([5, 3, 2], 6)), loops("ij,bjk->bik", [a, data([5, 3, 2], 6)]), 9);
    close(tm.matmul(a, a, { tb: true }), loops("ij,kj->ik", [a, a]), 9);
    close(tm.matmul(a, a, { ta: true }), loops("ji,jk->ik", [a, a]), 9);
    close(tm.outer(v, v), loops("i,j->ij", [v, v]), 9);
    expect(tm.ones([2, 1, 3, 4]).matmul(tm.ones([5, 4, 6])).shape).toEqual([2, 5, 3, 6]);
    checkGradient((w) => t.matmul(w), b);
  });
});

describe("nested arrays beside tensors", () => {
  const x = tensor([
    [1, 2],
    [3, 4],
  ]);

  test("are tensors of their element type, eagerly and compiled", () => {
    const rows = [
      [10, 20],
      [30, 40],
    ];
    for (const run of [<R>(fn: (v: Tensor) => R) => fn(x), <R>(fn: (v: Tensor) => R) => tm.compile(fn)(x)]) {
      expect(run((v) => v.add([10, 20])).toArray()).toEqual([
        [11, 22],
        [13, 24],
      ]);
      expect(run((v) => tm.mul(rows, v)).toArray()).toEqual([
        [10, 40],
        [90, 160],
      ]);
      expect(run((v) => v.matmul([[1], [1]])).toArray()).toEqual([[3], [7]]);
      expect(run((v) => tm.matmul([1, 1], v)).toArray()).toEqual([4, 6]);
      expect(run((v) => tm.where(v.greater([2, 2]), v, [0, -1])).toArray()).toEqual([
        [0, -1],
        [3, 4],
      ]);
    }
    expect(tm.add([1, 2], [3, 4]).toArray()).toEqual([4, 6]);
    expect(
      tm
        .compile((v: Tensor) => v.setAt(0, [8, 9]))(x)
        .toArray(),
    ).toEqual([
      [8, 9],
      [3, 4],
    ]);
  });

  test("take the element type of the tensor, and are refused where numbers would be", () => {
    expect(x.cast("f64").mul([0.1, 1]).dtype).toBe("f64");
    expect(tensor([1, 2], { dtype: "i32" }).add([1, 1]).dtype).toBe("i32");
    expect(() => tensor([1, 2], { dtype: "i32" }).add([0.5, 1])).toThrow("DtypeMismatch");
    expect(() => x.add([true, false])).toThrow("DtypeMismatch");
    expect(() => x.add([1, 2, 3])).toThrow("ShapeMismatch");
    expect(() => x.add([[1], [1, 2]])).toThrow("ragged");
  });

  test("have a place in derivatives as constants", () => {
    expect(
      tm
        .grad((v: Tensor) => v.mul([2, 3]).sum())(x)
        .toArray(),
    ).toEqual([
      [2, 3],
      [2, 3],
    ]);
  });

  test("as arguments stay arrays", () => {
    const f = tm.compile((rates: readonly number[], v: Tensor) => v.mul(rates[0]!).add(rates[1]!));
    expect(f([2, 1], x).toArray()).toEqual([
      [3, 5],
      [7, 9],
    ]);
  });
});
