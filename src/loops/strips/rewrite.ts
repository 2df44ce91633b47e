/**
 * @file A region of strips as one loop. What the region reads in strips are the loop's rows, what it reads whole are its
 * constants; results that are read outside are stacked, and sums over rows are carried from strip to strip:
 *
 * ```
 *   h [8192, d] ═ reshape ═ [8, 1024, d] ─ rows ─╮                        ╭─ stack [8, 1024, d] ═ dh [8192, d]
 *                                               scan of 8 iterations ─────┤
 *   w [v, d] ───────────────── constant ─────────╯   ╰── carry dw ──╯     ╰─ dw [v, d]
 * ```
 *
 * Bits stay: each element is computed by the same operations in the same order, and sums are added up in the parts of which
 * the whole sum consists. A sum starts from -0, to which every number may be added without a change.
 */
import { at } from "../../base/invariant.ts";
import { Build } from "../../ir/build.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import type { StripForm } from "../../ir/strips.ts";
import { elementsOf, sameType, type TensorType, tensorType } from "../../ir/type.ts";
import { topological, withLiveNodes } from "../../ir/walk.ts";
import { broadcast } from "../../ops/broadcast.ts";
import { full, iota } from "../../ops/create.ts";
import { apply } from "../../ops/define.ts";
import { dynamicSlice, dynamicUpdate } from "../../ops/dynamic.ts";
import { add, eq, mul } from "../../ops/elementwise.ts";
import { type ScanAttrs, scan } from "../../ops/loops.ts";
import { reshape } from "../../ops/movement.ts";
import { INDEX } from "../../ops/region-checks.ts";
import { where } from "../../ops/select.ts";
import { isFree, type StripGraph, type StripRegion } from "./region.ts";

/** What the bits of a target allow. */
export interface StripBits {
  /** Whether a node of a body has the bits of the node that it is a strip, or a part, of. */
  isSame(whole: Node, strip: Node, isPart: boolean): boolean;
  /** Whether a sum goes on from what it came to, rather than being added up from parts. */
  goesOn(whole: Node): boolean;
}

/** The type of one of so many strips along an axis. */
export const stripType = ({ dtype, shape }: TensorType, axis: number, strips: number): TensorType =>
  tensorType(dtype, shape.with(axis, at(shape, axis) / strips));

/** Whether strips along an axis are one after the other in memory. */
const isLeading = ({ shape }: TensorType, axis: number): boolean => elementsOf(shape.slice(0, axis)) === 1;

/** An input or result of the loop, and what it is in the body. */
interface Bound {
  readonly outer: Value;
  readonly inner: Value;
}

/** The loop's body while it is built. */
class StripBody {
  readonly b = new Build("strips");
  readonly rows: Bound[] = [];
  readonly consts: Bound[] = [];
  readonly carries: Bound[] = [];
  readonly #of: StripGraph;
  readonly #region: StripRegion;
  readonly #index: Value;
  readonly #strip = new Map<Value, Value>();
  readonly #whole = new Map<Value, Value>();

  constructor(of: StripGraph, region: StripRegion) {
    this.#of = of;
    this.#region = region;
    this.#index = this.b.param(INDEX, "strip");
  }

  get index(): Value {
    return this.#index;
  }

  #like({ phase, where: line, replay, scope, within }: Node): void {
    Object.assign(this.b, { phase, where: line, replay, scope, within });
  }

  /** The strip of a value. */
  strip(value: Value): Value {
    const known = this.#strip.get(value);
    if (known) return known;
    const axis = this.#region.axisOf.get(value) ?? 0;
    const type = stripType(value.type, axis, this.#region.strips);
    const made = isLeading(value.type, axis) ? this.#row(value, type) : this.#window(value, type, axis);
    this.#strip.set(value, made);
    return made;
  }

  #row(outer: Value, type: TensorType): Value {
    const inner = this.b.param(type, outer.name);
    this.rows.push({ outer, inner });
    return inner;
  }

  #window(outer: Value, { shape }: TensorType, axis: number): Value {
    return this.b.call(dynamicSlice, [this.whole(outer), this.starts(shape, axis)], { sizes: shape });
  }

  /** Where the strip begins along every axis. */
  starts(shape: readonly number[], axis: number): Value {
    const { b } = this;
    const rank = { shape: [shape.length] };
    const numbers = (value: number): Value => b.call(full, [], { dtype: "i32", ...rank, value });
    const isAxis = apply(b, eq, b.call(iota, [], { ...rank, axis: 0 }), numbers(axis));
    const strip = b.call(broadcast, [this.#index], { ...rank, axes: [] });
    return apply(b, where, isAxis, apply(b, mul, strip, numbers(at(shape, axis))), numbers(0));
  }

  /** All of a value from outside. What costs nothing is computed here. */
  whole(value: Value): Value {
    const known = this.#whole.get(value);
    if (known) return known;
    const maker = this.#of.producers.get(value);
    const made = maker && isFree(maker) ? this.#copy(maker, value) : this.#constant(value);
    this.#whole.set(value, made);
    return made;
  }

  #copy(maker: Node, value: Value): Value {
    const inputs = maker.inputs.map((input) => this.whole(input));
    this.#like(maker);
    return at(this.b.callAll(maker.op, inputs, maker.attrs), maker.outputs.indexOf(value));
  }

  #constant(outer: Value): Value {
    const inner = this.b.param(outer.type, outer.name);
    this.consts.push({ outer, inner });
    return inner;
  }

  /** A state of the loop that ends as `outer`. */
  carry(outer: Value): Value {
    const inner = this.b.param(outer.type, outer.name);
    this.carries.push({ outer, inner });
    return inner;
  }

  /** A node for the strip; false where it would have other bits. */
  node(node: Node, form: StripForm, bits: StripBits): boolean {
    const inputs = node.inputs.map((value, i) => (form.inputs[i] === null ? this.whole(value) : this.strip(value)));
    const attrs = form.attrs(this.#region.strips);
    if (!attrs) return false;
    this.#like(node);
    if (form.parts) return this.#sum(node, form, inputs, bits);
    const outputs = this.b.callAll(node.op, inputs, attrs, { name: node.outputs[0]?.name });
    const made = at(this.b.nodes, this.b.nodes.length - 1);
    const isRight = node.outputs.every((value, i) => {
      this.#strip.set(value, at(outputs, i));
      return sameType(stripType(value.type, form.outputs[i] ?? 0, this.#region.strips), at(outputs, i).type);
    });
    return isRight && bits.isSame(node, made, false);
  }

  /** A sum over all strips goes on; results of the body are the carries after it. */
  readonly sums = new Map<Value, Value>();

  #sum(node: Node, form: StripForm, inputs: readonly Value[], bits: StripBits): boolean {
    const result = at(node.outputs, 0);
    const before = this.b.nodes.length;
    if (form.onto && bits.goesOn(node)) {
      const sum = form.onto(this.b, this.carry(result), inputs);
      if (sum) this.sums.set(result, sum);
      return sum !== null;
    }
    const parts = form.parts?.(this.b, inputs, this.#region.strips);
    if (!parts?.every(({ type }) => sameType(type, result.type))) return false;
    const made = this.b.nodes.slice(before).filter(({ op }) => op === node.op);
    this.sums.set(
      result,
      parts.reduce((sum, part) => apply(this.b, add, sum, part), this.carry(result)),
    );
    return made.every((part) => bits.isSame(node, part, true));
  }
}

/** What is outside: values of the region that are read there, and nodes that are repeated there for their readers. */
function outsideOf(of: StripGraph, { nodes }: StripRegion): { readonly results: Value[]; readonly again: Set<Node> } {
  const returned = new Set(of.graph.results);
  const again = new Set<Node>();
  const isRead = (value: Value): boolean =>
    returned.has(value) || (of.users.get(value) ?? []).some(({ node }) => !nodes.has(node) || again.has(node));
  const results: Value[] = [];
  for (const node of [...nodes.keys()].reverse()) {
    const read = node.outputs.filter(isRead);
    if (read.length > 0 && of.isRepeated(node)) again.add(node);
    else results.unshift(...read);
  }
  return { results, again };
}

/** The loop and the nodes around it, with the results under the values that they were. */
class StripLoop {
  readonly nodes: Node[] = [];
  readonly #b: Build;
  readonly #strips: number;

  constructor(last: Node, strips: number) {
    this.#b = new Build("");
    const { phase, where: line, scope, within } = last;
    Object.assign(this.#b, { phase, where: line, scope, within });
    this.#strips = strips;
  }

  stack(value: Value, strip: TensorType): Value {
    return this.#b.call(reshape, [value], { shape: [this.#strips, ...strip.shape] });
  }

  start({ dtype, shape }: TensorType, value: number): Value {
    return this.#b.call(full, [], { dtype, shape, value });
  }

  run(inputs: readonly Value[], attrs: ScanAttrs, body: Graph): readonly Value[] {
    return this.#b.callAll(scan, inputs, attrs, { regions: [body] });
  }

  /** The nodes, the loop's results being named as they were; `stacks` are reshaped to the values beside them. */
  finish(carried: readonly Value[], stacks: readonly (readonly [Value, Value])[]): readonly Node[] {
    const { nodes } = this.#b;
    const loop = at(nodes, nodes.length - 1);
    const outputs = loop.outputs.map((value, i) => carried[i] ?? value);
    const views = stacks.map(([stack, value]): Node => {
      const attrs = { shape: value.type.shape };
      return { ...loop, op: reshape, inputs: [stack], attrs, outputs: [value], regions: [] };
    });
    return [...nodes.slice(0, -1), { ...loop, outputs }, ...views];
  }
}

/** The graph with a region as a loop over strips; null where a bit could change. */
export function intoStrips(of: StripGraph, region: StripRegion, bits: StripBits): Graph | null {
  const body = new StripBody(of, region);
  for (const [node, form] of region.nodes) if (!body.node(node, form, bits)) return null;
  const { results: wanted, again } = outsideOf(of, region);
  const axisOf = (value: Value): number => region.axisOf.get(value) ?? 0;
  const stacked = wanted.filter((value) => !body.sums.has(value) && isLeading(value.type, axisOf(value)));
  const placed = wanted.filter((value) => !body.sums.has(value) && !stacked.includes(value));
  for (const value of placed) {
    const strip = body.strip(value);
    const update = [body.carry(value), strip, body.starts(strip.type.shape, axisOf(value))] as const;
    body.sums.set(value, body.b.call(dynamicUpdate, update, {}));
  }
  const carries = body.carries.filter(({ outer }) => wanted.includes(outer));
  const { b, rows, consts } = body;
  const params = [body.index, ...[...carries, ...rows, ...consts].map(({ inner }) => inner)];
  const results = [
    ...carries.map(({ outer }) => body.sums.get(outer) as Value),
    ...stacked.map((value) => body.strip(value)),
  ];
  const graph: Graph = { name: b.name, params, nodes: b.nodes, results };
  const loop = new StripLoop(at([...region.nodes.keys()], region.nodes.size - 1), region.strips);
  const starts = carries.map(({ outer }) => loop.start(outer.type, placed.includes(outer) ? 0 : -0));
  const stacks = rows.map(({ outer, inner }) => loop.stack(outer, inner.type));
  const made = loop.run(
    [...starts, ...stacks, ...consts.map(({ outer }) => outer)],
    {
      carries: carries.length,
      xs: rows.length,
      length: region.strips,
      reverse: false,
      counted: false,
      reversal: "auto",
      snapshots: 0,
      strip: at(region.value.type.shape, region.axis) / region.strips,
    },
    graph,
  );
  const nodes = loop.finish(
    carries.map(({ outer }) => outer),
    stacked.map((value, i) => [at(made, carries.length + i), value] as const),
  );
  return withLoop(of, region, again, nodes);
}

/** The graph with the loop in the place of the region's last node. */
function withLoop(
  { graph }: StripGraph,
  { nodes: own }: StripRegion,
  again: ReadonlySet<Node>,
  loop: readonly Node[],
): Graph {
  const last = [...own.keys()].at(-1);
  const isKept = (node: Node): boolean => !own.has(node) || again.has(node);
  const nodes = graph.nodes.flatMap((node) => [...(isKept(node) ? [node] : []), ...(node === last ? loop : [])]);
  return withLiveNodes({ ...graph, nodes: topological(nodes) });
}
