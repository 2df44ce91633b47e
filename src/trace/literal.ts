/** @file Tensors from JavaScript values: numbers, nested arrays, typed arrays. */
import { grouped } from "../base/errors.ts";
import { elementsOf, type Shape, shapeText } from "../ir/type.ts";
import { DTYPES, type DType, elementWriter, typeOf } from "../kernel/dtype.ts";
import {
  describe,
  fail as failAt,
  type OptionKinds,
  requireExtents,
  requireLiteral,
  requireOptions,
} from "./arguments.ts";
import { ArrayStorage, newArray, type TypedArray } from "./storage.ts";
import { type NestedArray, Tensor } from "./tensor.ts";

export interface TensorOptions {
  /** Defaults to the shape of the nesting, or one axis for a typed array. */
  readonly shape?: Shape;
  /** Defaults to f32; bool for booleans; the array's own type for typed arrays (Uint8Array is bool). */
  readonly dtype?: DType;
}

function fail(summary: string, help: string): never {
  return failAt("InvalidArgument", `tensor: ${summary}`, help);
}

const OPTIONS: OptionKinds<TensorOptions> = { shape: "anything", dtype: "an element type" };

/** The type whose numbers the elements of an array are. */
function dtypeOfArray(data: TypedArray): DType | undefined {
  return DTYPES.find((dtype) => data instanceof typeOf(dtype).array && !typeOf(dtype).encoding);
}

const isTypedArray = (data: unknown): data is TypedArray => DTYPES.some((dtype) => data instanceof typeOf(dtype).array);

/** Nested deeper, an array is taken to contain itself. */
export const MAX_DEPTH = 100;

const isArray = (data: unknown): data is readonly unknown[] => Array.isArray(data);

/** The shape of nested arrays, from their first elements; `flatten` finds out whether the rest agrees. */
function nestedShape(data: NestedArray): number[] {
  const shape: number[] = [];
  for (let level: unknown = data; isArray(level); level = level[0]) {
    shape.push(level.length);
    if (shape.length > MAX_DEPTH) fail(`arrays are nested more than ${MAX_DEPTH} deep`, "give an array for each axis");
  }
  return shape;
}

function flatten(data: unknown, shape: Shape): (number | boolean)[] {
  const out: (number | boolean)[] = [];
  const visit = (part: unknown, axis: number, path: string): void => {
    const extent = shape[axis];
    if (extent === undefined) {
      if (typeof part === "number" || typeof part === "boolean") {
        out.push(part);
        return;
      }
      fail(
        `data${path} is ${describe(part)} where a number should be`,
        "give nested arrays of numbers, all of one depth",
      );
    }
    if (!isArray(part) || part.length !== extent) {
      fail(
        `ragged array: data${path} is ${describe(part)}, its siblings are arrays of ${extent}`,
        "all rows must have the same length",
      );
    }
    part.forEach((item, i) => {
      visit(item, axis + 1, `${path}[${i}]`);
    });
  };
  visit(data, 0, "");
  return out;
}

function converted(source: ArrayLike<number | boolean>, dtype: DType): TypedArray {
  const out = newArray(dtype, source.length);
  const { kind, round } = typeOf(dtype);
  const elementOf = elementWriter(dtype);
  for (let i = 0; i < source.length; i++) {
    const value = Number(source[i]);
    if (kind === "integer") requireLiteral("tensor", value, dtype);
    out[i] = elementOf(round(value));
  }
  return out;
}

/**
 * A tensor from a number, nested arrays, or a typed array (which is copied).
 *
 * @example
 * import { tensor } from "tidemark";
 *
 * const x = tensor([[1, 2], [3, 4]]);
 * console.log(x.shape, x.dtype); // [2, 2] "f32"
 * const labels = tensor([3, 1], { dtype: "i32" });
 * console.log(labels.toArray()); // [3, 1]
 */
export function tensor(data: NestedArray | TypedArray, options: TensorOptions = {}): Tensor {
  requireOptions("tensor", options, OPTIONS);
  let source: ArrayLike<number | boolean>;
  let shape: Shape;
  let dtype: DType;
  if (isTypedArray(data)) {
    source = data;
    shape = [data.length];
    dtype =
      options.dtype ??
      dtypeOfArray(data) ??
      fail(`${describe(data)} may be of several types`, "name the type of its numbers: { dtype }");
  } else {
    shape = nestedShape(data);
    const flat = flatten(data, shape);
    source = flat;
    dtype = options.dtype ?? (flat.length > 0 && flat.every((x) => typeof x === "boolean") ? "bool" : "f32");
  }
  const wanted = options.shape ?? shape;
  requireExtents("tensor", wanted);
  if (elementsOf(wanted) !== source.length) {
    fail(
      `${grouped(source.length)} elements do not fill shape ${shapeText(wanted)}`,
      `the extents must be whole numbers whose product is ${grouped(source.length)}`,
    );
  }
  return new Tensor(new ArrayStorage(dtype, [...wanted], converted(source, dtype)));
}
