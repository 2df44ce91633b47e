/**
 * @file Reads that must come before a write. An update or a scatter writes its result over its first input if that has no later
 * reader. Fusion decides when a value is read: if it is computed inside of a consumer, that is when the consumer runs. Moved
 * after the write, a read of one row would keep the whole old version alive:
 *
 *   r = slice(x₀)            stored: one row, then x₁ takes over x₀'s storage
 *   x₁ = update(x₀, …)
 *   s = add(x₁, r)           r computed here reads x₀: a copy of all of it
 *
 * The kernel of the write itself may read the old version, at the elements that it writes.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { resultOf } from "../ir/graph.ts";
import type { LowerContext, Lowering, Reader } from "../ir/op.ts";
import { byteLength } from "../ir/type.ts";
import { type Expr, type LoopVar, load } from "../kernel/expr.ts";
import { varIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";

const NO_NODES: readonly Node[] = [];
const NO_VALUES: readonly Value[] = [];
const NOTHING: ReadonlySet<Value> = new Set();

const bytesMade = (node: Node): number => node.outputs.reduce((sum, { type }) => sum + byteLength(type), 0);

export class Overwrites {
  readonly #graph: Graph;
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #inlined: ReadonlySet<Node>;
  /** Stored value → the nodes that may write over it. */
  readonly #writers = new Map<Value, Node[]>();
  /** Value → those of the overwritten values that are read to compute it; the few for which there are any. */
  readonly #read = new Map<Value, readonly Value[]>();
  #order: ReadonlyMap<Node, number> | null = null;
  #readers: ReadonlyMap<Value, readonly Node[]> | null = null;

  /** `inlined` nodes are computed wherever they are read. */
  constructor(graph: Graph, producer: ReadonlyMap<Value, Node>, inlined: ReadonlySet<Node>) {
    this.#graph = graph;
    this.#producer = producer;
    this.#inlined = inlined;
    for (const node of graph.nodes) {
      const { kind } = node.op.lower;
      if (kind !== "update" && kind !== "scatter") continue;
      const over = this.#storageOf(at(node.inputs, 0));
      this.#writers.set(over, [...(this.#writers.get(over) ?? []), node]);
    }
    if (this.#writers.size > 0) this.#findReads();
  }

  #findReads(): void {
    for (const over of this.#writers.keys()) {
      const node = this.#producer.get(over);
      if (!node || !this.#inlined.has(node)) this.#read.set(over, [over]);
    }
    for (const node of this.#graph.nodes) {
      if (!this.#inlined.has(node)) continue;
      const found = this.#overwrittenFor([node]);
      if (found.size > 0) for (const output of node.outputs) this.#read.set(output, [...found]);
    }
  }

  /** Inlined nodes that are better stored, because a reader comes after a write to one of their sources. */
  lateViews(): readonly Node[] {
    if (this.#writers.size === 0) return NO_NODES;
    const late = new Set<Node>();
    for (const reader of this.#graph.nodes) {
      if (this.#inlined.has(reader)) continue;
      for (const input of reader.inputs) {
        const values = this.#overwrittenIn(input);
        if (values.length === 0) continue;
        const view = this.#producer.get(input);
        if (!view || !this.#inlined.has(view) || late.has(view)) continue;
        const bytes = byteLength(resultOf(view).type);
        const isLate = (value: Value): boolean =>
          bytes < byteLength(value.type) && this.#isBehind(value, [view], [reader]);
        if (values.some(isLate)) late.add(view);
      }
    }
    return [...late];
  }

  /** Whether computing the nodes `from` together with `to` would move a read after a write, and storing them is cheaper. */
  separates(from: readonly Node[], to: readonly Node[]): boolean {
    if (this.#writers.size === 0) return false;
    const values = this.#overwrittenFor(from);
    if (values.size === 0) return false;
    // Values that would have to be stored between the two.
    const read = new Set<Value>();
    for (const node of to) for (const input of node.inputs) this.#collect(input, read);
    const stored = from.map(resultOf).filter((value) => read.has(value));
    const bytes = stored.reduce((sum, value) => sum + byteLength(value.type), 0);
    return [...values].some((value) => bytes < byteLength(value.type) && this.#isBehind(value, from, to));
  }

  /** The overwritten values that nodes read; most read none. */
  #overwrittenFor(nodes: readonly Node[]): ReadonlySet<Value> {
    let found: Set<Value> | null = null;
    for (const { inputs } of nodes) {
      for (const input of inputs) {
        const values = this.#overwrittenIn(input);
        if (values.length === 0) continue;
        found ??= new Set();
        for (const value of values) found.add(value);
      }
    }
    return found ?? NOTHING;
  }

  /** Whether some write over the value, which `from` reads, comes before `to`, or is in it and at other elements. */
  #isBehind(value: Value, from: readonly Node[], to: readonly Node[]): boolean {
    this.#order ??= new Map(this.#graph.nodes.map((node, i) => [node, i]));
    const order = this.#order;
    const last = Math.max(...to.map((node) => order.get(node) as number));
    return (this.#writers.get(value) ?? NO_NODES).some((write) => {
      if (to.includes(write)) return !this.#readsWhereItWrites(write, value, new Set([...from, ...to]));
      return (order.get(write) as number) < last;
    });
  }

  /** The other nodes that read a value that this node overwrites and compute smaller results from it: they should run before. */
  readersBefore(write: Node): readonly Node[] {
    const { kind } = write.op.lower;
    if (kind !== "update" && kind !== "scatter") return NO_NODES;
    const over = this.#storageOf(at(write.inputs, 0));
    const bytes = byteLength(over.type);
    this.#readers ??= this.#readersOfOverwritten();
    return (this.#readers.get(over) ?? NO_NODES).filter((n) => n !== write && bytesMade(n) < bytes);
  }

  #readersOfOverwritten(): ReadonlyMap<Value, readonly Node[]> {
    const readers = new Map<Value, Node[]>([...this.#writers.keys()].map((value) => [value, []]));
    for (const node of this.#graph.nodes) {
      if (this.#inlined.has(node)) continue;
      for (const value of this.#overwrittenFor([node])) readers.get(value)?.push(node);
    }
    return readers;
  }

  /** The value whose storage this value only renames. */
  #storageOf(value: Value): Value {
    const node = this.#producer.get(value);
    if (!node || !this.#inlined.has(node) || node.op.alias === null) return value;
    return this.#storageOf(at(node.inputs, node.op.alias));
  }

  /** The stored values that are read to compute a value and that something writes over. */
  #overwrittenIn(value: Value): readonly Value[] {
    return this.#read.get(value) ?? NO_VALUES;
  }

  /** Adds a value, and if it is inlined all that is read to compute it. */
  #collect(value: Value, seen: Set<Value>): void {
    if (seen.has(value)) return;
    seen.add(value);
    const node = this.#producer.get(value);
    if (node && this.#inlined.has(node)) for (const input of node.inputs) this.#collect(input, seen);
  }

  /** Whether a write, with `inside` in its kernel, reads the value it overwrites only at the element being written. */
  #readsWhereItWrites(write: Node, value: Value, inside: ReadonlySet<Node>): boolean {
    const lower = write.op.lower as Lowering<never>;
    const reads = new ReadTracker(value, (v) => {
      const node = this.#producer.get(v);
      return node && node !== write && (inside.has(node) || this.#inlined.has(node)) ? node : null;
    });
    const context = reads.context(write);
    if (lower.kind !== "update")
      return !write.inputs.slice(1).some((input) => this.#overwrittenIn(input).includes(value));
    const shape = lower.updates(context.inTypes, context.attrs);
    const counters = shape.map((extent, i): LoopVar => ({ kind: "var", name: `u${i}`, extent }));
    const u = Position.at(shape, counters.map(varIndex));
    const target = lower.target(context, u);
    if (reads.keys.size > 0) return false;
    lower.value(context, u);
    return [...reads.keys].every((key) => key === target.key);
  }
}

/** Computes elements as a kernel would and notes where one value is read. */
class ReadTracker {
  readonly keys = new Set<string>();
  readonly #value: Value;
  readonly #nodeOf: (value: Value) => Node | null;
  readonly #known = new Map<Value, Map<string, Expr>>();

  /** `nodeOf` gives the node of a value that is computed in the kernel, null for one that is loaded. */
  constructor(value: Value, nodeOf: (value: Value) => Node | null) {
    this.#value = value;
    this.#nodeOf = nodeOf;
  }

  context(node: Node): LowerContext<never> {
    return {
      inputs: node.inputs.map((input) => this.#reader(input)),
      inTypes: node.inputs.map((input) => input.type),
      outType: resultOf(node).type,
      attrs: node.attrs as never,
    };
  }

  #reader(value: Value): Reader {
    const node = value === this.#value ? null : this.#nodeOf(value);
    const lower = node?.op.lower as Lowering<never> | undefined;
    return (place) => {
      if (value === this.#value) this.keys.add(place.key);
      if (!node || lower?.kind !== "map") return load(value.type.dtype, 0, place.linear);
      const known = this.#known.get(value) ?? new Map<string, Expr>();
      this.#known.set(value, known);
      const expr = known.get(place.key) ?? lower.value(this.context(node), place);
      known.set(place.key, expr);
      return expr;
    };
  }
}
