/**
 * @file What to keep for backward as a minimum cut. Forward values are edges with their bytes as capacity; values that may not
 * be recomputed are sources, values that backward reads are sinks:
 *
 * ```
 *   source ─∞→ [a: 8] ─→ [b: 8] ─→ [c: 2] ─→ sink       a may not be recomputed; backward reads c and d.
 *                            └───→ [d: 4] ─→ sink       The cut is {c, d}: 6 bytes, less than keeping b or a.
 * ```
 *
 * A path from source to sink is a value that would be recomputed from one that cannot be; the cut of least
 * bytes leaves none. By max-flow (Dinic, 1970). Used this way by Zheng et al. and PyTorch's partitioner.
 */
import { at } from "../../base/invariant.ts";
import type { RecomputeProblem } from "./problem.ts";
import { forwardOps } from "./segments.ts";

interface Network {
  readonly source: number;
  readonly sink: number;
  readonly heads: number[][];
  readonly to: number[];
  readonly room: number[];
}

function connect(net: Network, from: number, to: number, capacity: number): void {
  at(net.heads, from).push(net.to.length);
  net.to.push(to);
  net.room.push(capacity);
  at(net.heads, to).push(net.to.length);
  net.to.push(from);
  net.room.push(0);
}

/** Distances from the source along edges with room; -1 where it does not reach. */
function levels(net: Network): Int32Array {
  const level = new Int32Array(net.heads.length).fill(-1);
  level[net.source] = 0;
  const queue = [net.source];
  for (let k = 0; k < queue.length; k++) {
    const node = at(queue, k);
    for (const edge of at(net.heads, node)) {
      const next = at(net.to, edge);
      if (at(net.room, edge) <= 0 || at(level, next) >= 0) continue;
      level[next] = at(level, node) + 1;
      queue.push(next);
    }
  }
  return level;
}

/** Sends flow along one shortest path found by depth-first search; false when there is none. */
function augment(net: Network, level: Int32Array, cursor: Int32Array): boolean {
  const path: number[] = [];
  let node = net.source;
  while (node !== net.sink) {
    const heads = at(net.heads, node);
    let k = at(cursor, node);
    while (k < heads.length) {
      const edge = at(heads, k);
      if (at(net.room, edge) > 0 && at(level, at(net.to, edge)) === at(level, node) + 1) break;
      k++;
    }
    cursor[node] = k;
    if (k < heads.length) {
      path.push(at(heads, k));
      node = at(net.to, at(heads, k));
      continue;
    }
    const back = path.pop();
    if (back === undefined) return false;
    node = at(net.to, back ^ 1);
    cursor[node] = at(cursor, node) + 1;
  }
  const amount = Math.min(...path.map((edge) => at(net.room, edge)));
  for (const edge of path) {
    net.room[edge] = at(net.room, edge) - amount;
    net.room[edge ^ 1] = at(net.room, edge ^ 1) + amount;
  }
  return true;
}

/** The forward values of least bytes to keep so that all that backward reads follows from them by `recomputable` ops. */
export function minCut(problem: RecomputeProblem, recomputable: (op: number) => boolean): ReadonlySet<number> {
  const forward = forwardOps(problem);
  const count = problem.bytes.length;
  const [source, sink] = [2 * count, 2 * count + 1];
  const heads: number[][] = Array.from({ length: 2 * count + 2 }, () => []);
  const net: Network = { source, sink, heads, to: [], room: [] };
  const forwardValues = new Set<number>();
  problem.ops.slice(0, forward).forEach((op, index) => {
    for (const value of op.outputs) {
      forwardValues.add(value);
      connect(net, 2 * value, 2 * value + 1, at(problem.bytes, value));
      if (op.once || !recomputable(index)) connect(net, source, 2 * value, Number.POSITIVE_INFINITY);
      for (const input of op.inputs) connect(net, 2 * input + 1, 2 * value, Number.POSITIVE_INFINITY);
    }
  });
  const read = new Set([...problem.ops.slice(forward).flatMap((op) => op.inputs), ...problem.results]);
  for (const value of read) if (forwardValues.has(value)) connect(net, 2 * value + 1, sink, Number.POSITIVE_INFINITY);
  let level = levels(net);
  while (at(level, sink) >= 0) {
    const cursor = new Int32Array(net.heads.length);
    while (augment(net, level, cursor));
    level = levels(net);
  }
  return new Set([...forwardValues].filter((value) => at(level, 2 * value) >= 0 && at(level, 2 * value + 1) < 0));
}
