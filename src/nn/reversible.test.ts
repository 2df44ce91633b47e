/** @file Reversible sequences as layers: gradients of the plain equations, exact rebuilding, dropout, flat memory. */
import { describe, expect, it } from "vitest";
import { concat, grad, plan, random, spec, specsOf, split, type Tensor } from "../api/index.ts";
import { dropout, linear, reversibleSequence, sequential, tanh } from "./index.ts";

const part = (width: number) => sequential(linear(width, width, { dtype: "f64" }), tanh());
const sequence = (depth: number, width: number, options = {}) =>
  reversibleSequence(
    Array.from({ length: depth }, () => ({ f: part(width), g: part(width) })),
    options,
  );
const most = (a: Tensor, b: Tensor): number => a.sub(b).abs().max().item();

describe("a reversible sequence", () => {
  const model = sequence(3, 4);
  const params = model.init(5);
  const x = random.normal(random.key(1), [6, 8], { dtype: "f64" });

  it("computes and differentiates what its equations say", () => {
    const layer = part(4);
    const plain = (p: typeof params, input: Tensor): Tensor => {
      let [a, b] = split(input, 2, -1) as [Tensor, Tensor];
      for (const { f, g } of p) {
        a = a.add(layer.apply(f, b));
        b = b.add(layer.apply(g, a));
      }
      return concat([a, b], -1);
    };
    expect(most(model.apply(params, x), plain(params, x))).toBe(0);
    const slopes = (apply: typeof plain) => grad((p: typeof params) => apply(p, x).square().sum())(params);
    const [own, wanted] = [slopes(model.apply), slopes(plain)];
    for (const [k, { f, g }] of own.entries()) {
      expect(most(f[0].w, wanted[k]?.f[0].w as Tensor)).toBeLessThan(1e-11);
      expect(most(g[0].b, wanted[k]?.g[0].b as Tensor)).toBeLessThan(1e-11);
    }
  });

  it("draws the same dropout again in the backward pass", () => {
    const half = () => sequential(dropout(0.5));
    const drops = reversibleSequence([{ f: half(), g: half() }]);
    expect(drops.random).toBe(true);
    const options = { train: true, key: random.key(3) };
    const apply = (input: Tensor): Tensor => drops.apply(drops.init(0), input, options);
    // Linear in the input, so the gradient at any input says what the sum is.
    const slope = grad((input: Tensor) => apply(input).sum())(x);
    expect(slope.mul(x).sum().item()).toBeCloseTo(apply(x).sum().item(), 10);
  });

  it("needs a constant number of bytes besides its weights and their gradients", () => {
    const bytes = (depth: number): number => {
      const deep = sequence(depth, 8, { grid: 2 ** -30 });
      const weights = specsOf(() => deep.init(0))();
      const step = (p: typeof weights, input: Tensor) => grad((q: typeof weights) => deep.apply(q, input).sum())(p);
      const held = depth * 2 * (8 * 8 + 8) * 8 * 2;
      return plan(step)(weights, spec([512, 16], "f64")).arenaBytes - held;
    };
    // A state of 512 × 16 f64 is 64 KiB: 18 more blocks would keep 18 of them, twice.
    expect(bytes(24) - bytes(6)).toBeLessThan(32 * 2 ** 10);
  });

  it("refuses odd features and blocks without two layers", () => {
    expect(() => model.apply(params, x.slice([null, [0, 7]]))).toThrow(/has no halves/);
    expect(() => reversibleSequence([{ f: tanh() } as never])).toThrow(/without two layers f and g/);
    expect(() => reversibleSequence([], { axes: 1 } as object)).toThrow(/there is no option axes/);
  });
});
