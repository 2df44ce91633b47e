/** @file Reductions over axes: all axes by default; negative ones count from the end; keepDims leaves extents of 1. */
import { at } from "../base/invariant.ts";
import type { OpDef } from "../ir/op.ts";
import { elementsOf, typeText } from "../ir/type.ts";
import { type FloatType, isBool, isFloat } from "../kernel/dtype.ts";
import { type ReduceAttrs, sum as sumOp } from "../ops/broadcast.ts";
import { iota } from "../ops/create.ts";
import * as ops from "../ops/reduce.ts";
import { cumsum as cumsumOp, linearScan as linearScanOp } from "../ops/scan.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import {
  cast,
  div,
  equal,
  isnan,
  less,
  logicalOr,
  mul,
  sqrt,
  square,
  stopGradient,
  sub,
  where,
} from "./elementwise.ts";
import { inFull } from "./full-precision.ts";
import { type Axes, fullOf, normalAxes, normalAxis, operands, requireFloat, type TensorLike } from "./operands.ts";
import { reshape } from "./shape.ts";

/** Options of reductions. */
export interface ReduceOptions {
  /** Keep the reduced axes with extent 1. */
  readonly keepDims?: boolean;
}

const REDUCE_OPTIONS: OptionKinds<ReduceOptions> = { keepDims: "a boolean" };

/** A reduction under the name that users know it by. */
interface Reduction {
  readonly name: string;
  readonly op: OpDef<ReduceAttrs>;
}

function reduce({ name, op }: Reduction, x: Tensor, axes: Axes | undefined, options: ReduceOptions): Tensor {
  const list = normalAxes(name, axes, x);
  requireOptions(name, options, REDUCE_OPTIONS);
  const y = applyOp(op, [x], { axes: list });
  return options.keepDims
    ? reshape(
        y,
        x.shape.map((extent, axis) => (list.includes(axis) ? 1 : extent)),
      )
    : y;
}

/** Number of elements that are reduced into one. */
const countOf = (name: string, x: Tensor, axes: Axes | undefined): number =>
  elementsOf(normalAxes(name, axes, x).map((axis) => at(x.shape, axis)));

/**
 * The sum over axes. Bools are counted, as i32.
 *
 * @example
 * import { tensor } from "tidemark";
 *
 * const x = tensor([[1, 2], [3, 4]]);
 * console.log(x.sum().item(), x.sum(0).toArray(), x.sum(-1, { keepDims: true }).shape); // 10 [4, 6] [2, 1]
 */
export function sum(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  requireTensor("sum", "x", x);
  return reduce({ name: "sum", op: sumOp }, isBool(x.dtype) ? cast(x, "i32") : x, axes, options);
}

/**
 * The mean over axes.
 *
 * @example
 * import { mean, tensor } from "tidemark";
 *
 * console.log(mean(tensor([[1, 2], [3, 4]])).item(), mean(tensor([[1, 2], [3, 4]]), 0).toArray()); // → 2.5 [2, 3]
 */
export function mean(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  requireFloat("mean", x);
  return asFunction("mean", () => inFull(x, (v) => div(sum(v, axes, options), countOf("mean", v, axes))));
}

/**
 * The largest over axes; NaN if one of them is.
 *
 * @example
 * import { max, tensor } from "tidemark";
 *
 * console.log(max(tensor([[1, 5], [7, 3]])).item(), max(tensor([[1, 5], [7, 3]]), 1).toArray()); // → 7 [5, 7]
 */
export function max(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  return reduce({ name: "max", op: ops.reduceMax }, x, axes, options);
}

/**
 * The smallest over axes; NaN if one of them is.
 *
 * @example
 * import { min, tensor } from "tidemark";
 *
 * console.log(min(tensor([[1, 5], [7, 3]])).item(), min(tensor([[1, 5], [7, 3]]), 1).toArray()); // → 1 [1, 3]
 */
export function min(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  return reduce({ name: "min", op: ops.reduceMin }, x, axes, options);
}

/**
 * The product over axes.
 *
 * @example
 * import { prod, tensor } from "tidemark";
 *
 * console.log(prod(tensor([1, 2, 3, 4])).item()); // → 24
 */
export function prod(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  return reduce({ name: "prod", op: ops.reduceProd }, x, axes, options);
}

/**
 * Whether one of them holds.
 *
 * @example
 * import { any, tensor } from "tidemark";
 *
 * const x = tensor([[true, false], [false, false]]);
 * console.log(any(x).item(), any(x, 1).toArray()); // → 1 [true, false]
 */
export function any(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  return reduce({ name: "any", op: ops.any }, x, axes, options);
}

/**
 * Whether all of them hold.
 *
 * @example
 * import { all, tensor } from "tidemark";
 *
 * const x = tensor([[true, false], [true, true]]);
 * console.log(all(x).item(), all(x, 1).toArray()); // → 0 [false, true]
 */
export function all(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  return reduce({ name: "all", op: ops.all }, x, axes, options);
}

/** Options of {@link variance} and {@link std}. */
export interface VarianceOptions extends ReduceOptions {
  /** The divisor is the number of elements minus this. */
  readonly ddof?: number;
}

const VARIANCE_OPTIONS: OptionKinds<VarianceOptions> = { ...REDUCE_OPTIONS, ddof: "a number" };

/** The divisor of a variance. */
function freedomOf(name: string, x: Tensor, axes: Axes | undefined, options: VarianceOptions): number {
  requireFloat(name, x);
  requireOptions(name, options, VARIANCE_OPTIONS);
  const { ddof = 0 } = options;
  const n = countOf(name, x, axes) - ddof;
  if (n <= 0) fail("InvalidArgument", `${name}: ddof ${ddof} of ${n + ddof} elements`, "ddof must be smaller");
  return n;
}

/**
 * The variance over axes.
 *
 * @example
 * import { tensor, variance } from "tidemark";
 *
 * console.log(variance(tensor([1, 3])).item(), variance(tensor([1, 3]), 0, { ddof: 1 }).item()); // → 1 2
 */
export function variance(x: Tensor, axes?: Axes, options: VarianceOptions = {}): Tensor {
  const n = freedomOf("variance", x, axes, options);
  const { keepDims = false } = options;
  return asFunction("variance", () => {
    return inFull(x, (v) => {
      const centred = sub(v, mean(v, axes, { keepDims: true }));
      return div(sum(square(centred), axes, { keepDims }), n);
    });
  });
}

/** √total, whose derivative at zero is zero. */
function root(total: Tensor): Tensor {
  const zero = equal(total, 0);
  return where(zero, 0, sqrt(where(zero, 1, total)));
}

/** Rows whose squares sum up to less than 2^-2at are scaled by 2^by, those of which they overflow by 2^-by. */
const SCALES: Readonly<Record<FloatType, { readonly at: number; readonly by: number }>> = {
  f32: { at: 48, by: 96 },
  f64: { at: 480, by: 960 },
  bf16: { at: 48, by: 96 },
  f16: { at: 6, by: 12 },
};

/**
 * √(Σ x² / n) over axes, also where squares overflow or vanish: a first sum of squares says how large a row is, a second is taken
 * of scaled elements. A power of two changes no bit of what is in range, so rows of ordinary size have the bits of the plain
 * formula.
 */
function rootMeanSquare(x: Tensor, n: number, axes: Axes | undefined, keepDims: boolean): Tensor {
  const over = normalAxes("norm", axes, x);
  const { at, by } = SCALES[requireFloat("norm", x)];
  const still = stopGradient(x);
  const size = sum(mul(still, still), over, { keepDims: true });
  const one = fullOf(x.dtype, [], 1);
  const picked = (ofLarge: number, ofSmall: number): Tensor =>
    where(equal(size, Number.POSITIVE_INFINITY), ofLarge, where(less(size, 2 ** (-2 * at)), ofSmall, one));
  const scaled = mul(x, picked(2 ** -by, 2 ** by));
  const total = sum(mul(scaled, scaled), over, { keepDims: true });
  const kept = mul(root(n === 1 ? total : div(total, n)), picked(2 ** by, 2 ** -by));
  const left = x.shape.filter((_, axis) => !over.includes(axis));
  return keepDims ? kept : reshape(kept, left);
}

/**
 * The standard deviation over axes; of equal elements it is zero, and so is its derivative.
 *
 * @example
 * import { std, tensor } from "tidemark";
 *
 * console.log(std(tensor([1, 3])).item()); // → 1
 */
export function std(x: Tensor, axes?: Axes, options: VarianceOptions = {}): Tensor {
  const n = freedomOf("std", x, axes, options);
  const centred = (v: Tensor): Tensor => sub(v, mean(v, axes, { keepDims: true }));
  return asFunction("std", () => inFull(x, (v) => rootMeanSquare(centred(v), n, axes, options.keepDims ?? false)));
}

/** A search for the position of an extremum. */
interface ArgExtremum {
  readonly name: string;
  readonly extremum: typeof max;
}

/** The first position of the extremum along an axis: NaN counts as one, as in max and min. */
function argExtremum(
  { name, extremum }: ArgExtremum,
  x: Tensor,
  axis: number | undefined,
  options: ReduceOptions,
): Tensor {
  requireTensor(name, "x", x);
  requireOptions(name, options, REDUCE_OPTIONS);
  const flat = axis === undefined ? reshape(x, [-1]) : x;
  const along = axis === undefined ? 0 : normalAxis(name, axis, x);
  const extent = at(flat.shape, along);
  if (extent === 0)
    fail("InvalidArgument", `${name}: axis ${along} of ${typeText(flat)} has no elements`, "check for emptiness first");
  const first = asFunction(name, () => {
    const best = equal(flat, extremum(flat, along, { keepDims: true }));
    const hit = isFloat(x.dtype) ? logicalOr(best, isnan(flat)) : best;
    const position = applyOp(iota, [], { shape: flat.shape, axis: along });
    return min(where(hit, position, extent), along, axis === undefined ? {} : options);
  });
  return axis === undefined && options.keepDims
    ? reshape(
        first,
        x.shape.map(() => 1),
      )
    : first;
}

/**
 * Position of the first largest element along an axis, or among all; NaN counts as largest. i32.
 *
 * @example
 * import { argmax, tensor } from "tidemark";
 *
 * console.log(argmax(tensor([[1, 5, 2], [7, 0, 3]]), 1).toArray()); // → [1, 0]
 */
export function argmax(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor {
  return argExtremum({ name: "argmax", extremum: max }, x, axis, options);
}

/**
 * Position of the first smallest element along an axis, or among all; NaN counts as smallest. i32.
 *
 * @example
 * import { argmin, tensor } from "tidemark";
 *
 * console.log(argmin(tensor([[1, 5, 2], [7, 0, 3]]), 1).toArray()); // → [0, 1]
 */
export function argmin(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor {
  return argExtremum({ name: "argmin", extremum: min }, x, axis, options);
}

/** Options of cumulative functions. */
export interface ScanAxisOptions {
  /** From the end of the axis. */
  readonly reverse?: boolean;
}

const SCAN_AXIS_OPTIONS: OptionKinds<ScanAxisOptions> = { reverse: "a boolean" };

/**
 * Running sums along an axis; with `reverse` from its end.
 *
 * @example
 * import { cumsum, tensor } from "tidemark";
 *
 * console.log(cumsum(tensor([1, 2, 3])).toArray()); // → [1, 3, 6]
 */
export function cumsum(x: Tensor, axis = 0, options: ScanAxisOptions = {}): Tensor {
  requireOptions("cumsum", options, SCAN_AXIS_OPTIONS);
  return applyOp(cumsumOp, [x], { axis: normalAxis("cumsum", axis, x), reverse: options.reverse ?? false });
}

/**
 * The recurrence y_i = scale_i · y_(i-1) + x_i along an axis, from zero on; with `reverse` from its end.
 *
 * @example
 * import { linearScan, tensor } from "tidemark";
 *
 * console.log(linearScan(tensor([1, 1, 1]), 0.5).toArray()); // → [1, 1.5, 1.75]
 */
export function linearScan(x: TensorLike, scale: TensorLike, axis = 0, options: ScanAxisOptions = {}): Tensor {
  requireOptions("linearScan", options, SCAN_AXIS_OPTIONS);
  const pair = operands("linearScan", scale, x);
  return applyOp(linearScanOp, pair, {
    axis: normalAxis("linearScan", axis, at(pair, 1)),
    reverse: options.reverse ?? false,
  });
}

/**
 * Running products along an axis; with `reverse` from its end. Derivatives are right where elements are zero, too.
 *
 * @example
 * import { cumprod, tensor } from "tidemark";
 *
 * console.log(cumprod(tensor([1, 2, 3])).toArray()); // → [1, 2, 6]
 */
export function cumprod(x: Tensor, axis = 0, options: ScanAxisOptions = {}): Tensor {
  requireOptions("cumprod", options, SCAN_AXIS_OPTIONS);
  const { reverse = false } = options;
  const along = normalAxis("cumprod", axis, x);
  return asFunction("cumprod", () => {
    const extent = at(x.shape, along);
    const position = applyOp(iota, [], { shape: x.shape, axis: along });
    // y_i = x_i · y_(i-1) + b_i, where b is x at the first element; adding -0 elsewhere changes no bit.
    const first = where(equal(position, reverse ? extent - 1 : 0), x, isFloat(x.dtype) ? -0 : 0);
    return linearScan(first, x, along, { reverse });
  });
}

/**
 * The Euclidean norm over axes; its derivative at zero is zero.
 *
 * @example
 * import { norm, tensor } from "tidemark";
 *
 * console.log(norm(tensor([3, 4])).item()); // → 5
 */
export function norm(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  requireFloat("norm", x);
  requireOptions("norm", options, REDUCE_OPTIONS);
  return asFunction("norm", () => inFull(x, (v) => rootMeanSquare(v, 1, axes, options.keepDims ?? false)));
}
