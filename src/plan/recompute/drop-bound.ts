/**
 * @file A lower bound on the cost that needs no solver. At the first execution of operation t, every value made before
 * and read after is either held, or its operation runs again later. Values that are no operands of t have to fit beside it:
 *
 * ```
 *   operands of t │ held values │ budget
 *                 └ the others: their operations run once more, at least the cheapest way to free that many bytes
 * ```
 *
 * The cheapest way is a covering knapsack; taking the last item in part makes it a bound that a sort gives. The bound is
 * the largest over t, and holds for every plan with this order of first executions.
 */
import { at } from "../../base/invariant.ts";
import type { FlatGraph } from "./flat-graph.ts";
import { profiler } from "./profile.ts";

/** Stages to look at, those with the most bytes: at most so many, fewer on large graphs, whose stages differ little. */
const STAGES = 400;
const STAGE_OPS = 200_000;

/** Bytes of the values of `op` that are read after stage `t` and are no operands of it. */
function bytesBeyond(graph: FlatGraph, op: number, t: number, operands: ReadonlySet<number>): number {
  let bytes = 0;
  for (let o = at(graph.outputStart, op); o < at(graph.outputStart, op + 1); o++) {
    const v = at(graph.outputs, o);
    const uses = at(graph.useStart, v + 1);
    const later = at(graph.result, v) === 1 || (uses > at(graph.useStart, v) && at(graph.uses, uses - 1) > t);
    if (later && !operands.has(v)) bytes += at(graph.bytes, v);
  }
  return bytes;
}

function boundAt(graph: FlatGraph, budget: number, t: number): number {
  const inputs = graph.inputs.subarray(at(graph.inputStart, t), at(graph.inputStart, t + 1));
  const operands = new Set(inputs);
  let excess = at(graph.madeBytes, t) + at(graph.pinnedBytes, t) - budget;
  for (const v of operands) excess += at(graph.bytes, v);
  const items: { readonly bytes: number; readonly cost: number }[] = [];
  for (let op = 0; op < t; op++) {
    const bytes = bytesBeyond(graph, op, t, operands);
    excess += bytes;
    if (bytes > 0 && at(graph.once, op) === 0) items.push({ bytes, cost: at(graph.cost, op) });
  }
  if (excess <= 0) return 0;
  items.sort((p, q) => p.cost * q.bytes - q.cost * p.bytes);
  let cost = 0;
  for (const item of items) {
    if (excess <= item.bytes) return cost + (excess / item.bytes) * item.cost;
    cost += item.cost;
    excess -= item.bytes;
  }
  return Number.POSITIVE_INFINITY;
}

/** No plan within `budget` costs less; infinite when none exists. */
export function dropBound(graph: FlatGraph, budget: number): number {
  const { profile, bytesAt } = profiler(graph, budget, graph.ops);
  const order = Int32Array.from({ length: graph.ops }, (_, op) => op);
  profile(order, graph.ops);
  const busiest = [...order].filter((t) => at(bytesAt, t) > budget).sort((s, t) => at(bytesAt, t) - at(bytesAt, s));
  let resultBytes = 0;
  for (const v of graph.results) resultBytes += at(graph.bytes, v);
  // all results are there at the last step, whichever it is
  const constants = Math.min(at(graph.pinnedBytes, graph.ops), at(graph.pinnedBytes, Math.max(0, graph.ops - 1)));
  if (resultBytes + constants > budget) return Number.POSITIVE_INFINITY;
  const stages = Math.min(STAGES, Math.ceil(STAGE_OPS / graph.ops));
  return graph.baseCost + busiest.slice(0, stages).reduce((most, t) => Math.max(most, boundAt(graph, budget, t)), 0);
}
