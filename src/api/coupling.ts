/**
 * @file Additive coupling, the block that can be run backwards whatever its two functions are:
 *
 *   x₁ ────── + ───┬────── y₁          y₁ = x₁ + f(x₂)          x₂ = y₂ - g(y₁)
 *             │    │                   y₂ = x₂ + g(y₁)          x₁ = y₁ - f(x₂)
 *   x₂ ──┬─ f ┘    └─ g ─ + ─ y₂
 *        └────────────────┘
 *
 * (x + d) - d is x up to rounding. It is x exactly when x, d and x + d are whole multiples of one power of two, the grid,
 * and no larger than the mantissa can count: then the sum is a sum of integers. So with a grid what f and g give is
 * rounded to it before it is added, and a state that begins on the grid stays there and is rebuilt bit by bit (the device
 * of D. Levesque, L. Verlet, J. Stat. Phys. 72, 1993, for exactly reversible molecular dynamics). The range is
 * 2²⁴ · grid for f32 and 2⁵³ · grid for f64. The derivative takes the rounding for the identity.
 *
 * L. Dinh, D. Krueger, Y. Bengio, "NICE", ICLR workshop 2015.
 */
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree } from "../trace/tree.ts";
import { add, mul, round, stopGradient, sub } from "./elementwise.ts";
import { vjp } from "./modes.ts";
import { type Reversible, reversible } from "./reversible.ts";
import { map as mapTrees } from "./tree.ts";

function requireGrid(name: string, grid: number): void {
  if (typeof grid === "number" && grid > 0 && Number.isFinite(grid) && Number.isInteger(Math.log2(grid))) return;
  fail("InvalidArgument", `${name}: the grid is ${describe(grid)}`, "give a power of two: 2 ** -16");
}

function rounded<T extends Tree>(tree: T, grid: number): T {
  return mapTrees((x) => {
    const nearest = mul(round(mul(x, 1 / grid)), grid);
    // Both steps are exact, so the value is the nearest point; the derivative is that of x.
    return add(x, stopGradient(sub(nearest, x)));
  }, tree);
}

/**
 * The nearest points of a grid, to begin a state that is rebuilt exactly; halves go to the even one. Its derivative is
 * that of the identity.
 *
 * @example
 * import { onGrid, tensor } from "tidemark";
 *
 * console.log(onGrid(tensor([0.3, 1.1]), 0.25).toArray()); // [0.25, 1]
 */
export function onGrid<T extends Tree = Tensor>(tree: T, grid: number): T {
  requireGrid("onGrid", grid);
  return rounded(tree, grid);
}

/** Options of {@link additiveCoupling}. */
export interface CouplingOptions {
  /** A power of two to whose multiples increments are rounded, so that states on this grid are rebuilt exactly. */
  readonly grid?: number;
}

const OPTIONS: OptionKinds<CouplingOptions> = { grid: "a number" };

/** Both halves of a state. */
export type Halves<X extends Tree> = readonly [X, X];

/** Parameters of f and of g. */
export type CouplingParams<F extends Tree, G extends Tree> = readonly [F, G];

/**
 * The reversible block y₁ = x₁ + f(x₂), y₂ = x₂ + g(y₁) over pairs; f and g return trees like what they are given. Its
 * parameters are the pair of those of f and g.
 *
 * @memory Its derivative keeps the result and the parameters: the arguments are computed from them.
 *
 * @example
 * import { additiveCoupling, type Tensor, tensor } from "tidemark";
 *
 * const block = additiveCoupling((x: Tensor, w: Tensor) => x.mul(w), (x: Tensor) => x.square());
 * const [a, b] = block([tensor([1]), tensor([2])], [tensor([10]), []]);
 * console.log(a.toArray(), b.toArray()); // [21] [443]
 */
export function additiveCoupling<X extends Tree = Tensor, F extends Tree = Tree, G extends Tree = Tree>(
  f: (x: X, params: F) => X,
  g: (x: X, params: G) => X,
  options: CouplingOptions = {},
): Reversible<Halves<X>, Halves<X>, CouplingParams<F, G>> {
  requireFunction("additiveCoupling", "f", f, "additiveCoupling((x, w) => x.matmul(w), (x, w) => x.matmul(w))");
  requireFunction("additiveCoupling", "g", g, "additiveCoupling((x, w) => x.matmul(w), (x, w) => x.matmul(w))");
  requireOptions("additiveCoupling", options, OPTIONS);
  const { grid } = options;
  if (grid !== undefined) requireGrid("additiveCoupling", grid);
  const step = (increment: X): X => (grid === undefined ? increment : rounded(increment, grid));
  const plus = (x: X, d: X): X => mapTrees((a, b) => add(a, b), x, d);
  const minus = (x: X, d: X): X => mapTrees((a, b) => sub(a, b), x, d);
  // A block without parameters is called without.
  const part = <P>(params: CouplingParams<F, G>, k: 0 | 1): P => (params[k] ?? []) as P;
  return reversible<Halves<X>, CouplingParams<F, G>>(
    ([x1, x2], params) => {
      const y1 = plus(x1, step(f(x2, part(params, 0))));
      return [y1, plus(x2, step(g(y1, part(params, 1))))];
    },
    ([y1, y2], params) => {
      const x2 = minus(y2, step(g(y1, part(params, 1))));
      return [minus(y1, step(f(x2, part(params, 0)))), x2];
    },
    {
      // Each function runs once, for its value and for its pullback.
      backward: ([y1, y2], params, [c1, c2]) => {
        const [gOf, pullG] = vjp<[X, G], X>(g, y1, part(params, 1));
        const x2 = minus(y2, step(gOf));
        const [through1, slopesG] = pullG(c2);
        const d1 = plus(c1, through1);
        const [fOf, pullF] = vjp<[X, F], X>(f, x2, part(params, 0));
        const x1 = minus(y1, step(fOf));
        const [through2, slopesF] = pullF(d1);
        const slopes = [slopesF, slopesG] as const;
        return [[x1, x2], [d1, plus(c2, through2)], flatten(params, "params").leaves.length === 0 ? params : slopes];
      },
    },
  );
}
