/**
 * @file Fusion: groups of nodes become `fused` nodes, each one kernel. What may join whom is decided in fuse-groups.ts;
 * here the groups become regions. Views and constants are copied into every group that reads through them, so after this
 * pass every node is a kernel, or a reshape of something stored that the graph returns.
 */
import { at, invariant } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue } from "../ir/graph.ts";
import { nodesFor, producersOf } from "../ir/walk.ts";
import { fused } from "../ops/control.ts";
import {
  type Edge,
  FUSE_DEFAULTS,
  type FuseOptions,
  type Group,
  Grouping,
  inlinedNodes,
  isStored,
} from "./fuse-groups.ts";
import { Overwrites } from "./overwrites.ts";
import type { Pass } from "./pass.ts";

/**
 * Nodes that need no storage: the inlined ones, less those that are returned and are not mere names of storage, and those
 * read when what they are made from may have been overwritten.
 */
function storelessNodes(graph: Graph, producer: ReadonlyMap<Value, Node>): ReadonlySet<Node> {
  const inlined = new Set(inlinedNodes(graph));
  const returned = new Set<Node>();
  for (const result of graph.results) {
    let node = producer.get(result);
    // through reshapes, which need no storage of their own, to what they reshape
    while (node && inlined.has(node) && node.op.alias !== null) node = producer.get(at(node.inputs, node.op.alias));
    if (node) returned.add(node);
  }
  for (const node of returned) inlined.delete(node);
  for (const node of new Overwrites(graph, inlined).lateViews()) inlined.delete(node);
  return inlined;
}

class Regions {
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #inlined: ReadonlySet<Node>;

  constructor(producer: ReadonlyMap<Value, Node>, inlined: ReadonlySet<Node>) {
    this.#producer = producer;
    this.#inlined = inlined;
  }

  /** The node for a group: itself when it is alone and reads stored values, else a fused node. */
  nodeOf(group: Group): Node {
    const own = group.members.map(({ node }) => node);
    const stored = group.members.filter(isStored).map(({ node }) => node);
    const outputs = stored.flatMap((node) => node.outputs);
    const map = new Map<Value, Value>();
    const inputs: Value[] = [];
    const params: Value[] = [];
    const nodes: Node[] = [];
    const members = new Set(own);
    const resolve = (value: Value): Value => {
      const known = map.get(value);
      if (known) return known;
      const maker = this.#producer.get(value);
      if (maker && (members.has(maker) || this.#inlined.has(maker))) {
        this.#copy(maker, resolve, map, nodes);
        return at([map.get(value)] as Value[], 0);
      }
      const param = newValue(value.type, value.name);
      map.set(value, param);
      inputs.push(value);
      params.push(param);
      return param;
    };
    for (const node of own) for (const out of node.outputs) resolve(out);
    const results = outputs.map(resolve);
    const [only] = own;
    // On its own a stored reshape would only name storage; in a region it is a kernel that copies.
    const plain = own.length === 1 && only && nodes.length === 1 && only.op.alias === null;
    if (plain) return only;
    const lead = group.anchor ?? at(own, own.length - 1);
    const region: Graph = { name: lead.op.name, params, nodes, results };
    const phase = at(stored, 0).phase;
    return { op: fused, inputs, attrs: {}, outputs, regions: [region], phase, where: lead.where, replay: lead.replay };
  }

  #copy(node: Node, resolve: (value: Value) => Value, map: Map<Value, Value>, nodes: Node[]): void {
    const inputs = node.inputs.map(resolve);
    const outputs = node.outputs.map((v) => newValue(v.type, v.name));
    for (const [i, v] of node.outputs.entries()) map.set(v, at(outputs, i));
    nodes.push({ ...node, inputs, outputs });
  }
}

/**
 * Groups in an order that respects their dependencies, earlier nodes first; but what can be read before it is overwritten
 * is read before.
 */
function orderGroups(groups: readonly Group[], edges: readonly Edge[], overwrites: Overwrites): readonly Group[] {
  const groupOf = new Map<Node, Group>(groups.flatMap((g) => g.members.map(({ node }) => [node, g] as const)));
  const waiting = new Map<Group, Set<Group>>(groups.map((g) => [g, new Set()]));
  const readers = new Map<Group, Set<Group>>(groups.map((g) => [g, new Set()]));
  for (const edge of edges) {
    const [from, to] = [edge.from.group, edge.to.group];
    if (from === to) continue;
    waiting.get(to)?.add(from);
    readers.get(from)?.add(to);
  }
  const ready = new ReadyList(groups.filter((g) => waiting.get(g)?.size === 0));
  const order = new Set<Group>();
  const run = (group: Group): void => {
    if (order.has(group)) return;
    order.add(group);
    for (const reader of readers.get(group) ?? []) {
      const left = waiting.get(reader);
      left?.delete(group);
      if (left?.size === 0) ready.push(reader);
    }
  };
  for (let group = ready.pop(); group; group = ready.pop()) {
    for (const node of group.anchor ? overwrites.readersBefore(group.anchor) : []) {
      const reader = groupOf.get(node);
      if (reader && waiting.get(reader)?.size === 0) run(reader);
    }
    run(group);
  }
  invariant(order.size === groups.length, () => "fusion made a cycle");
  return [...order];
}

/** Smallest id first: a binary heap. */
class ReadyList {
  readonly #heap: Group[] = [];

  constructor(groups: readonly Group[]) {
    for (const group of groups) this.push(group);
  }

  push(group: Group): void {
    const heap = this.#heap;
    let i = heap.push(group) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if ((heap[parent] as Group).id <= group.id) break;
      heap[i] = heap[parent] as Group;
      i = parent;
    }
    heap[i] = group;
  }

  pop(): Group | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as Group).id < (heap[child] as Group).id) child++;
      if ((heap[child] as Group).id >= last.id) break;
      heap[i] = heap[child] as Group;
      i = child;
    }
    heap[i] = last;
    return top;
  }
}

function fuseGraph(whole: Graph, options: FuseOptions): Graph {
  const needed = nodesFor(whole);
  const graph: Graph = { ...whole, nodes: whole.nodes.filter((node) => needed.has(node)) };
  const producer = producersOf(graph);
  const inlined = storelessNodes(graph, producer);
  const grouping = new Grouping(graph, inlined, options);
  const regions = new Regions(producer, inlined);
  const groups = orderGroups(grouping.groups(), grouping.edges, new Overwrites(graph, inlined));
  const nodes = groups.map((group) => regions.nodeOf(group));
  return { ...graph, nodes: [...nodes, ...returnedNames(graph, producer, inlined)] };
}

/** Reshapes of stored values that the graph returns, in order. */
function returnedNames(graph: Graph, producer: ReadonlyMap<Value, Node>, inlined: ReadonlySet<Node>): readonly Node[] {
  const wanted = new Set<Node>();
  for (const result of graph.results) {
    let node = producer.get(result);
    while (node && inlined.has(node)) {
      wanted.add(node);
      node = producer.get(at(node.inputs, node.op.alias ?? 0));
    }
  }
  return graph.nodes.filter((node) => wanted.has(node));
}

/** A fusion pass with its own limits. */
export function fuseWith(options: Partial<FuseOptions>): Pass {
  return {
    name: "fuse",
    after: ["inline", "canonicalize", "cse", "dce"],
    run: (graph) => fuseGraph(graph, { ...FUSE_DEFAULTS, ...options }),
  };
}

/** Makes one kernel of nodes that can share their loops: maps with maps, in front of and behind anchors. */
export const fuse: Pass = fuseWith({});
