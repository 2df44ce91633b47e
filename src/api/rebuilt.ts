/**
 * @file Whether what a reversible block rebuilds is what it was given. Rounding makes both differ by some last bits, times how
 * much the inverse magnifies them; an inverse that is wrong is off by about as much as the values themselves.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type FloatType, isFloat } from "../kernel/dtype.ts";
import type { AnyFunction } from "../trace/function.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";
import { abs, cast, maximum, sub } from "./elementwise.ts";
import { floatLeaves } from "./float-leaves.ts";
import { bind } from "./grad.ts";
import { fullOf } from "./operands.ts";
import { max } from "./reduce.ts";

const greatest = (tensors: readonly Tensor[]): Tensor =>
  tensors
    .filter(({ elements }) => elements > 0)
    .reduce((most, x) => maximum(most, cast(max(abs(x)), "f64")), fullOf("f64", [], 0));

/** The greatest |a - b| over all elements of floats, f64[]. @internal */
export function distance<T extends Tree>(a: T, b: T): Tensor {
  const { leaves, def } = flatten(a, "x");
  const others = flattenLike(def, b, "what is rebuilt");
  return greatest(leaves.flatMap((leaf, i) => (isFloat(leaf.dtype) ? [sub(leaf, at(others, i))] : [])));
}

/** How far off a rebuilt input may be, relative to the greatest value around: far beyond rounding, far below a wrong one. */
const TOLERANCE: Readonly<Record<FloatType, number>> = { f32: 1e-2, f64: 1e-5, bf16: 0.5, f16: 0.1 };

/** Runs a function on concrete values, outside of traces; null where it closes over a tensor that has none. @internal */
export function runOn<R extends Tree>(fn: AnyFunction, args: readonly unknown[]): R | null {
  const { traced, inputs } = bind(fn, args);
  if (traced.captures.some(({ tensor }) => tensor.isTraced)) return null;
  return unflatten(traced.resultTree, applyGraph(traced.graph, inputs)) as R;
}

/**
 * Throws unless all ways back from y = forward(x) lead to x, for concrete values and outside of traces. Values that are not
 * finite say nothing about the inverse.
 * @internal
 */
export function requireWayBack<X extends Tree, Y extends Tree, P extends Tree>(
  forward: (x: X, params: P) => Y,
  ways: Readonly<Record<string, (y: Y, params: P) => X>>,
  x: X,
  params: P,
): void {
  const names = Object.keys(ways);
  const measured = (from: X, given: P): Tree => {
    const y = forward(from, given);
    const offs = names.map((name) => distance(from, (ways[name] as (y: Y, params: P) => X)(y, given)));
    return [greatest([...floatLeaves(from), ...floatLeaves(y)]), offs];
  };
  const made = runOn<readonly [Tensor, readonly Tensor[]]>(measured as AnyFunction, [x, params]);
  if (!made) return;
  const [size, offs] = made;
  const tolerances = floatLeaves(x).map(({ dtype }) => (isFloat(dtype) ? TOLERANCE[dtype] : 0));
  const tolerance = Math.max(TOLERANCE.f64, ...tolerances);
  offs.forEach((off, i) => {
    requireNear(at(names, i), off.item(), size.item(), tolerance);
  });
}

function requireNear(by: string, off: number, size: number, tolerance: number): void {
  if (!Number.isFinite(size) || off <= size * tolerance) return;
  const numbers = `off by ${off.toPrecision(3)}, where values are up to ${size.toPrecision(3)}`;
  throw new TidemarkError("InvalidArgument", `reversible: ${by} does not restore the input: it is ${numbers}`, {
    where: sourceLocation(),
    help:
      "gradients would be wrong: inverse(forward(x, p), p) must be x. drift(block, x, p) measures the difference; " +
      "{ check: false } is for inverses that are meant to be rough",
  });
}

/** Whether checks that cost time are on by default. @internal */
export function isDevelopment(): boolean {
  const { process } = globalThis as {
    readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> };
  };
  return process?.env?.NODE_ENV !== "production";
}
