/** @file Images and volumes of another size: resized, sampled at points, pooled to a given size. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import type { FloatType } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireArray, requireOptions, requireTensor } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { checkpoint } from "./custom.ts";
import { abs, add, cast, clamp, floor, greaterEqual, less, logicalAnd, mul, round, sub, where } from "./elementwise.ts";
import { gather, take } from "./indexing.ts";
import { repeat } from "./join.ts";
import { matmul } from "./linear.ts";
import { broadcastToShape, requireFloat } from "./operands.ts";
import { max, mean } from "./reduce.ts";
import { reshape, slice, swapAxes } from "./shape.ts";

/** Sizes of the last axes of x, each at least 1. */
function requireSize(name: string, x: Tensor, size: readonly number[]): FloatType {
  const dtype = requireFloat(name, x);
  requireArray(name, "the size", size, `${name}(x, [height, width])`);
  if (size.length < 1 || size.length > x.rank || !size.every((n) => Number.isInteger(n) && n > 0)) {
    fail("InvalidArgument", `${name}: size [${size.join(", ")}] for ${typeText(x)}`, "give sizes ≥ 1 of its last axes");
  }
  if (x.shape.slice(-size.length).some((n) => n === 0)) {
    fail("ShapeMismatch", `${name}: ${typeText(x)} has no elements along an axis`, "check for emptiness first");
  }
  return dtype;
}

// ---- resizing -----------------------------------------------------------------------------------------------------

/** Options of {@link resize}. */
export interface ResizeOptions {
  /** The nearest element; between two, or between four, along each axis. Default: nearest. */
  readonly mode?: "nearest" | "bilinear" | "bicubic";
  /** Centres of the outermost pixels stay where they are; otherwise the outer edges do. Not for "nearest". Default: false. */
  readonly alignCorners?: boolean;
}

const RESIZE_OPTIONS: OptionKinds<ResizeOptions> = { mode: "a text", alignCorners: "a boolean" };

/** For each element of an axis of the result, positions in x and the weights of the elements there. */
interface Taps {
  readonly positions: readonly (readonly number[])[];
  readonly weights: readonly (readonly number[])[];
}

/** Keys' cubic convolution with the parameter of PyTorch and OpenCV. */
const CUBIC = -0.75;

function cubicWeight(distance: number): number {
  const d = Math.abs(distance);
  if (d <= 1) return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1;
  return d < 2 ? CUBIC * (((d - 5) * d + 8) * d - 4) : 0;
}

/** Where element i of `to` lies among `from` elements. */
function sourceOf(i: number, from: number, to: number, alignCorners: boolean): number {
  if (alignCorners) return to === 1 ? 0 : (i * (from - 1)) / (to - 1);
  return ((i + 0.5) * from) / to - 0.5;
}

function tapsOf(from: number, to: number, cubic: boolean, alignCorners: boolean): Taps {
  const within = (i: number): number => Math.max(0, Math.min(from - 1, i));
  const sources = Array.from({ length: to }, (_, i) => {
    const source = sourceOf(i, from, to, alignCorners);
    return cubic ? source : Math.max(0, source);
  });
  const offsets = cubic ? [-1, 0, 1, 2] : [0, 1];
  const weight = (source: number, offset: number): number => {
    const distance = source - Math.floor(source) - offset;
    return cubic ? cubicWeight(distance) : 1 - Math.abs(distance);
  };
  return {
    positions: offsets.map((offset) => sources.map((source) => within(Math.floor(source) + offset))),
    weights: offsets.map((offset) => sources.map((source) => weight(source, offset))),
  };
}

function nearestAlong(x: Tensor, to: number, axis: number): Tensor {
  const from = at(x.shape, axis);
  if (to % from === 0) return repeat(x, to / from, axis);
  const positions = Array.from({ length: to }, (_, i) => Math.min(from - 1, Math.floor((i * from) / to)));
  return take(x, tensor(positions, { dtype: "i32" }), axis);
}

function blendedAlong(x: Tensor, taps: Taps, axis: number): Tensor {
  const parts = taps.positions.map((positions, k) => {
    const shape = x.shape.map((_, a) => (a === axis ? positions.length : 1));
    const weights = tensor(at(taps.weights, k), { dtype: x.dtype as FloatType });
    return mul(take(x, tensor(positions, { dtype: "i32" }), axis), reshape(weights, shape));
  });
  return parts.reduce((sum, part) => add(sum, part));
}

/**
 * The last axes of x, [batch, channels, …space] for instance, in another size. Both conventions for corners, and results, are those of
 * PyTorch's `interpolate`.
 *
 * @example
 * import { resize, tensor } from "tidemark";
 *
 * console.log(resize(tensor([[0, 1, 2]]), [5], { mode: "bilinear", alignCorners: true }).toArray()); // [[0, 0.5, 1, 1.5, 2]]
 */
export function resize(x: Tensor, size: readonly number[], options: ResizeOptions = {}): Tensor {
  requireSize("resize", x, size);
  requireOptions("resize", options, RESIZE_OPTIONS);
  const { mode = "nearest", alignCorners = false } = options;
  if (mode !== "nearest" && mode !== "bilinear" && mode !== "bicubic") {
    fail("InvalidArgument", `resize: mode ${String(mode)}`, 'use "nearest", "bilinear" or "bicubic"');
  }
  if (mode === "nearest" && alignCorners) {
    fail("InvalidArgument", 'resize: alignCorners with mode "nearest"', "leave one of them out");
  }
  return asFunction("resize", () =>
    size.reduce((y, to, k) => {
      const axis = x.rank - size.length + k;
      const from = at(y.shape, axis);
      if (from === to) return y;
      if (mode === "nearest") return nearestAlong(y, to, axis);
      return blendedAlong(y, tapsOf(from, to, mode === "bicubic", alignCorners), axis);
    }, x),
  );
}

// ---- sampling -----------------------------------------------------------------------------------------------------

/** Options of {@link gridSample}. */
export interface GridSampleOptions {
  readonly mode?: "bilinear" | "nearest";
  /** Outside of the image: zeros, its edge, or the image mirrored. Default: zeros. */
  readonly padding?: "zeros" | "border" | "reflection";
  /** -1 and 1 are the centres of the outermost pixels, not their outer edges. Default: false. */
  readonly alignCorners?: boolean;
}

const GRID_OPTIONS: OptionKinds<GridSampleOptions> = { mode: "a text", padding: "a text", alignCorners: "a boolean" };

/** A coordinate between -1 and 1 as a place along `extent` pixels. */
function placeOf(g: Tensor, extent: number, { padding, alignCorners }: Required<GridSampleOptions>): Tensor {
  const place = alignCorners ? mul(add(g, 1), (extent - 1) / 2) : sub(mul(add(g, 1), extent / 2), 0.5);
  if (padding === "zeros") return place;
  if (padding === "border") return clamp(place, 0, extent - 1);
  // mirrored at the centres of the outermost pixels, or at their edges
  const [least, span] = alignCorners ? [0, extent - 1] : [-0.5, extent];
  if (span === 0) return mul(place, 0);
  const from = abs(sub(place, least));
  const turns = floor(mul(from, 1 / span));
  const rest = sub(from, mul(turns, span));
  const isEven = less(abs(sub(turns, mul(floor(mul(turns, 0.5)), 2))), 0.5);
  return clamp(add(where(isEven, rest, sub(span, rest)), least), 0, extent - 1);
}

/** Pixels of x [batch, channels, height · width] at whole places; zero outside. */
function pixelsAt(x: Tensor, [height, width]: readonly [number, number], row: Tensor, column: Tensor): Tensor {
  const isIn = (place: Tensor, extent: number): Tensor => logicalAnd(greaterEqual(place, 0), less(place, extent));
  const whole = (place: Tensor, extent: number): Tensor => cast(clamp(place, 0, extent - 1), "i32");
  const number = add(mul(whole(row, height), width), whole(column, width));
  const [batch, channels, points] = [at(x.shape, 0), at(x.shape, 1), at(number.shape, 1)];
  const spread = (of: Tensor): Tensor => broadcastToShape(reshape(of, [batch, 1, points]), [batch, channels, points]);
  const there = spread(logicalAnd(isIn(row, height), isIn(column, width)));
  return where(there, gather(x, spread(number), 2), 0);
}

function sampled(x: Tensor, grid: Tensor, options: Required<GridSampleOptions>): Tensor {
  const [batch, channels, height, width] = x.shape as [number, number, number, number];
  const [rows, columns] = [at(grid.shape, 1), at(grid.shape, 2)];
  const points = rows * columns;
  const flat = reshape(x, [batch, channels, height * width]);
  const along = (k: number, extent: number): Tensor =>
    placeOf(reshape(slice(grid, [null, null, null, k]), [batch, points]), extent, options);
  const [column, row] = [along(0, width), along(1, height)];
  const size = [height, width] as const;
  if (options.mode === "nearest")
    return reshape(pixelsAt(flat, size, round(row), round(column)), [batch, channels, rows, columns]);
  const [top, left] = [floor(row), floor(column)];
  const [down, right] = [sub(row, top), sub(column, left)];
  const corner = (i: number, j: number): Tensor => {
    const weight = mul(i === 0 ? sub(1, down) : down, j === 0 ? sub(1, right) : right);
    return mul(pixelsAt(flat, size, add(top, i), add(left, j)), reshape(weight, [batch, 1, points]));
  };
  const total = add(add(corner(0, 0), corner(0, 1)), add(corner(1, 0), corner(1, 1)));
  return reshape(total, [batch, channels, rows, columns]);
}

/**
 * x [batch, channels, height, width] at the points of a grid [batch, rows, columns, 2], of which each is x and y between -1 (left, top)
 * and 1 (right, bottom). Options and results are those of PyTorch's `grid_sample`; derivatives flow to the image and to the grid.
 *
 * @example
 * import { gridSample, tensor } from "tidemark";
 *
 * const x = tensor([[[[0, 1], [2, 3]]]]);
 * const middle = tensor([[[[0, 0]]]]);
 * console.log(gridSample(x, middle).toArray()); // → [[[[1.5]]]]
 */
export function gridSample(x: Tensor, grid: Tensor, options: GridSampleOptions = {}): Tensor {
  requireFloat("gridSample", x);
  requireTensor("gridSample", "grid", grid);
  requireOptions("gridSample", options, GRID_OPTIONS);
  const { mode = "bilinear", padding = "zeros", alignCorners = false } = options;
  if (mode !== "bilinear" && mode !== "nearest") {
    fail("InvalidArgument", `gridSample: mode ${String(mode)}`, 'use "bilinear" or "nearest"');
  }
  if (padding !== "zeros" && padding !== "border" && padding !== "reflection") {
    fail("InvalidArgument", `gridSample: padding ${String(padding)}`, 'use "zeros", "border" or "reflection"');
  }
  const fits = x.rank === 4 && grid.rank === 4 && grid.shape[3] === 2 && grid.shape[0] === x.shape[0];
  if (!fits || at(x.shape, 2) * at(x.shape, 3) === 0) {
    const summary = `gridSample: takes x [batch, channels, height, width] and grid [batch, rows, columns, 2], got ${typeText(x)}, ${typeText(grid)}`;
    fail("ShapeMismatch", summary, "both have one batch size, and the image has pixels");
  }
  const all = { mode, padding, alignCorners };
  // a backward pass reads the pixels again: they are up to four times the result
  return asFunction("gridSample", () => checkpoint((image: Tensor, at: Tensor) => sampled(image, at, all))(x, grid));
}

// ---- pooling ------------------------------------------------------------------------------------------------------

/** Window i of `to` over `from` elements. */
const windowOf = (i: number, from: number, to: number): readonly [number, number] => [
  Math.floor((i * from) / to),
  Math.ceil(((i + 1) * from) / to),
];

/** Equal windows as an axis of their own behind theirs. */
const cutAlong = (x: Tensor, to: number, axis: number): Tensor =>
  reshape(x, [...x.shape.slice(0, axis), to, at(x.shape, axis) / to, ...x.shape.slice(axis + 1)]);

function averageAlong(x: Tensor, to: number, axis: number): Tensor {
  const from = at(x.shape, axis);
  if (from % to === 0) return mean(cutAlong(x, to, axis), axis + 1);
  const weights = Array.from({ length: from }, (_, j) =>
    Array.from({ length: to }, (__, i) => {
      const [first, end] = windowOf(i, from, to);
      return j >= first && j < end ? 1 / (end - first) : 0;
    }),
  );
  const last = x.rank - 1;
  return swapAxes(matmul(swapAxes(x, axis, last), tensor(weights, { dtype: x.dtype as FloatType })), axis, last);
}

function largestAlong(x: Tensor, to: number, axis: number): Tensor {
  const from = at(x.shape, axis);
  if (from % to === 0) return max(cutAlong(x, to, axis), axis + 1);
  const all = Array.from({ length: to }, (_, i) => windowOf(i, from, to));
  const longest = Math.max(...all.map(([first, end]) => end - first));
  // a shorter window has its last element again, which is no larger
  const positions = all.map(([first, end]) => Array.from({ length: longest }, (_, k) => Math.min(first + k, end - 1)));
  const places = tensor(positions, { dtype: "i32" });
  // a backward pass reads the windows again, which may be larger than x
  return checkpoint((v: Tensor) => max(take(v, places, axis), axis + 1))(x);
}

/**
 * Means over windows of the last axes, so many along each that the result has a given size: window i of n is from ⌊i · extent / n⌋ to
 * ⌈(i + 1) · extent / n⌉.
 *
 * @example
 * import { adaptiveAvgPool, arange } from "tidemark";
 *
 * console.log(adaptiveAvgPool(arange(5, "f32"), [2]).toArray()); // [1, 3]
 */
export function adaptiveAvgPool(x: Tensor, size: readonly number[]): Tensor {
  requireSize("adaptiveAvgPool", x, size);
  const first = x.rank - size.length;
  return asFunction("adaptiveAvgPool", () => size.reduce((y, to, k) => averageAlong(y, to, first + k), x));
}

/**
 * The largest elements of the windows of `adaptiveAvgPool`.
 *
 * @example
 * import { adaptiveMaxPool, arange } from "tidemark";
 *
 * const x = arange(16, { dtype: "f32" }).reshape([1, 1, 4, 4]);
 * console.log(adaptiveMaxPool(x, [2, 2]).toArray()); // → [[[[5, 7], [13, 15]]]]
 */
export function adaptiveMaxPool(x: Tensor, size: readonly number[]): Tensor {
  requireSize("adaptiveMaxPool", x, size);
  const first = x.rank - size.length;
  return asFunction("adaptiveMaxPool", () => size.reduce((y, to, k) => largestAlong(y, to, first + k), x));
}

function spaceOf(name: string, x: Tensor): readonly number[] {
  requireFloat(name, x);
  if (x.rank < 3)
    fail("ShapeMismatch", `${name}: takes [batch, channels, …space], got ${typeText(x)}`, "use mean or max");
  return x.shape.slice(2).map((_, k) => k + 2);
}

/**
 * The mean over all positions of each channel: [batch, channels, …space] → [batch, channels].
 *
 * @example
 * import { arange, globalAvgPool } from "tidemark";
 *
 * console.log(globalAvgPool(arange(8, { dtype: "f32" }).reshape([1, 2, 2, 2])).toArray()); // → [[1.5, 5.5]]
 */
export function globalAvgPool(x: Tensor): Tensor {
  return mean(x, spaceOf("globalAvgPool", x));
}

/**
 * The largest over all positions of each channel: [batch, channels, …space] → [batch, channels].
 *
 * @example
 * import { arange, globalMaxPool } from "tidemark";
 *
 * console.log(globalMaxPool(arange(8, { dtype: "f32" }).reshape([1, 2, 2, 2])).toArray()); // → [[3, 7]]
 */
export function globalMaxPool(x: Tensor): Tensor {
  return max(x, spaceOf("globalMaxPool", x));
}
