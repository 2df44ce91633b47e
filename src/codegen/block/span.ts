/**
 * @file Products of which only a part of the depth is added, where that part is data (`Span` in kernel/loops.ts). Tiles of the
 * depth reach beyond both ends of it: there, both factors are read as zero.
 *
 *   depth     │ 0 … 15 │ 16 … 31 │ 32 … 47 │ 48 … 63 │      span [20, 35)
 *   tiles         -     0000xxxx   xxx00000      -          tiles without terms are left out
 */
import type { Expr } from "../../kernel/expr.ts";
import { varIndex } from "../../kernel/index-math.ts";
import { type ContractNest, spanBounds } from "../../kernel/loops.ts";

/** The product with factors that are zero outside of its span. */
export function withSpanGuards(nest: ContractNest): ContractNest {
  const { span, depth, dtype } = nest;
  if (!span || span.whole) return nest;
  const bounds = spanBounds(span, varIndex(depth), depth.extent);
  const otherwise: Expr = { kind: "const", dtype, value: 0 };
  const inside = (then: Expr): Expr => ({ kind: "guard", dtype, bounds, then, otherwise });
  return { ...nest, a: inside(nest.a), b: inside(nest.b) };
}
