/**
 * @file Other counters in place of a nest's, as when a flat one is taken apart into rows and columns:
 *
 *   p div 28, p mod 28     with p = 28 y + x, x < 28:     y, x
 */
import type { Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { addIndex, offsetIndex, scaleIndex, substitute, varIndex } from "../../kernel/index-math.ts";
import { mapIndices } from "../../kernel/rewrite.ts";

export const loopVar = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

/**
 * A counter that is always 1. A function takes an address for each constant offset that its nest has (operand-addresses.ts); what
 * substituting adds to an offset is a multiple of this instead.
 */
export const UNIT: LoopVar = loopVar("unit", 2);

function keepingOffset(made: Index, offset: number): Index {
  const more = made.offset - offset;
  return more === 0 ? made : addIndex(offsetIndex(made, -more), scaleIndex(varIndex(UNIT), more));
}

/** Puts indices in place of counters. UNIT may occur in what comes out. */
export function replaceCounters(expr: Expr, by: ReadonlyMap<LoopVar, Index>): Expr {
  const counter = (v: LoopVar): Index => by.get(v) ?? varIndex(v);
  return mapIndices(expr, (index, inner) => keepingOffset(substitute(index, counter, inner), index.offset));
}
