/**
 * @file Smaller residuals of loops: rows that a loop stores for its reverse, and that the reverse only compares, become rows of
 * bits (predicates.ts). The comparison moves from the reverse's body into the loop's:
 *
 *   ys    = scan(c, …) { y = relu(…);  return …, y }            ws    = scan(c, …) { …;  return …, pack_bits(gt(y, 0)) }
 *   d_c   = scan(d, ys) {reverse} { where(gt(y, 0), …) }        d_c   = scan(d, ws) {reverse} { where(unpack_bits(w), …) }
 */

import { at, invariant } from "../base/invariant.ts";
import { type Loop, loopOf } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike, resultOf } from "../ir/graph.ts";
import { producersOf, usersOf } from "../ir/walk.ts";
import { rowType, stackType } from "../ops/region-checks.ts";
import { dce } from "./dce.ts";
import { packing, placeOf, unpacking } from "./packing.ts";
import { chooseBits, PartReads } from "./predicates.ts";

function requiredLoop(node: Node): Loop {
  const loop = loopOf(node);
  invariant(loop, () => `${node.op.name} is not a loop`);
  return loop;
}

/** A reverse, the parameters of its body for rows of one loop without other readers, and these rows in the loop. */
interface Pair {
  readonly loop: Node;
  readonly reverse: Node;
  readonly rows: ReadonlyMap<Value, Value>;
}

function pairsOf(graph: Graph, reverse: Node): readonly Pair[] {
  const reversed = loopOf(reverse);
  if (!reversed || reversed.recording || reversed.xs.length === 0) return [];
  const producer = producersOf(graph);
  const users = usersOf(graph);
  const returned = new Set(graph.results);
  const { xs, carries, body } = reversed;
  const found = new Map<Node, Map<Value, Value>>();
  xs.forEach((stack, x) => {
    const loop = producer.get(stack);
    const made = loop && loopOf(loop);
    if (!loop || !made || made.recording || returned.has(stack) || users.get(stack)?.length !== 1) return;
    const y = made.ys.indexOf(stack);
    if (y < 0) return;
    const rows = found.get(loop) ?? new Map<Value, Value>();
    rows.set(at(body.params, 1 + carries.length + x), at(made.body.results, made.carries.length + y));
    found.set(loop, rows);
  });
  return [...found].map(([loop, rows]) => ({ loop, reverse, rows }));
}

/** A pair with bits in place of rows that are only compared; null if that saves nothing. */
function withBits({ loop, reverse, rows }: Pair): readonly [Node, Node] | null {
  const [parts, { length, body }] = [requiredLoop(loop), requiredLoop(reverse)];
  const reads = new PartReads(body, producersOf(body), {
    isMade: (value) => rows.has(value),
    isFree: () => false,
    isReader: () => true,
    kept: [],
  });
  const chosen = chooseBits(reads, length);
  if (chosen.length === 0) return null;
  const packs = chosen.map((predicate) => packing(reads.nodesOf(predicate), predicate, placeOf(loop), rows));
  const words = packs.map((nodes) => resultOf(at(nodes, nodes.length - 1)));
  const stacks = words.map(({ type }) => newValue(stackType(type, length)));
  const own = parts.last.length + parts.ys.length;
  const forward: Node = {
    ...loop,
    outputs: [...loop.outputs.slice(0, own), ...stacks, ...loop.outputs.slice(own)],
    regions: loop.regions.map((old, n) => (n === parts.region ? extended(old, packs.flat(), words) : old)),
  };
  return [forward, readingBits(reverse, chosen, stacks)];
}

function extended(body: Graph, nodes: readonly Node[], results: readonly Value[]): Graph {
  return { ...body, nodes: [...body.nodes, ...nodes], results: [...body.results, ...results] };
}

/** The reverse with stacks of bits among its rows. */
function readingBits(reverse: Node, predicates: readonly Value[], stacks: readonly Value[]): Node {
  const { body, xs, carries, consts, count, length } = requiredLoop(reverse);
  const params = stacks.map(({ type }) => newValue(rowType("scan", type, length)));
  const first = 1 + carries.length + xs.length;
  const views = predicates.map((predicate, n) => unpacking(at(params, n), predicate.type.shape, placeOf(reverse)));
  const now = new Map(predicates.map((predicate, n) => [predicate, resultOf(at(views, n))]));
  const nodes = body.nodes.map((node) =>
    nodeLike(node, { inputs: node.inputs.map((input) => now.get(input) ?? input) }),
  );
  const region: Graph = {
    ...body,
    params: [...body.params.slice(0, first), ...params, ...body.params.slice(first)],
    nodes: [...views, ...nodes],
    results: body.results.map((result) => now.get(result) ?? result),
  };
  return {
    ...reverse,
    inputs: [...(count ? [count] : []), ...carries, ...xs, ...stacks, ...consts],
    attrs: { ...reverse.attrs, xs: xs.length + stacks.length },
    regions: [region],
  };
}

/** The first pair of a reverse in which bits are kept, with them. */
function improved(graph: Graph, reverse: Node): { readonly pair: Pair; readonly made: readonly [Node, Node] } | null {
  for (const pair of pairsOf(graph, reverse)) {
    const made = withBits(pair);
    if (made) return { pair, made };
  }
  return null;
}

/** The graph with rows of bits between loops and their reverses. */
export function withSmallerRows(graph: Graph): Graph {
  let current = graph;
  for (let i = 0; i < graph.nodes.length; i++) {
    for (
      let better = improved(current, at(current.nodes, i));
      better;
      better = improved(current, at(current.nodes, i))
    ) {
      const { pair, made } = better;
      const now = new Map([
        [pair.loop, made[0]],
        [pair.reverse, made[1]],
      ]);
      current = { ...current, nodes: current.nodes.map((old) => now.get(old) ?? old) };
    }
  }
  // Rows that were compared have no readers now.
  return current === graph ? graph : dce.run(current);
}
