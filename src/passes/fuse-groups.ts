/**
 * @file Which nodes become one kernel. Nodes are put into groups by following edges from producers to consumers and
 * merging the two ends where the loop form allows:
 *
 *   prologue   map → anchor        computed where the anchor reads         relu → matmul, mul → sum
 *   epilogue   anchor → map        computed where the result is stored     matmul → add → relu
 *   chain      map → map           computed once an element, stored only if somebody else needs it
 *
 * An anchor is an operation with loops of its own (a product, a reduction, a scan …); a group has at most one. Views and
 * constants (fusion "always") belong to no group: they are repeated inside every group that reads through them.
 *
 * A node of a group is in its *body* when it is evaluated at the element being stored; only body nodes can be stored.
 * Prologue nodes are evaluated elsewhere and must have no reader outside.
 *
 * Invariant: merging never makes the graph of groups cyclic; ties go to the earlier node.
 */
import { at, invariant } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { resultOf } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import { producersOf } from "../ir/walk.ts";

/** A read of a stored value by a node, straight or through views. */
export interface Edge {
  readonly from: Node;
  readonly to: Node;
  /** The reader needs the producer's element of the same number alone: pointwise, straight or through reshapes. */
  readonly identity: boolean;
  /** Elements are read more than once on the way (through a broadcast). */
  readonly expands: boolean;
}

export interface Group {
  readonly id: number;
  readonly nodes: Node[];
  anchor: Node | null;
  /** Evaluated at the element being stored; the anchor is among them. */
  readonly body: Set<Node>;
  /** Elements of the space that the body runs over. */
  elements: number;
}

export interface FuseOptions {
  /** Nodes in one kernel. */
  readonly maxNodes: number;
  /** Work an element that may be repeated when a product packs its operand more than once. */
  readonly maxPackedFlops: number;
}

/** Which merges a round may make. */
type Stage = (from: Group, to: Group, role: Role) => boolean;
type Role = "body" | "prologue";

/**
 * Work in front of a reduction saves storing its input, so it comes first. A map between two products is better off
 * behind the first, where it runs once an element, than in front of the second, which may pack it several times.
 */
const STAGES: readonly Stage[] = [
  (_, to, role) => role === "prologue" && to.anchor !== null && to.anchor.op.lower.kind !== "contract",
  (from) => from.anchor !== null,
  () => true,
];

export const FUSE_DEFAULTS: FuseOptions = { maxNodes: 48, maxPackedFlops: 8 };

/** Work an element below which it is cheaper to compute something again than to store it and read it back. */
const CHEAP_FLOPS = 16;
/** How much larger than everything it is made from a value must be to be cheaper to make than to read. */
const EXPANSION = 8;

/**
 * Nodes that are repeated wherever they are read: views and constants, and what is made cheaply from much smaller
 * things (a mask from labels, a table from a vector), which would take more memory to keep than to make.
 */
export function inlinedNodes(graph: Graph): ReadonlySet<Node> {
  const inlined = new Set<Node>();
  const madeFrom = new Map<Value, { readonly flops: number; readonly sources: ReadonlySet<Value> }>();
  for (const node of graph.nodes) {
    const { lower } = node.op;
    if (lower.kind !== "map") continue;
    const out = resultOf(node);
    const parts = node.inputs.map((v) => madeFrom.get(v) ?? { flops: 0, sources: new Set([v]) });
    const own = node.op.cost(
      node.inputs.map((v) => v.type),
      [out.type],
      node.attrs,
      node.regions,
    ).flops;
    const flops = parts.reduce((sum, p) => sum + p.flops, own / Math.max(1, elementsOf(out.type.shape)));
    const sources = new Set(parts.flatMap((p) => [...p.sources]));
    const bytes = [...sources].reduce((sum, v) => sum + byteLength(v.type), 0);
    const cheap = lower.pointwise && flops <= CHEAP_FLOPS && bytes * EXPANSION <= byteLength(out.type);
    if (lower.fusion !== "always" && !cheap) continue;
    inlined.add(node);
    madeFrom.set(out, { flops, sources });
  }
  return inlined;
}

/** Only these anchors leave their result in an accumulator that what follows can read. */
function hasEpilogue(node: Node): boolean {
  const { kind } = node.op.lower;
  return kind === "reduce" || kind === "contract" || kind === "scan";
}

export class Grouping {
  readonly groupOf = new Map<Node, Group>();
  readonly edges: Edge[] = [];
  readonly #order = new Map<Node, number>();
  readonly #out = new Map<Node, Edge[]>();
  readonly #in = new Map<Node, Edge[]>();
  readonly #kept: Set<Value>;
  readonly #options: FuseOptions;
  readonly #inlined: ReadonlySet<Node>;

  /** `inlined` nodes are in no group of their own. */
  constructor(graph: Graph, inlined: ReadonlySet<Node>, options: FuseOptions) {
    this.#options = options;
    this.#inlined = inlined;
    this.#kept = new Set(graph.results);
    const producer = producersOf(graph);
    for (const [i, node] of graph.nodes.entries()) this.#order.set(node, i);
    for (const node of graph.nodes) {
      if (inlined.has(node)) continue;
      this.groupOf.set(node, newGroup(this.#order.get(node) as number, node));
      this.#out.set(node, []);
      this.#in.set(node, []);
      for (const edge of readsOf(node, producer, inlined)) {
        this.edges.push(edge);
        this.#out.get(edge.from)?.push(edge);
        this.#in.get(node)?.push(edge);
      }
    }
    this.#keepAliases(graph, producer);
    // Best first; and a merge may hide a value from its last outside reader and so allow another: go round each stage
    // until nothing changes.
    for (const stage of STAGES) while (this.edges.filter((edge) => this.#tryMerge(edge, stage)).length > 0);
  }

  /** A returned reshape shares storage with what it reshapes, which therefore has to be stored. */
  #keepAliases(graph: Graph, producer: ReadonlyMap<Value, Node>): void {
    for (const result of graph.results) {
      let node = producer.get(result);
      while (node && this.#inlined.has(node) && node.op.alias !== null) {
        const source = at(node.inputs, node.op.alias);
        this.#kept.add(source);
        node = producer.get(source);
      }
    }
  }

  group(node: Node): Group {
    const group = this.groupOf.get(node);
    invariant(group, () => `${node.op.name} is in no group`);
    return group;
  }

  /** Whether a node's result is read outside of a group, or returned. */
  isStored(node: Node, inside: Group): boolean {
    if (node.outputs.some((v) => this.#kept.has(v))) return true;
    return (this.#out.get(node) ?? []).some((edge) => this.group(edge.to) !== inside);
  }

  #tryMerge(edge: Edge, stage: Stage): boolean {
    const [from, to] = [this.group(edge.from), this.group(edge.to)];
    if (from === to || from.nodes.length + to.nodes.length > this.#options.maxNodes) return false;
    if (from.anchor?.op.lower.kind === "region" || to.anchor?.op.lower.kind === "region") return false;
    const between = from.nodes.flatMap((node) => (this.#out.get(node) ?? []).filter((e) => this.group(e.to) === to));
    if (between.some((e) => e.expands) || !this.#keepsPhase(from, to)) return false;
    const role = this.#roleFor(from, to, between);
    if (!role || !stage(from, to, role) || !this.#timely(from, to) || this.#makesCycle(from, to)) return false;
    this.#merge(from, to, role);
    return true;
  }

  /**
   * A merged group runs when the last of its inputs is there. If the readers also wait for something that is made after
   * the producers, what the producers read waits with them: sums of many products would keep all products alive. Then
   * merging must not keep more than it saves.
   */
  #timely(from: Group, to: Group): boolean {
    const last = Math.max(...from.nodes.map((n) => this.#order.get(n) as number));
    const waits = to.nodes.some((node) =>
      (this.#in.get(node) ?? []).some((e) => {
        const group = this.group(e.from);
        return group !== from && group !== to && (this.#order.get(e.from) as number) > last;
      }),
    );
    if (!waits) return true;
    if (from.anchor) return false;
    const sources = new Set(from.nodes.flatMap((n) => (this.#in.get(n) ?? []).map((e) => e.from)));
    for (const node of from.nodes) sources.delete(node);
    const hidden = from.nodes.filter((node) => !this.#storedBeyond(node, from, to));
    return bytesOfAll(sources) <= bytesOfAll(hidden);
  }

  /** Moving forward work into the backward pass must not keep two values alive in place of one. */
  #keepsPhase(from: Group, to: Group): boolean {
    const forward = from.nodes.every((n) => n.phase === "forward");
    if (!forward || to.nodes.some((n) => n.phase === "forward")) return true;
    const sources = new Set(from.nodes.flatMap((n) => (this.#in.get(n) ?? []).map((e) => e.from)));
    for (const node of from.nodes) sources.delete(node);
    return from.anchor === null && sources.size <= 1;
  }

  /** As what the producers' nodes join: evaluated at the stored element, or wherever the readers need them. */
  #roleFor(from: Group, to: Group, between: readonly Edge[]): Role | null {
    const intoBody = between.every((e) => to.body.has(e.to) && e.to !== to.anchor);
    const intoFront = between.every((e) => !to.body.has(e.to) || e.to === to.anchor);
    const hidden = from.nodes.every((node) => !this.#storedBeyond(node, from, to));
    if (intoFront) {
      // in front of an anchor: any map whose value nobody else needs
      if (from.anchor || !hidden) return null;
      if (to.anchor?.op.lower.kind === "contract" && this.#flops(from) > this.#options.maxPackedFlops) return null;
      return "prologue";
    }
    if (!intoBody) return null;
    const aligned = from.elements === to.elements && between.every((e) => e.identity && from.body.has(e.from));
    if (from.anchor) return aligned && !to.anchor && hasEpilogue(from.anchor) ? "body" : null;
    if (aligned) return to.anchor && !hasEpilogue(to.anchor) ? null : "body";
    // read at other positions: only if it need not be stored
    return hidden ? "prologue" : null;
  }

  /** Whether a value is read outside of the two groups, or returned. */
  #storedBeyond(node: Node, from: Group, to: Group): boolean {
    if (node.outputs.some((v) => this.#kept.has(v))) return true;
    return (this.#out.get(node) ?? []).some((e) => {
      const group = this.group(e.to);
      return group !== from && group !== to;
    });
  }

  #flops(group: Group): number {
    let flops = 0;
    for (const node of group.nodes) {
      const types = node.inputs.map((v) => v.type);
      const out = resultOf(node).type;
      flops += node.op.cost(types, [out], node.attrs, node.regions).flops / Math.max(1, elementsOf(out.shape));
    }
    return flops;
  }

  /** Whether some path leads from `from` to `to` through a third group. */
  #makesCycle(from: Group, to: Group): boolean {
    const last = Math.max(...to.nodes.map((n) => this.#order.get(n) as number));
    const seen = new Set<Group>([from]);
    const stack: Group[] = [];
    const push = (group: Group, direct: boolean): boolean => {
      for (const node of group.nodes) {
        for (const edge of this.#out.get(node) ?? []) {
          const next = this.group(edge.to);
          if (next === to && !direct) return true;
          if (next === to || seen.has(next) || this.#first(next) > last) continue;
          seen.add(next);
          stack.push(next);
        }
      }
      return false;
    };
    push(from, true);
    while (stack.length > 0) if (push(stack.pop() as Group, false)) return true;
    return false;
  }

  #first(group: Group): number {
    return group.id;
  }

  #merge(from: Group, to: Group, role: Role): void {
    const target: Group = from.id < to.id ? from : to;
    const anchor = from.anchor ?? to.anchor;
    const body = new Set(to.body);
    if (role === "body") for (const node of from.body) body.add(node);
    const elements = role === "body" && from.anchor ? from.elements : to.elements;
    const nodes = [...from.nodes, ...to.nodes].sort(
      (a, b) => (this.#order.get(a) as number) - (this.#order.get(b) as number),
    );
    target.nodes.splice(0, target.nodes.length, ...nodes);
    target.anchor = anchor;
    target.body.clear();
    for (const node of body) target.body.add(node);
    target.elements = elements;
    for (const node of nodes) this.groupOf.set(node, target);
  }
}

/** Bytes of all that the nodes make. */
function bytesOfAll(nodes: Iterable<Node>): number {
  let bytes = 0;
  for (const node of nodes) for (const value of node.outputs) bytes += byteLength(value.type);
  return bytes;
}

function newGroup(id: number, node: Node): Group {
  const elements = node.outputs[0] ? elementsOf(node.outputs[0].type.shape) : 0;
  return { id, nodes: [node], anchor: node.op.lower.kind === "map" ? null : node, body: new Set([node]), elements };
}

/** The stored values that a node reads, through views. */
function readsOf(node: Node, producer: ReadonlyMap<Value, Node>, inlined: ReadonlySet<Node>): readonly Edge[] {
  const edges: Edge[] = [];
  const visit = (value: Value, identity: boolean, wanted: number): void => {
    const from = producer.get(value);
    if (!from) return;
    const elements = elementsOf(value.type.shape);
    if (!inlined.has(from)) {
      edges.push({ from, to: node, identity, expands: wanted > elements });
      return;
    }
    const { lower } = from.op;
    const straight = identity && (from.op.alias !== null || (lower.kind === "map" && lower.pointwise === true));
    for (const input of from.inputs) visit(input, straight, Math.max(wanted, elements));
  };
  const pointwise = node.op.lower.kind === "map" && node.op.lower.pointwise === true;
  for (const input of node.inputs) visit(input, pointwise, 0);
  return edges;
}
