/**
 * @file Substitution of a nest's counters, as when a flat one is split into rows and columns:
 *
 *   p div 28, p mod 28     with p = 28 y + x, x < 28:     y, x
 */
import type { Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { addIndex, offsetIndex, scaleIndex, substitute, varIndex } from "../../kernel/index-math.ts";
import { mapIndices } from "../../kernel/rewrite.ts";

export const loopVar = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

/**
 * A counter that is always 1. A function takes an address for each constant offset of its nest (operand-addresses.ts), and a
 * substitution must not add offsets: constants that it adds are multiples of this counter.
 */
export const UNIT: LoopVar = loopVar("unit", 2);

function keepingOffset(made: Index, offset: number): Index {
  const more = made.offset - offset;
  return more === 0 ? made : addIndex(offsetIndex(made, -more), scaleIndex(varIndex(UNIT), more));
}

/** Substitutes indices for counters. UNIT may occur in the result. */
export function replaceCounters(expr: Expr, by: ReadonlyMap<LoopVar, Index>): Expr {
  const counter = (v: LoopVar): Index => by.get(v) ?? varIndex(v);
  return mapIndices(expr, (index, inner) => keepingOffset(substitute(index, counter, inner), index.offset));
}
