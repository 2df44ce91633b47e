/** @file Shared by operations with regions: checks of regions against their operands, costs, and stacks. */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Graph, Value } from "../ir/graph.ts";
import type { Reference } from "../ir/op.ts";
import { elementsOf, sameType, type TensorType, tensorType, typeText, withShape } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";

export const typesOf = (values: readonly Value[]): readonly TensorType[] => values.map((value) => value.type);

export const floats = (types: readonly TensorType[]): readonly TensorType[] =>
  types.filter((type) => isFloat(type.dtype));

const listText = (types: readonly TensorType[]): string => `(${types.map(typeText).join(", ")})`;

export function requireTypes(what: string, got: readonly TensorType[], expected: readonly TensorType[]): void {
  if (got.length === expected.length && got.every((type, i) => sameType(type, at(expected, i)))) return;
  throw new TidemarkError("InvalidGraph", `${what} ${listText(got)}, expected ${listText(expected)}`);
}

export function requireRegions(name: string, regions: readonly Graph[], count: number): void {
  if (regions.length === count) return;
  throw new TidemarkError("InvalidGraph", `${name}: has ${regions.length} regions, needs ${count}`);
}

/** Throws unless an attribute that counts something is a whole number in range. */
export function requireCount(name: string, what: string, value: number, most: number = Number.POSITIVE_INFINITY): void {
  if (Number.isInteger(value) && value >= 0 && value <= most) return;
  const limit = Number.isFinite(most) ? `a whole number from 0 to ${most}` : "a whole number ≥ 0";
  throw new TidemarkError("InvalidGraph", `${name}: ${what}=${value}, expected ${limit}`);
}

/** The scalar types that control takes. */
export const INDEX: TensorType = tensorType("i32", []);
export const TRUTH: TensorType = tensorType("bool", []);

/** One row of a stack. */
export function rowType(name: string, stack: TensorType, length: number): TensorType {
  if (stack.shape[0] === length) return withShape(stack, stack.shape.slice(1));
  throw new TidemarkError("InvalidGraph", `${name}: ${typeText(stack)} has no leading axis of length ${length}`);
}

/** `length` rows. */
export const stackType = (row: TensorType, length: number): TensorType => withShape(row, [length, ...row.shape]);

/** Row `i` of a stack of `rows`. */
export function rowOf(stack: Reference, i: number, rows: number): Reference {
  const elements = stack.length / rows;
  return stack.slice(i * elements, (i + 1) * elements);
}

/** Stacks with room for `length` rows of each type. */
export function emptyStacks(rows: readonly TensorType[], length: number): readonly Reference[] {
  return rows.map((row) => new Float64Array(length * elementsOf(row.shape)));
}

/** Puts a row into each stack. */
export function putRows(stacks: readonly Reference[], rows: readonly Reference[], i: number): void {
  for (const [n, row] of rows.entries()) at(stacks, n).set(row, i * row.length);
}
