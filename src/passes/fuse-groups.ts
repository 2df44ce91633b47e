/**
 * @file Which nodes become one kernel. Nodes are put into groups by following edges from producers to consumers and
 * merging the two ends where the loop form allows:
 *
 *   prologue   map → anchor        computed where the anchor reads         relu → matmul, mul → sum
 *   epilogue   anchor → map        computed where the result is stored     matmul → add → relu
 *   chain      map → map           computed once an element, stored only if it has other readers
 *
 * An anchor is an operation with loops of its own (a product, a reduction, a scan …); a group has at most one. Views and
 * constants (fusion "always") belong to no group: they are repeated inside every group that reads through them.
 *
 * A node of a group is in its *body* when it is evaluated at the element being stored; only body nodes can be stored.
 * Prologue nodes are evaluated elsewhere and must have no reader outside.
 *
 * Invariant: merging never makes the graph of groups cyclic; ties go to the earlier node.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { resultOf } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import type { FusionLimits } from "../target/description.ts";
import { isAlone } from "./control-nodes.ts";
import { packs } from "./fuse-inline.ts";
import { ledTo, rankTogether } from "./fuse-ranks.ts";
import { evaluationsOfKernel } from "./fuse-size.ts";
import type { Overwrites } from "./overwrites.ts";

/** A node and its place among the others. */
export interface Member {
  readonly node: Node;
  /** Its position in the graph. */
  readonly position: number;
  group: Group;
  /** The edges from its operands and to its readers. */
  readonly in: Edge[];
  readonly out: Edge[];
  /** The graph returns its result. */
  kept: boolean;
  /** It is evaluated at the element being stored, as its group's anchor is. */
  inBody: boolean;
}

/** A read of a stored value by a node, straight or through views. */
export interface Edge {
  readonly from: Member;
  readonly to: Member;
  /** The reader needs the producer's element of the same number alone: pointwise, straight or through reshapes. */
  readonly identity: boolean;
  /** Elements are read more than once on the way (through a broadcast). */
  readonly expands: boolean;
}

export interface Group {
  readonly id: number;
  /** In the order of the graph. */
  members: readonly Member[];
  anchor: Node | null;
  /** Elements of the space that the body runs over. */
  elements: number;
  /** Every group ranks above those it reads; there are gaps. */
  rank: number;
  /** When it was last merged, counted in attempts to merge. */
  changed: number;
  /** At most so many evaluations are in its kernel (fuse-size.ts). */
  evaluations: number;
  /** It is never merged: a node with regions, or a name of storage. */
  readonly alone: boolean;
}

/** Which merges a round may make. The first test is the cheaper one: it does not need to know the role. */
interface Stage {
  tries(from: Group, to: Group): boolean;
  accepts(role: Role): boolean;
}
type Role = "body" | "prologue";

/**
 * Work in front of a reduction saves storing its input, so it comes first. A map between two products is better off
 * behind the first, where it runs once an element, than in front of the second, which may pack it several times.
 */
const STAGES: readonly Stage[] = [
  {
    tries: (_, to) => to.anchor !== null && !packs(to.anchor),
    accepts: (role) => role === "prologue",
  },
  { tries: (from) => from.anchor !== null, accepts: () => true },
  { tries: () => true, accepts: () => true },
];

/** Only these anchors leave their result in an accumulator that an epilogue can read. */
function hasEpilogue(node: Node): boolean {
  const { kind } = node.op.lower;
  return kind === "reduce" || kind === "contract" || kind === "scan";
}

/** A graph to group: `inlined` nodes are in no group of their own, `named` ones in groups of one. */
export interface Ungrouped {
  readonly graph: Graph;
  readonly producer: ReadonlyMap<Value, Node>;
  readonly inlined: ReadonlySet<Node>;
  readonly named: ReadonlySet<Node>;
}

export class Grouping {
  readonly edges: Edge[] = [];
  readonly #memberOf = new Map<Node, Member>();
  readonly #options: FusionLimits;
  readonly #overwrites: Overwrites;
  readonly #producer: ReadonlyMap<Value, Node>;
  /** Attempts to merge so far. */
  #attempts = 0;

  constructor({ graph, producer, inlined, named }: Ungrouped, overwrites: Overwrites, options: FusionLimits) {
    this.#options = options;
    this.#overwrites = overwrites;
    this.#producer = producer;
    const memberOf = this.#memberOf;
    for (const [position, node] of graph.nodes.entries()) {
      if (inlined.has(node)) continue;
      const member = newMember(node, position, named.has(node));
      memberOf.set(node, member);
      for (const edge of readsOf(member, producer, memberOf)) {
        this.edges.push(edge);
        edge.from.out.push(edge);
        member.in.push(edge);
      }
    }
    for (const result of graph.results) keep(result, producer, memberOf);
    for (const stage of STAGES) this.#mergeAll(stage);
  }

  /** All groups, by their first nodes. */
  groups(): readonly Group[] {
    const groups = new Set<Group>();
    for (const member of this.#memberOf.values()) groups.add(member.group);
    return [...groups];
  }

  /** The group of a node; undefined for an inlined one. */
  groupOf(node: Node): Group | undefined {
    return this.#memberOf.get(node)?.group;
  }

  /**
   * Iterates to a fixed point, since a merge may remove the last outside reader of a value and so allow another. A reason
   * against merging two groups is in the two, or is a detour, which other merges do not remove: an edge is tried again only
   * if one of its ends has changed.
   */
  #mergeAll(stage: Stage): void {
    // those within one group are dropped, since groups are not divided again
    const edges = [...this.edges];
    const tried = new Int32Array(edges.length).fill(-1);
    for (let merged = true; merged; ) {
      merged = false;
      let left = 0;
      for (let i = 0; i < edges.length; i++) {
        const edge = edges[i] as Edge;
        const from = edge.from.group;
        const to = edge.to.group;
        if (from === to) continue;
        const isTried = from.changed <= (tried[i] as number) && to.changed <= (tried[i] as number);
        if (!isTried) this.#attempts += 1;
        edges[left] = edge;
        tried[left] = isTried ? (tried[i] as number) : this.#attempts;
        left += 1;
        if (!isTried && this.#tryMerge(from, to, stage)) merged = true;
      }
      edges.length = left;
    }
  }

  #tryMerge(from: Group, to: Group, stage: Stage): boolean {
    if (from.members.length + to.members.length > this.#options.maxNodes) return false;
    if (from.alone || to.alone || !stage.tries(from, to)) return false;
    const between = readsBetween(from, to);
    if (!between || !keepsPhase(from, to)) return false;
    const role = this.#roleFor(from, to, between);
    if (!role || !stage.accepts(role) || !timely(from, to)) return false;
    if (storedBeyondBoth(from, from, to) + storedBeyondBoth(to, from, to) > this.#options.maxStored) return false;
    if (this.#overwrites.separates(nodesOf(from), nodesOf(to))) return false;
    const evaluations = this.#evaluations(from, to, between, role);
    if (evaluations > this.#options.maxEvaluations) return false;
    const after = ledTo(from, to);
    if (!after) return false;
    rankTogether(from, to, after);
    this.#merge(from, to, role, evaluations);
    return true;
  }

  /**
   * At most so many evaluations are in the kernel of two groups. Nodes computed once an element in both are so in the
   * kernel, and a body that is read from another one once for each read; the rest has to be counted.
   */
  #evaluations(from: Group, to: Group, between: ReadsBetween, role: Role): number {
    const { maxEvaluations } = this.#options;
    const plain = between.inBody && from.members.every(({ inBody }) => inBody);
    const sum = (role === "body" ? 1 : between.count) * from.evaluations + to.evaluations;
    if ((role === "body" || plain) && sum <= maxEvaluations) return sum;
    const body = [...(role === "body" ? from.members : []), ...to.members].filter(({ inBody }) => inBody);
    const anchor = from.anchor ?? to.anchor;
    const nodeOf = (value: Value): Node | null => {
      const node = this.#producer.get(value);
      const group = node && this.groupOf(node);
      return node && node !== anchor && (!group || group === from || group === to) ? node : null;
    };
    const nodes = body.map(({ node }) => node);
    return evaluationsOfKernel(nodes, anchor, nodeOf, maxEvaluations);
  }

  /** The role in which the producers' nodes join: evaluated at the stored element, or wherever the readers need them. */
  #roleFor(from: Group, to: Group, between: ReadsBetween): Role | null {
    if (between.intoFront) {
      // in front of an anchor: any map without other readers
      if (from.anchor || !hides(from, to)) return null;
      if (to.anchor && packs(to.anchor) && flopsOf(from) > this.#options.maxPackedFlops) return null;
      return "prologue";
    }
    if (!between.intoBody) return null;
    const aligned = from.elements === to.elements && between.aligned;
    if (from.anchor) return aligned && !to.anchor && hasEpilogue(from.anchor) ? "body" : null;
    if (aligned) return to.anchor && !hasEpilogue(to.anchor) ? null : "body";
    // read at other positions: only if it need not be stored
    return hides(from, to) ? "prologue" : null;
  }

  #merge(from: Group, to: Group, role: Role, evaluations: number): void {
    const target: Group = from.id < to.id ? from : to;
    const anchor = from.anchor ?? to.anchor;
    if (role === "prologue") for (const member of from.members) member.inBody = false;
    const elements = role === "body" && from.anchor ? from.elements : to.elements;
    target.members = inOrder(from.members, to.members);
    target.anchor = anchor;
    target.elements = elements;
    target.changed = this.#attempts;
    target.evaluations = evaluations;
    for (const member of target.members) member.group = target;
  }
}

/** Two lists in the order of the graph as one. */
function inOrder(a: readonly Member[], b: readonly Member[]): readonly Member[] {
  const all: Member[] = new Array(a.length + b.length);
  for (let i = 0, j = 0; i + j < all.length; ) {
    const [x, y] = [a[i], b[j]];
    const first = x && !(y && y.position < x.position) ? x : (y as Member);
    all[i + j] = first;
    if (first === x) i += 1;
    else j += 1;
  }
  return all;
}

/** How one group reads another. */
interface ReadsBetween {
  readonly count: number;
  /** All readers are in the body; the same, and none of them is the anchor; all are in front of the anchor, or it. */
  readonly inBody: boolean;
  readonly intoBody: boolean;
  readonly intoFront: boolean;
  /** All readers need the element of the same number alone, and what they read is in the body. */
  readonly aligned: boolean;
}

/** Null where elements are read more than once on the way. Asked for every attempt to merge: nothing else is made. */
function readsBetween(from: Group, to: Group): ReadsBetween | null {
  let count = 0;
  let [inBody, intoBody, intoFront, aligned] = [true, true, true, true];
  for (const { out } of from.members) {
    for (const edge of out) {
      const reader = edge.to;
      if (reader.group !== to) continue;
      if (edge.expands) return null;
      count += 1;
      const isBehind = reader.inBody && reader.node !== to.anchor;
      inBody &&= reader.inBody;
      intoBody &&= isBehind;
      intoFront &&= !isBehind;
      aligned &&= edge.identity && edge.from.inBody;
    }
  }
  return { count, inBody, intoBody, intoFront, aligned };
}

const nodesOf = (group: Group): readonly Node[] => group.members.map(({ node }) => node);

/** Values that the graph returns are stored; so is the input of a returned reshape, which shares its storage. */
function keep(result: Value, producer: ReadonlyMap<Value, Node>, memberOf: ReadonlyMap<Node, Member>): void {
  for (let node = producer.get(result); node; ) {
    const member = memberOf.get(node);
    if (member) {
      member.kept = true;
      return;
    }
    node = node.op.alias === null ? undefined : producer.get(at(node.inputs, node.op.alias));
  }
}

/** Whether a node's result is read outside of its group, or returned. */
export function isStored({ kept, out, group }: Member): boolean {
  return kept || out.some((edge) => edge.to.group !== group);
}

/** Whether no value of `from` is read outside of the two groups, or returned. */
const hides = (from: Group, to: Group): boolean => storedBeyondBoth(from, from, to) === 0;

/** How many nodes of a group have a reader outside of two groups, or are returned. */
function storedBeyondBoth(group: Group, from: Group, to: Group): number {
  let stored = 0;
  for (const member of group.members) if (storedBeyond(member, from, to)) stored += 1;
  return stored;
}

function storedBeyond({ kept, out }: Member, from: Group, to: Group): boolean {
  if (kept) return true;
  for (const { to: reader } of out) if (reader.group !== from && reader.group !== to) return true;
  return false;
}

/**
 * A merged group runs when the last of its inputs is computed. If the readers also wait for a value that is computed after
 * the producers, the operands of the producers stay alive as long: sums of many products would keep all products alive.
 * Then merging must not keep more than it saves.
 */
function timely(from: Group, to: Group): boolean {
  if (!waitsForOthers(from, to)) return true;
  if (from.anchor) return false;
  const hidden = from.members.filter((member) => !storedBeyond(member, from, to));
  return bytesOfAll(sourcesOf(from)) <= bytesOfAll(hidden);
}

/** Whether `to` also reads, from outside of the two, what is computed after `from`. */
function waitsForOthers(from: Group, to: Group): boolean {
  const last = at(from.members, from.members.length - 1).position;
  for (const { in: reads } of to.members) {
    for (const { from: read } of reads) {
      if (read.position <= last || read.group === from || read.group === to) continue;
      // what depends on nothing that is computed, and has no loops of its own, can be there before
      if (read.in.length > 0 || read.group.anchor !== null) return true;
    }
  }
  return false;
}

/**
 * Moving forward work into the backward pass must not keep two values alive in place of one. A replayed anchor is
 * forward work too: an epilogue outside of its replay also reads other values, which would have to be computed first.
 */
function keepsPhase(from: Group, to: Group): boolean {
  const { anchor } = from;
  if (anchor && anchor.replay > 0 && to.members.some(({ node }) => node.replay !== anchor.replay)) return false;
  const forward = from.members.every(({ node }) => node.phase === "forward");
  if (!forward || to.members.some(({ node }) => node.phase === "forward")) return true;
  return from.anchor === null && sourcesOf(from).size <= 1;
}

/** The nodes outside of a group that it reads. */
function sourcesOf(group: Group): ReadonlySet<Member> {
  const sources = new Set<Member>();
  for (const member of group.members) for (const edge of member.in) sources.add(edge.from);
  for (const member of group.members) sources.delete(member);
  return sources;
}

/** Work an element of everything in a group. */
function flopsOf(group: Group): number {
  let flops = 0;
  for (const { node } of group.members) {
    const types = node.inputs.map((v) => v.type);
    const out = resultOf(node).type;
    flops += node.op.cost(types, [out], node.attrs, node.regions).flops / Math.max(1, elementsOf(out.shape));
  }
  return flops;
}

/** Bytes of all results of the nodes. */
function bytesOfAll(members: Iterable<Member>): number {
  let bytes = 0;
  for (const { node } of members) for (const value of node.outputs) bytes += byteLength(value.type);
  return bytes;
}

function newMember(node: Node, position: number, named: boolean): Member {
  const elements = node.outputs[0] ? elementsOf(node.outputs[0].type.shape) : 0;
  const { kind } = node.op.lower;
  const anchor = kind === "map" ? null : node;
  const alone = named || kind === "region" || kind === "control" || isAlone(node);
  const evaluations = 1 + node.inputs.length;
  const group: Group = { id: position, members: [], anchor, elements, rank: position, changed: 0, evaluations, alone };
  const member: Member = { node, position, group, in: [], out: [], kept: false, inBody: true };
  group.members = [member];
  return member;
}

/** The stored values that a node reads, through views. */
function readsOf(to: Member, producer: ReadonlyMap<Value, Node>, memberOf: ReadonlyMap<Node, Member>): readonly Edge[] {
  const edges: Edge[] = [];
  const visit = (value: Value, identity: boolean, wanted: number): void => {
    const node = producer.get(value);
    if (!node) return;
    const elements = elementsOf(value.type.shape);
    const from = memberOf.get(node);
    if (from) {
      edges.push({ from, to, identity, expands: wanted > elements });
      return;
    }
    const { lower } = node.op;
    const straight = identity && (node.op.alias !== null || (lower.kind === "map" && lower.pointwise === true));
    for (const input of node.inputs) visit(input, straight, Math.max(wanted, elements));
  };
  const { lower } = to.node.op;
  const pointwise = lower.kind === "map" && lower.pointwise === true;
  for (const input of to.node.inputs) visit(input, pointwise, 0);
  return edges;
}
