/**
 * @file Changing tensors, inside of traced functions. A change is a new version of the tensor for the graph
 * (trace/cell.ts), so derivatives and plans see plain values; where the old version is not needed the planner writes the
 * new one over it, and only the part that changes is touched.
 *
 * Views share elements: reshape, transpose, slice, flip and what is made of them alone (expandDims, squeeze, swapAxes,
 * split, diagonal). Everything else makes a tensor of its own.
 */

import { type Shape, tensorType, typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { describe, fail } from "../trace/arguments.ts";
import { isRepeated, rootOf } from "../trace/cell.ts";
import { numberOf, Tensor } from "../trace/tensor.ts";
import { currentTrace, requireActive, type Trace } from "../trace/trace.ts";
import { ownCopy, placed } from "./apply.ts";
import { div, greaterEqual, less, logicalAnd, maximum, mul, neg, where } from "./elementwise.ts";
import { dynamicSlice, dynamicUpdate, scatterAdd, take } from "./indexing.ts";
import { broadcastToShape, constantOf, fromRows, isRows, type TensorLike } from "./operands.ts";
import { lastSources } from "./scatter.ts";
import { type Range, reshape, slice } from "./shape.ts";

/**
 * Where to change a tensor: a row by its number (negative ones count from the end), ranges along the first axes as in
 * `slice`, or row numbers that are data: an i32 tensor. Of the latter, those out of range, negative ones too, change
 * nothing.
 *
 * @example
 * import { compile, type Place, type Tensor, zeros } from "tidemark";
 *
 * const place: Place = [[1, 3]];
 * const fill = compile((x: Tensor) => x.copy().setAt(place, 1));
 * console.log(fill(zeros([4])).toArray()); // → [0, 1, 1, 0]
 */
export type Place = number | readonly Range[] | Tensor;

/** The active trace, if the tensor can be changed in it. */
function writable(name: string, x: Tensor): Trace {
  const trace = currentTrace();
  const type = typeText(x);
  requireActive(x);
  if (!trace) {
    const help = "call it in a function given to compile or grad; outside, make a new tensor: x.add(y)";
    return fail(
      "SideEffect",
      `${name}: tensors can be changed only inside compiled functions, ${type} is outside`,
      help,
    );
  }
  if (numberOf(x)) fail("SideEffect", `${name}: ${describe(x)} cannot be changed`, "change a copy: x.copy()");
  const { traced } = x;
  if (traced?.trace !== trace || rootOf(traced.cell).origin === "captured") {
    const [around, help] = trace.hasValues
      ? ["the tape and cannot be changed on it", "change a copy, x.copy(), and return it from the tape"]
      : [
          "the traced function and cannot be changed inside it",
          "pass it as an argument and return it, or change a copy: x.copy()",
        ];
    return fail("SideEffect", `${name}: ${type} is defined outside of ${around}`, help);
  }
  if (isRepeated(traced.cell)) {
    const help = "change the tensor before it is broadcast, or a copy: x.copy()";
    return fail("SideEffect", `${name}: ${type} was broadcast: several of its elements are one in memory`, help);
  }
  return trace;
}

/** A value as a tensor of an element type and shape. */
function valueFor(name: string, x: Tensor, shape: Shape, given: TensorLike): Tensor {
  if (isRows(given)) return valueFor(name, x, shape, fromRows(given, x.dtype));
  if (!(given instanceof Tensor) || numberOf(given)) return constantOf(name, given, x.dtype, shape);
  const value = placed(given, x);
  const wanted = typeText(tensorType(x.dtype, shape));
  if (value.dtype !== x.dtype) {
    const help = `a tensor keeps its element type: cast(value, "${x.dtype}")`;
    fail("DtypeMismatch", `${name}: cannot store ${typeText(value)} in ${wanted}`, help);
  }
  const from = shape.length - value.rank;
  if (from < 0 || value.shape.some((extent, axis) => extent !== 1 && extent !== shape[axis + from])) {
    const help = "a tensor keeps its shape: the value must have that shape or broadcast to it";
    fail("ShapeMismatch", `${name}: cannot store ${typeText(value)} in ${wanted}`, help);
  }
  return broadcastToShape(value, shape);
}

function partAt(name: string, x: Tensor, place: number | readonly Range[]): Tensor {
  if (typeof place !== "number") return slice(x, place);
  const extent = x.shape[0] ?? 0;
  if (!Number.isInteger(place) || place < -extent || place >= extent) {
    const help = x.rank === 0 ? "a scalar has no rows; use assign" : `it has ${extent} rows`;
    fail("InvalidArgument", `${name}: there is no row ${place} in ${typeText(x)}`, help);
  }
  return slice(x, [place]);
}

function requireRows(name: string, x: Tensor, rows: Tensor): void {
  if (!isIndexType(rows.dtype)) {
    const got = numberOf(rows) ? describe(rows) : typeText(rows);
    fail("DtypeMismatch", `${name}: row numbers must be i32, got ${got}`, 'convert them: cast(rows, "i32")');
  }
  if (x.rank === 0) fail("InvalidArgument", `${name}: a scalar has no rows`, "use assign");
}

/** The row with a number known at run time replaced; the tensor as it is when there is no such row. */
function withRow(name: string, x: Tensor, row: Tensor, value: TensorLike): Tensor {
  const [extent, ...rest] = x.shape as [number, ...number[]];
  const update = reshape(valueFor(name, x, rest, value), [1, ...rest]);
  if (extent === 0) return x;
  const starts = [row, ...rest.map(() => 0)];
  const inside = logicalAnd(greaterEqual(row, 0), less(row, extent));
  return dynamicUpdate(x, where(inside, update, dynamicSlice(x, starts, [1, ...rest])), starts);
}

/**
 * Several rows replaced, of equal numbers by the last. Who is last is found first, so that every row has one source and is
 * copied from there, bit by bit; values that lose have no derivative:
 *
 *   rows   2 0 2        source of each row  1 · 2 ·        · stays
 */
function withRows(name: string, x: Tensor, rows: Tensor, value: TensorLike): Tensor {
  const [extent, ...rest] = x.shape as [number, ...number[]];
  const count = rows.elements;
  const updates = reshape(valueFor(name, x, [...rows.shape, ...rest], value), [count, ...rest]);
  if (extent === 0 || count === 0) return x;
  const source = lastSources(rows, extent);
  const stays = reshape(less(source, 0), [extent, ...rest.map(() => 1)]);
  return where(stays, x, take(updates, maximum(source, 0)));
}

/**
 * Replaces the elements at a place. Of row numbers from a tensor that name one row twice the last counts.
 *
 * @example
 * import { compile, tensor } from "tidemark";
 *
 * const f = compile((x) => {
 *   x.setAt(0, 9).setAt([null, -1], tensor([5, 6]));
 *   return x;
 * });
 * console.log(f(tensor([[1, 2], [3, 4]])).toArray()); // [[9, 5], [3, 6]]
 */
export function setAt(x: Tensor, place: Place, value: TensorLike): Tensor {
  const trace = writable("setAt", x);
  if (place instanceof Tensor) {
    requireRows("setAt", x, place);
    trace.assign(x, (place.rank === 0 ? withRow : withRows)("setAt", x, place, value));
    return x;
  }
  const part = partAt("setAt", x, place);
  trace.assign(part, valueFor("setAt", x, part.shape, value));
  return x;
}

/**
 * Adds to the elements at a place. With row numbers from a tensor of any shape, repeated ones add up.
 *
 * @example
 * import { compile, tensor, zeros } from "tidemark";
 *
 * const count = compile((rows) => zeros([4]).addAt(rows, 1));
 * console.log(count(tensor([1, 3, 1], { dtype: "i32" })).toArray()); // [0, 2, 0, 1]
 */
export function addAt(x: Tensor, place: Place, value: TensorLike): Tensor {
  const trace = writable("addAt", x);
  if (place instanceof Tensor) {
    requireRows("addAt", x, place);
    const updates = valueFor("addAt", x, [...place.shape, ...x.shape.slice(1)], value);
    trace.assign(x, scatterAdd(x, place, updates));
    return x;
  }
  const part = partAt("addAt", x, place);
  trace.increase(part, valueFor("addAt", x, part.shape, value));
  return x;
}

/** Replaces all elements. */
export function assign(x: Tensor, value: TensorLike): Tensor {
  writable("assign", x).assign(x, valueFor("assign", x, x.shape, value));
  return x;
}

/** Makes all elements one number. */
export function fill(x: Tensor, value: number | boolean): Tensor {
  writable("fill", x).assign(x, constantOf("fill", value, x.dtype, x.shape));
  return x;
}

/**
 * Adds to all elements. Through a view it changes what the view shows.
 *
 * @example
 * import { compile, tensor } from "tidemark";
 *
 * const f = compile((x) => {
 *   x.T.slice([1]).addInPlace(10);
 *   return x;
 * });
 * console.log(f(tensor([[1, 2], [3, 4]])).toArray()); // [[1, 12], [3, 14]]
 */
export function addInPlace(x: Tensor, y: TensorLike): Tensor {
  writable("addInPlace", x).increase(x, valueFor("addInPlace", x, x.shape, y));
  return x;
}

/** Subtracts from all elements. */
export function subInPlace(x: Tensor, y: TensorLike): Tensor {
  // x - y has the bits of x + (-y)
  writable("subInPlace", x).increase(x, neg(valueFor("subInPlace", x, x.shape, y)));
  return x;
}

/** Multiplies all elements. */
export function mulInPlace(x: Tensor, y: TensorLike): Tensor {
  writable("mulInPlace", x).assign(x, mul(x, valueFor("mulInPlace", x, x.shape, y)));
  return x;
}

/** Divides all elements; on i32 it truncates. */
export function divInPlace(x: Tensor, y: TensorLike): Tensor {
  writable("divInPlace", x).assign(x, div(x, valueFor("divInPlace", x, x.shape, y)));
  return x;
}

/** The same elements in a tensor of its own: changes to the one do not show in the other. */
export function copy(x: Tensor): Tensor {
  return ownCopy(x);
}
