/** @file Tensors from JavaScript values: numbers, nested arrays, typed arrays. */
import { grouped } from "../base/errors.ts";
import { elementsOf, type Shape, shapeText } from "../ir/type.ts";
import { type DType, elementWriter, INDEX_TYPE, isBig, isFloat, typeOf } from "../kernel/dtype.ts";
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
import { weaklyTyped } from "./weak.ts";

/** Options of {@link tensor}. */
export interface TensorOptions {
  /** Defaults to the shape of the nesting, or one axis for a typed array. */
  readonly shape?: Shape;
  /** Defaults to f32, weakly: it takes the float type of what it meets; bool for booleans; for typed arrays f32, f64 or i32, whichever holds their numbers. */
  readonly dtype?: DType;
}

function fail(summary: string, help: string): never {
  return failAt("InvalidArgument", `tensor: ${summary}`, help);
}

const OPTIONS: OptionKinds<TensorOptions> = { shape: "anything", dtype: "an element type" };

/** Typed arrays as users have them: elements of tensors, pixels, samples, class numbers. */
export type NumberArray =
  | TypedArray
  | Int8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** The types that arrays become; those that engines lack are not in the list. */
const ARRAY_TYPES: readonly (readonly [name: string, dtype: DType])[] = [
  ["Float32Array", "f32"],
  ["Float64Array", "f64"],
  ["Float16Array", "f32"],
  ["Int8Array", INDEX_TYPE],
  ["Uint8Array", INDEX_TYPE],
  ["Uint8ClampedArray", INDEX_TYPE],
  ["Int16Array", INDEX_TYPE],
  ["Uint16Array", INDEX_TYPE],
  ["Int32Array", INDEX_TYPE],
  ["Uint32Array", INDEX_TYPE],
  ["BigInt64Array", INDEX_TYPE],
  ["BigUint64Array", INDEX_TYPE],
];

/** The type of a tensor with the numbers of an array: bytes are numbers, not truth values. */
const dtypeOfArray = (data: NumberArray): DType =>
  ARRAY_TYPES.find(([name]) => name === data[Symbol.toStringTag])?.[1] ??
  fail(`${describe(data)} is not an array of numbers`, `give one of ${ARRAY_TYPES.map(([name]) => name).join(", ")}`);

const isTypedArray = (data: unknown): data is NumberArray => ArrayBuffer.isView(data);

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

function requireLong(value: bigint, i: number): void {
  if (BigInt.asIntN(64, value) === value) return;
  fail(`element ${grouped(i)}, ${value}, does not fit i64`, "i64 holds -2^63 to 2^63 - 1; others need a float");
}

function converted(source: ArrayLike<number | bigint | boolean>, dtype: DType): TypedArray {
  const out = newArray(dtype, source.length);
  const { kind, round, compute } = typeOf(dtype);
  const elementOf = elementWriter(dtype);
  for (let i = 0; i < source.length; i++) {
    const given = source[i];
    if (typeof given === "bigint" && isBig(compute)) {
      requireLong(given, i);
      out[i] = elementOf(given as unknown as number);
      continue;
    }
    const value = Number(given);
    if (kind === "integer") requireLiteral("tensor", value, dtype);
    out[i] = elementOf(round(value));
  }
  return out;
}

/**
 * A tensor from a number, nested arrays, or a typed array (which is copied). Arrays of bytes, of other whole numbers and of
 * bigints become i32, and a number that does not fit is an error; with the type i64 bigints are taken as they are.
 *
 * @memory The elements are copied into an array of its own, outside of every arena.
 *
 * @example
 * import { tensor } from "tidemark";
 *
 * const x = tensor([[1, 2], [3, 4]]);
 * console.log(x.shape, x.dtype); // [2, 2] "f32"
 * const labels = tensor([3, 1], { dtype: "i32" });
 * console.log(labels.toArray()); // [3, 1]
 * console.log(tensor(new Uint8Array([0, 255])).dtype); // i32
 */
export function tensor(data: NestedArray | NumberArray, given: TensorOptions | DType = {}): Tensor {
  const options = typeof given === "string" ? { dtype: given } : given;
  requireOptions("tensor", options, OPTIONS);
  let source: ArrayLike<number | bigint | boolean>;
  let shape: Shape;
  let dtype: DType;
  if (isTypedArray(data)) {
    source = data;
    const ofArray = dtypeOfArray(data);
    shape = [data.length];
    dtype = options.dtype ?? ofArray;
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
  const made = new ArrayStorage(dtype, [...wanted], converted(source, dtype));
  const isWeak = options.dtype === undefined && !isTypedArray(data) && isFloat(dtype);
  return isWeak ? weak(made, source as readonly number[]) : new Tensor(made);
}

/** A tensor of plain numbers. They are kept where its own elements are rounded. */
function weak(made: ArrayStorage, source: readonly number[]): Tensor {
  const { shape } = made;
  const elements = made.read();
  const numbers = source.every((x, i) => Object.is(Number(x), elements[i])) ? null : Float64Array.from(source, Number);
  const as = (dtype: DType): Tensor =>
    new Tensor(new ArrayStorage(dtype, shape, converted(numbers ?? (made.read() as Float32Array), dtype)));
  return weaklyTyped(new Tensor(made), as);
}
