/**
 * @file The order of elements as words of 32 bits: a < b exactly if the words of a come before those of b, compared one after
 * the other as signed numbers. So every target sorts integers, and none has to agree about floats:
 *
 *   f32 bits   s e…e m…m     negative: all bits but the sign are inverted, so that a greater magnitude comes first
 *              -0 is 0; NaN, of any sign, comes after ∞
 *
 * An f64 and an i64 have two words, the low one with its highest bit inverted, since it is an unsigned number.
 */
import { invariant } from "../base/invariant.ts";
import type { ScalarType } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { and, bitcast, convert, eq, lt, ne, not, or, pick, shrS, shrU, xor } from "./scalar-ops.ts";

const SIGN_BIT = -0x80000000;
const GREATEST = 0x7fffffff;
/** Of f32. */
const INFINITY_BITS = 0x7f800000;

/** Whole numbers only, since devices may take a subnormal number for 0 and assume that there is no NaN. */
function wordOfF32(x: Expr): Expr {
  const given = bitcast(x, "i32");
  const bits = pick(eq(given, SIGN_BIT), 0, given);
  const ordered = xor(bits, shrU(shrS(bits, 31), 1));
  return pick(lt(constant("i32", INFINITY_BITS), and(given, GREATEST)), GREATEST, ordered);
}

function wordsOfF64(x: Expr): readonly Expr[] {
  const bits = bitcast(pick(eq(x, 0), 0, x), "i64");
  const ordered = xor(bits, shrU(shrS(bits, 63), 1));
  const isNan = ne(x, x);
  return wordsOfI64(ordered).map((w) => pick(isNan, GREATEST, w));
}

const wrapped = (x: Expr): Expr => ({ kind: "call", fn: "wrap", args: [x], dtype: "i32" });

const wordsOfI64 = (x: Expr): readonly Expr[] => [wrapped(shrS(x, 32)), xor(wrapped(x), SIGN_BIT)];

const WORDS: Record<ScalarType, (x: Expr) => readonly Expr[]> = {
  f32: (x) => [wordOfF32(x)],
  f64: wordsOfF64,
  i32: (x) => [x],
  bool: (x) => [convert(x, "i32")],
  i64: wordsOfI64,
};

/** The words of an element, the highest first. */
export function sortWords(x: Expr, descending: boolean): readonly Expr[] {
  return WORDS[x.dtype](x).map((word) => (descending ? not(word) : word));
}

/** Whether words come before others, compared one after the other; as many of each. */
export function wordsBefore(words: readonly Expr[], others: readonly Expr[]): Expr {
  const [[word, ...more], [other, ...rest]] = [words, others];
  invariant(word && other, () => "words of nothing");
  const first = lt(word, other);
  return more.length === 0 ? first : or(first, and(eq(word, other), wordsBefore(more, rest)));
}
