/**
 * @file Traversals of a graph, and rewriting one into another. Graphs are immutable: a rewrite walks the old nodes in
 * order and builds the new list beside it, with a map from old values to new ones.
 *
 *   old   a ── p = tanh(a) ── q = tanh(a) ── r = add(p, q)
 *                  keep           q ↦ p          keep, as add(p, p)
 *   new   a ── p = tanh(a) ── r = add(p, p)
 *
 * A value that is kept stays the same object, so metadata survives, and a rewrite that changes nothing returns the very
 * graph it was given: passes detect their fixpoint by identity.
 */

import { at, InternalError, invariant } from "../base/invariant.ts";
import { Build } from "./build.ts";
import type { Graph, Node, Value } from "./graph.ts";
import { nodeLike } from "./graph.ts";
import { sameType, typeText } from "./type.ts";

/**
 * Every node of a graph and of its regions, outer before inner.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { allNodes, parse } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log([...allNodes(graph)].map(({ op }) => op.name)); // → [tanh]
 */
export function* allNodes(graph: Graph): Generator<Node> {
  for (const node of graph.nodes) {
    yield node;
    // Most nodes have no regions, and those of most regions have none.
    for (const region of node.regions) {
      for (const inner of region.nodes) {
        if (inner.regions.length === 0) yield inner;
        else yield* allNodes({ ...region, nodes: [inner] });
      }
    }
  }
}

/** An operand of a node. */
export interface Use {
  readonly node: Node;
  /** Which input of the node. */
  readonly input: number;
}

/**
 * For every value its uses in order; values without one map to an empty list. Results of the graph are not uses.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, usersOf } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log([...usersOf(graph).values()].map((uses) => uses.length)); // → [1, 0]
 */
export function usersOf(graph: Graph): ReadonlyMap<Value, readonly Use[]> {
  const users = new Map<Value, Use[]>();
  for (const param of graph.params) users.set(param, []);
  for (const node of graph.nodes) {
    node.inputs.forEach((value, input) => {
      const uses = users.get(value);
      if (uses) uses.push({ node, input });
      else users.set(value, [{ node, input }]);
    });
    for (const output of node.outputs) users.set(output, users.get(output) ?? []);
  }
  return users;
}

/**
 * The node that makes each value; parameters are not in the map.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, producersOf } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log(producersOf(graph).size); // → 1
 */
export function producersOf(graph: Graph): ReadonlyMap<Value, Node> {
  const producers = new Map<Value, Node>();
  for (const node of graph.nodes) for (const output of node.outputs) producers.set(output, node);
  return producers;
}

/** The nodes that the given values depend on, the last one first. */
function liveNodes(graph: Graph, values: readonly Value[]): Node[] {
  const wanted = new Set(values);
  const live: Node[] = [];
  for (let i = graph.nodes.length - 1; i >= 0; i--) {
    const node = graph.nodes[i] as Node;
    if (!node.outputs.some((output) => wanted.has(output))) continue;
    live.push(node);
    for (const input of node.inputs) wanted.add(input);
  }
  return live;
}

/**
 * The nodes that the given values depend on.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { nodesFor, parse } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log(nodesFor(graph).size); // → 1
 */
export function nodesFor(graph: Graph, values: readonly Value[] = graph.results): ReadonlySet<Node> {
  return new Set(liveNodes(graph, values));
}

/** The graph without nodes that no result depends on; regions are left as they are. */
export function withLiveNodes(graph: Graph): Graph {
  const live = liveNodes(graph, graph.results);
  return live.length === graph.nodes.length ? graph : { ...graph, nodes: live.reverse() };
}

/**
 * The same nodes in an order that respects their dependencies, as near to the given order as possible.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, topological } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const { nodes } of parse(text, allOps)) console.log(topological([...nodes].reverse()).map(({ op }) => op.name)); // → [tanh]
 */
export function topological(nodes: readonly Node[]): readonly Node[] {
  const producer = new Map<Value, Node>();
  for (const node of nodes) for (const output of node.outputs) producer.set(output, node);
  const waiting = new Set<Node>();
  const done = new Set<Node>();
  // An explicit stack: graphs are deeper than the call stack.
  const stack: Node[] = [];
  for (const root of nodes) {
    stack.push(root);
    while (stack.length > 0) {
      const node = stack[stack.length - 1] as Node;
      const missing = done.has(node)
        ? []
        : node.inputs.flatMap((v) => producer.get(v) ?? []).filter((n) => !done.has(n));
      if (missing.length === 0) {
        done.add(node); // sets keep insertion order
        stack.pop();
        continue;
      }
      waiting.add(node);
      invariant(
        missing.every((n) => !waiting.has(n)),
        () => `${node.op.name} depends on itself`,
      );
      stack.push(...missing.reverse());
    }
  }
  return [...done];
}

/**
 * A new graph built from an old one, node by node: every node is kept, or its results are replaced.
 *
 * @throws By `build` what Build throws; an internal error for a replacement of another type
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, Rewrite, sameGraph } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) {
 *   const rewrite = new Rewrite(graph);
 *   for (const node of graph.nodes) rewrite.keep(node);
 *   console.log(sameGraph(rewrite.finish(), graph)); // → true
 * }
 */
export class Rewrite {
  /** Where new nodes go. */
  readonly build: Build;
  readonly #graph: Graph;
  readonly #now = new Map<Value, Value>();
  #changed = false;

  constructor(graph: Graph) {
    this.#graph = graph;
    this.build = new Build(graph.name);
    for (const param of graph.params) this.build.params.push(param);
  }

  /** The value of the new graph for one of the old graph. */
  value(old: Value): Value {
    return this.#now.get(old) ?? old;
  }

  /** Uses of `old` from here on read `now`. */
  replace(old: Value, now: Value): void {
    invariant(sameType(old.type, now.type), () => `${typeText(old.type)} replaced by ${typeText(now.type)}`);
    this.#changed = true;
    if (old !== now) this.#now.set(old, now);
  }

  /** An old node that reads the new graph; the node itself if its inputs are unchanged. */
  current(node: Node): Node {
    for (const input of node.inputs) {
      if (this.#now.has(input)) return nodeLike(node, { inputs: node.inputs.map((old) => this.value(old)) });
    }
    // Most nodes read nothing that changed, and nothing is made for them.
    return node;
  }

  /** Appends a node with the results it had, reading the new graph. */
  keep(node: Node): void {
    this.build.append(this.current(node));
  }

  /** The new graph, or the old one when nothing changed. */
  finish(): Graph {
    const { nodes } = this.build;
    const same = nodes.length === this.#graph.nodes.length && nodes.every((node, i) => node === this.#graph.nodes[i]);
    if (same && !this.#changed) return this.#graph;
    return this.build.finish(this.#graph.results.map((result) => this.value(result)));
  }
}

/**
 * Given a node that reads the new graph: null to keep it, or the values in the new graph that its results become. New
 * nodes appended to `b` take the node's phase, source line and replay number.
 */
export type Visit = (b: Build, node: Node) => readonly Value[] | null;

/** A node with its regions rewritten; the same node when that changes none of them. */
function withRegions(node: Node, visitor: (graph: Graph) => Visit): Node {
  const regions = node.regions.map((region) => rewriteGraph(region, visitor));
  return regions.every((region, i) => region === node.regions[i]) ? node : nodeLike(node, { regions });
}

/**
 * Rewrites a graph and, before each node, its regions. `visitor` is asked once a graph: it may keep state in it.
 *
 * @throws What Build throws for nodes that the visitor appends, ShapeMismatch among others; an internal error for
 * a replacement of another type
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, rewriteGraph } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log(rewriteGraph(graph, () => () => null) === graph); // → true
 */
export function rewriteGraph(graph: Graph, visitor: (graph: Graph) => Visit): Graph {
  const rewrite = new Rewrite(graph);
  const visit = visitor(graph);
  for (const old of graph.nodes) {
    const node = rewrite.current(old.regions.length === 0 ? old : withRegions(old, visitor));
    rewriteNode(rewrite, node, visit);
  }
  return rewrite.finish();
}

/** For every node of every pass: nothing is allocated here for nodes that are kept. */
function rewriteNode(rewrite: Rewrite, node: Node, visit: Visit): void {
  const { build } = rewrite;
  build.phase = node.phase;
  build.where = node.where;
  build.replay = node.replay;
  build.scope = node.scope;
  build.within = node.within;
  const before = build.nodes.length;
  const made = visit(build, node);
  if (made) {
    replaceResults(rewrite, node, made, before);
    return;
  }
  if (build.nodes.length !== before) throw new InternalError(`${node.op.name} was kept after nodes were made for it`);
  build.append(node);
}

function replaceResults(rewrite: Rewrite, node: Node, made: readonly Value[], before: number): void {
  invariant(made.length === node.outputs.length, () => `${node.op.name}: ${made.length} replacements`);
  if (takeOver(rewrite.build, node, made, before)) return;
  for (const [i, output] of node.outputs.entries()) rewrite.replace(output, at(made, i));
}

/** When the last new node makes the replacement of an only result and has no name, it makes that result itself. */
function takeOver(build: Build, node: Node, made: readonly Value[], before: number): boolean {
  const last = build.nodes[build.nodes.length - 1];
  const [output] = node.outputs;
  if (!last || !output || build.nodes.length === before || node.outputs.length !== 1) return false;
  if (last.outputs.length !== 1 || last.outputs[0] !== made[0] || made[0]?.name !== undefined) return false;
  invariant(sameType(output.type, at(made, 0).type), () => `${node.op.name} replaced by another type`);
  build.nodes.pop();
  build.append(nodeLike(last, { outputs: [output] }));
  return true;
}
