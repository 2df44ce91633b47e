/**
 * @file Attention whose scores are not stored: it agrees with the stored form in values and gradients, on every target, and holds no
 * tensor of all scores.
 */
import { describe, expect, test } from "vitest";
import type { AttentionForm, AttentionOptions } from "../src/api/attention.ts";
import {
  arange,
  attention,
  compile,
  expandDims,
  greaterEqual,
  mul,
  oneHot,
  ones,
  plan,
  random,
  slice,
  sum,
  type Tensor,
  tensor,
  valueAndGrad,
  where,
  zeros,
} from "../src/api/index.ts";
import { multiHeadAttention, transformerBlock } from "../src/nn/index.ts";
import { plainTargets } from "./support/targets.ts";

type Shape = readonly number[];

function drawn(shape: Shape, seed: number): Tensor {
  const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) =>
    Math.sin(i * 1.7 + seed * 5.1),
  );
  return tensor(data, { shape });
}

interface Case {
  readonly q: Shape;
  readonly k: Shape;
  readonly v: Shape;
  readonly options?: Omit<AttentionOptions, "form">;
}

/** Blocks of 64 and what is left of them, limits, shared heads, both kinds of masks. */
const CASES: Readonly<Record<string, Case>> = {
  "causal, two query heads for one of keys": {
    ...{ q: [2, 130, 20], k: [1, 130, 20], v: [1, 130, 24] },
    options: { causal: true },
  },
  "a window, more keys than queries": { q: [1, 70, 8], k: [1, 200, 8], v: [1, 200, 5], options: { window: 30 } },
  "a mask of bools": {
    ...{ q: [2, 1, 66, 6], k: [2, 1, 65, 6], v: [2, 1, 65, 3] },
    options: {
      mask: tensor(
        Array.from({ length: 130 }, (_, i) => i % 3 > 0),
        { shape: [2, 1, 1, 65] },
      ),
    },
  },
  "a length for each batch, causal, more keys than queries": {
    ...{ q: [2, 2, 66, 6], k: [2, 1, 140, 6], v: [2, 1, 140, 3] },
    options: { causal: true, length: tensor([130, 40], { dtype: "i32" }) },
  },
  "a length, a window, and operands that repeat": {
    ...{ q: [2, 2, 5, 6], k: [1, 7, 6], v: [1, 2, 7, 3] },
    options: { window: 3, length: tensor(6, { dtype: "i32" }) },
  },
  "dropout, a length, two query heads for one of keys": {
    ...{ q: [2, 2, 66, 6], k: [2, 1, 70, 6], v: [2, 1, 70, 3] },
    options: { dropout: 0.4, key: random.key(3), length: tensor([70, 65], { dtype: "i32" }) },
  },
  "a matrix, and a bias": { q: [65, 4], k: [9, 4], v: [9, 4], options: { mask: drawn([65, 9], 9) } },
};

const loss =
  (form: AttentionForm, options: AttentionOptions = {}) =>
  (q: Tensor, k: Tensor, v: Tensor, w: Tensor) => {
    const of = (...[a, b, c]: [Tensor, Tensor, Tensor]): Tensor =>
      sum(mul(attention(a, b, c, { ...options, form }), w));
    return valueAndGrad(of, { argnums: [0, 1, 2] })(q, k, v);
  };

/** Where the kernels of samples are compared bit for bit (kernels.test.ts), one case is enough. */
const casesOn = (target: string): readonly string[] =>
  Object.keys(CASES).filter((name, i) => target === "wasm" || i === 0 || name.startsWith("a length for"));

for (const tested of plainTargets.filter(({ name }) => name === "wasm" || name === "native")) {
  describe.skipIf(tested.missing)(`streamed attention on ${tested.name}`, () => {
    test.each(casesOn(tested.name))("agrees with the stored form: %s", (name) => {
      const { q, k, v, options } = CASES[name] as Case;
      const args = [drawn(q, 1), drawn(k, 2), drawn(v, 3), drawn([...q.slice(0, -1), v.at(-1) ?? 0], 4)] as const;
      const [stored, streamed] = (["stored", "streamed"] as const).map((form) => {
        const [value, cotangents] = compile(loss(form, options), { target: tested.target() })(...args);
        return [value, ...cotangents].map((x) => [...(x.data() as Float32Array)]);
      });
      stored?.forEach((want, i) => {
        const scale = Math.max(0.1, ...want.map(Math.abs));
        const errors = want.map((x, e) => Math.abs(x - (streamed?.[i]?.[e] ?? Number.NaN)) / scale);
        expect(Math.max(...errors)).toBeLessThan(2e-5);
      });
    });
  });
}

test("the arena of a streamed step has no room for scores", () => {
  const [heads, time, width] = [2, 512, 16];
  const types = [1, 2, 3, 4].map((seed) => drawn([heads, time, width], seed)) as [Tensor, Tensor, Tensor, Tensor];
  const bytes = (form: AttentionForm): number => plan(loss(form, { causal: true }))(...types).arenaBytes;
  const scores = 4 * heads * time * time;
  expect(bytes("stored")).toBeGreaterThan(scores);
  expect(bytes("streamed")).toBeLessThan(scores / 2);
});

/** Keys and values with NaN from some key on. */
const spoiled = (x: Tensor, from: number): Tensor =>
  where(greaterEqual(expandDims(arange(x.shape.at(-2) ?? 0), 1), from), Number.NaN, x);

describe("a length", () => {
  const [q, k, v] = [drawn([2, 3, 4], 1), drawn([2, 200, 4], 2), drawn([2, 200, 5], 3)];
  const of = (length: number, options: AttentionOptions = {}) =>
    attention(q, spoiled(k, 128), spoiled(v, 128), {
      ...{ length: tensor(length, { dtype: "i32" }), form: "streamed" },
      ...options,
    });

  test.each([1, 63, 64, 65, 128])("of %s: bits of the first so many keys; blocks behind are not read", (length) => {
    const first = (x: Tensor): Tensor => slice(x, [null, [0, length]]);
    for (const causal of [false, true]) {
      const want = attention(q, first(k), first(v), { causal, form: "streamed" });
      expect(of(length, { causal }).data()).toEqual(want.data());
    }
  });

  test("is limited to the keys, and of none the result is zero in both forms", () => {
    expect(attention(q, k, v, { length: tensor(999, { dtype: "i32" }) }).data()).toEqual(
      attention(q, k, v, { form: "streamed" }).data(),
    );
    for (const form of ["stored", "streamed"] as const) {
      const zero = attention(q, k, v, { length: tensor(-1, { dtype: "i32" }), form }).data();
      expect([...zero].every((x) => x === 0)).toBe(true);
    }
  });
});

test.each(["stored", "streamed"] as const)(
  "%s: no batch, no key, no query and no depth give zeros or means",
  (form) => {
    const of = (q: Shape, k: Shape, v: Shape): Tensor => attention(drawn(q, 1), drawn(k, 2), ones(v), { form });
    expect(of([0, 2, 3, 4], [0, 2, 5, 4], [0, 2, 5, 6]).shape).toEqual([0, 2, 3, 6]);
    expect(of([0, 3, 4], [0, 5, 4], [0, 5, 6]).shape).toEqual([0, 3, 6]);
    expect(of([2, 0, 4], [2, 5, 4], [2, 5, 6]).shape).toEqual([2, 0, 6]);
    expect([...of([1, 2, 4], [1, 0, 4], [1, 0, 3]).data()]).toEqual([0, 0, 0, 0, 0, 0]);
    expect([...of([1, 2, 0], [1, 4, 0], [1, 4, 1]).data()]).toEqual([1, 1]);
  },
);

test.each(["stored", "streamed"] as const)("%s: refuses what does not fit in words of its own", (form) => {
  const x = drawn([2, 3, 4], 1);
  const of = (q: Shape, k: Shape, v: Shape, options: AttentionOptions = {}) => {
    return () => attention(drawn(q, 1), drawn(k, 2), drawn(v, 3), { ...options, form });
  };
  const i32 = (data: number | number[]): Tensor => tensor(data, { dtype: "i32" });
  expect(of([2, 3, 4], [3, 4, 5], [3, 4, 5])).toThrow(/attention: queries have 4 elements, keys 5: q f32\[2,3,4\]/);
  expect(of([2, 3, 4], [3, 5, 4], [3, 5, 4])).toThrow(/attention: 2 heads of q, 3 and 3 of k and v/);
  expect(of([2, 3, 4], [2, 5, 4], [2, 6, 4])).toThrow(/attention: 5 keys, 6 values/);
  expect(of([2, 1, 3, 4], [3, 1, 5, 4], [3, 1, 5, 4])).toThrow(/attention: leading axes differ/);
  expect(of([3], [3, 4], [3, 4])).toThrow(/attention: takes \[..., positions, depth\]/);
  expect(() => attention(x, x, x.cast("f64"), { form })).toThrow(/attention: element types differ/);
  expect(of([3, 4], [5, 4], [5, 4], { mask: drawn([2, 3, 5], 1) })).toThrow(
    /attention: the mask is f32\[2,3,5\], the scores are \[3,5\]/,
  );
  expect(of([1, 3, 4], [1, 5, 4], [1, 5, 4], { mask: drawn([2, 3, 5], 1) })).toThrow(/the mask is f32\[2,3,5\]/);
  expect(of([2, 3, 4], [2, 5, 4], [2, 5, 4], { length: i32([1, 2]) })).toThrow(/the length is i32\[2\]/);
  expect(of([2, 3, 4], [2, 5, 4], [2, 5, 4], { length: tensor(2) })).toThrow(/the length is f32\[\]/);
});

test("drops as many weights as asked for, as the key draws them", () => {
  // every query sees all keys alike; values are those of one key each
  const [q, k, v] = [zeros([1, 40, 4]), zeros([1, 50, 4]), oneHot(arange(50), 50).expandDims(0)];
  const key = random.key(9);
  const weights = attention(q, k, v, { dropout: 0.25, key, form: "streamed" }).data();
  const kept = random.bernoulli(key, 0.75, [1, 40, 50]).data();
  const errors = Array.from(kept, (isKept, i) => Math.abs(Number(weights[i]) - (isKept ? 1 / 50 / 0.75 : 0)));
  expect(Math.max(...errors)).toBeLessThan(1e-6);
  const plain = attention(q, k, v, { form: "streamed" }).data();
  expect(attention(q, k, v, { dropout: 0, key, form: "streamed" }).data()).toEqual(plain);
});

test("layers leave out what is behind the length of each batch", () => {
  const block = transformerBlock(8, { heads: 2, causal: true });
  const [params, x] = [block.init(0), drawn([2, 6, 8], 1)];
  const of = (batch: number, length: number): Tensor => slice(x, [batch, [0, length]]);
  const padded = block.apply(params, x, { length: tensor([6, 4], { dtype: "i32" }) });
  expect(padded.shape).toEqual([2, 6, 8]);
  for (const [batch, length] of [
    [0, 6],
    [1, 4],
  ] as const) {
    const [got, want] = [slice(padded, [batch, [0, length]]).data(), block.apply(params, of(batch, length)).data()];
    expect(Math.max(...Array.from(got, (y, i) => Math.abs(y - Number(want[i]))))).toBeLessThan(1e-6);
  }
});

test("layers drop while they train, each from a key of its own", () => {
  const layer = multiHeadAttention(8, { heads: 2, dropout: 0.5 });
  const [params, x, key] = [layer.init(0), drawn([5, 8], 1), random.key(1)];
  const plain = layer.apply(params, x).data();
  expect(layer.apply(params, x, { key }).data()).toEqual(plain);
  expect(layer.apply(params, x, { train: true, key }).data()).not.toEqual(plain);
  expect(() => layer.apply(params, x, { train: true })).toThrow(/multiHeadAttention: training draws random numbers/);
  expect(() => multiHeadAttention(8, { heads: 2, dropout: 1 })).toThrow(/multiHeadAttention: rate 1/);
  const block = transformerBlock(8, { heads: 2, attentionDropout: 0.5 });
  const own = block.init(0);
  expect([block.random, transformerBlock(8, { heads: 2 }).random]).toEqual([true, false]);
  expect(block.apply(own, x, { train: true, key }).data()).not.toEqual(block.apply(own, x).data());
});

test("says which forms and options there are", () => {
  const x = drawn([2, 3, 4], 1);
  expect(() => attention(x, x, x, { form: "flash" as never })).toThrow(/form is "flash"/);
  expect(() => attention(x, x, x, { window: 0 })).toThrow(/window is 0/);
  expect(() => attention(x, x, x, { dropout: 1, key: random.key(0) })).toThrow(/dropout is 1/);
  expect(() => attention(x, x, x, { dropout: 0.1 })).toThrow(/there is no key to draw from/);
  expect(() => attention(x, x, x, { dropout: 0.1, key: tensor([1, 2]) })).toThrow(/its key is f32\[2\]/);
  expect(() => attention(x, x, x, { scale: Number.NaN, form: "streamed" })).toThrow(/attention: scale is NaN/);
});

test("the default form is stored where a scale is no number or there is no depth, at any length", () => {
  const [deep, flat] = [zeros([1024, 1]), zeros([1024, 0])];
  expect(attention(deep, deep, deep, { scale: Number.NaN }).data()[0]).toBeNaN();
  expect(attention(flat, flat, deep).data()[0]).toBe(0);
});
