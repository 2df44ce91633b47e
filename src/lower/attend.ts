/** @file Attention as a nest: reads of its operands at counters, and the places of its results. */
import { invariant } from "../base/invariant.ts";
import type { Node } from "../ir/graph.ts";
import type { AttendPart, LowerContext, Lowering } from "../ir/op.ts";
import { productType } from "../kernel/dtype.ts";
import type { Expr, Index, LoopVar } from "../kernel/expr.ts";
import { linearIndex, varIndex } from "../kernel/index-math.ts";
import type { AttendNest, Store } from "../kernel/loops.ts";
import { inType, mul } from "../kernel/scalar-ops.ts";

/** The part of a kernel under construction that this needs. */
interface Composing {
  context(node: Node): LowerContext<never>;
  outputOperand(i: number): number;
}

const counter = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

/** Counters of the nest, and as indices. */
function countersOf(part: AttendPart) {
  const batch = part.batch.map((extent, i) => counter(`b${i}`, extent));
  const [group, rows, cols] = [counter("g", part.group), counter("i", part.rows), counter("j", part.cols)];
  return { batch, group, rows, cols, depth: counter("k", part.depth), width: counter("w", part.width) };
}

export function attendNest(
  c: Composing,
  node: Node,
  lower: Extract<Lowering<never>, { kind: "attend" }>,
): Omit<AttendNest, "scratch"> {
  const context = c.context(node);
  const part = lower.part(context);
  const loops = countersOf(part);
  const dtype = productType(context.outType.dtype);
  const batch = loops.batch.map(varIndex);
  const [group, i, j] = [varIndex(loops.group), varIndex(loops.rows), varIndex(loops.cols)];
  const [k, w] = [varIndex(loops.depth), varIndex(loops.width)];
  const acc: Expr = { kind: "acc", dtype };
  const typed = (expr: Expr): Expr => inType(expr, dtype);
  const to = (result: number, place: readonly Index[], value: Expr): Store => {
    const type = node.outputs[result]?.type;
    invariant(type, () => `${node.op.name} has no result ${result}`);
    return { operand: c.outputOperand(result), index: linearIndex(place, type.shape), value };
  };
  const query = [...batch.slice(0, -1), part.head(batch, group), i];
  const { backward } = part;
  const nest = {
    kind: "attend" as const,
    ...loops,
    dtype,
    length: part.length(batch),
    sees: part.sees(batch),
    q: typed(part.q(batch, group, i, k)),
    k: typed(part.k(batch, j, k)),
    v: typed(part.v(batch, j, w)),
    score: typed(part.score(batch, group, [i, j], acc)),
    weight: part.weight(batch, group, [i, j], dtype),
  };
  if (!backward) return { ...nest, backward, stores: [to(0, [...query, w], acc), to(1, query, acc)] };
  return {
    ...nest,
    backward: {
      g: typed(backward.g(batch, group, i, w)),
      logsum: typed(backward.logsum(batch, group, i)),
      delta: typed(backward.delta(batch, group, i)),
    },
    stores: [
      to(0, [...query, k], mul(acc, backward.scale)),
      to(1, [...batch, j, k], mul(acc, backward.scale)),
      to(2, [...batch, j, w], acc),
    ],
  };
}
