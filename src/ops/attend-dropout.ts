/**
 * @file Dropout of attention: after the softmax a weight is set to zero at a rate, the others are scaled up. Pair number e of all
 * scores [..., heads, queries, keys] draws as element e of `random_bernoulli` does with that key, so the form with all scores in a
 * tensor drops the same pairs. The number is counted in 32 bits and wraps around.
 */
import { at } from "../base/invariant.ts";
import type { Words } from "../base/random.ts";
import type { LowerContext } from "../ir/op.ts";
import type { ScalarType } from "../kernel/dtype.ts";
import { constant, type Expr, type Index } from "../kernel/expr.ts";
import { constIndex, linearIndex } from "../kernel/index-math.ts";
import { asExpr } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { add, mul, pick } from "../kernel/scalar-ops.ts";
import type { AttendAttrs, AttendShape } from "./attend-shape.ts";
import { coin, coinReference } from "./random.ts";

/** The factor of a pair's weight from the number of its row among all, and of its key. */
export function dropoutFactor(
  c: LowerContext<AttendAttrs>,
  { lead, heads, group, queries, keys }: AttendShape,
  keyInput: number,
) {
  const word = (i: number): Expr => at(c.inputs, keyInput)(Position.at([2], [constIndex(i)]));
  const shape = [...lead, heads * group, queries];
  return (place: readonly Index[], j: Index, dtype: ScalarType): Expr => {
    const element = add(mul(asExpr(linearIndex(place, shape)), keys), asExpr(j));
    const kept = coin([word(0), word(1)], element, 1 - c.attrs.rate);
    return pick(kept, constant(dtype, 1 / (1 - c.attrs.rate)), constant(dtype, 0));
  };
}

/** The same in doubles, of pair number e. */
export function factorOf(words: Words, rate: number): (e: number) => number {
  return (e) => (coinReference(words, e | 0, 1 - rate) ? 1 / (1 - rate) : 0);
}
