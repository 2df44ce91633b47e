/**
 * @file Counter-based random numbers: element i of a random tensor is a function of the key and i alone, so it is the
 * same for every order, vector width and number of threads, and it can be recomputed instead of kept.
 *
 * Threefry-2x32 with 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011):
 *
 *   x0 += k0; x1 += k1
 *   round r:  x0 += x1;  x1 = rotl(x1, R[r mod 8]) ^ x0
 *   after every fourth round j = 1 … 5:  x0 += ks[j mod 3];  x1 += ks[(j+1) mod 3] + j,   ks = [k0, k1, k0^k1^0x1bd11bda]
 */
import { at } from "../base/invariant.ts";
import type { FloatScalar } from "./dtype.ts";
import type { Expr } from "./expr.ts";
import { log } from "./math-log.ts";
import { cosOfTurns } from "./math-trig.ts";
import { add, and, convert, mul, or, shl, shrU, sqrt, xor } from "./scalar-ops.ts";

const ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24];
const PARITY = 0x1bd11bda;

function rotateLeft(x: Expr, by: number): Expr {
  return or(shl(x, by), shrU(x, 32 - by));
}

/** 64 random bits for a key and a counter, all as i32. */
export function threefry(key0: Expr, key1: Expr, counter0: Expr, counter1: Expr): readonly [Expr, Expr] {
  const keys = [key0, key1, xor(xor(key0, key1), PARITY)];
  let x0 = add(counter0, key0);
  let x1 = add(counter1, key1);
  for (let round = 0; round < 20; round++) {
    x0 = add(x0, x1);
    x1 = xor(rotateLeft(x1, at(ROTATIONS, round % 8)), x0);
    if (round % 4 !== 3) continue;
    const j = (round + 1) / 4;
    x0 = add(x0, at(keys, j % 3));
    x1 = add(x1, add(at(keys, (j + 1) % 3), j));
  }
  return [x0, x1];
}

/** One half of a word as a number below 2¹⁶. */
export const halfWord = (word: Expr, half: "high" | "low"): Expr =>
  half === "high" ? shrU(word, 16) : and(word, 0xffff);

/** Uniform in [0, 1): multiples of 2^-24 from `bits0` for f32, of 2^-53 from both for f64. */
export function uniformFromBits(bits0: Expr, bits1: Expr, dtype: FloatScalar): Expr {
  return UNIFORM[dtype](bits0, bits1);
}

const UNIFORM: Readonly<Record<FloatScalar, (bits0: Expr, bits1: Expr) => Expr>> = {
  f32: (bits0) => mul(convert(shrU(bits0, 8), "f32"), 2 ** -24),
  f64: (bits0, bits1) => {
    const [high, low] = [convert(shrU(bits0, 5), "f64"), convert(shrU(bits1, 6), "f64")];
    return mul(add(mul(high, 2 ** 26), low), 2 ** -53);
  },
};

/** The leading bits as an unsigned integer over 2^width: 24 bits for f32, all 32 for f64. `plus` is added in units. */
const FRACTION: Readonly<Record<FloatScalar, (bits: Expr, plus: number) => Expr>> = {
  f32: (bits, plus) => mul(convert(add(shrU(bits, 8), plus), "f32"), 2 ** -24),
  // Unsigned from signed: flip the top bit, then shift the range back up.
  f64: (bits, plus) => mul(add(convert(xor(bits, -0x80000000), "f64"), 2 ** 31 + plus), 2 ** -32),
};

/**
 * Standard normal by Box and Muller: √(-2 log u₁)·cos 2πu₂, u₁ in (0, 1] from bits0 and u₂ in [0, 1) from bits1. The
 * tails end where u₁ is smallest: at 5.8 for f32 and 6.7 for f64.
 */
export function normalFromBits(bits0: Expr, bits1: Expr, dtype: FloatScalar): Expr {
  const fraction = FRACTION[dtype];
  const radius = sqrt(mul(log(fraction(bits0, 1)), -2));
  return mul(radius, cosOfTurns(fraction(bits1, 0)));
}
