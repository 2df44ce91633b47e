/** @file Tensor types and their text, and small facts about shapes. */
import { bytesOf, type DType } from "../kernel/dtype.ts";
import type { Variance } from "./variance.ts";

/** Extents of a tensor, outermost first. */
export type Shape = readonly number[];

/** Element type and shape. */
export interface TensorType {
  readonly dtype: DType;
  readonly shape: Shape;
  /** Elements from one row, along the last axis, to the next where it is stored; by default rows follow one another. */
  readonly pitch?: number;
  /** The axes of a mesh of devices that it varies over; equal on all devices where it is not there. */
  readonly varies?: Variance;
}

/**
 * The type of tensors with these elements and this shape.
 *
 * @example
 * import { tensorType, typeText } from "tidemark/ir";
 *
 * console.log(typeText(tensorType("bf16", [2, 3]))); // → bf16[2,3]
 */
export function tensorType(dtype: DType, shape: Shape): TensorType {
  return { dtype, shape };
}

/** The type of a value of another shape that varies alike. */
export const withShape = ({ dtype, varies }: TensorType, shape: Shape): TensorType =>
  varies ? { dtype, shape, varies } : { dtype, shape };

/** Elements are numbered with 32-bit integers in kernels, whether a tensor is stored or not. */
export const MOST_ELEMENTS: number = 2 ** 31 - 1;

/**
 * Number of elements; a scalar has one.
 *
 * @example
 * import { elementsOf } from "tidemark/ir";
 *
 * console.log(elementsOf([2, 3]), elementsOf([])); // → 6 1
 */
export function elementsOf(shape: Shape): number {
  let n = 1;
  for (const extent of shape) n *= extent;
  return n;
}

/** Number of elements in memory, gaps between rows included. */
export function storedElements({ shape, pitch }: TensorType): number {
  return pitch === undefined ? elementsOf(shape) : elementsOf(shape.slice(0, -1)) * pitch;
}

/**
 * Bytes of a tensor of this type.
 *
 * @example
 * import { byteLength, tensorType } from "tidemark/ir";
 *
 * console.log(byteLength(tensorType("f32", [2, 3]))); // → 24
 */
export function byteLength(type: TensorType): number {
  return storedElements(type) * bytesOf(type.dtype);
}

/**
 * Whether two shapes have the same extents.
 *
 * @example
 * import { sameShape } from "tidemark/ir";
 *
 * console.log(sameShape([2, 3], [2, 3]), sameShape([2, 3], [3, 2])); // → true false
 */
export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let axis = 0; axis < a.length; axis++) if (a[axis] !== b[axis]) return false;
  return true;
}

/**
 * Whether two types are the same.
 *
 * @example
 * import { sameType, tensorType } from "tidemark/ir";
 *
 * console.log(sameType(tensorType("f32", [2]), tensorType("f64", [2]))); // → false
 */
export function sameType(a: TensorType, b: TensorType): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}

/**
 * `f32[32,128]`; `f32[32,127:128]` where rows are 128 elements apart; `f32[32,128]{data}` where it varies over an axis of a mesh.
 *
 * @example
 * import { tensorType, typeText } from "tidemark/ir";
 *
 * console.log(typeText(tensorType("f32", [32, 128]))); // → f32[32,128]
 */
export function typeText({ dtype, shape, pitch, varies }: TensorType): string {
  const text = shapeText(shape);
  const rows = pitch === undefined ? text : `${text.slice(0, -1)}:${pitch}]`;
  return varies ? `${dtype}${rows}{${varies.over.join()}}` : dtype + rows;
}

/**
 * `[32,128]`.
 *
 * @example
 * import { shapeText } from "tidemark/ir";
 *
 * console.log(shapeText([32, 128])); // → [32,128]
 */
export function shapeText(shape: Shape): string {
  let text = "";
  for (const extent of shape) text += text === "" ? extent : `,${extent}`;
  return `[${text}]`;
}

/** Row-major strides in elements. */
export function stridesOf(shape: Shape): number[] {
  const strides: number[] = new Array(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis] ?? 1;
  }
  return strides;
}

/** The multi-index of a row-major element number. */
export function splitElement(element: number, shape: Shape): number[] {
  return stridesOf(shape).map((stride, axis) => Math.floor(element / stride) % (shape[axis] ?? 1));
}
