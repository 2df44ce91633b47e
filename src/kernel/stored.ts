/**
 * @file Rounding to a storage type, in the scalar language. A value that is fused away never reaches memory, and yet has the
 * bits that a store and a load would give it. So fusion does not change results.
 */
import { InternalError } from "../base/invariant.ts";
import type { DType } from "./dtype.ts";
import type { Expr } from "./expr.ts";

const exactly = (x: Expr): Expr => x;

/** By type; values of a type that is its own compute type have its numbers already. */
const ROUNDED: Readonly<Record<DType, (x: Expr) => Expr>> = { f32: exactly, f64: exactly, i32: exactly, bool: exactly };

/** A value of the compute type of `dtype`, rounded to a number of `dtype`. */
export function asStored(dtype: DType, x: Expr): Expr {
  const rounded: ((x: Expr) => Expr) | undefined = ROUNDED[dtype];
  if (!rounded) throw new InternalError(`there is no rounding to ${dtype} in kernels`);
  return rounded(x);
}
