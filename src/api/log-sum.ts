/**
 * @file log Σ eˣ, probabilities eˣ / Σ eˣ and their logarithms: written so that large x lose nothing and so that a backward pass
 * keeps results, not what led to them.
 */
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { customJvp } from "./custom.ts";
import { add, div, equal, mul, stopGradient, sub, where } from "./elementwise.ts";
import { inFull } from "./full-precision.ts";
import { exp, log } from "./math.ts";
import { type Axes, fullOf, normalAxes, requireFloat } from "./operands.ts";
import { max, type ReduceOptions, sum } from "./reduce.ts";
import { reshape } from "./shape.ts";

const OPTIONS: OptionKinds<ReduceOptions> = { keepDims: "a boolean" };

interface Exponentials {
  readonly shift: Tensor;
  /** log eˣ / Σ eˣ, computed from x - shift, so that large x lose nothing. */
  readonly logs: Tensor;
  /** log Σ e^(x - shift). */
  readonly total: Tensor;
}

/** The greatest x over axes, which stay, or 0 where that is infinite: ∞ - ∞ would follow. @internal */
export function shiftOf(x: Tensor, axes: Axes | undefined): Tensor {
  const over = normalAxes("logsumexp", axes, x);
  // nothing has no greatest, and log Σ over nothing is -∞ whatever the shift
  if (over.some((axis) => x.shape[axis] === 0)) {
    const kept = x.shape.map((extent, axis) => (over.includes(axis) ? 1 : extent));
    return fullOf(x.dtype, kept, 0);
  }
  const top = max(x, over, { keepDims: true });
  return stopGradient(where(equal(sub(top, top), 0), top, 0));
}

function exponentials(x: Tensor, axes: Axes | undefined): Exponentials {
  const shift = shiftOf(x, axes);
  const shifted = sub(x, shift);
  const total = log(sum(exp(shifted), axes, { keepDims: true }));
  return { shift, logs: sub(shifted, total), total };
}

/** Σ p · t with p = eˣ / Σ eˣ: the derivative of log Σ eˣ along t. */
function expected(x: Tensor, t: Tensor, axes: Axes | undefined, options: ReduceOptions): Tensor {
  return sum(mul(exp(exponentials(x, axes).logs), t), axes, options);
}

/**
 * log Σ eˣ over axes, without overflow; over nothing it is -∞.
 *
 * Its derivative is Σ softmax(x) · t, so all that a backward pass keeps is x or, where it is computed anyway, softmax(x):
 * not the shifted exponentials in between.
 *
 * @example
 * import { logsumexp, tensor } from "tidemark";
 *
 * console.log(logsumexp(tensor([1000, 1000])).item()); // → 1000.69
 */
export function logsumexp(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  requireFloat("logsumexp", x);
  requireOptions("logsumexp", options, OPTIONS);
  const value = (v: Tensor): Tensor => {
    const { total, shift } = exponentials(v, axes);
    const kept = add(total, shift);
    return options.keepDims ? kept : reshape(kept, reducedShape("logsumexp", v, axes));
  };
  return asFunction("logsumexp", () =>
    inFull(x, (w) => customJvp(value, ([v], [t]) => expected(v, t, axes, options))(w)),
  );
}

/**
 * eˣ / Σ eˣ over axes; its derivative y · (t - Σ y · t) needs the result y alone. One exponential an element, where
 * e^(x - log Σ eˣ) would take two. @internal
 */
export function probabilities(x: Tensor, axes: Axes): Tensor {
  const value = (v: Tensor): Tensor => {
    const parts = exp(sub(v, shiftOf(v, axes)));
    return div(parts, sum(parts, axes, { keepDims: true }));
  };
  return customJvp(value, ([v], [t]) => {
    const y = value(v);
    return mul(y, sub(t, sum(mul(y, t), axes, { keepDims: true })));
  })(x);
}

/** x - log Σ eˣ over axes; its derivative t - Σ eʸ · t needs the result y alone. @internal */
export function logProbabilities(x: Tensor, axes: Axes): Tensor {
  return customJvp(
    (v: Tensor) => exponentials(v, axes).logs,
    ([v], [t]) => sub(t, expected(v, t, axes, { keepDims: true })),
  )(x);
}

function reducedShape(name: string, x: Tensor, axes: Axes | undefined): readonly number[] {
  const gone = normalAxes(name, axes, x);
  return x.shape.filter((_, axis) => !gone.includes(axis));
}
