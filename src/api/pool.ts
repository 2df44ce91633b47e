/** @file Pooling: reductions over sliding windows of the trailing axes. The windows are never stored. */
import { at } from "../base/invariant.ts";
import { elementsOf, typeText } from "../ir/type.ts";
import { unfold } from "../ops/window.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { onesLike } from "./create.ts";
import { div } from "./elementwise.ts";
import { requireFloat } from "./operands.ts";
import { max, sum } from "./reduce.ts";
import { slice } from "./shape.ts";
import { type Padding, type PerAxis, paddingOf, perAxis, type SpatialFunction } from "./window.ts";

/** Options of pooling. */
export interface PoolOptions {
  /** Distance between windows; the window itself by default, so that they tile. */
  readonly stride?: PerAxis;
  readonly padding?: Padding;
  readonly dilation?: PerAxis;
}

const OPTIONS: OptionKinds<PoolOptions> = { stride: "anything", padding: "anything", dilation: "anything" };

/** With more padding than half a window there would be windows of nothing else. */
function requireNarrowPadding(name: string, pads: readonly number[], reach: readonly number[]): void {
  if (pads.every((n, k) => 2 * n <= at(reach, k))) return;
  const summary = `${name}: padding [${pads.join(",")}] for windows that reach over [${reach.join(",")}]`;
  fail("InvalidArgument", summary, "padding is at most half of the window; pad(x, …) adds more");
}

/** Extents of windows, and where they go. */
interface Windows extends PoolOptions {
  readonly window: PerAxis;
}

/** Windows as trailing axes, with `value` where they hang over the edge. */
function windows(of: SpatialFunction, x: Tensor, options: Windows, value: number): Tensor {
  const { name, axes } = of;
  if (x.rank < axes)
    fail("ShapeMismatch", `${name}: pools over ${axes} axes, got ${typeText(x)}`, "give [batch, channels, …space]");
  const extent = perAxis(of, "window", options.window, 1);
  const stride = perAxis(of, "stride", options.stride ?? extent, 1);
  const dilation = perAxis(of, "dilation", options.dilation, 1);
  const { lo, hi } = paddingOf(name, options.padding, x.shape.slice(-axes), { extent, stride, dilation });
  const reach = extent.map((n, k) => (n - 1) * at(dilation, k) + 1);
  requireNarrowPadding(name, lo, reach);
  requireNarrowPadding(name, hi, reach);
  return applyOp(unfold, [x], { window: extent, stride, lo, hi, dilation, value });
}

const last = (axes: number): readonly number[] => Array.from({ length: axes }, (_, k) => k - axes);

function maxPool(of: SpatialFunction, x: Tensor, window: PerAxis, options: PoolOptions): Tensor {
  requireFloat(of.name, x);
  requireOptions(of.name, options, OPTIONS);
  return max(windows(of, x, { ...options, window }, Number.NEGATIVE_INFINITY), last(of.axes));
}

function avgPool(of: SpatialFunction, x: Tensor, window: PerAxis, options: PoolOptions): Tensor {
  const { name, axes } = of;
  requireFloat(name, x);
  requireOptions(name, options, OPTIONS);
  const wide = windows(of, x, { ...options, window }, 0);
  const total = sum(wide, last(axes));
  const padded = options.padding !== undefined && options.padding !== "valid" && options.padding !== 0;
  if (!padded) return div(total, elementsOf(wide.shape.slice(-axes)));
  // a window over the edge is averaged over what it holds: the same for every leading position
  const one = slice(
    onesLike(x),
    x.shape.slice(0, -axes).map(() => [0, 1] as const),
  );
  return div(total, sum(windows(of, one, { ...options, window }, 0), last(axes)));
}

/**
 * The largest of each window along the last axis.
 *
 * @example
 * import { maxPool1d, tensor } from "tidemark";
 *
 * console.log(maxPool1d(tensor([[[1, 3, 5, 2]]]), 2).toArray()); // → [[[3, 5]]]
 */
export function maxPool1d(x: Tensor, window: PerAxis, options: PoolOptions = {}): Tensor {
  return asFunction("maxPool1d", () => maxPool({ name: "maxPool1d", axes: 1 }, x, window, options));
}

/**
 * The largest of each window over the last two axes.
 *
 * @example
 * import { arange, maxPool2d } from "tidemark";
 *
 * const x = arange(16).cast("f32").reshape([1, 1, 4, 4]);
 * console.log(maxPool2d(x, 2).toArray()); // [[[[5, 7], [13, 15]]]]
 */
export function maxPool2d(x: Tensor, window: PerAxis, options: PoolOptions = {}): Tensor {
  return asFunction("maxPool2d", () => maxPool({ name: "maxPool2d", axes: 2 }, x, window, options));
}

/**
 * The mean of each window along the last axis; padding is not counted.
 *
 * @example
 * import { avgPool1d, tensor } from "tidemark";
 *
 * const x = tensor([[[1, 3, 5, 7]]]);
 * console.log(avgPool1d(x, 2).toArray()); // → [[[2, 6]]]
 */
export function avgPool1d(x: Tensor, window: PerAxis, options: PoolOptions = {}): Tensor {
  return asFunction("avgPool1d", () => avgPool({ name: "avgPool1d", axes: 1 }, x, window, options));
}

/**
 * The mean of each window over the last two axes; padding is not counted.
 *
 * @example
 * import { arange, avgPool2d } from "tidemark";
 *
 * const x = arange(16, { dtype: "f32" }).reshape([1, 1, 4, 4]);
 * console.log(avgPool2d(x, 2).toArray()); // → [[[[2.5, 4.5], [10.5, 12.5]]]]
 */
export function avgPool2d(x: Tensor, window: PerAxis, options: PoolOptions = {}): Tensor {
  return asFunction("avgPool2d", () => avgPool({ name: "avgPool2d", axes: 2 }, x, window, options));
}

/**
 * The largest of each window over the last three axes.
 *
 * @example
 * import { arange, maxPool3d } from "tidemark";
 *
 * console.log(maxPool3d(arange(8, { dtype: "f32" }).reshape([1, 1, 2, 2, 2]), 2).toArray()); // → [[[[[7]]]]]
 */
export function maxPool3d(x: Tensor, window: PerAxis, options: PoolOptions = {}): Tensor {
  return asFunction("maxPool3d", () => maxPool({ name: "maxPool3d", axes: 3 }, x, window, options));
}

/**
 * The mean of each window over the last three axes; padding is not counted.
 *
 * @example
 * import { arange, avgPool3d } from "tidemark";
 *
 * const x = arange(8, { dtype: "f32" }).reshape([1, 1, 2, 2, 2]);
 * console.log(avgPool3d(x, 2).toArray()); // → [[[[[3.5]]]]]
 */
export function avgPool3d(x: Tensor, window: PerAxis, options: PoolOptions = {}): Tensor {
  return asFunction("avgPool3d", () => avgPool({ name: "avgPool3d", axes: 3 }, x, window, options));
}
