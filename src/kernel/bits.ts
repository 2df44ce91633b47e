/**
 * @file Truth values as bits of words. Bits of one word are `LANES` elements apart, so that neighbours are in the same bit
 * of neighbouring words, and a register of elements is a register of words shifted by one number:
 *
 *   element   0 … 15 | 16 … 31 | … | 496 … 511 | 512 … 527 | …
 *   word      0 … 15 |  0 … 15 | … |   0 … 15  |  16 … 31  | …
 *   bit         0    |    1    | … |    31     |     0     | …
 */
import type { Expr, Index } from "./expr.ts";
import { addIndex, divIndex, modIndex, offsetIndex, scaleIndex } from "./index-math.ts";
import { lt, shl } from "./scalar-ops.ts";

/** Words that are filled side by side: no target has registers of more elements. */
export const LANES = 16;
export const WORD_BITS = 32;
/** Elements of one row of words. */
export const BLOCK: number = LANES * WORD_BITS;

/** Rows of words for a number of elements. */
export const blocksFor = (elements: number): number => Math.ceil(elements / BLOCK);

/** Whether the bit of element number `element` is set in words: shifted up to the sign. */
export function testBit(words: (index: Index) => Expr, element: Index): Expr {
  const word = addIndex(scaleIndex(divIndex(element, BLOCK), LANES), modIndex(element, LANES));
  const bit = modIndex(divIndex(element, LANES), WORD_BITS);
  return lt(shl(words(word), offsetIndex(scaleIndex(bit, -1), WORD_BITS - 1)), 0);
}
