/** @file Loops for the reference meanings of operations that move elements about, and sample cases in many types. */
import type { Sample } from "../ir/op.ts";
import { elementsOf, type Shape, tensorType } from "../ir/type.ts";
import { type DType, isBig, isComputed, typeOf } from "../kernel/dtype.ts";
import { sampledTypes } from "./define.ts";

/** Visits every multi-index of a shape in row-major order. `idx` is one array, overwritten from visit to visit. */
export function forEachIndex(shape: Shape, visit: (idx: readonly number[], element: number) => void): void {
  const idx: number[] = new Array(shape.length).fill(0);
  const elements = elementsOf(shape);
  for (let e = 0; e < elements; e++) {
    visit(idx, e);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const next = (idx[axis] ?? 0) + 1;
      idx[axis] = next === shape[axis] ? 0 : next;
      if (next !== shape[axis]) break;
    }
  }
}

/** Row-major element number of a multi-index, or -1 if it is outside of the shape. */
export function elementAt(shape: Shape, idx: readonly number[]): number {
  let element = 0;
  for (let axis = 0; axis < shape.length; axis++) {
    const i = idx[axis] ?? 0;
    const extent = shape[axis] ?? 1;
    if (i < 0 || i >= extent || !Number.isInteger(i)) return -1;
    element = element * extent + i;
  }
  return element;
}

/** The tensor with `value(idx)` at each multi-index. */
export function tabulate(shape: Shape, value: (idx: readonly number[], element: number) => number): Float64Array {
  const out = new Float64Array(elementsOf(shape));
  forEachIndex(shape, (idx, e) => {
    out[e] = value(idx, e);
  });
  return out;
}

/** a + b as the element type adds: integers wrap around. */
export function addIn(dtype: DType, a: number, b: number): number {
  return typeOf(dtype).wrap(a + b);
}

/** a · b as the element type multiplies; the product of two integers may have more bits than a double. */
export function mulIn(dtype: DType, a: number, b: number): number {
  const { kind, wrap, compute } = typeOf(dtype);
  if (isBig(compute)) return inLongs((x, y) => x * y)([a, b]);
  return kind === "integer" ? wrap(Math.imul(a, b)) : a * b;
}

/** A function of integers of up to 64 bits, in all their bits; of a result that has more than 53 of them the nearest double. */
export const inLongs =
  (of: (a: bigint, b: bigint) => bigint) =>
  ([a = 0, b = 0]: readonly number[]): number =>
    Number(BigInt.asIntN(64, of(BigInt(a), BigInt(b))));

export interface Case<A> {
  readonly shapes: readonly Shape[];
  readonly attrs: A;
}

/** Each case once in each element type; the first one alone where only loads and stores are new. */
export function samplesIn<A>(dtypes: readonly DType[], cases: readonly Case<A>[]): readonly Sample<A>[] {
  return sampledTypes(dtypes).flatMap((dtype) =>
    (isComputed(dtype) ? cases : cases.slice(0, 1)).map(({ shapes, attrs }) => ({
      inputs: shapes.map((shape) => tensorType(dtype, shape)),
      attrs,
      range: typeOf(dtype).samples,
    })),
  );
}

/** Adds to the diagonals of a drawn input what its sample says. */
export function addDiagonal(
  { diagonal, inputs }: Sample<unknown>,
  input: number,
  elements: { [i: number]: number },
): void {
  const added = typeof diagonal === "number" ? [diagonal] : (diagonal ?? []);
  const [by, shape] = [added[input] ?? 0, inputs[input]?.shape ?? []];
  const [rows, columns] = [shape.at(-2) ?? 0, shape.at(-1) ?? 0];
  if (by === 0) return;
  for (let e = 0; e < elementsOf(shape); e++) {
    if (Math.floor(e / columns) % rows === e % columns) elements[e] = (elements[e] ?? 0) + by;
  }
}
