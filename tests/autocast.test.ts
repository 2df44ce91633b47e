/**
 * @file `autocast`: which types values get, that bits are the same compiled, one operation at a time and at every budget, that gradients of
 * weights are not rounded, loss scales, and the bytes of a language model. Losses of long runs: npm run bench:half.
 */
import { describe, expect, test } from "vitest";
import * as api from "../src/api/index.ts";
import { gpt } from "../src/cli/programs/gpt.ts";

const { autocast, compile, grad, layerNorm, matmul, plan, softmax, tensor, valueAndGrad } = api;

const data = (n: number, scale: number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.7) * scale);
const matrix = (rows: number, cols: number, scale = 1): api.Tensor =>
  tensor(data(rows * cols, scale), { shape: [rows, cols] });

const bf16 = { products: "bf16" } as const;
/** The types of what a function gives under autocast. */
const typesOf = (fn: () => readonly api.Tensor[], options: api.AutocastOptions = bf16): readonly string[] =>
  autocast(fn, options)().map(({ dtype }) => dtype);

describe("types under autocast", () => {
  const [x, w, b] = [matrix(4, 8), matrix(8, 8), tensor(data(8, 1))];

  test("are narrow after products and where elements follow them, else f32", () => {
    const fn = (): readonly api.Tensor[] => {
      const y = matmul(x, w);
      const h = y.add(b).gelu();
      return [y, h, h.reshape([8, 4]).transpose(), x.add(h), h.mul(2), h.sum(), layerNorm(h), softmax(h), h.mean()];
    };
    expect(typesOf(fn)).toEqual(["bf16", "bf16", "bf16", "f32", "bf16", "f32", "f32", "f32", "f32"]);
    expect(typesOf(fn, { products: "f16", stream: "f16" })[3]).toBe("f16");
    expect(fn().every(({ dtype }) => dtype === "f32")).toBe(true);
  });

  test("do not change for f64, and a product can leave f32", () => {
    const wide = tensor(Float64Array.of(1, 2, 3, 4), { shape: [2, 2] });
    expect(typesOf(() => [matmul(wide, wide), matmul(x, w, { result: "f32" })])).toEqual(["f64", "f32"]);
  });

  test("of states stay, branches and operands of attention meet, and what is changed in place keeps its own", () => {
    const rows = matrix(12, 8).reshape([3, 4, 8]);
    const rnn = (h: api.Tensor, row: api.Tensor): readonly [api.Tensor, api.Tensor] => {
      const next = matmul(row, w).add(matmul(h, w)).tanh();
      return [next, next];
    };
    const zero = matrix(4, 8, 0);
    type Counted = readonly [api.Tensor, api.Tensor];
    const fn = (): readonly api.Tensor[] => [
      ...api.scan(rnn, zero, rows),
      api.forLoop(2, matmul(x, w), (_, h) => layerNorm(h)),
      api.whileLoop<Counted>(
        ([i]) => i.less(2),
        ([i, h]) => [i.add(1), matmul(h, w)],
        [tensor(0, { dtype: "i32" }), zero],
      )[1],
      api.cond(
        x.sum().less(0),
        (v) => matmul(v, w),
        (v) => v,
        x,
      ),
      api.attention(matmul(x, w), x, layerNorm(x)),
      api.associativeScan((a, b) => matmul(a, b), api.stack([w, w, w])),
    ];
    expect(typesOf(fn)).toEqual(["f32", "bf16", "bf16", "f32", "f32", "bf16", "f32"]);
    expect(typesOf(fn, { products: "f16", stream: "f16" })[4]).toBe("f16");
    const changed = compile(
      autocast((v: api.Tensor): api.Tensor => {
        const y = v.copy();
        y.setAt(0, matmul(v, w).slice([1]));
        return y.addInPlace(matmul(v, w));
      }, bf16),
    )(x);
    expect(changed.dtype).toBe("f32");
  });

  test("of derivatives that a rule gives are those of what they belong to", () => {
    const rule = api.customVjp((v: api.Tensor) => matmul(v, w), {
      forward: (v) => [matmul(v, w), []],
      backward: (_, ct) => [matmul(ct, w, { tb: true })],
    });
    const tangent = api.customJvp(
      (v: api.Tensor) => layerNorm(v),
      (_, [t]) => matmul(t, w),
    );
    const block = api.additiveCoupling(
      (v: api.Tensor) => matmul(v, w).tanh(),
      (v: api.Tensor) => layerNorm(v),
    );
    const loss = (v: api.Tensor): api.Tensor => {
      const [a, b] = api.reversibleLoop(block, 2)([rule(v), tangent(v)]);
      return a.add(b).square().mean();
    };
    const [slope, exact] = [grad(autocast(loss, bf16))(x), grad(loss)(x)];
    expect(slope.dtype).toBe("f32");
    expect(slope.sub(exact).norm().item()).toBeLessThan(0.02 * exact.norm().item());
  });

  test("of options that there are not are refused", () => {
    const fn = (): api.Tensor => x;
    expect(() => autocast(fn, { products: "f8" as "f16" })).toThrow(/products is .*f8[\s\S]*"bf16"/);
    expect(() => autocast(fn, { products: "bf16", stream: "f16" })).toThrow(/stream is .*f16[\s\S]*"f32" or "bf16"/);
    expect(() => autocast(fn, { products: "f16", lossScale: 0 })).toThrow(/lossScale is 0/);
    expect(() => matmul(x, w, { result: "f64" as "f32" })).toThrow(/a result of f64 from products of f32/);
  });
});

describe("numbers under autocast", () => {
  const half = (x: api.Tensor): api.Tensor => x.cast("bf16");

  test("are products of rounded numbers, added in f32; gradients of weights are not rounded", () => {
    const [x, w, weights] = [matrix(6, 40), matrix(40, 5), matrix(6, 5)];
    const loss = (v: api.Tensor): api.Tensor => matmul(x, v).mul(half(weights)).sum();
    const dw = grad(autocast(loss, bf16))(w);
    const wanted = matmul(half(x), half(weights), { ta: true, result: "f32" });
    expect(dw.data()).toEqual(wanted.data());
    expect(wanted.data()).not.toEqual(wanted.cast("bf16").cast("f32").data());
    expect(matmul(half(x), half(w)).data()).toEqual(
      matmul(half(x).cast("f32"), half(w).cast("f32")).cast("bf16").data(),
    );
  });

  test("have the same bits compiled, one operation at a time, and at every budget", () => {
    const params = { a: matrix(24, 48, 0.3), b: matrix(48, 24, 0.3) };
    const block = (p: typeof params, x: api.Tensor): api.Tensor => x.add(matmul(matmul(layerNorm(x), p.a).gelu(), p.b));
    const loss = (p: typeof params, x: api.Tensor): api.Tensor =>
      api.crossEntropy(block(p, block(p, block(p, x))), tensor(Int32Array.from({ length: 96 }, (_, i) => i % 24)));
    const x = matrix(96, 24);
    for (const options of [bf16, { products: "f16", stream: "f16", lossScale: 256 }] as const) {
      const step = valueAndGrad(autocast(loss, options));
      const [value, { a, b }] = step(params, x);
      const whole = plan(step)(params, x).arenaBytes;
      for (const part of [1, 0.93, 0.86]) {
        const [v, g] = compile(step, { memory: Math.ceil(whole * part) })(params, x);
        expect([v.item(), g.a.data(), g.b.data()]).toEqual([value.item(), a.data(), b.data()]);
      }
      const [exact] = valueAndGrad(loss)(params, x);
      expect(Math.abs(value.item() / exact.item() - 1)).toBeLessThan(0.005);
    }
  });

  test("beyond f16 are infinite; a loss scale keeps gradients that are too small for it", () => {
    const big = tensor([[300, 300]]);
    const square = (x: api.Tensor): api.Tensor => matmul(x, x, { tb: true });
    expect(autocast(square, { products: "f16" })(big).toArray()).toEqual([[Number.POSITIVE_INFINITY]]);
    expect(autocast(square, bf16)(big).item()).toBe(180224);
    const [w, x] = [tensor([[1]]), tensor([[1]])];
    const tiny = (v: api.Tensor): api.Tensor =>
      matmul(x, v)
        .mul(2 ** -15)
        .mul(2 ** -15)
        .sum();
    const gradient = (lossScale: number): number => grad(autocast(tiny, { products: "f16", lossScale }))(w).item();
    expect([gradient(1), gradient(2 ** 12)]).toEqual([0, 2 ** -30]);
    // what the function closes over is unscaled as well
    const closed = grad((v: api.Tensor) => autocast(() => tiny(v), { products: "f16", lossScale: 2 ** 12 })());
    expect(closed(w).item()).toBe(2 ** -30);
  });
});

test("a language model keeps less", () => {
  const args = (gpt.specs as () => readonly unknown[])();
  const arena = (step: typeof gpt.step): number =>
    plan(step as (...given: object[]) => object, { donate: [0] })(...(args as object[])).arenaBytes;
  const whole = arena(gpt.step);
  expect(arena(autocast(gpt.step, bf16)) / whole).toBeLessThan(0.75);
  expect(arena(autocast(gpt.step, { ...bf16, stream: "bf16" })) / whole).toBeLessThan(0.65);
});
