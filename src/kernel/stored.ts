/**
 * @file Rounding to a storage type, in the scalar language. A value that is fused away never reaches memory, and yet has the
 * bits that a store and a load would give it. So fusion does not change results.
 */
import { InternalError } from "../base/invariant.ts";
import { type DType, typeOf } from "./dtype.ts";
import type { Expr } from "./expr.ts";
import { F16_NORMAL_BITS, F16_OVERFLOW_BITS } from "./half.ts";
import { add, and, bitcast, le, lt, ne, or, pick, shl, shrS, shrU, sub } from "./scalar-ops.ts";

const exactly = (x: Expr): Expr => x;

/** The bits of an f32 without the lowest `count`, rounded to the nearest, ties to even. */
function roundedBits(bits: Expr, count: number): Expr {
  const up = add(2 ** (count - 1) - 1, and(shrU(bits, count), 1));
  return and(add(bits, up), -(2 ** count));
}

function asBrain(x: Expr): Expr {
  return pick(ne(x, x), x, bitcast(roundedBits(bitcast(x, "i32"), 16), "f32"));
}

/** Numbers below 2⁻¹⁴ are multiples of 2⁻²⁴, the last place of an f32 between 1/2 and 1. */
function asHalf(x: Expr): Expr {
  const all = bitcast(x, "i32");
  const [sign, bits] = [and(all, -0x80000000), and(all, 0x7fffffff)];
  const small = bitcast(sub(add(bitcast(bits, "f32"), 0.5), 0.5), "i32");
  const large = pick(le(F16_OVERFLOW_BITS, bits), 0x7f800000, roundedBits(bits, 13));
  const rounded = or(sign, pick(lt(bits, F16_NORMAL_BITS), small, large));
  return pick(ne(x, x), x, bitcast(rounded, "f32"));
}

/** By type; values of a type that is its own compute type have its numbers already. */
const ROUNDED: Readonly<Record<DType, (x: Expr) => Expr>> = {
  f32: exactly,
  f64: exactly,
  bf16: asBrain,
  f16: asHalf,
  i32: exactly,
  i64: exactly,
  i8: (x) => shrS(shl(x, 24), 24),
  u8: (x) => and(x, 255),
  bool: exactly,
};

/** What was rounded here, and to which type. */
const roundedTo = new WeakMap<Expr, DType>();

/** Whether all values of an expression are seen to be numbers of a type: they come from memory of it, or were rounded to it. */
function isStoredIn(dtype: DType, x: Expr): boolean {
  if (roundedTo.get(x) === dtype) return true;
  switch (x.kind) {
    case "load":
      return x.storage === dtype;
    case "const":
      return typeof x.value === "number" && Object.is(typeOf(dtype).round(x.value), x.value);
    case "guard":
      return isStoredIn(dtype, x.then) && isStoredIn(dtype, x.otherwise);
    default:
      return false;
  }
}

/** A value of the compute type of `dtype`, rounded to a number of `dtype` where it is not one already. */
export function asStored(dtype: DType, x: Expr): Expr {
  const rounded: ((x: Expr) => Expr) | undefined = ROUNDED[dtype];
  if (!rounded) throw new InternalError(`there is no rounding to ${dtype} in kernels`);
  if (rounded === exactly || isStoredIn(dtype, x)) return x;
  const made = rounded(x);
  roundedTo.set(made, dtype);
  return made;
}
