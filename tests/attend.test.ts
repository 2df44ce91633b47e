/**
 * @file Attention whose scores are not stored: it agrees with the stored form in values and gradients, on every target, and holds no
 * tensor of all scores.
 */
import { describe, expect, test } from "vitest";
import type { AttentionForm, AttentionOptions } from "../src/api/attention.ts";
import { attention, compile, mul, plan, sum, type Tensor, tensor, valueAndGrad, zeros } from "../src/api/index.ts";
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
const casesOn = (target: string): readonly string[] => Object.keys(CASES).slice(0, target === "wasm" ? undefined : 1);

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

test("says which operands it cannot stream, and which forms there are", () => {
  const x = drawn([2, 3, 4], 1);
  const wide = drawn([3, 4, 5], 1);
  expect(() => attention(x, wide, wide, { form: "streamed" })).toThrow(
    /cannot be streamed: f32\[2,3,4\], f32\[3,4,5\]/,
  );
  expect(() => attention(x, x, x, { form: "flash" as never })).toThrow(/form is "flash"/);
  expect(() => attention(x, x, x, { window: 0 })).toThrow(/window is 0/);
});

test("the default form is stored where a scale is no number or there is no depth, at any length", () => {
  const [deep, flat] = [zeros([1024, 1]), zeros([1024, 0])];
  expect(attention(deep, deep, deep, { scale: Number.NaN }).data()[0]).toBeNaN();
  expect(attention(flat, flat, deep).data()[0]).toBe(0);
});
