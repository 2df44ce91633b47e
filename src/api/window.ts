/** @file How convolution and pooling say where their windows go. */
import { at } from "../base/invariant.ts";
import { describe, fail } from "../trace/arguments.ts";

/** One number for all spatial axes, or one for each. */
export type PerAxis = number | readonly number[];

/**
 * The same on all sides; for each axis a number or [before, after]; nothing ("valid"); or as much as gives
 * ⌈size / stride⌉ ("same").
 */
export type Padding = number | "same" | "valid" | readonly (number | readonly [before: number, after: number])[];

function isWholeList(list: unknown, count: number): list is readonly number[] {
  return Array.isArray(list) && list.length === count && list.every(Number.isInteger);
}

/** A function over so many spatial axes. */
export interface SpatialFunction {
  readonly name: string;
  readonly axes: number;
}

/** One number for each spatial axis. */
export function perAxis(
  { name, axes }: SpatialFunction,
  what: string,
  value: PerAxis | undefined,
  usual: number,
): readonly number[] {
  const list: unknown = Array.isArray(value) ? value : new Array<unknown>(axes).fill(value ?? usual);
  if (isWholeList(list, axes)) return list;
  const got = Array.isArray(value) ? `[${value.join(",")}]` : describe(value);
  return fail(
    "InvalidArgument",
    `${name}: ${what} ${got} for ${axes} spatial axes`,
    "give a whole number, or one for each axis",
  );
}

/** Zeros before and after each axis. */
export function paddingOf(
  name: string,
  padding: Padding | undefined,
  size: readonly number[],
  window: {
    readonly extent: readonly number[];
    readonly stride: readonly number[];
    readonly dilation: readonly number[];
  },
): { readonly lo: readonly number[]; readonly hi: readonly number[] } {
  if (padding === undefined || padding === "valid") return { lo: size.map(() => 0), hi: size.map(() => 0) };
  if (padding === "same") {
    const total = size.map((extent, k) => {
      const stride = at(window.stride, k);
      const span = (at(window.extent, k) - 1) * at(window.dilation, k) + 1;
      return Math.max(0, (Math.ceil(extent / stride) - 1) * stride + span - extent);
    });
    // the odd one goes behind
    return { lo: total.map((n) => Math.floor(n / 2)), hi: total.map((n) => Math.ceil(n / 2)) };
  }
  const list: readonly unknown[] = Array.isArray(padding) ? padding : size.map(() => padding);
  const pairs = list.map((item) => (Array.isArray(item) ? item : [item, item]));
  if (pairs.length === size.length && pairs.every((pair) => isWholeList(pair, 2))) {
    return { lo: pairs.map(([lo]) => lo as number), hi: pairs.map(([, hi]) => hi as number) };
  }
  return fail(
    "InvalidArgument",
    `${name}: padding ${JSON.stringify(padding)} for ${size.length} spatial axes`,
    'use a whole number, "same", "valid", or for each axis a number or [before, after]',
  );
}
