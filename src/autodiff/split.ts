/**
 * @file A graph in two parts: what depends on some of its parameters alone, and the rest. The first part runs once; the second
 * runs as often as the other parameters change, and reads residuals of the first:
 *
 *   x ── h = sin(x) ── c = cos(x)             x known, t not
 *   t ── mul(t, c) ── r                 →     known: x → h, c        rest: c, t → r
 *
 * Views and constants are made again where they are read, if what they are made of is no larger. A loop or branch with both kinds
 * of values is split as well (split-control.ts).
 */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { withLiveNodes } from "../ir/walk.ts";
import { splitControl } from "./split-control.ts";

export interface Split {
  /** Nodes that depend on known parameters alone. */
  readonly known: readonly Node[];
  /** The others that results depend on, and what they make again. */
  readonly rest: readonly Node[];
  readonly isKnown: ReadonlySet<Value>;
  /** Known values that `rest` reads, parameters among them. */
  readonly residuals: readonly Value[];
}

const bytes = (values: readonly Value[]): number => values.reduce((sum, { type }) => sum + byteLength(type), 0);

/** Whether a known node is made again where its result is read. */
function isMadeAgain({ op, inputs, outputs }: Node): boolean {
  return op.lower.kind === "map" && op.lower.fusion === "always" && bytes(inputs) <= bytes(outputs);
}

/** `results`: those of the graph that the rest is to give. */
export function splitGraph(graph: Graph, known: readonly boolean[], results: readonly Value[] = graph.results): Split {
  const isKnown = new Set<Value>(graph.params.filter((_, i) => known[i]));
  const first: Node[] = [];
  const second: Node[] = [];
  for (const node of graph.nodes) {
    if (node.inputs.every((value) => isKnown.has(value))) {
      first.push(node);
      for (const value of node.outputs) isKnown.add(value);
      continue;
    }
    const parts = splitControl(node, isKnown, splitGraph);
    for (const one of parts?.known ?? []) {
      first.push(one);
      for (const value of one.outputs) isKnown.add(value);
    }
    second.push(parts ? parts.rest : node);
  }
  const wanted = results.filter((value) => !isKnown.has(value));
  const live = withLiveNodes({ ...graph, nodes: second, results: wanted }).nodes;
  const read = new Set(live.flatMap(({ inputs }) => inputs).filter((value) => isKnown.has(value)));
  const again: Node[] = [];
  for (const node of [...first].reverse()) {
    if (!node.outputs.some((value) => read.has(value)) || !isMadeAgain(node)) continue;
    again.push(node);
    for (const value of node.outputs) read.delete(value);
    for (const value of node.inputs) read.add(value);
  }
  return { known: first, rest: [...again.reverse(), ...live], isKnown, residuals: [...read] };
}
