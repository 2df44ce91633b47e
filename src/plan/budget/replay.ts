/**
 * @file From a sequence of slices with repeats back to a graph. Every repetition becomes nodes of its own, marked with a
 * replay number; readers of a value read its latest computation:
 *
 * ```
 *   sequence    a  b  c  a  d'      d' is backward and reads a
 *   graph       a = tanh(x)   b = …(a)   c = …(b)   a_re = tanh(x) ~1   d' = …(a_re)
 * ```
 *
 * What comes out is an ordinary graph before fusion: it prints, verifies and is fused, ordered and placed like any other.
 * A repetition runs the same operations on the same operands as the first computation, so it gives the same bits.
 */

import { at } from "../../base/invariant.ts";
import { type Graph, type Node, newValue, nodeLike, type Phase, type Value } from "../../ir/graph.ts";
import { producersOf } from "../../ir/walk.ts";
import type { Sequence } from "../recompute/problem.ts";
import type { SlicedProgram } from "./slices.ts";

export interface Replayed {
  readonly graph: Graph;
  readonly origin: ReadonlyMap<Node, Origin>;
}

/** The node that a node is a copy of, the operation of the problem that it is made for, and whether it is a repetition. */
export interface Origin {
  readonly of: Node;
  readonly op: number;
  readonly again: boolean;
}

/** An earlier copy of a node, valid as long as its operands have not been recomputed. */
interface Copy {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
}

class Emitter {
  readonly nodes: Node[] = [];
  readonly origin = new Map<Node, Origin>();
  /** What a value of the old graph is now. */
  readonly #now = new Map<Value, Value>();
  readonly #copies = new Map<Node, Copy>();

  value(old: Value): Value {
    return this.#now.get(old) ?? old;
  }

  /** The first computation of a slice. Nodes that slices share are made once, unless what they read has changed. */
  first(nodes: readonly Node[], op: number): void {
    for (const node of nodes) {
      const inputs = node.inputs.map((input) => this.value(input));
      const before = this.#copies.get(node);
      if (before?.inputs.every((input, i) => input === inputs[i])) {
        this.#bind(node, before.outputs);
        continue;
      }
      const outputs = before ? node.outputs.map((value) => newValue(value.type, value.name)) : node.outputs;
      this.#append(nodeLike(node, { inputs, outputs }), { of: node, op, again: false });
      this.#copies.set(node, { inputs, outputs });
    }
  }

  again(nodes: readonly Node[], op: number, replay: number, phase: Phase): void {
    for (const node of nodes) {
      const inputs = node.inputs.map((input) => this.value(input));
      const outputs = node.outputs.map((value) => newValue(value.type, value.name ? `${value.name}_re` : undefined));
      this.#append(nodeLike(node, { inputs, outputs, replay, phase }), { of: node, op, again: true });
    }
  }

  #append(made: Node, origin: Origin): void {
    this.nodes.push(made);
    this.origin.set(made, origin);
    this.#bind(origin.of, made.outputs);
  }

  #bind(old: Node, outputs: readonly Value[]): void {
    old.outputs.forEach((value, i) => {
      this.#now.set(value, at(outputs, i));
    });
  }
}

/** The graph that runs `sequence`. */
export function replayGraph({ graph, slices, problem }: SlicedProgram, sequence: Sequence): Replayed {
  const emitter = new Emitter();
  let started = 0;
  let replay = 0;
  let inReplay = false;
  for (const op of sequence) {
    const { nodes } = at(slices, op);
    if (op >= started) {
      emitter.first(nodes, op);
      started = op + 1;
      inReplay = false;
      continue;
    }
    // One number for everything that is recomputed before the next first computation.
    if (!inReplay) replay += 1;
    inReplay = true;
    const next = problem.ops[started];
    emitter.again(nodes, op, replay, next && !next.backward ? "forward" : "backward");
  }
  emitReturned(graph, slices, emitter);
  const results = graph.results.map((value) => emitter.value(value));
  return { graph: { ...graph, nodes: emitter.nodes, results }, origin: emitter.origin };
}

/** Names of stored values that the graph returns: they name the latest computation. */
function emitReturned(graph: Graph, slices: SlicedProgram["slices"], emitter: Emitter): void {
  const stored = new Set(slices.map(({ nodes }) => at(nodes, nodes.length - 1)));
  const producer = producersOf(graph);
  const names = new Set<Node>();
  for (const result of graph.results) {
    for (let node = producer.get(result); node && !stored.has(node); ) {
      names.add(node);
      node = node.op.alias === null ? undefined : producer.get(at(node.inputs, node.op.alias));
    }
  }
  emitter.first(
    graph.nodes.filter((node) => names.has(node)),
    slices.length,
  );
}
