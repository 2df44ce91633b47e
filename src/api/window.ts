/** @file How convolution and pooling say where their windows go. */
import { at } from "../base/invariant.ts";
import { fail } from "./operands.ts";

/** One number for all spatial axes, or one for each. */
export type PerAxis = number | readonly number[];

/** The same on all sides; [before, after] for each axis; nothing ("valid"); or as much as gives ⌈size / stride⌉ ("same"). */
export type Padding = number | "same" | "valid" | readonly (readonly [number, number])[];

/** One number for each spatial axis. */
export function perAxis(
  name: string,
  what: string,
  value: PerAxis | undefined,
  axes: number,
  usual: number,
): readonly number[] {
  const list = typeof value === "object" ? value : new Array<number>(axes).fill(value ?? usual);
  if (list.length === axes && list.every(Number.isInteger)) return list;
  return fail(
    "InvalidArgument",
    `${name}: ${what} [${list.join(",")}] for ${axes} spatial axes`,
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
  if (typeof padding === "number") return { lo: size.map(() => padding), hi: size.map(() => padding) };
  if (padding === "same") {
    const total = size.map((extent, k) => {
      const stride = at(window.stride, k);
      const span = (at(window.extent, k) - 1) * at(window.dilation, k) + 1;
      return Math.max(0, (Math.ceil(extent / stride) - 1) * stride + span - extent);
    });
    // the odd one goes behind
    return { lo: total.map((n) => Math.floor(n / 2)), hi: total.map((n) => Math.ceil(n / 2)) };
  }
  if (typeof padding === "string" || padding.length !== size.length) {
    fail(
      "InvalidArgument",
      `${name}: padding ${JSON.stringify(padding)}`,
      'use a number, "same", "valid", or [before, after] for each axis',
    );
  }
  return { lo: padding.map(([lo]) => lo), hi: padding.map(([, hi]) => hi) };
}
