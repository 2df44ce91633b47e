/**
 * @file What operations do to their arguments first: JavaScript numbers take the element type of the tensors beside
 * them, shapes are broadcast against each other from the right, axes count from either end.
 *
 *   f32[8,1,6] with f32[7,1]      8 1 6
 *                                   7 1
 *                                 8 7 6
 */
import { type Shape, sameShape, shapeText, type TensorType, typeText } from "../ir/type.ts";
import { type DType, elementWriter, FLOAT_TYPES, type FloatType, isBool, isFloat } from "../kernel/dtype.ts";
import { broadcast } from "../ops/broadcast.ts";
import { describe, fail, requireLiteral, requireShape, requireTensor } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { LazyStorage } from "../trace/storage.ts";
import { type NestedArray, numberOf, Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import { applyOp, metTensors } from "./apply.ts";

/** Rows of numbers or booleans. */
export type NestedRows = readonly NestedArray[];

/** A tensor, or a number or nested arrays of numbers that become one of the same element type as the tensors beside them. */
export type TensorLike = Tensor | NestedArray;

/** One axis or several; negative ones count from the end. */
export type Axes = number | readonly number[];

/** A tensor of one value. */
export function fullOf(dtype: DType, shape: Shape, value: number): Tensor {
  const trace = currentTrace();
  if (trace) return trace.constant(dtype, shape, value);
  requireShape("full", shape);
  return new Tensor(new LazyStorage(dtype, shape, (into) => into.fill(elementWriter(dtype)(value))));
}

/** A number or boolean as a tensor of an element type and shape; the number may be one that is traced. */
export function constantOf(name: string, value: number | boolean | Tensor, dtype: DType, shape: Shape): Tensor {
  const number = numberOf(value);
  if (number) {
    if (!isBool(dtype)) return broadcastToShape(number.as(dtype), shape);
    fail(
      "DtypeMismatch",
      `${name}: cannot combine the number ${number.path} with a bool tensor`,
      'convert it first: cast(x, "f32")',
    );
  }
  if (typeof value !== "number" && typeof value !== "boolean") {
    fail("InvalidArgument", `${name}: takes a number or a boolean, got ${describe(value)}`, "give a number");
  }
  if (typeof value === "boolean" && !isBool(dtype)) {
    fail(
      "DtypeMismatch",
      `${name}: cannot combine ${value} with a tensor of ${dtype}`,
      "use a number, or cast the tensor to bool",
    );
  }
  if (isBool(dtype) && typeof value === "number") {
    fail(
      "DtypeMismatch",
      `${name}: cannot combine the number ${value} with a bool tensor`,
      'convert it first: cast(x, "f32")',
    );
  }
  requireLiteral(name, Number(value), dtype);
  return fullOf(dtype, shape, Number(value));
}

/** Nested arrays as a tensor of an element type; booleans stay what they are, as single ones do. @internal */
export function fromRows(rows: NestedRows, dtype?: DType): Tensor {
  const made = tensor(rows);
  return dtype === undefined || isBool(made.dtype) || isBool(dtype) ? made : tensor(rows, { dtype });
}

export const isRows = (x: unknown): x is NestedRows => Array.isArray(x);

/** A number as an f32 scalar, a boolean as a bool one, nested arrays likewise, a tensor as it is. */
export function asTensor(name: string, x: TensorLike): Tensor {
  if (x instanceof Tensor) return numberOf(x)?.as("f32") ?? x;
  if (typeof x === "number") return constantOf(name, x, "f32", []);
  if (typeof x === "boolean") return constantOf(name, x, "bool", []);
  if (isRows(x)) return fromRows(x);
  return fail(
    "InvalidArgument",
    `${name}: takes tensors and numbers, got ${describe(x)}`,
    "make a tensor first: tensor(data)",
  );
}

/** The shape that all broadcast to; `shown` is what an error shows in their place. */
export function broadcastShapes(
  name: string,
  tensors: readonly TensorType[],
  shown: readonly TensorType[] = tensors,
): Shape {
  const [first] = tensors;
  if (first && tensors.every(({ shape }) => sameShape(shape, first.shape))) return first.shape;
  const rank = Math.max(0, ...tensors.map((x) => x.shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    let extent = 1;
    for (const { shape } of tensors) {
      const own = shape[axis - rank + shape.length] ?? 1;
      if (own === 1 || own === extent) continue;
      if (extent !== 1) {
        const behind = (tensors[0]?.shape.length ?? 0) - (shown[0]?.shape.length ?? 0);
        const types = shown.map(typeText).join(", ");
        fail(
          "ShapeMismatch",
          `${name}: shapes do not broadcast: ${extent} and ${own} at axis ${axis - rank + behind} of ${types}`,
          "extents must be equal or 1, counted from the right; reshape, transpose or expandDims one side",
        );
      }
      extent = own;
    }
    return extent;
  });
}

/** Repeats a tensor to a shape that it broadcasts to. */
export function broadcastToShape(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const axes = x.shape.map((_, axis) => axis + shape.length - x.rank);
  return applyOp(broadcast, [x], { shape, axes });
}

/** Tensors of one element type and one shape, from what the user gave. */
export function operands(name: string, ...given: readonly TensorLike[]): readonly Tensor[] {
  const isWhole = (x: TensorLike): x is Tensor => x instanceof Tensor && !numberOf(x);
  const whole = given.filter(isWhole);
  if (given.some(isRows)) {
    const dtype = metTensors(whole)[0]?.dtype;
    return operands(name, ...given.map((x) => (isRows(x) ? fromRows(x, dtype) : x)));
  }
  const same = metTensors(whole);
  if (same === whole) return together(name, given, whole);
  const rest = [...same];
  return together(
    name,
    given.map((x) => (isWhole(x) ? (rest.shift() ?? x) : x)),
    same,
  );
}

/** The same without arrays. */
function together(name: string, given: readonly TensorLike[], tensors: readonly Tensor[]): readonly Tensor[] {
  const [first] = tensors;
  if (!first) return operands(name, ...given.map((x) => asTensor(name, x)));
  const other = tensors.find((x) => x.dtype !== first.dtype);
  if (other) {
    fail(
      "DtypeMismatch",
      `${name}: element types differ: ${typeText(first)}, ${typeText(other)}`,
      `convert one side: cast(x, "${isFloat(other.dtype) ? other.dtype : first.dtype}")`,
    );
  }
  const shape = broadcastShapes(name, tensors);
  return given.map((x) => {
    if (numberOf(x)) return constantOf(name, x as Tensor, first.dtype, shape);
    if (x instanceof Tensor) return broadcastToShape(x, shape);
    if (typeof x === "number" || typeof x === "boolean") return constantOf(name, x, first.dtype, shape);
    return asTensor(name, x);
  });
}

const AXES_HELP = "an axis is a whole number; where several are taken, a list of them";

/** An axis counted from the front. */
export function normalAxis(name: string, axis: number, x: Tensor, rank?: number): number {
  requireTensor(name, "x", x);
  return axisWithin(name, axis, x, rank ?? x.rank);
}

function axisWithin(name: string, axis: number, x: Tensor, rank: number): number {
  if (typeof axis !== "number")
    fail("InvalidAxis", `${name}: ${describe(axis)} as an axis of ${typeText(x)}`, AXES_HELP);
  if (Number.isInteger(axis) && axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return fail(
    "InvalidAxis",
    `${name}: axis ${axis} of ${typeText(x)}, which has rank ${rank}`,
    rank === 0 ? "a scalar has no axes" : `axes run from 0 to ${rank - 1}, or from -${rank} to -1`,
  );
}

/** Axes counted from the front, increasing; all axes when none are given. */
export function normalAxes(name: string, axes: Axes | undefined, x: Tensor): readonly number[] {
  requireTensor(name, "x", x);
  if (axes === undefined) return x.shape.map((_, axis) => axis);
  const list = (Array.isArray(axes) ? (axes as readonly number[]) : [axes as number]).map((axis) =>
    normalAxis(name, axis, x),
  );
  const sorted = [...new Set(list)].sort((a, b) => a - b);
  if (sorted.length !== list.length) {
    fail("InvalidAxis", `${name}: axes ${shapeText(list)} of ${typeText(x)} name an axis twice`, "name each axis once");
  }
  return sorted;
}

/** The element type of a tensor of floats; throws for others. */
export function requireFloat(name: string, x: Tensor): FloatType {
  requireTensor(name, "x", x);
  if (isFloat(x.dtype)) return x.dtype;
  return fail(
    "DtypeMismatch",
    `${name}: takes ${FLOAT_TYPES.join(", ")}, got ${typeText(x)}`,
    'convert it first: cast(x, "f32")',
  );
}
