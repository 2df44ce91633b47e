/** @file Whole parts, remainders and shifts, one element at a time. Their signs: kernel/remainder.ts. */
import { at } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { type DType, laneBytes, typeOf } from "../kernel/dtype.ts";
import * as kernel from "../kernel/remainder.ts";
import { trunc as truncScalar } from "../kernel/scalar-ops.ts";
import { apply, elementwise, FEW_SHAPES } from "./define.ts";
import { div, neg } from "./elementwise.ts";
import { inLongs } from "./reference.ts";

/** The whole part, towards zero. */
export const trunc: OpDef<NoAttrs> = elementwise("trunc", {
  inputs: 1,
  domain: "float",
  partials: ["zero"],
  scalar: (x) => truncScalar(at(x, 0)),
  reference: (x) => Math.trunc(at(x, 0)),
  exactInDouble: true,
  shapes: FEW_SHAPES,
});

/** Dividends on both sides of zero; whole divisors and zero among the integers. */
const RANGES = [
  [-9, 9],
  [0.6, 3],
] as const;

/** Of integers, everything by zero is 0. */
const byZero =
  (of: (a: number, b: number) => number) =>
  (x: readonly number[]): number =>
    at(x, 1) === 0 ? 0 : of(at(x, 0), at(x, 1));

const isOnOtherSide = (rest: number, b: number): boolean => rest !== 0 && rest < 0 !== b < 0;

const fmodOf = (a: number, b: number): number => a % b;
const remainderOf = (a: number, b: number): number => (isOnOtherSide(a % b, b) ? (a % b) + b : a % b);

function floorOf(a: number, b: number): number {
  if (b === 0) return a / b;
  const whole = Math.round((a - (a % b)) / b) - Number(isOnOtherSide(a % b, b));
  return whole === 0 ? (a / b) * 0 : whole;
}

const truncatedQuotient = (b: Build, x: readonly Value[]): Value => apply(b, trunc, apply(b, div, at(x, 0), at(x, 1)));

/** a - b·trunc(a / b). */
// ∂/∂a = 1, ∂/∂b = -trunc(a / b)
export const fmod: OpDef<NoAttrs> = elementwise("fmod", {
  inputs: 2,
  domain: "number",
  partials: ["one", (b, x) => apply(b, neg, truncatedQuotient(b, x))],
  scalar: (x) => kernel.fmod(at(x, 0), at(x, 1)),
  reference: (x) => fmodOf(at(x, 0), at(x, 1)),
  integer: byZero(fmodOf),
  flops: 30,
  range: RANGES,
  shapes: FEW_SHAPES,
});

/** a - b·floor(a / b). */
// ∂/∂a = 1, ∂/∂b = -floor(a / b)
export const remainder: OpDef<NoAttrs> = elementwise("remainder", {
  inputs: 2,
  domain: "number",
  partials: ["one", (b, x) => apply(b, neg, apply(b, floorDiv, at(x, 0), at(x, 1)))],
  scalar: (x) => kernel.remainder(at(x, 0), at(x, 1)),
  reference: (x) => remainderOf(at(x, 0), at(x, 1)),
  integer: byZero(remainderOf),
  flops: 34,
  range: RANGES,
  shapes: FEW_SHAPES,
});

/** floor(a / b). */
export const floorDiv: OpDef<NoAttrs> = elementwise("floor_div", {
  inputs: 2,
  domain: "number",
  partials: ["zero", "zero"],
  scalar: (x) => kernel.floorDiv(at(x, 0), at(x, 1)),
  reference: (x) => floorOf(at(x, 0), at(x, 1)),
  integer: byZero((a, b) => Math.floor(a / b)),
  flops: 40,
  range: RANGES,
  shapes: FEW_SHAPES,
});

function shiftOp(name: string, fn: "shl" | "shr_s", shifted: (a: bigint, count: bigint) => bigint): OpDef<NoAttrs> {
  const bitsOf = (dtype: DType): bigint => 8n * BigInt(laneBytes(typeOf(dtype).compute));
  const beyond = (a: bigint): bigint => (fn === "shl" || a >= 0n ? 0n : -1n);
  return elementwise(name, {
    inputs: 2,
    domain: "integer",
    scalar: (x) => kernel.shift(fn, at(x, 0), at(x, 1)),
    reference: (x) => inLongs(shifted)(x),
    integer: (x, dtype) =>
      inLongs((a, count) => (count >= 0n && count < bitsOf(dtype) ? shifted(a, count) : beyond(a)))(x),
    exactInDouble: true,
    flops: 12,
    range: [
      [-(2 ** 31), 2 ** 31],
      [-3, 40],
    ],
    shapes: FEW_SHAPES,
  });
}

/** Bits towards the high end; those beyond it are lost. */
export const shiftLeft: OpDef<NoAttrs> = shiftOp("shift_left", "shl", (a, count) => a << count);

/** Bits towards the low end, the sign repeated. */
export const shiftRight: OpDef<NoAttrs> = shiftOp("shift_right", "shr_s", (a, count) => a >> count);
