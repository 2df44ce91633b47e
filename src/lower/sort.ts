/** @file The order of the elements of rows as a nest: words of their keys, and the places of the result. */
import { at } from "../base/invariant.ts";
import type { Node } from "../ir/graph.ts";
import type { LowerContext, Lowering } from "../ir/op.ts";
import type { LoopVar } from "../kernel/expr.ts";
import { varIndex } from "../kernel/index-math.ts";
import type { SortNest, Store } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { sortWords } from "../kernel/sort-key.ts";

/** The part of a kernel under construction that this needs. */
interface Composing {
  context(node: Node): LowerContext<never>;
  storesAt(at: Position): readonly Store[];
}

export function sortNest(
  c: Composing,
  node: Node,
  lower: Extract<Lowering<never>, { kind: "sort" }>,
): Omit<SortNest, "scratch"> {
  const { inputs, inTypes, outType, attrs } = c.context(node);
  const [axis, { shape }] = [lower.axis(attrs), at(inTypes, 0)];
  const counter = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });
  const all = shape.map((extent, i) => counter(`i${i}`, extent));
  const [along, rank] = [counter("s", at(shape, axis)), counter("r", at(outType.shape, axis))];
  const element = all.map((v, i) => varIndex(i === axis ? along : v));
  const ranked = all.map((v, i) => varIndex(i === axis ? rank : v));
  return {
    kind: "sort",
    loops: all.filter((_, i) => i !== axis),
    along,
    rank,
    dtype: "i32",
    keys: sortWords(at(inputs, 0)(Position.at(shape, element)), lower.descending(attrs)),
    stores: c.storesAt(Position.at(outType.shape, ranked)),
  };
}
