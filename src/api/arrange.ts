/** @file Rearrangements and products of tensors that are made of other functions: rolled, diagonal, taken apart, as grids and windows. */
import { at } from "../base/invariant.ts";
import { elementsOf, typeText } from "../ir/type.ts";
import { iota } from "../ops/create.ts";
import * as windows from "../ops/window.ts";
import { fail, type OptionKinds, requireArray, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp, ownCopy } from "./apply.ts";
import { add, equal, mul, sub, where } from "./elementwise.ts";
import { diagonal } from "./indexing.ts";
import { concat, split } from "./join.ts";
import { matmul } from "./linear.ts";
import { type Axes, broadcastToShape, normalAxis, operands } from "./operands.ts";
import { sum } from "./reduce.ts";
import { pad, reshape, slice, transpose } from "./shape.ts";
import { type Padding, type PerAxis, paddingOf, perAxis } from "./window.ts";

/** A range along one axis. */
function partOf(x: Tensor, axis: number, from: number, to: number): Tensor {
  return slice(
    x,
    x.shape.map((_, a) => (a === axis ? ([from, to] as const) : null)),
  );
}

function rolledAlong(x: Tensor, shift: number, axis: number): Tensor {
  const n = at(x.shape, axis);
  if (!Number.isInteger(shift)) fail("InvalidArgument", `roll: shift ${String(shift)}`, "a shift is a whole number");
  const by = n === 0 ? 0 : ((shift % n) + n) % n;
  return by === 0 ? x : concat([partOf(x, axis, n - by, n), partOf(x, axis, 0, n - by)], axis);
}

/**
 * Elements moved on along axes, those at the end to the beginning; without axes in the order of all elements.
 *
 * @example
 * import { roll, tensor } from "tidemark";
 *
 * console.log(roll(tensor([1, 2, 3, 4]), 1).toArray()); // [4, 1, 2, 3]
 */
export function roll(x: Tensor, shift: number | readonly number[], axes?: Axes): Tensor {
  requireTensor("roll", "x", x);
  if (axes === undefined) {
    const flat = reshape(x, [x.elements]);
    return ownCopy(reshape(rolledAlong(flat, shift as number, 0), x.shape));
  }
  const along = (Array.isArray(axes) ? (axes as readonly number[]) : [axes as number]).map((a) =>
    normalAxis("roll", a, x),
  );
  const shifts = Array.isArray(shift) ? (shift as readonly number[]) : along.map(() => shift as number);
  if (shifts.length !== along.length) {
    fail("InvalidArgument", `roll: ${shifts.length} shifts for ${along.length} axes`, "give one shift for each axis");
  }
  return asFunction("roll", () => ownCopy(along.reduce((y, axis, i) => rolledAlong(y, at(shifts, i), axis), x)));
}

/**
 * A matrix with a vector on its diagonal number k, or the diagonal number k of a matrix: above the main one where k > 0.
 *
 * @example
 * import { diag, tensor } from "tidemark";
 *
 * console.log(diag(tensor([1, 2])).toArray(), diag(tensor([[1, 2], [3, 4]]), 1).toArray()); // [[1, 0], [0, 2]] [2]
 */
export function diag(x: Tensor, k = 0): Tensor {
  requireTensor("diag", "x", x);
  if (!Number.isInteger(k)) fail("InvalidArgument", `diag: k is ${String(k)}`, "k is a whole number");
  const [rows, columns] = x.shape;
  if (x.rank === 2) {
    const from = (extent: number | undefined, by: number): readonly [number, null] => [Math.min(by, extent ?? 0), null];
    return diagonal(slice(x, [from(rows, Math.max(0, -k)), from(columns, Math.max(0, k))]));
  }
  if (x.rank !== 1) fail("ShapeMismatch", `diag: takes a vector or a matrix, got ${typeText(x)}`, "use diagonal");
  const n = x.elements + Math.abs(k);
  return asFunction("diag", () => {
    const number = (axis: number): Tensor => applyOp(iota, [], { shape: [n, n], axis });
    // element i of the vector is in row i, or in column i where k < 0
    const long = reshape(pad(x, [[0, Math.abs(k)]]), k >= 0 ? [n, 1] : [1, n]);
    return where(equal(add(number(0), k), number(1)), broadcastToShape(long, [n, n]), 0);
  });
}

/**
 * The sum of the main diagonal over two axes.
 *
 * @example
 * import { tensor, trace } from "tidemark";
 *
 * console.log(trace(tensor([[1, 2], [3, 4]])).item()); // → 5
 */
export function trace(x: Tensor, axis1 = -2, axis2 = -1): Tensor {
  return asFunction("trace", () => sum(diagonal(x, axis1, axis2), -1));
}

/**
 * The Kronecker product: every element of a times all of b, as blocks.
 *
 * @example
 * import { kron, tensor } from "tidemark";
 *
 * console.log(kron(tensor([1, 10]), tensor([1, 2])).toArray()); // [1, 2, 10, 20]
 */
export function kron(a: Tensor, b: Tensor): Tensor {
  requireTensor("kron", "a", a);
  requireTensor("kron", "b", b);
  const rank = Math.max(a.rank, b.rank);
  const shape = (x: Tensor): readonly number[] => [...new Array<number>(rank - x.rank).fill(1), ...x.shape];
  const [p, q] = [shape(a), shape(b)];
  return asFunction("kron", () => {
    const left = reshape(
      a,
      p.flatMap((n) => [n, 1]),
    );
    const right = reshape(
      b,
      q.flatMap((n) => [1, n]),
    );
    return reshape(
      mul(left, right),
      p.map((n, axis) => n * at(q, axis)),
    );
  });
}

/**
 * The cross product of vectors of three elements along an axis, the last by default.
 *
 * @example
 * import { cross, tensor } from "tidemark";
 *
 * console.log(cross(tensor([1, 0, 0]), tensor([0, 1, 0])).toArray()); // → [0, 0, 1]
 */
export function cross(a: Tensor, b: Tensor, axis = -1): Tensor {
  requireTensor("cross", "a", a);
  requireTensor("cross", "b", b);
  const [p, q] = operands("cross", a, b) as readonly [Tensor, Tensor];
  const along = normalAxis("cross", axis, p);
  if (p.shape[along] !== 3) {
    const summary = `cross: axis ${along} of ${typeText(p)} has ${p.shape[along]} elements`;
    fail("ShapeMismatch", summary, "a cross product is of vectors of 3 elements");
  }
  const part = (x: Tensor, i: number): Tensor => partOf(x, along, i % 3, (i % 3) + 1);
  const element = (i: number): Tensor => sub(mul(part(p, i + 1), part(q, i + 2)), mul(part(p, i + 2), part(q, i + 1)));
  return asFunction("cross", () => concat([element(0), element(1), element(2)], along));
}

/**
 * Sums of products over axes of a and of b, pairwise; the other axes of a come first in the result, then those of b. A number is
 * that of the last axes of a and the first of b.
 *
 * @example
 * import { ones, tensordot } from "tidemark";
 *
 * console.log(tensordot(ones([2, 3, 4]), ones([4, 3, 5]), [[1, 2], [1, 0]]).shape); // [2, 5]
 */
export function tensordot(
  a: Tensor,
  b: Tensor,
  axes: number | readonly [readonly number[], readonly number[]] = 2,
): Tensor {
  requireTensor("tensordot", "a", a);
  requireTensor("tensordot", "b", b);
  const count = typeof axes === "number" ? axes : -1;
  const [p, q] =
    typeof axes === "number"
      ? [Array.from({ length: count }, (_, i) => a.rank - count + i), Array.from({ length: count }, (_, i) => i)]
      : axes;
  const [left, right] = [p.map((i) => normalAxis("tensordot", i, a)), q.map((i) => normalAxis("tensordot", i, b))];
  if (left.length !== right.length || left.some((axis, i) => a.shape[axis] !== b.shape[at(right, i)])) {
    const summary = `tensordot: axes [${left}] of ${typeText(a)} with axes [${right}] of ${typeText(b)}`;
    fail("ShapeMismatch", summary, "name as many axes of both, of equal extents");
  }
  const others = (x: Tensor, gone: readonly number[]): readonly number[] =>
    x.shape.map((_, axis) => axis).filter((axis) => !gone.includes(axis));
  const [rows, columns] = [others(a, left), others(b, right)];
  const extents = (x: Tensor, list: readonly number[]): readonly number[] => list.map((axis) => at(x.shape, axis));
  const depth = elementsOf(extents(a, left));
  return asFunction("tensordot", () => {
    const m = reshape(transpose(a, [...rows, ...left]), [elementsOf(extents(a, rows)), depth]);
    const n = reshape(transpose(b, [...right, ...columns]), [depth, elementsOf(extents(b, columns))]);
    return reshape(matmul(m, n), [...extents(a, rows), ...extents(b, columns)]);
  });
}

/** Options of {@link meshgrid}. */
export interface MeshgridOptions {
  /** "xy", the default: the first vector runs along the second axis. "ij": each runs along its own. */
  readonly indexing?: "xy" | "ij";
}

/**
 * Coordinates of a grid from those along its axes: for each vector a tensor of the grid's shape in which it is repeated.
 *
 * @example
 * import { meshgrid, tensor } from "tidemark";
 *
 * const [x, y] = meshgrid([tensor([1, 2, 3]), tensor([4, 5])]);
 * console.log(x?.toArray(), y?.toArray()); // → [[1, 2, 3], [1, 2, 3]] [[4, 4, 4], [5, 5, 5]]
 */
export function meshgrid(vectors: readonly Tensor[], options: MeshgridOptions = {}): readonly Tensor[] {
  requireArray("meshgrid", "the vectors", vectors, "meshgrid([x, y])");
  requireOptions("meshgrid", options, { indexing: "a text" });
  vectors.forEach((x, i) => {
    requireTensor("meshgrid", `vector ${i}`, x);
    if (x.rank !== 1) fail("ShapeMismatch", `meshgrid: vector ${i} is ${typeText(x)}`, "give tensors of one axis");
  });
  const { indexing = "xy" } = options;
  if (indexing !== "xy" && indexing !== "ij") {
    fail("InvalidArgument", `meshgrid: indexing ${String(indexing)}`, 'use "xy" or "ij"');
  }
  const place = (i: number): number => (indexing === "xy" && i < 2 && vectors.length > 1 ? 1 - i : i);
  const shape = vectors.map((_, axis) => at(vectors, place(axis)).elements);
  return vectors.map((x, i) => {
    const own = shape.map((extent, axis) => (axis === place(i) ? extent : 1));
    return ownCopy(broadcastToShape(reshape(x, own), shape));
  });
}

/**
 * The slices along an axis, without that axis.
 *
 * @example
 * import { tensor, unstack } from "tidemark";
 *
 * console.log(unstack(tensor([[1, 2], [3, 4]])).map((row) => row.toArray())); // → [[1, 2], [3, 4]]
 */
export function unstack(x: Tensor, axis = 0): readonly Tensor[] {
  const along = normalAxis("unstack", axis, x);
  return Array.from({ length: at(x.shape, along) }, (_, i) => {
    return slice(x, [...x.shape.slice(0, along).map(() => null), i]);
  });
}

/**
 * Cut along an axis into at most so many parts, of ⌈extent / parts⌉ each but for the last.
 *
 * @example
 * import { chunk, tensor } from "tidemark";
 *
 * console.log(chunk(tensor([1, 2, 3, 4, 5]), 2).map((part) => part.toArray())); // → [[1, 2, 3], [4, 5]]
 */
export function chunk(x: Tensor, parts: number, axis = 0): readonly Tensor[] {
  const along = normalAxis("chunk", axis, x);
  if (!Number.isInteger(parts) || parts < 1) {
    fail("InvalidArgument", `chunk: ${String(parts)} parts`, "the number of parts is a whole number ≥ 1");
  }
  const extent = at(x.shape, along);
  const each = Math.max(1, Math.ceil(extent / parts));
  const count = Math.max(1, Math.ceil(extent / each));
  return split(
    x,
    Array.from({ length: count }, (_, i) => Math.min(each, extent - i * each)),
    along,
  );
}

// ---- windows and pixels -------------------------------------------------------------------------------------------

/** Options of {@link unfold} and {@link fold}. */
export interface UnfoldOptions {
  readonly stride?: PerAxis;
  readonly padding?: Padding;
  readonly dilation?: PerAxis;
}

const UNFOLD_OPTIONS: OptionKinds<UnfoldOptions> = { stride: "anything", padding: "anything", dilation: "anything" };

/** Where windows over images of a size go. */
function windowsOver(name: string, size: readonly number[], window: PerAxis, options: UnfoldOptions) {
  requireOptions(name, options, UNFOLD_OPTIONS);
  const of = { name, axes: size.length };
  const extent = perAxis(of, "window", window, 1);
  const [stride, dilation] = [perAxis(of, "stride", options.stride, 1), perAxis(of, "dilation", options.dilation, 1)];
  const { lo, hi } = paddingOf(name, options.padding, size, { extent, stride, dilation });
  return { window: extent, stride, lo, hi, dilation };
}

/**
 * Windows of images [batch, channels, …space] as columns (im2col): [batch, channels · positions in a window, windows], with zeros
 * around. In a larger program they are not stored where what follows reads them element by element.
 *
 * @example
 * import { arange, unfold } from "tidemark";
 *
 * console.log(unfold(arange(9, { dtype: "f32" }).reshape([1, 1, 3, 3]), 2).shape); // → [1, 4, 4]
 */
export function unfold(x: Tensor, window: PerAxis, options: UnfoldOptions = {}): Tensor {
  requireTensor("unfold", "x", x);
  if (x.rank < 3) fail("ShapeMismatch", `unfold: takes [batch, channels, …space], got ${typeText(x)}`, "use reshape");
  const attrs = windowsOver("unfold", x.shape.slice(2), window, options);
  const axes = attrs.window.length;
  return asFunction("unfold", () => {
    const wide = applyOp(windows.unfold, [x], { ...attrs, value: 0 });
    // [batch, channels, windows…, window…] → [batch, channels, window…, windows…]
    const order = [0, 1, ...attrs.window.map((_, k) => 2 + axes + k), ...attrs.window.map((_, k) => 2 + k)];
    const turned = transpose(wide, order);
    const count = elementsOf(wide.shape.slice(2, 2 + axes));
    return ownCopy(reshape(turned, [at(x.shape, 0), at(x.shape, 1) * elementsOf(attrs.window), count]));
  });
}

/**
 * The transpose of `unfold` (col2im): columns added up where they came from, in images of a size.
 *
 * @example
 * import { fold, ones, unfold } from "tidemark";
 *
 * const windows = unfold(ones([1, 1, 3, 3]), 2);
 * console.log(fold(windows, [3, 3], 2).toArray()); // → [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]
 */
export function fold(x: Tensor, size: readonly number[], window: PerAxis, options: UnfoldOptions = {}): Tensor {
  requireTensor("fold", "x", x);
  requireArray("fold", "the size", size, "fold(x, [height, width], 3)");
  const attrs = windowsOver("fold", size, window, options);
  const counts = size.map((extent, k) => {
    const reach = (at(attrs.window, k) - 1) * at(attrs.dilation, k) + 1;
    return Math.floor((extent + at(attrs.lo, k) + at(attrs.hi, k) - reach) / at(attrs.stride, k)) + 1;
  });
  const positions = elementsOf(attrs.window);
  const [batch = 0, rows = 0, columns = 0] = x.shape;
  if (x.rank !== 3 || rows % positions !== 0 || columns !== elementsOf(counts)) {
    const wanted = `[batch, channels · ${positions}, ${elementsOf(counts)}]`;
    fail("ShapeMismatch", `fold: takes ${wanted}, got ${typeText(x)}`, "give what unfold with the same options gives");
  }
  const axes = size.length;
  return asFunction("fold", () => {
    const turned = reshape(x, [batch, rows / positions, ...attrs.window, ...counts]);
    const order = [0, 1, ...counts.map((_, k) => 2 + axes + k), ...counts.map((_, k) => 2 + k)];
    return applyOp(windows.fold, [transpose(turned, order)], { ...attrs, size });
  });
}

function requirePixels(name: string, x: Tensor, factor: number): void {
  requireTensor(name, "x", x);
  const isFactor = Number.isInteger(factor) && factor > 0;
  if (!isFactor) fail("InvalidArgument", `${name}: factor ${String(factor)}`, "the factor is a whole number ≥ 1");
  if (x.rank < 3)
    fail("ShapeMismatch", `${name}: takes […, channels, height, width], got ${typeText(x)}`, "use reshape");
}

/**
 * Channels as pixels: […, c · r², h, w] → […, c, h · r, w · r].
 *
 * @example
 * import { ones, pixelShuffle } from "tidemark";
 *
 * console.log(pixelShuffle(ones([1, 4, 2, 2]), 2).shape); // → [1, 1, 4, 4]
 */
export function pixelShuffle(x: Tensor, factor: number): Tensor {
  requirePixels("pixelShuffle", x, factor);
  const [c, h, w] = x.shape.slice(-3) as [number, number, number];
  const [lead, r] = [x.shape.slice(0, -3), factor];
  if (c % (r * r) !== 0) {
    fail("ShapeMismatch", `pixelShuffle: ${c} channels with factor ${r}`, `channels are a multiple of ${r * r}`);
  }
  const kept = lead.map((_, axis) => axis);
  const [cAxis, rows, columns, hAxis, wAxis] = [0, 1, 2, 3, 4].map((i) => lead.length + i) as [
    number,
    number,
    number,
    number,
    number,
  ];
  return asFunction("pixelShuffle", () => {
    const apart = reshape(x, [...lead, c / (r * r), r, r, h, w]);
    const turned = transpose(apart, [...kept, cAxis, hAxis, rows, wAxis, columns]);
    return ownCopy(reshape(turned, [...lead, c / (r * r), h * r, w * r]));
  });
}

/**
 * Pixels as channels, the inverse of `pixelShuffle`: […, c, h · r, w · r] → […, c · r², h, w].
 *
 * @example
 * import { ones, pixelUnshuffle } from "tidemark";
 *
 * console.log(pixelUnshuffle(ones([1, 1, 4, 4]), 2).shape); // → [1, 4, 2, 2]
 */
export function pixelUnshuffle(x: Tensor, factor: number): Tensor {
  requirePixels("pixelUnshuffle", x, factor);
  const [c, h, w] = x.shape.slice(-3) as [number, number, number];
  const [lead, r] = [x.shape.slice(0, -3), factor];
  if (h % r !== 0 || w % r !== 0) {
    fail("ShapeMismatch", `pixelUnshuffle: ${h} × ${w} pixels with factor ${r}`, "both are multiples of the factor");
  }
  const kept = lead.map((_, axis) => axis);
  const [cAxis, hAxis, rows, wAxis, columns] = [0, 1, 2, 3, 4].map((i) => lead.length + i) as [
    number,
    number,
    number,
    number,
    number,
  ];
  return asFunction("pixelUnshuffle", () => {
    const apart = reshape(x, [...lead, c, h / r, r, w / r, r]);
    const turned = transpose(apart, [...kept, cAxis, rows, columns, hAxis, wAxis]);
    return ownCopy(reshape(turned, [...lead, c * r * r, h / r, w / r]));
  });
}
