/**
 * @file Where formulas end: ties, NaN, infinities, zero spread, nothing at all. Every case is run eagerly and compiled,
 * and what it should give is written out.
 */
import { describe, expect, test } from "vitest";
import * as tm from "../../src/api/index.ts";
import { compile, type NestedArray, type Tensor, tensor } from "../../src/api/index.ts";

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

const f64 = (data: NestedArray): Tensor => tensor(data, { dtype: "f64" });

/** The value, the same whether compiled or not. */
function both(f: (x: Tensor) => Tensor, x: Tensor): NestedArray {
  const value = f(x).toArray();
  expect(compile(f)(x).toArray()).toEqual(value);
  return value;
}

/** Nested numbers that may be an ulp off. */
const near = (data: NestedArray): NestedArray =>
  (Array.isArray(data) ? data.map(near) : expect.closeTo(data as number, 12)) as NestedArray;

describe("extrema", () => {
  const table = f64([
    [1, 3, 3, 2],
    [nan, 5, nan, 9],
    [-inf, -inf, -inf, -inf],
    [0, -0, 0, inf],
  ]);

  test("argmax and argmin take the first of ties, and NaN before all", () => {
    expect(both((x) => x.argmax(1), table)).toEqual([1, 0, 0, 3]);
    expect(both((x) => x.argmin(1), table)).toEqual([0, 0, 0, 0]);
    expect(both((x) => x.argmax(), table)).toBe(4);
    expect(both((x) => x.argmax(0), table)).toEqual([1, 1, 1, 3]);
    const wide = f64(Array.from({ length: 100 }, (_, i) => (i === 37 || i === 61 ? 7 : i / 100)));
    expect(both((x) => x.argmax(), wide)).toBe(37);
    expect(both((x) => x.neg().argmin(), wide)).toBe(37);
  });

  test("max and min are NaN where NaN is", () => {
    expect(both((x) => x.max(1), table)).toEqual([3, nan, -inf, inf]);
    expect(both((x) => x.min(1), table)).toEqual([1, nan, -inf, -0]);
    for (let i = 0; i < 40; i++) {
      const long = f64(Array.from({ length: 40 }, (_, k) => (k === i ? nan : k)));
      expect(both((x) => x.max(), long)).toBe(nan);
    }
  });

  test("gradients of max go to ties in a way that sums to the whole", () => {
    const slope = tm
      .grad((x) => x.max(1).sum())(
        f64([
          [1, 3, 3, 2],
          [4, 0, 0, 0],
        ]),
      )
      .toArray() as number[][];
    expect(slope[0]!.reduce((s, v) => s + v, 0)).toBe(1);
    expect([slope[0]![0], slope[0]![3]]).toEqual([0, 0]);
    expect(slope[1]).toEqual([1, 0, 0, 0]);
  });

  test("maxPool sees padding as nothing, even among infinities", () => {
    const x = f64([[-inf, -inf, -5]]);
    expect(both((v) => tm.maxPool1d(v, 3, { stride: 1, padding: 1 }), x)).toEqual([[-inf, -5, -5]]);
  });
});

describe("softmax and its kin", () => {
  test("do not overflow", () => {
    expect(both((x) => x.softmax(), f64([1e300, 1e300]))).toEqual(near([0.5, 0.5]));
    expect(both((x) => x.softmax(), tensor([2e7, 2e7, 2e7 - 2]))).toEqual([
      expect.closeTo(1 / (2 + Math.exp(-2)), 6),
      expect.closeTo(1 / (2 + Math.exp(-2)), 6),
      expect.closeTo(1 / (2 * Math.exp(2) + 1), 6),
    ]);
    expect(both((x) => x.logSoftmax(), f64([1000, 0]))).toEqual([0, -1000]);
    expect(both((x) => x.logsumexp(), f64([-1000, -1000]))).toEqual(near(-1000 + Math.LN2));
    expect(
      both(
        (x) => x.logsumexp(1),
        f64([
          [inf, 0],
          [-inf, -inf],
          [-inf, 3],
        ]),
      ),
    ).toEqual([inf, -inf, 3]);
  });

  test("give masked places nothing, in the gradient too", () => {
    const x = f64([1, -inf, 1]);
    expect(both((v) => v.softmax(), x)).toEqual(near([0.5, 0, 0.5]));
    const w = f64([1, 2, 3]);
    expect(
      tm
        .grad((v) => v.softmax().mul(w).sum())(x)
        .toArray(),
    ).toEqual(near([-0.5, 0, 0.5]));
    expect(
      tm
        .grad((v: Tensor) => v.logsumexp())(x)
        .toArray(),
    ).toEqual(near([0.5, 0, 0.5]));
  });

  test("crossEntropy passes over impossible classes that are not the target", () => {
    const target = tensor([2], { dtype: "i32" });
    const loss = (x: Tensor): Tensor => tm.crossEntropy(x, target);
    expect(both(loss, f64([[0, -inf, 0]]))).toEqual(near(Math.LN2));
    expect(
      tm
        .grad(loss)(f64([[0, -inf, 0]]))
        .toArray(),
    ).toEqual(near([[0.5, 0, -0.5]]));
    expect(both(loss, f64([[0, 0, 2000]]))).toEqual(near(0));
  });

  test.each(["stored", "streamed"] as const)("%s attention gives what a query cannot see no gradient", (form) => {
    const q = f64([
      [1, 0],
      [0, 1],
      [1, 1],
    ]);
    const loss = (k: Tensor): Tensor => tm.attention(q, k, k, { causal: true, form }).slice([0]).sum();
    expect(tm.grad(loss)(q).toArray()).toEqual([
      [1, 1],
      [0, 0],
      [0, 0],
    ]);
  });

  describe.each(["stored", "streamed"] as const)("%s attention of a query that sees no key", (form) => {
    const q = f64([
      [1, 0],
      [0, 1],
      [1, 1],
    ]);
    const hidden = Number.NEGATIVE_INFINITY;
    const floats = f64([
      [0.5, hidden, 0.25],
      [hidden, hidden, hidden],
      [hidden, 1, hidden],
    ]);
    const of = (mask: Tensor) => (k: Tensor, v: Tensor) => tm.attention(q, k, v, { mask, form });
    const zero = [0, 0];

    test("is zero, for a mask of bools and of floats", () => {
      for (const mask of [floats, floats.greater(hidden)]) {
        const y = tm.compile(of(mask))(q, q).toArray() as number[][];
        expect(y[1]).toEqual(zero);
        expect(y[2]).toEqual([0, 1]);
        expect(y[0]!.every(Number.isFinite)).toBe(true);
      }
    });

    test("has a zero gradient, and so has a key that is hidden", () => {
      for (const mask of [floats, floats.greater(hidden)]) {
        const lost = (k: Tensor, v: Tensor): Tensor => of(mask)(k, v).slice([1]).square().sum();
        for (const d of tm.grad(lost, { argnums: [0, 1] })(q, q)) expect(d.toArray()).toEqual([zero, zero, zero]);
        const all = (k: Tensor, v: Tensor): Tensor => of(mask)(k, v).square().sum();
        for (const d of tm.grad(all, { argnums: [0, 1] })(q, q)) expect(d.data().every(Number.isFinite)).toBe(true);
      }
    });

    test("leaves the gradient of the mask finite: zero where it hides, differences elsewhere", () => {
      const loss = (mask: Tensor): Tensor => tm.attention(q, q, q, { mask, form }).square().sum();
      const d = tm.grad(loss)(floats).toArray() as number[][];
      const eps = 1e-6;
      const moved = (j: number, by: number): number =>
        loss(floats.add(f64([[j === 0 ? by : 0, 0, j === 2 ? by : 0], zero.concat(0), zero.concat(0)]))).item();
      for (const j of [0, 2]) expect(d[0]![j]).toBeCloseTo((moved(j, eps) - moved(j, -eps)) / (2 * eps), 6);
      expect([d[0]![1]!, ...d[1]!, ...d[2]!].map(Math.abs)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    });
  });
});

describe("gradients far out", () => {
  for (const [name, fn] of Object.entries({ gelu: tm.gelu, silu: tm.silu })) {
    test(`of ${name} are 1 and 0, those of its derivative 0`, () => {
      for (const dtype of ["f32", "f64"] as const) {
        const at = (...points: number[]): Tensor => tensor(points, { dtype });
        const first = tm.grad((x: Tensor) => fn(x).sum());
        const second = tm.grad((x: Tensor) => first(x).sum());
        const magnitudes = (x: Tensor): number[] => [...x.data()].map(Math.abs);
        expect(first(at(1e20, 3e38, inf)).toArray()).toEqual([1, 1, 1]);
        expect(magnitudes(first(at(-1e20, -3e38, -inf)))).toEqual([0, 0, 0]);
        expect(magnitudes(second(at(1e20, -1e20)))).toEqual([0, 0]);
      }
    });
  }
});

describe("norms of values whose squares are out of range", () => {
  const weights = [1, -2, 0.5, 3];
  const rows = (size: number): number[][] => [
    [1 * size, -2 * size, 3 * size, 0.5 * size],
    [-0.25 * size, 2 * size, 2.5 * size, size],
  ];
  const FUNCTIONS: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    layerNorm: (x) => tm.layerNorm(x),
    rmsNorm: (x) => tm.rmsNorm(x),
    batchNorm: (x) => tm.batchNorm(x.T).y.T,
    groupNorm: (x) => tm.groupNorm(x.reshape([2, 2, 2]), 1).reshape([2, 4]),
    norm: (x) => x.norm(1, { keepDims: true }),
    std: (x) => x.std(1, { keepDims: true }),
  };
  /** Those with an eps see nothing but that in tiny values. */
  const HAVE_NO_EPS = ["norm", "std"];
  for (const [name, fn] of Object.entries(FUNCTIONS)) {
    const loss = (x: Tensor): Tensor =>
      fn(x)
        .mul(tensor(weights, { dtype: x.dtype as "f32" }))
        .sum();
    for (const size of HAVE_NO_EPS.includes(name) ? [1e30, 1e-30] : [1e30]) {
      test(`${name} of values near ${size} is right, and so is its gradient`, () => {
        const [single, double] = (["f32", "f64"] as const).map((dtype) => tensor(rows(size), { dtype }));
        for (const of of [fn, tm.grad(loss)]) {
          const want = of(double!).data();
          const most = Math.max(...want.map(Math.abs));
          of(single!)
            .data()
            .forEach((got, i) => {
              expect(Math.abs(got - want[i]!) / most).toBeLessThan(1e-6);
            });
        }
      });
    }
  }

  test("of f64 are right beyond the squares too", () => {
    for (const size of [1e200, 1e-200]) {
      expect(tm.norm(f64([3 * size, 4 * size])).item() / (5 * size)).toBeCloseTo(1, 14);
    }
  });

  test("of ordinary values have the bits of the plain formula", () => {
    const x = tm.random.normal(tm.random.key(3), [40, 96]);
    const root = (v: Tensor): Tensor => v.sum(1, { keepDims: true }).sqrt();
    expect(x.norm(1, { keepDims: true }).data()).toEqual(root(x.mul(x)).data());
    const centred = x.sub(x.mean(1, { keepDims: true }));
    const r = centred.square().mean(1, { keepDims: true }).add(1e-5).rsqrt();
    expect(tm.layerNorm(x).data()).toEqual(centred.mul(r).data());
    expect(tm.rmsNorm(x).data()).toEqual(x.mul(x.square().mean(1, { keepDims: true }).add(1e-5).rsqrt()).data());
  });
});

describe("statistics of little", () => {
  test("the standard deviation of equal elements has the derivative zero", () => {
    const x = f64([
      [3, 3, 3],
      [1, 2, 3],
    ]);
    const root = Math.sqrt(2 / 3);
    expect(both((v) => v.std(1), x)).toEqual([0, expect.closeTo(root, 12)]);
    expect(
      tm
        .grad((v: Tensor) => v.std(1).sum())(x)
        .toArray(),
    ).toEqual([[0, 0, 0], near([-1 / (3 * root), 0, 1 / (3 * root)])]);
    expect(
      tm
        .grad((v: Tensor) => v.std(0, { ddof: 1 }).sum())(f64([[2], [2]]))
        .toArray(),
    ).toEqual([[0], [0]]);
  });

  test("variance of equal elements is zero, and norm has a derivative there", () => {
    expect(
      both(
        (x) => x.variance(1),
        f64([
          [3, 3, 3],
          [1, 1, 1],
        ]),
      ),
    ).toEqual([0, 0]);
    expect(
      both(
        (x) => x.norm(1),
        f64([
          [0, 0],
          [3, 4],
        ]),
      ),
    ).toEqual([0, 5]);
    expect(
      tm
        .grad((x) => x.norm(1).sum())(
          f64([
            [0, 0],
            [3, 4],
          ]),
        )
        .toArray(),
    ).toEqual(
      near([
        [0, 0],
        [0.6, 0.8],
      ]),
    );
    expect(
      tm
        .grad((x: Tensor) => tm.layerNorm(x).slice([0]).sum())(f64([2, 2]))
        .toArray(),
    ).toEqual([expect.closeTo(158.11, 2), expect.closeTo(-158.11, 2)]);
  });

  test("variance takes no more freedom than there is", () => {
    expect(() => tm.variance(f64([1]), 0, { ddof: 1 })).toThrow("ddof 1 of 1 elements");
    expect(() => tm.variance(tm.zeros([0]))).toThrow("ddof 0 of 0 elements");
  });

  test("sums of nothing are zero, products one, means NaN, extrema refused", () => {
    const none = tm.zeros([2, 0]);
    expect(both((x) => x.sum(1), none)).toEqual([0, 0]);
    expect(both((x) => x.prod(1), none)).toEqual([1, 1]);
    expect(both((x) => x.mean(1), none)).toEqual([nan, nan]);
    expect(both((x) => x.cast("bool").any(1), none)).toEqual([false, false]);
    expect(both((x) => x.cast("bool").all(1), none)).toEqual([true, true]);
    for (const f of [tm.max, tm.min, tm.argmax, tm.argmin] as const)
      expect(() => f(none, 1)).toThrow("has no elements");
  });

  test("tensors without elements go through products, windows and derivatives", () => {
    expect(both((x) => x.matmul(tm.ones([0, 3])), tm.zeros([2, 0]))).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect(both((x) => tm.conv1d(x, tm.ones([2, 3, 2])), tm.zeros([0, 3, 4]))).toEqual([]);
    expect(tm.grad((x: Tensor) => x.square().sum())(tm.zeros([0, 4])).shape).toEqual([0, 4]);
    expect(tm.jacobian((x: Tensor) => x.slice([[0, 0]]))(tm.ones([3])).shape).toEqual([0, 3]);
    expect(tm.jacobian((x: Tensor) => x.sum())(tm.zeros([0])).shape).toEqual([0]);
    expect(tm.jacobian((x: Tensor) => x.sum().add(tm.ones([2])))(tm.zeros([0])).shape).toEqual([2, 0]);
  });
});

describe("integers", () => {
  const i32 = (data: NestedArray): Tensor => tensor(data, { dtype: "i32" });

  test("wrap around, divide towards zero and compare exactly", () => {
    expect(both((x) => x.add(1), i32([2147483647]))).toEqual([-2147483648]);
    expect(both((x) => x.mul(65537), i32([65537]))).toEqual([131073]);
    expect(both((x) => x.div(3), i32([-7, 7]))).toEqual([-2, 2]);
    expect(both((x) => x.equal(16777217), i32([16777217, 16777216]))).toEqual([true, false]);
    expect(both((x) => x.max(), i32([-2147483648, -5]))).toBe(-5);
    expect(both((x) => x.sum(), i32([2147483647, 1]))).toBe(-2147483648);
  });

  test("become floats and back by truncation", () => {
    expect(both((x) => x.cast("f32"), i32([16777217]))).toEqual([16777216]);
    expect(both((x) => x.cast("i32"), f64([-1.9, 1.9, -0.5]))).toEqual([-1, 1, 0]);
  });
});

describe("class numbers out of range", () => {
  const logits = f64([
    [0, 0],
    [1, 1],
    [2, 2],
  ]);
  const classes = tensor([1, 2, -1], { dtype: "i32" });

  test("make the loss of their example NaN, and so the mean", () => {
    const loss = (reduction: tm.Reduction) => (x: Tensor) => tm.crossEntropy(x, classes, { reduction });
    expect(both(loss("none"), logits)).toEqual([near(Math.LN2), nan, nan]);
    expect(both(loss("mean"), logits)).toBe(nan);
    expect(both(loss("sum"), logits)).toBe(nan);
  });

  test("leave the gradients of the other examples alone", () => {
    const slope = tm.grad((x: Tensor) => tm.crossEntropy(x, classes, { reduction: "sum" }))(logits);
    expect(slope.toArray()).toEqual(
      near([
        [0.5, -0.5],
        [0, 0],
        [0, 0],
      ]),
    );
  });
});

describe("probabilities of nothing", () => {
  test("are nothing, and the logarithm of their sum is -∞", () => {
    const x = tm.zeros([2, 0]);
    for (const f of [tm.softmax, tm.logSoftmax]) {
      expect(both((v) => f(v), x)).toEqual([[], []]);
      expect(both((v) => f(v, 0), x)).toEqual([[], []]);
      expect(tm.grad((v: Tensor) => f(v).sum())(x).shape).toEqual([2, 0]);
    }
    expect(both((v) => tm.logsumexp(v, 1), x)).toEqual([-inf, -inf]);
    expect(both((v) => tm.logsumexp(v, 1, { keepDims: true }), x)).toEqual([[-inf], [-inf]]);
    expect(both((v) => tm.logsumexp(v), x)).toBe(-inf);
    expect(both((v) => tm.logsumexp(v, 0), x)).toEqual([]);
  });
});

describe("bools", () => {
  test("are equal or not", () => {
    const x = tensor([true, false, true, false]);
    const y = tensor([true, true, false, false]);
    expect(both((v) => v.equal(y), x)).toEqual([true, false, false, true]);
    expect(both((v) => v.notEqual(y), x)).toEqual([false, true, true, false]);
    expect(both((v) => v.equal(true), x)).toEqual([true, false, true, false]);
  });
});

describe("diagonals of matrices that are not square", () => {
  test.each([
    [2, 3],
    [3, 2],
    [1, 4],
    [4, 1],
    [0, 3],
    [3, 0],
  ])("of %i by %i elements are as long as the shorter side", (rows, columns) => {
    const x = tm.arange(rows * columns).reshape([rows, columns]);
    const expected = Array.from({ length: Math.min(rows, columns) }, (_, i) => i * columns + i);
    expect(both((v) => v.diagonal(), x)).toEqual(expected);
    expect(both((v) => v.diagonal(1, 0), x)).toEqual(expected);
  });

  test("spread gradients over what they took", () => {
    const slope = tm.grad((x: Tensor) =>
      x
        .diagonal()
        .mul(tensor([5, 7]))
        .sum(),
    )(tm.zeros([2, 3]));
    expect(slope.toArray()).toEqual([
      [5, 0, 0],
      [0, 7, 0],
    ]);
  });
});

describe("padding of convolutions", () => {
  test("may be one number for each axis, and is that on both sides", () => {
    const [x, w] = [tm.ones([1, 1, 3, 3]), tm.ones([1, 1, 3, 3])];
    const [one, two] = [
      [1, 1],
      [2, 2],
    ] as const;
    const pairs = tm.conv2d(x, w, { padding: [one, two] });
    expect(tm.conv2d(x, w, { padding: [1, 2] }).toArray()).toEqual(pairs.toArray());
    expect(tm.conv2d(x, w, { padding: [1, [2, 2]] }).toArray()).toEqual(pairs.toArray());
    expect(tm.maxPool2d(x, 3, { padding: [1, 0], stride: 1 }).shape).toEqual([1, 1, 3, 1]);
  });
});
