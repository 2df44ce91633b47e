/**
 * @file Fusion: groups of nodes become `fused` nodes, each one kernel. fuse-groups.ts forms the groups;
 * here they become regions. Views and constants are copied into every group that reads through them, so after this
 * pass every node is a kernel, or a reshape of a stored value that the graph returns.
 */

import { at, invariant } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import { producersOf, withLiveNodes } from "../ir/walk.ts";
import { fused } from "../ops/control.ts";
import { COMMON_FUSION, type FusionLimits } from "../target/description.ts";
import { isControl, readsStored } from "./control-nodes.ts";
import { type Group, Grouping, isStored } from "./fuse-groups.ts";
import { inlinedNodes } from "./fuse-inline.ts";
import { Overwrites } from "./overwrites.ts";
import type { Pass } from "./pass.ts";

/**
 * Nodes that need no storage: the inlined ones, less those that are returned and are not mere names of storage, those
 * read when their sources may have been overwritten, and those that a loop or branch reads.
 */
function storelessNodes(graph: Graph, producer: ReadonlyMap<Value, Node>, limits: FusionLimits): ReadonlySet<Node> {
  const inlined = new Set(inlinedNodes(graph, limits));
  for (const node of readWhereStored(graph, producer)) inlined.delete(node);
  const returned = new Set<Node>();
  for (const result of graph.results) {
    let node = producer.get(result);
    // through reshapes, which need no storage of their own, to what they reshape
    while (node && inlined.has(node) && node.op.alias !== null) node = producer.get(at(node.inputs, node.op.alias));
    if (node) returned.add(node);
  }
  for (const node of returned) inlined.delete(node);
  for (const node of new Overwrites(graph, producer, inlined).lateViews()) inlined.delete(node);
  return inlined;
}

/** The values that loops, branches and exchanges of devices read, and the storage that reshapes among them rename. */
function readWhereStored(graph: Graph, producer: ReadonlyMap<Value, Node>): ReadonlySet<Node> {
  const found = new Set<Node>();
  for (const value of graph.nodes.filter(readsStored).flatMap((node) => node.inputs)) {
    for (let node = producer.get(value); node && !found.has(node); ) {
      found.add(node);
      node = node.op.alias === null ? undefined : producer.get(at(node.inputs, node.op.alias));
    }
  }
  return found;
}

/** Cache of a pure function: variants of a program share regions, which never change. */
const fusedBefore = new WeakMap<FusionLimits, WeakMap<Graph, Graph>>();

/** A region on its own: variants of a program that share one share what it becomes. */
function fuseOnce(region: Graph, options: FusionLimits): Graph {
  const known = fusedBefore.get(options) ?? new WeakMap<Graph, Graph>();
  fusedBefore.set(options, known);
  const made = known.get(region) ?? fuseGraph(region, options);
  known.set(region, made);
  return made;
}

/** The regions of loops and branches are programs of their own. */
function withFusedRegions(node: Node, options: FusionLimits): Node {
  return isControl(node) ? nodeLike(node, { regions: node.regions.map((region) => fuseOnce(region, options)) }) : node;
}

class Regions {
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #grouping: Grouping;
  readonly #named: ReadonlySet<Node>;

  /** `named` are nodes that stay names of storage. */
  constructor(producer: ReadonlyMap<Value, Node>, grouping: Grouping, named: ReadonlySet<Node>) {
    this.#producer = producer;
    this.#grouping = grouping;
    this.#named = named;
  }

  /** The node for a group: itself when it is alone and reads stored values, else a fused node. */
  nodeOf(group: Group): Node {
    const own = group.members.map(({ node }) => node);
    const [only] = own;
    if (own.length === 1 && only && this.#isPlain(only)) return only;
    const stored = group.members.filter(isStored).map(({ node }) => node);
    const outputs = stored.flatMap((node) => node.outputs);
    const map = new Map<Value, Value>();
    const inputs: Value[] = [];
    const params: Value[] = [];
    const nodes: Node[] = [];
    const resolve = (value: Value): Value => {
      const known = map.get(value);
      if (known) return known;
      const maker = this.#producer.get(value);
      // Nodes in no group are inlined.
      if (maker && (this.#grouping.groupOf(maker) ?? group) === group) {
        this.#copy(maker, resolve, map, nodes);
        return map.get(value) as Value;
      }
      const param = newValue(value.type, value.name);
      map.set(value, param);
      inputs.push(value);
      params.push(param);
      return param;
    };
    for (const node of own) for (const out of node.outputs) resolve(out);
    const results = outputs.map(resolve);
    const lead = group.anchor ?? at(own, own.length - 1);
    const region: Graph = { name: lead.op.name, params, nodes, results };
    return {
      op: fused,
      inputs,
      attrs: {},
      outputs,
      regions: [region],
      phase: at(stored, 0).phase,
      where: lead.where,
      replay: lead.replay,
      scope: undefined,
      within: undefined,
    };
  }

  /**
   * Reads stored values alone. On its own a stored reshape would only name storage, which is enough for a loop; in a
   * region it is a kernel that copies.
   */
  #isPlain(node: Node): boolean {
    if (node.op.alias !== null && !this.#named.has(node)) return false;
    return node.inputs.every((input) => {
      const maker = this.#producer.get(input);
      return !maker || this.#grouping.groupOf(maker) !== undefined;
    });
  }

  #copy(node: Node, resolve: (value: Value) => Value, map: Map<Value, Value>, nodes: Node[]): void {
    const inputs = node.inputs.map(resolve);
    const outputs = node.outputs.map((v) => newValue(v.type, v.name));
    for (const [i, v] of node.outputs.entries()) map.set(v, at(outputs, i));
    nodes.push(nodeLike(node, { inputs, outputs }));
  }
}

/**
 * Groups in an order that respects their dependencies, earlier nodes first; but reads of a value that is
 * overwritten come before the write where possible.
 */
function orderGroups(grouping: Grouping, overwrites: Overwrites): readonly Group[] {
  const groups = grouping.groups();
  /** By the group's id: its edges from groups that have not run. */
  const waiting = new Int32Array((groups.at(-1)?.id ?? -1) + 1);
  const change = (to: Group, by: number): number => {
    const left = at(waiting, to.id) + by;
    waiting[to.id] = left;
    return left;
  };
  for (const { from, to } of grouping.edges) if (from.group !== to.group) change(to.group, 1);
  const ready = new ReadyList(groups.filter((group) => waiting[group.id] === 0));
  const order = new Set<Group>();
  const run = (group: Group): void => {
    if (order.has(group)) return;
    order.add(group);
    for (const { out } of group.members) {
      for (const { to } of out) if (to.group !== group && change(to.group, -1) === 0) ready.push(to.group);
    }
  };
  for (let group = ready.pop(); group; group = ready.pop()) {
    for (const node of group.anchor ? overwrites.readersBefore(group.anchor) : []) {
      const reader = grouping.groupOf(node);
      if (reader && waiting[reader.id] === 0) run(reader);
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

function fuseGraph(whole: Graph, options: FusionLimits): Graph {
  const live = withLiveNodes(whole);
  const graph = { ...live, nodes: live.nodes.map((node) => withFusedRegions(node, options)) };
  const producer = producersOf(graph);
  const inlined = storelessNodes(graph, producer, options);
  const named = new Set([...readWhereStored(graph, producer)].filter((node) => node.op.alias !== null));
  const overwrites = new Overwrites(graph, producer, inlined);
  const grouping = new Grouping({ graph, producer, inlined, named }, overwrites, options);
  const regions = new Regions(producer, grouping, named);
  const groups = orderGroups(grouping, overwrites);
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

/** A fusion pass within a target's limits. */
export function fuseWithin(limits: FusionLimits): Pass {
  return {
    name: "fuse",
    after: ["inline", "canonicalize", "cse", "dce"],
    run: (graph) => fuseGraph(graph, limits),
  };
}

/** Makes one kernel of nodes that can share their loops: maps with maps, in front of and behind anchors. */
export const fuse: Pass = fuseWithin(COMMON_FUSION);

/**
 * Other ways to make kernels, for budgets that `fuse` does not meet: a kernel holds all its operands and results at once,
 * so where the tightest step is one that stores several values, kernels that store one each need less. With a kernel for
 * every operation, values wait that would never have been stored, but each runs when its own operands are there.
 */
export const leanFusions = (limits: FusionLimits): readonly Pass[] => [
  fuseWithin({ ...limits, maxStored: 1 }),
  fuseWithin({ ...limits, maxNodes: 1 }),
];
