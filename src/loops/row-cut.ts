/**
 * @file Chooses the rows that a loop keeps for its reverse, at a price per byte. The reverse reads some values of the
 * forward body. Each of them is kept as a row, or recomputed in the reverse from values that are in turn kept or
 * recomputed:
 *
 * ```
 *   x ── matmul ── p ── tanh ── t          t and c are read by the reverse
 *                   ╲                      keep t and c:        two rows, nothing recomputed
 *                    add ── c              keep p:              one row, recompute tanh and add
 *                   ╱                      keep nothing:        no row, recompute the product too
 *   k ─────────────╯
 * ```
 *
 * With a price on bytes the best choice is a minimum cut: r(v) says that v is needed, z(n) that node n is recomputed,
 * and
 *
 *   r(v) and not z(its node)    costs the bytes of v's row        z(n)                   costs the time of n
 *   z(n) and not r(an input)    impossible
 *
 * Rows of inputs, constants and the row index are always available. Zheng et al. and PyTorch's partitioner use a cut
 * over bytes alone; this one also includes time.
 */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { producersOf } from "../ir/walk.ts";
import type { NodeCosts } from "../plan/cost/model.ts";
import { Flow } from "../plan/order/flow.ts";
import { msOf, NO_WORK } from "../target/work.ts";
import { type LoopPair, rowsOf } from "./pairs.ts";

/** Values of the forward body that become rows, and the nodes that are recomputed, in order. */
export interface RowCut {
  readonly rows: readonly Value[];
  readonly again: readonly Node[];
}

/** Time to recompute a node in one iteration: fused nodes move no memory. */
export function recomputeMs(node: Node, costs: NodeCosts): number {
  const work = costs.workOf(node);
  const isMap = node.op.lower.kind === "map";
  return msOf(isMap ? { ...NO_WORK, arithmetic: work.arithmetic } : work, costs.rates);
}

/** Values of the body that are always available in the reverse. */
function availableValues({ forwardParts, backwardParts, stacks }: LoopPair): ReadonlySet<Value> {
  const { body, carries, ys } = forwardParts;
  const isCarry = (i: number): boolean => i >= 1 && i <= carries.length;
  const others = ys.flatMap((y, n) =>
    backwardParts.xs.includes(y) && !stacks.includes(y) ? [at(body.results, carries.length + n)] : [],
  );
  return new Set([...body.params.filter((_, i) => !isCarry(i)), ...others]);
}

/** The best rows at a price in milliseconds a byte. */
export function rowCut(pair: LoopPair, pricePerByte: number, msOfNode: (node: Node) => number): RowCut {
  const { body } = pair.forwardParts;
  const producer = producersOf(body);
  const available = availableValues(pair);
  const [SOURCE, SINK] = [0, 1];
  const flow = new Flow(2, Number.POSITIVE_INFINITY);
  const needed = new Map<Value, number>();
  const again = new Map<Node, number>();
  const need = (value: Value): number => {
    const id = needed.get(value) ?? flow.addNode();
    needed.set(value, id);
    return id;
  };
  const keeping = (value: Value): number => pricePerByte * pair.length * byteLength(value.type);
  for (const row of new Set(rowsOf(pair.forwardParts, pair.stacks))) {
    if (!available.has(row)) flow.addEdge(SOURCE, need(row), Number.POSITIVE_INFINITY);
  }
  for (const node of [...body.nodes].reverse()) {
    const wanted = node.outputs.filter((value) => needed.has(value));
    if (wanted.length === 0) continue;
    const id = flow.addNode();
    again.set(node, id);
    flow.addEdge(id, SINK, pair.length * msOfNode(node));
    for (const value of wanted) flow.addEdge(need(value), id, keeping(value));
    for (const value of new Set(node.inputs)) {
      if (!available.has(value)) flow.addEdge(id, need(value), Number.POSITIVE_INFINITY);
    }
  }
  // Carries have no producer in the body.
  for (const [value, id] of needed) if (!producer.has(value)) flow.addEdge(id, SINK, keeping(value));
  flow.maximum(SOURCE, SINK);
  const side = flow.reachedFrom(SOURCE);
  const runs = (node: Node | undefined): boolean => node !== undefined && side[again.get(node) ?? SINK] === 1;
  return {
    rows: [...needed].flatMap(([value, id]) => (side[id] === 1 && !runs(producer.get(value)) ? [value] : [])),
    again: body.nodes.filter((node) => runs(node)),
  };
}
