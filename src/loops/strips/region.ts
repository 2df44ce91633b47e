/**
 * @file Finds the nodes that may run strip by strip around a value that is too large. Starting with the node that makes it
 * and those that read it, the region grows by three rules:
 *
 *   wide values     a value of at least `wideBytes` is never whole: what makes and reads it joins, where it can
 *   repeated nodes  constants, counters, views, and maps of few bytes to many are computed inside as well
 *   between         a node that depends on the region and that the region depends on joins, or there is no region
 *
 * ```
 *   h ─ product ─ logits ─ softmax ─ d_logits ─┬─ product ─ dh          each row on its own
 *                    ╰─ maxima, sums ─╯        ╰─ product ─ dw          a sum over rows: a carry of the loop
 * ```
 *
 * Which axis carries the rows of a value follows from the forms of operations (ir/strips.ts), never from names.
 */
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { cutExtent, type StripForm, stripForms } from "../../ir/strips.ts";
import { byteLength } from "../../ir/type.ts";
import { producersOf, type Use, usersOf } from "../../ir/walk.ts";

/** What is cut, and how finely. */
export interface Cut {
  readonly value: Value;
  readonly axis: number;
  readonly strips: number;
}

export interface StripRegion extends Cut {
  /** In the order of the graph, each with the way in which it works on strips. */
  readonly nodes: ReadonlyMap<Node, StripForm>;
  /** The axis along which a value of the region, or one that it reads in strips, is cut. */
  readonly axisOf: ReadonlyMap<Value, number>;
}

/** Costs nothing where it is read, so that it may be computed in several places. */
export const isFree = ({ op: { lower } }: Node): boolean => lower.kind === "map" && lower.fusion === "always";

/** A value that takes so many times the bytes that it is computed from is recomputed rather than held. */
const EXPANSION = 8;

/** A graph with what a search for regions looks up. */
export class StripGraph {
  readonly graph: Graph;
  readonly producers: ReadonlyMap<Value, Node>;
  readonly users: ReadonlyMap<Value, readonly Use[]>;
  readonly position: ReadonlyMap<Node, number>;
  readonly #forms = new Map<Node, readonly StripForm[]>();
  readonly #sources = new Map<Value, number>();

  constructor(graph: Graph) {
    this.graph = graph;
    this.producers = producersOf(graph);
    this.users = usersOf(graph);
    this.position = new Map(graph.nodes.map((node, i) => [node, i]));
  }

  /** Computed wherever it is read: it costs nothing, or takes little to read and much to hold. */
  isRepeated(node: Node): boolean {
    if (isFree(node)) return true;
    return node.outputs.every((value) => this.#sourceBytes(value) * EXPANSION <= byteLength(value.type));
  }

  /** Bytes from which maps compute a value, at most. */
  #sourceBytes(value: Value): number {
    const earlier = this.#sources.get(value);
    if (earlier !== undefined) return earlier;
    const maker = this.producers.get(value);
    const isMap = maker !== undefined && maker.op.lower.kind === "map";
    const bytes = isMap
      ? [...new Set(maker.inputs)].reduce((sum, input) => sum + this.#sourceBytes(input), 0)
      : byteLength(value.type);
    const least = Math.min(bytes, byteLength(value.type));
    this.#sources.set(value, least);
    return least;
  }

  forms(node: Node): readonly StripForm[] {
    const earlier = this.#forms.get(node);
    if (earlier) return earlier;
    const forms = stripForms(node);
    this.#forms.set(node, forms);
    return forms;
  }
}

class Growth {
  readonly nodes = new Map<Node, StripForm>();
  readonly axisOf = new Map<Value, number>();
  readonly #whole = new Set<Value>();
  readonly #queue: Value[] = [];
  readonly #of: StripGraph;
  readonly #strips: number;
  readonly #wideBytes: number;

  constructor(of: StripGraph, strips: number, wideBytes: number) {
    this.#of = of;
    this.#strips = strips;
    this.#wideBytes = wideBytes;
  }

  /** Whether a value has this axis in the region now; false where that contradicts what is known. */
  cut(value: Value, axis: number): boolean {
    const known = this.axisOf.get(value);
    if (known !== undefined) return known === axis;
    if (cutExtent(value.type.shape[axis], this.#strips) === null) return false;
    if (this.#whole.has(value) && this.#makes(value)) return false;
    this.axisOf.set(value, axis);
    this.#queue.push(value);
    return true;
  }

  /** Whether some node of the region makes a value. */
  #makes(value: Value): boolean {
    const maker = this.#of.producers.get(value);
    return maker !== undefined && this.nodes.has(maker);
  }

  /** Repeated wherever it is read, and not a view of what the region makes. */
  #isApart(node: Node): boolean {
    if (!this.#of.isRepeated(node)) return false;
    return node.inputs.every((value) => {
      const maker = this.#of.producers.get(value);
      return !maker || !this.nodes.has(maker) || this.#isApart(maker);
    });
  }

  join(node: Node, form: StripForm): boolean {
    const known = this.nodes.get(node);
    if (known) return known === form;
    this.nodes.set(node, form);
    const results = node.outputs.every((value, i) => {
      const axis = form.outputs[i];
      if (this.#whole.has(value)) return false;
      return typeof axis === "number" ? this.cut(value, axis) : !this.axisOf.has(value);
    });
    return results && node.inputs.every((value, i) => this.#reads(value, form.inputs[i] ?? null));
  }

  #reads(value: Value, axis: number | null): boolean {
    if (axis !== null) return this.cut(value, axis);
    this.#whole.add(value);
    return !this.#makes(value);
  }

  /** The form in which an operand (or, `of` outputs, a result) is cut along an axis. */
  formOf(node: Node, of: "inputs" | "outputs", place: number, axis: number): StripForm | null {
    const forms = this.#of.forms(node).filter((form) => form[of][place] === axis);
    return forms.find((form) => form.attrs(this.#strips) !== null) ?? null;
  }

  /** Follows what is cut; false where a node that has to join cannot. */
  settle(): boolean {
    for (let value = this.#queue.pop(); value; value = this.#queue.pop()) {
      const axis = this.axisOf.get(value) ?? 0;
      const isWide = byteLength(value.type) >= this.#wideBytes;
      const maker = this.#of.producers.get(value);
      if (maker && !this.nodes.has(maker) && !this.#whole.has(value) && (isWide || this.#of.isRepeated(maker))) {
        const form = this.formOf(maker, "outputs", maker.outputs.indexOf(value), axis);
        if (form && !this.join(maker, form)) return false;
      }
      if (!isWide || !maker || !this.nodes.has(maker) || this.#isApart(maker)) continue;
      for (const { node, input } of this.#of.users.get(value) ?? []) {
        const form = this.nodes.has(node) ? null : this.formOf(node, "inputs", input, axis);
        if (form && !this.join(node, form)) return false;
      }
    }
    return true;
  }

  /** Takes in the nodes between nodes of the region; null where one cannot join, otherwise whether there were any. */
  takeBetween(): boolean | null {
    let joined = false;
    for (const node of this.#between()) {
      const place = node.inputs.findIndex((value) => this.#makes(value) && this.axisOf.has(value));
      const value = node.inputs[place];
      const form = value && this.formOf(node, "inputs", place, this.axisOf.get(value) ?? 0);
      if (!form || !this.join(node, form)) return null;
      joined = true;
    }
    return joined;
  }

  /** Nodes outside that depend on the region, other than on repeated ones, and that it depends on. In order. */
  #between(): readonly Node[] {
    const { graph, position } = this.#of;
    const places = [...this.nodes.keys()].map((node) => position.get(node) ?? 0);
    const [first, last] = [Math.min(...places), Math.max(...places)];
    const below = new Set<Value>();
    const after: Node[] = [];
    for (let i = first; i <= last; i++) {
      const node = graph.nodes[i] as Node;
      const own = this.nodes.has(node);
      const isBelow = node.inputs.some((value) => below.has(value));
      if (!isBelow && (!own || this.#of.isRepeated(node))) continue;
      if (!own) after.push(node);
      for (const value of node.outputs) below.add(value);
    }
    const needed = new Set([...this.nodes.keys()].flatMap(({ inputs }) => inputs));
    const between: Node[] = [];
    for (const node of after.reverse()) {
      if (!node.outputs.some((value) => needed.has(value))) continue;
      between.push(node);
      for (const value of node.inputs) needed.add(value);
    }
    return between.reverse();
  }
}

/** Whether a value is made and read in the region alone. */
function isInside(of: StripGraph, nodes: ReadonlyMap<Node, StripForm>, value: Value): boolean {
  const maker = of.producers.get(value);
  const users = of.users.get(value) ?? [];
  return maker !== undefined && nodes.has(maker) && users.every(({ node }) => nodes.has(node));
}

/** The region around a value such that it is never whole; null where there is none. */
export function stripRegion(of: StripGraph, cut: Cut, wideBytes: number): StripRegion | null {
  const growth = new Growth(of, cut.strips, Math.min(wideBytes, byteLength(cut.value.type)));
  if (!growth.cut(cut.value, cut.axis) || of.graph.results.includes(cut.value)) return null;
  for (let more: boolean | null = true; more; more = growth.takeBetween()) {
    if (!growth.settle()) return null;
    if (!isInside(of, growth.nodes, cut.value)) return null;
  }
  const between = growth.takeBetween();
  if (between !== false || !isInside(of, growth.nodes, cut.value)) return null;
  const place = (node: Node): number => of.position.get(node) ?? 0;
  const nodes = [...growth.nodes].sort(([a], [b]) => place(a) - place(b));
  return { ...cut, nodes: new Map(nodes), axisOf: growth.axisOf };
}
