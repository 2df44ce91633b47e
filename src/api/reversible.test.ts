/**
 * @file Reversible blocks: derivatives against those of the plain composition, memory against depth by plan, rebuilt
 * inputs bit by bit on a grid, and the stated bound of the drift elsewhere.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  additiveCoupling,
  checkpoint,
  compile,
  cond,
  drift,
  forLoop,
  grad,
  hvp,
  jvp,
  onGrid,
  plan,
  type Reversible,
  random,
  reversible,
  reversibleChain,
  reversibleLoop,
  scan,
  spec,
  stack,
  type Tensor,
  TidemarkError,
  tensor,
  vjp,
} from "./index.ts";

type Pair = readonly [Tensor, Tensor];
type Weights = readonly [Tensor, Tensor];

const GRID = 2 ** -16;
const layer = (x: Tensor, w: Tensor): Tensor => x.matmul(w).tanh();
const normal = (seed: number, shape: readonly number[], dtype: "f32" | "f64" = "f32"): Tensor =>
  random.normal(random.key(seed), shape, { dtype });
const pairOf = (seed: number, shape: readonly number[], dtype: "f32" | "f64" = "f32"): Pair => [
  normal(seed, shape, dtype),
  normal(seed + 1, shape, dtype),
];
const weightsOf = (depth: number, width: number, dtype: "f32" | "f64" = "f32"): readonly Weights[] =>
  Array.from({ length: depth }, (_, k) => {
    const [a, b] = pairOf(100 + 2 * k, [width, width], dtype);
    return [a.mul(0.3), b.mul(0.3)];
  });
const loss = ([a, b]: Pair): Tensor => a.square().sum().add(b.sin().sum());
const most = (a: Tensor, b: Tensor): number => a.sub(b).abs().max().item();

/** The same functions without a rule of their own. */
function plainCoupling([x1, x2]: Pair, [f, g]: Weights): Pair {
  const y1 = x1.add(layer(x2, f));
  return [y1, x2.add(layer(y1, g))];
}

describe("a reversible block", () => {
  const scale = reversible(
    (x, p: Tensor) => x.mul(p.exp()),
    (y, p) => y.div(p.exp()),
  );

  it("has the derivatives of the plain function, first and second", () => {
    const plain = (x: Tensor, p: Tensor): Tensor => x.mul(p.exp());
    const [x, p] = [tensor([1.5, -2], { dtype: "f64" }), tensor([0.3, 0.1], { dtype: "f64" })];
    const first = (f: typeof plain) => grad((a: Tensor, b: Tensor) => f(a, b).square().sum(), { argnums: [0, 1] });
    const second = (f: typeof plain) =>
      grad((a: Tensor, b: Tensor) => first(f)(a, b)[1].square().sum(), { argnums: [0, 1] });
    for (const order of [first, second]) {
      const [own, wanted] = [order(scale)(x, p), order(plain)(x, p)];
      expect(most(own[0], wanted[0])).toBeLessThan(1e-12);
      expect(most(own[1], wanted[1])).toBeLessThan(1e-12);
    }
  });

  it("runs backwards, and takes no parameters where it has none", () => {
    const rotate = reversible<Pair>(
      ([a, b]) => [b, a.neg()],
      ([a, b]) => [b.neg(), a],
    );
    const [a, b] = rotate.inverse(rotate([tensor([1]), tensor([2])]));
    expect([a.item(), b.item()]).toEqual([1, 2]);
    expect(scale.inverse(scale(tensor([3]), tensor([1])), tensor([1])).item()).toBeCloseTo(3, 5);
  });

  it("goes into loops, checkpoints and other blocks, and has products with the Hessian", () => {
    const plain = (x: Tensor, p: Tensor): Tensor => x.mul(p.exp());
    const p = tensor([0.3, -0.2], { dtype: "f64" });
    const x = tensor([1.5, -2], { dtype: "f64" });
    const uses: readonly ((f: typeof plain, q: Tensor) => Tensor)[] = [
      (f, q) => forLoop(3, x, (_, state) => f(state.sin(), q)),
      (f, q) => checkpoint((v, w: Tensor) => f(v, w).sin())(x, q),
      (f, q) =>
        cond(
          q.sum().greater(0),
          (v, w: Tensor) => f(v, w),
          (v) => v,
          x,
          q,
        ),
    ];
    for (const use of uses) {
      const slope = (f: typeof plain) => grad((q: Tensor) => use(f, q).square().sum())(p);
      expect(most(slope(scale), slope(plain))).toBeLessThan(1e-12);
    }
    const product = (f: typeof plain) => hvp((q: Tensor) => f(x, q).square().sum(), [p], x);
    expect(most(product(scale), product(plain))).toBeLessThan(1e-12);
    const nested = reversibleLoop(reversibleChain(scale, reversibleLoop(scale, 2)), 2);
    const slope = grad((q: Tensor) => nested(x, [q, q]).sum())(p);
    expect(most(slope, x.mul(p.mul(6).exp()).mul(6))).toBeLessThan(1e-10);
  });

  it("takes whole numbers and constants among its parameters", () => {
    interface Params {
      readonly w: Tensor;
      readonly n: Tensor;
      readonly power: number;
    }
    const block = reversible<Tensor, Params>(
      (v, { w, n, power }) => v.add(w.mul(n.cast("f32")).mul(power)),
      (v, { w, n, power }) => v.sub(w.mul(n.cast("f32")).mul(power)),
    );
    const n = tensor(3, { dtype: "i32" });
    const slope = grad((w: Tensor) => reversibleLoop(block, 5)(tensor([1]), { w, n, power: 2 }).sum());
    expect(slope(tensor([1])).item()).toBe(30);
  });

  it("keeps its output and none of its insides", () => {
    // Two products with a wide layer between them: plain blocks keep it for all of them, these for one at a time.
    const wide = (x: Tensor, { up, down }: { up: Tensor; down: Tensor }): Tensor => x.matmul(up).tanh().matmul(down);
    const block = additiveCoupling(wide, wide);
    const part = { up: spec([8, 128]), down: spec([128, 8]) };
    const parts = [part, part] as const;
    const bytes = (apply: typeof block.rule.forward, times: number): number => {
      const deep = (v: Pair, p: typeof parts): Tensor =>
        loss(Array.from({ length: times }).reduce((state: Pair) => apply(state, p), v));
      return plan(grad(deep))([spec([256, 8]), spec([256, 8])], parts).arenaBytes;
    };
    const more = (apply: typeof block.rule.forward): number => bytes(apply, 6) - bytes(apply, 2);
    const [layerBytes, stateBytes] = [256 * 128 * 4, 2 * 256 * 8 * 4];
    expect(more(block.rule.forward)).toBeGreaterThanOrEqual(8 * layerBytes);
    // What is kept for four more blocks applied one by one: their outputs. In a chain not even those.
    expect(more(block)).toBeLessThanOrEqual(4 * stateBytes);
  });

  it("refuses traced tensors that it closes over, forward mode, and what is no block", () => {
    const open = (w: Tensor): Tensor =>
      reversible(
        (x) => x.mul(w),
        (y) => y.div(w),
      )(tensor([1])).sum();
    expect(() => grad(open)(tensor([2]))).toThrow(TidemarkError);
    expect(() => jvp((x) => scale(x, x), [tensor([1])], [tensor([1])])).toThrow(/forward-mode/);
    expect(() => reversibleLoop(((x: Tensor) => x) as never, 3)).toThrow(/is no reversible block/);
    expect(() => reversibleLoop(scale, 1.5)).toThrow(/iterations is 1.5/);
    expect(() => reversibleChain(scale, scale)(tensor([1]), [tensor([1])])).toThrow(/parameters of 2 blocks/);
    expect(() => onGrid(tensor([1]), 0.3)).toThrow(/power of two/);
  });
});

describe("a wrong inverse", () => {
  const x = tensor([1, 2, 3]);
  const p = tensor([0.5, 0.25, 2]);
  const forward = (v: Tensor, q: Tensor): Tensor => v.mul(q).add(1);
  const right = (y: Tensor, q: Tensor): Tensor => y.sub(1).div(q);
  const wrong = (y: Tensor, q: Tensor): Tensor => y.div(q).sub(1);
  const lossOf = (block: (v: Tensor, q: Tensor) => Tensor) => (v: Tensor, q: Tensor) => block(v, q).square().sum();
  const found = /reversible: inverse does not restore the input: it is off by \d/;

  it("is found when the block is first differentiated, eagerly and compiled", () => {
    const block = reversible(forward, wrong);
    expect(() => grad(lossOf(block))(x, p)).toThrow(found);
    expect(() => compile(grad(lossOf(block)))(x, p)).toThrow(found);
    expect(() => compile((v: Tensor, q: Tensor) => grad(lossOf(block))(v.exp(), q.add(1)))(x, p)).toThrow(found);
  });

  it("is found in chains, in loops and in bodies of scans over rows of parameters", () => {
    const [good, bad] = [reversible(forward, right), reversible(forward, wrong)];
    const chain = reversibleChain(good, good, bad);
    expect(() => grad((v: Tensor, q: Tensor) => chain(v, [q, q, q]).sum())(x, p)).toThrow(found);
    const loop = reversibleLoop(bad, 3);
    expect(() => grad((v: Tensor, q: Tensor) => loop(v, q).sum())(x, p)).toThrow(found);
    const rows = stack([p, p]);
    const scanned = (v: Tensor, q: Tensor): Tensor => scan((s: Tensor, r: Tensor) => [bad(s, r), []], v, q)[0].sum();
    expect(() => compile(grad(scanned))(x, rows)).toThrow(found);
  });

  it("is found where it is the backward that is given", () => {
    const block = reversible(forward, right, {
      backward: (y: Tensor, q: Tensor, ct: Tensor) => [wrong(y, q), ct.mul(q), ct],
    });
    expect(() => grad(lossOf(block))(x, p)).toThrow(/reversible: backward does not restore the input/);
  });

  it("is let through where the check is off, or values are not finite", () => {
    const loose = reversible(forward, wrong, { check: false });
    expect(() => grad(lossOf(loose))(x, p)).not.toThrow();
    const block = reversible(forward, wrong);
    expect(() => grad(lossOf(block))(x.div(0), p)).not.toThrow();
  });

  it("is one for these parameters: inverses that only some parameters have are no fault", () => {
    const turn = reversible(
      (v: Tensor, q: Tensor) => v.matmul(q),
      (y: Tensor, q: Tensor) => y.matmul(q.T),
    );
    const half = Math.SQRT1_2;
    const orthogonal = tensor([
      [half, -half],
      [half, half],
    ]);
    const loss = (v: Tensor, q: Tensor): Tensor => turn(v, q).sum();
    expect(() => grad(loss)(tensor([[1, 2]]), orthogonal)).not.toThrow();
  });

  it("costs the compiled program nothing", () => {
    const args = [x, p] as const;
    const [checked, unchecked] = [true, false].map((check) =>
      compile(grad(lossOf(reversible(forward, right, { check })))).program(...args),
    );
    expect(checked!.arenaBytes).toBe(unchecked!.arenaBytes);
    expect(checked!.moduleBytes).toBe(unchecked!.moduleBytes);
  });
});

describe("chains of additive couplings", () => {
  const chainOf = (depth: number, grid?: number) =>
    reversibleChain(
      ...Array.from({ length: depth }, () => additiveCoupling(layer, layer, grid === undefined ? {} : { grid })),
    );

  it("have the derivatives of the plain composition", () => {
    const [x, weights] = [pairOf(1, [3, 4], "f64"), weightsOf(5, 4, "f64")];
    const plain = (v: Pair, w: readonly Weights[]): Tensor => loss(w.reduce(plainCoupling, v));
    const chain = chainOf(5);
    const [own, [ownX, ownW]] = [
      chain(x, weights),
      grad((v: Pair, w: typeof weights) => loss(chain(v, w)), {
        argnums: [0, 1],
      })(x, weights),
    ] as const;
    const [wantedX, wantedW] = grad(plain, { argnums: [0, 1] })(x, weights);
    expect(most(own[0], weights.reduce(plainCoupling, x)[0])).toBe(0);
    for (const half of [0, 1] as const) {
      expect(most(ownX[half], wantedX[half])).toBeLessThan(1e-12);
      for (const [k, w] of ownW.entries()) expect(most(w[half], wantedW[k]?.[half] as Tensor)).toBeLessThan(1e-12);
    }
  });

  it("keep one state whatever the depth", () => {
    const shape = [256, 16] as const;
    const arena = (depth: number, block: (v: Pair, w: readonly Weights[]) => Pair): number => {
      const step = (v: Pair, w: readonly Weights[]) => grad((u: Pair) => loss(block(u, w)))(v);
      const weights = Array.from({ length: depth }, () => [spec([16, 16]), spec([16, 16])] as const);
      // The weights are given, so they are not counted: what is left is the state and what is worked on.
      const given = depth * 2 * 16 * 16 * 4;
      return plan(step)([spec(shape), spec(shape)], weights).arenaBytes - given;
    };
    const own = [4, 8, 16, 32].map((depth) => arena(depth, chainOf(depth)));
    const plain = [4, 32].map((depth) => arena(depth, (v, w) => w.reduce(plainCoupling, v)));
    expect(Math.max(...own)).toBeLessThanOrEqual((own[0] as number) + 256);
    expect((plain[1] as number) / (plain[0] as number)).toBeGreaterThan(4);
    expect(own[0] as number).toBeLessThan(plain[0] as number);
  });

  it("on a grid rebuild their inputs bit by bit, f32 and f64, compiled and not", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e6 }), fc.constantFrom("f32" as const, "f64" as const), (seed, dtype) => {
        const x = onGrid(pairOf(seed, [3, 4], dtype), GRID);
        const weights = weightsOf(8, 4, dtype);
        const chain = chainOf(8, GRID);
        expect(drift(chain, x, weights).item()).toBe(0);
        expect(compile((v: Pair, w: readonly Weights[]) => drift(chain, v, w))(x, weights).item()).toBe(0);
      }),
      { numRuns: 5, seed: 7 },
    );
  });

  it("off the grid drift no more than the stated bound", () => {
    // δ₂ ≤ u(|y₂| + |x₂'|), δ₁ ≤ u(|y₁| + |x₁'|) + L δ₂, and a state that is δ off before a block is inverted makes
    // (1 + L)² δ of it. u: half a unit in the last place, with a little room for terms of the second order.
    const u = 2 ** -24 * 1.01;
    for (const depth of [1, 4, 16]) {
      const [x, weights] = [pairOf(3, [8, 4]), weightsOf(depth, 4)];
      const chain = chainOf(depth);
      let bound = 0;
      let state = x;
      const blocks = weights.map((w) => {
        // In the maximum norm a row times w is at most max over columns of the sum of |w|.
        const lipschitz = Math.max(...w.map((m) => m.abs().sum(0).max().item()));
        const before = state;
        state = plainCoupling(state, w);
        const size = Math.max(...[...before, ...state].map((half) => half.abs().max().item()));
        return { lipschitz, size };
      });
      for (const { lipschitz, size } of blocks.reverse()) {
        // What is rebuilt is at most `bound` larger than what was there.
        bound = (1 + lipschitz) ** 2 * bound + (1 + lipschitz) * u * (2 * size + bound);
      }
      const found = drift(chain, x, weights).item();
      expect(found).toBeGreaterThan(0);
      expect(found).toBeLessThanOrEqual(bound);
      expect(found).toBeLessThan(1e-4);
    }
  });
});

describe("a reversible loop", () => {
  const block: Reversible<Pair, Pair, Weights> = additiveCoupling(layer, layer);

  it("has the value and derivatives of the chain with shared parameters, and of no turns", () => {
    const [x, [weights]] = [pairOf(11, [2, 3], "f64"), weightsOf(1, 3, "f64")];
    for (const turns of [0, 1, 6]) {
      const looped = reversibleLoop(block, turns);
      const plain = (v: Pair, w: Weights): Pair =>
        Array.from({ length: turns }).reduce((s: Pair) => plainCoupling(s, w), v);
      const slopes = (f: typeof plain) =>
        grad((v: Pair, w: Weights) => loss(f(v, w)), { argnums: [0, 1] })(x, weights as Weights).flat();
      const [own, wanted] = [slopes(looped), slopes(plain)];
      for (const [i, slope] of own.entries()) expect(most(slope, wanted[i] as Tensor)).toBeLessThan(1e-11);
    }
  });

  it("has an arena and a program that do not grow with the turns", () => {
    const info = (turns: number) => {
      const looped = reversibleLoop(block, turns);
      const step = compile((v: Pair, w: Weights) => grad((u: Pair, q: Weights) => loss(looped(u, q)))(v, w));
      return step.program(pairOf(1, [64, 8]), weightsOf(1, 8)[0] as Weights);
    };
    const [few, many] = [info(10), info(100_000)];
    expect(many.arenaBytes).toBe(few.arenaBytes);
    expect(many.moduleBytes - few.moduleBytes).toBeLessThan(64);
  });

  it("on a grid goes ten thousand turns there and back to the same bits", () => {
    // A pendulum by kicks and drifts: the two functions are the force and the velocity.
    const pendulum = additiveCoupling<Tensor>(
      (q) => q.sin().mul(-0.01),
      (v) => v.mul(0.01),
      { grid: 2 ** -20 },
    );
    const looped = reversibleLoop(pendulum, 10_000);
    const x = onGrid([tensor([0.1, 0]), tensor([0.7, 2])] as Pair, 2 ** -20);
    expect(drift(looped, x).item()).toBe(0);
    const [, pullback] = vjp<[Pair], Pair>((v) => looped(v), x);
    const [[dv]] = pullback([tensor([1, 0]), tensor([0, 1])]);
    expect([...dv.data()].every(Number.isFinite)).toBe(true);
  });
});

describe("reversible blocks inside of a loop", () => {
  const block = additiveCoupling(layer, layer);
  const deep = reversibleChain(block, block, block);
  const weights = weightsOf(3, 4, "f64") as readonly [Weights, Weights, Weights];
  const xs = normal(9, [40, 3, 4], "f64");
  const lossOf = (apply: (x: Pair, w: typeof weights) => Pair) => (w: typeof weights) => {
    const [last, seen] = scan<Pair, Tensor, Tensor>(
      ([a, b], x) => {
        const [c, d] = apply([a.mul(0.5).add(x), b.mul(0.5)], w);
        return [[c, d], c.mul(d).sum()];
      },
      pairOf(7, [3, 4], "f64"),
      xs,
    );
    return loss(last).add(seen.square().sum());
  };
  const plain = (x: Pair, w: typeof weights): Pair => w.reduce(plainCoupling, x);
  const compiled = (memory?: string | number) => {
    const slope = (w: typeof weights) => grad(lossOf(deep))(w);
    return memory === undefined ? compile(slope) : compile(slope, { memory, validate: true });
  };
  const leaves = (tree: typeof weights): readonly Tensor[] => tree.flat();
  const bits = (tree: typeof weights): readonly (readonly number[])[] => leaves(tree).map((leaf) => [...leaf.data()]);

  it("have the derivatives of the plain composition, up to what rebuilding rounds", () => {
    const [own, wanted] = [grad(lossOf(deep))(weights), grad(lossOf(plain))(weights)];
    const scale = Math.max(...leaves(wanted).map((leaf) => leaf.abs().max().item()));
    for (const [n, leaf] of leaves(own).entries()) {
      expect(most(leaf, leaves(wanted)[n] as Tensor) / scale).toBeLessThan(1e-12);
    }
  });

  it("leave of a turn what the chain gives, and nothing of its insides", () => {
    const bytes = (apply: typeof plain): number => plan(grad(lossOf(apply)))(weights).arenaBytes;
    expect(bytes(deep as typeof plain)).toBeLessThan(bytes(plain) / 2);
  });

  it("have the same bits at every budget", () => {
    const expected = bits(compiled()(weights));
    const { arenaBytes } = compiled().program(weights);
    const least = compiled("min").program(weights).arenaBytes;
    expect(least).toBeLessThan(0.6 * arenaBytes);
    for (const memory of [0.8, 0.5, 0.2].map((share) => Math.ceil(least + share * (arenaBytes - least)))) {
      const fitted = compiled(memory);
      expect(fitted.program(weights).arenaBytes).toBeLessThanOrEqual(memory);
      expect(bits(fitted(weights)), `${memory} bytes`).toEqual(expected);
    }
    expect(bits(compiled("min")(weights))).toEqual(expected);
  });
});
