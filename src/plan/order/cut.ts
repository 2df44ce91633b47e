/**
 * @file The fewest bytes that can be live while one step runs, over all orders: the steps before it form a set that
 * contains all its ancestors and none of its descendants, and the set with the fewest live bytes is a minimum cut.
 *
 *                      u ◄─────────── v needs u: if v has run, so has u               (v → u, no limit)
 *                        \
 *     ran before ─────── w ──bytes──→ [storage] ──→ each reader ─────── not run yet
 *     (source)                        live: w has run, some reader has not               (sink)
 *
 * Two uses. The value bounds the peak of every order from below: an order whose peak step is at its cut is optimal. And
 * the set tells how to improve an order: run its steps before the step, all others after it.
 *
 * If it depends on the order whether a value shares a slot or overwrites an operand, assume that it does: the bound
 * stays valid. Only steps that are neither ancestors nor descendants are in the network. Dinic's algorithm; work is
 * counted in edges visited.
 */
import { at } from "../../base/invariant.ts";
import { Flow } from "./flow.ts";
import { fromOf, type Lists, listOf } from "./lists.ts";
import type { Model } from "./model.ts";

export interface Cut {
  /** A lower bound for every order on the bytes live while the step runs. */
  readonly bytes: number;
  /**
   * Two sets with that value, the smaller one a subset of the larger, as marks of the steps that run before the step.
   */
  readonly smallest: Uint8Array;
  readonly largest: Uint8Array;
}

const [MIDDLE, BEFORE, AFTER] = [0, 1, 2];
const [SOURCE, SINK] = [0, 1];

/** `credit`: the number of edges that may be visited; the cut is null if it needs more. */
export function minimumCut(
  model: Model,
  step: number,
  credit: number,
): { readonly cut: Cut | null; readonly work: number } {
  const { steps } = model;
  const side = sides(model, step);
  const flow = new Flow(2, credit);
  const node = new Int32Array(steps);
  for (let i = 0; i < steps; i++) {
    if (side[i] === MIDDLE) node[i] = flow.addNode();
    else node[i] = side[i] === BEFORE ? SOURCE : SINK;
  }
  const network: Network = { side, node, flow };
  const fixed = at(model.scratch, step) + addWrites(model, step, network);
  const always = fixed + addStorages(model, network);
  addDependencies(model, network);
  const value = flow.maximum(SOURCE, SINK);
  const work = credit - flow.credit;
  if (value === null) return { cut: null, work };
  const [reached, reaching] = [flow.reachedFrom(SOURCE), flow.reaching(SINK)];
  const [smallest, largest] = [new Uint8Array(steps), new Uint8Array(steps)];
  for (let i = 0; i < steps; i++) {
    if (side[i] === AFTER) continue;
    const middle = side[i] === MIDDLE;
    smallest[i] = middle ? (reached[node[i] as number] as number) : 1;
    largest[i] = middle && reaching[node[i] as number] ? 0 : 1;
  }
  return { cut: { bytes: always + value, smallest, largest }, work };
}

/** A network whose cuts are states of the run: per step, on which side it must be and its node. */
interface Network {
  readonly side: Uint8Array;
  readonly node: Int32Array;
  readonly flow: Flow;
}

/** Adds edges for storages; returns the bytes that are live for every set. */
function addStorages(model: Model, { side, node, flow }: Network): number {
  const { storages, bytes, kept, writer, readers, isSlot, movable, settled } = model;
  let always = 0;
  for (let id = 0; id < storages; id++) {
    const size = bytes[id] as number;
    if (isSlot[id]) always += size;
    const producer = writer[id] as number;
    const from = producer < 0 ? SOURCE : (node[producer] as number);
    if (isSlot[id] || movable[id] || settled[id] || from === SINK || size === 0) continue;
    let [needed, waiting] = [kept[id] === 1, 0];
    for (let k = fromOf(readers, id); k < fromOf(readers, id + 1); k++) {
      const at = side[readers.items[k] as number];
      if (at === AFTER) needed = true;
      else if (at === MIDDLE) waiting += 1;
    }
    if (needed && from === SOURCE) always += size;
    else if (needed) flow.addEdge(from, SINK, size);
    if (needed || waiting === 0) continue;
    const storage = flow.addNode();
    flow.addEdge(from, storage, size);
    for (let k = fromOf(readers, id); k < fromOf(readers, id + 1); k++) {
      const reader = readers.items[k] as number;
      if (side[reader] === MIDDLE) flow.addEdge(storage, node[reader] as number, Number.POSITIVE_INFINITY);
    }
  }
  return always;
}

function addDependencies(model: Model, { side, node, flow }: Network): void {
  const { steps, predecessors } = model;
  for (let i = 0; i < steps; i++) {
    if (side[i] !== MIDDLE) continue;
    for (let k = fromOf(predecessors, i); k < fromOf(predecessors, i + 1); k++) {
      const before = predecessors.items[k] as number;
      if (side[before] === MIDDLE) flow.addEdge(node[i] as number, node[before] as number, Number.POSITIVE_INFINITY);
    }
  }
}

/** Which steps must run before the step, and which are the step itself or must run after it. */
function sides(model: Model, step: number): Uint8Array {
  const side = new Uint8Array(model.steps).fill(MIDDLE);
  const spread = (lists: Lists, mark: number): void => {
    const stack = [step];
    for (let i = stack.pop(); i !== undefined; i = stack.pop()) {
      for (let k = fromOf(lists, i); k < fromOf(lists, i + 1); k++) {
        const next = lists.items[k] as number;
        if (side[next] === mark) continue;
        side[next] = mark;
        stack.push(next);
      }
    }
  };
  spread(model.predecessors, BEFORE);
  spread(model.successors, AFTER);
  side[step] = AFTER;
  return side;
}

/**
 * Adds the step's results. A result can overwrite an operand that no later step reads: then all other readers must run
 * before it, or the bytes are needed after all. A choice is assumed to succeed. Returns the bytes needed for every set.
 */
function addWrites(model: Model, step: number, { side, node, flow }: Network): number {
  const { writes, over, bytes, kept, readers, movable, settled } = model;
  const mayDie = (id: number): boolean =>
    !kept[id] && listOf(readers, id).every((reader) => reader === step || side[reader] !== AFTER);
  const candidates: number[] = [];
  for (let k = fromOf(over, step); k < fromOf(over, step + 1); k += 2) {
    if (mayDie(at(over.items, k + 1))) candidates.push(at(over.items, k), at(over.items, k + 1));
  }
  const taken = new Set<number>();
  let always = 0;
  for (const id of listOf(writes, step)) {
    const mine = candidates.filter((read, k) => k % 2 === 1 && candidates[k - 1] === id && !taken.has(read));
    const [first] = mine;
    if (movable[id] || settled[id]) continue;
    if (first === undefined) {
      always += at(bytes, id);
      continue;
    }
    taken.add(first);
    const others = [...listOf(readers, first)].filter((reader) => side[reader] === MIDDLE);
    if (candidates.length > 2 || others.length === 0) continue;
    const storage = flow.addNode();
    flow.addEdge(SOURCE, storage, at(bytes, id));
    for (const reader of others) flow.addEdge(storage, at(node, reader), Number.POSITIVE_INFINITY);
  }
  return always;
}
