/**
 * @file Residuals kept in few bits (docs/decisions/0053-compressed-residuals.md): a form on an edge of the graph. The forward pass packs
 * the value after it is made, backward nodes read what is unpacked, and the value itself dies with its last reader of the forward pass:
 *
 *   h = gelu(…);  y = matmul(h, w)              h = gelu(…);  y = matmul(h, w);  b = pack_groups(h, …)
 *   ──────────────────────────────── kept: h    ────────────────────────────────────────────────────── kept: b, an eighth of h
 *   d_w = matmul(h, d_y) {ta}                   d_w = matmul(unpack_groups(b, …), d_y) {ta}
 *
 * Results change: this is no pass of the pipeline but is asked for. Autodiff knows nothing of it. A value is *linear* if all gradients
 * are linear in it: then rounding at random leaves their expected values as they are. Keys are functions of the seed and of
 * the value's place in the graph before any choice, so the bits of a value depend on its own form alone.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, resultOf } from "../ir/graph.ts";
import { isLinearIn } from "../ir/linear.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import { byteLength } from "../ir/type.ts";
import { producersOf, type Use, usersOf, withLiveNodes } from "../ir/walk.ts";
import { isFloat } from "../kernel/dtype.ts";
import { sum } from "../ops/broadcast.ts";
import { square, sub } from "../ops/elementwise.ts";
import { isForward, LateReaders } from "./late-readers.ts";
import { LateReads } from "./late-reads.ts";
import { type Place, placeOf } from "./packing.ts";
import { isView, LEAST_SAVED } from "./predicates.ts";
import { keptNodes, type ResidualForm } from "./residual-forms.ts";

/** A forward value that the backward pass reads, and that may be kept in few bits. */
export interface Residual {
  readonly value: Value;
  /** Number of its node in the graph: the same for every choice. */
  readonly id: number;
  /** Whether every gradient is linear in it, as far as it is read from few bits. */
  readonly linear: boolean;
  /**
   * Readers that are not linear in it, and for which it is recomputed from other residuals: of gelu(x), products read what is
   * rounded, and gelu's own derivative computes it from x.
   */
  readonly repeatedFor: readonly Node[];
  readonly bytes: number;
}

/** A residual and the form in which it is kept. */
export interface RoundedResidual extends Residual {
  readonly form: ResidualForm;
  readonly roundedBytes: number;
  /** For reports. */
  readonly name: string;
}

const isPointwise = ({ op: { lower } }: Node): boolean => lower.kind === "map" && lower.pointwise === true;

class Reads {
  readonly #users: ReadonlyMap<Value, readonly Use[]>;

  constructor(graph: Graph) {
    this.#users = usersOf(graph);
  }

  /**
   * Whether what backward nodes compute is linear in a value, up to gradients, which updates read. Of the nodes that read it only `via`
   * count: others read something else in its place.
   */
  isLinear(value: Value, via: ReadonlySet<Node>): boolean {
    const shown = new Set([value]);
    const depends = new Set([value]);
    const queue: Value[] = [value];
    const nodes = new Set<Node>();
    for (let now = queue.pop(); now; now = queue.pop()) {
      for (const { node } of this.#users.get(now) ?? []) {
        const isShown = isForward(node) && isView(node);
        if (node.phase === "update" || (isForward(node) && !isShown)) continue;
        if (shown.has(now) && !isShown && !via.has(node)) continue;
        nodes.add(node);
        for (const output of node.outputs) {
          if (depends.has(output)) continue;
          if (isShown) shown.add(output);
          depends.add(output);
          queue.push(output);
        }
      }
    }
    return [...nodes].every((node) => isLinearIn(node, depends));
  }
}

/** The residuals of a graph that may be kept in few bits, in its order. */
export function residualsOf(graph: Graph): readonly Residual[] {
  const reads = new Reads(graph);
  const readers = new LateReaders(graph);
  const returned = new Set(graph.results);
  const there = new Set(graph.params);
  return graph.nodes.flatMap((node, id): readonly Residual[] => {
    if (!isForward(node) || node.replay > 0 || isView(node) || node.outputs.length !== 1) return [];
    const value = resultOf(node);
    const bytes = byteLength(value.type);
    if (!isFloat(value.type.dtype) || bytes < LEAST_SAVED || returned.has(value)) return [];
    const late = readers.of(value, node.replay);
    if (!late || late.length === 0) return [];
    const linearly = new Set(late.filter((reader) => reads.isLinear(value, new Set([reader]))));
    const others = late.filter((reader) => !linearly.has(reader));
    const canRepeat = isPointwise(node) && node.inputs.every((input) => there.has(input));
    there.add(value);
    const linear = linearly.size > 0 && (others.length === 0 || canRepeat) && reads.isLinear(value, linearly);
    return [{ value, id, linear, bytes, repeatedFor: linear ? others : [] }];
  });
}

/** 32 bits of a seed and the number of a value. */
export const residualKey = (seed: number, id: number): number =>
  Math.imul(seed ^ Math.imul(id + 1, 0x9e3779b9), 0x85ebca6b) | 0;

function newNode(op: AnyOp, inputs: readonly Value[], attrs: Attrs, place: Place): Node {
  const types = inputs.map(({ type }) => type);
  const outputs = op.infer(types, attrs, []).map((type) => newValue(type));
  return { ...place, op, inputs, attrs, outputs, regions: [] };
}

/** A graph whose backward pass reads these residuals rounded. */
export interface RoundedGraph {
  readonly graph: Graph;
  readonly residuals: readonly RoundedResidual[];
  readonly seed: number;
  /** By residual: the nodes that compute it from what is kept, the last of which gives it. */
  readonly back: readonly (readonly Node[])[];
}

export function withRounded(graph: Graph, residuals: readonly RoundedResidual[], seed: number): RoundedGraph {
  const producer = producersOf(graph);
  const instead = new Map<Value, Node>();
  const back: (readonly Node[])[] = [];
  const behind = new Map<Node, readonly Node[]>();
  const repeated = new Map<Value, Node>();
  const repeats = new Set<Node>();
  for (const { value, id, form, linear, name, repeatedFor } of residuals) {
    const maker = at(graph.nodes, id);
    const kept = keptNodes(form, { value, name, linear, key: residualKey(seed, id), place: placeOf(maker) });
    behind.set(maker, kept.behind);
    if (repeatedFor.length > 0) repeated.set(value, maker);
    for (const reader of repeatedFor) repeats.add(reader);
    for (const node of kept.back) instead.set(resultOf(node), node);
    const last = at(kept.back, kept.back.length - 1);
    instead.set(value, last);
    back.push(kept.back);
  }
  const isShared = (node: Node): boolean => isForward(node) && isView(node);
  const late = new LateReads(producer, { instead: (value) => instead.get(value), isShared });
  const repeating = new LateReads(producer, {
    instead: (value) => repeated.get(value) ?? instead.get(value),
    isShared,
  });
  const nodes: Node[] = [];
  for (const node of graph.nodes) {
    const isEarly = isForward(node) || node.phase === "update";
    const reads = repeats.has(node) ? repeating : late;
    nodes.push(isEarly ? node : reads.reading(node, nodes), ...(behind.get(node) ?? []));
  }
  return { graph: withLiveNodes({ ...graph, nodes }), residuals, seed, back };
}

/** The graph with two more results for each value that is rounded, Σ(x̂ - x)² and Σx², and the keys of these values in the same order. */
export function measuringErrors(rounded: RoundedGraph): { readonly graph: Graph; readonly keys: readonly number[] } {
  const { graph, residuals, back, seed } = rounded;
  const inOrder = residuals.map((residual, i) => ({ ...residual, nodes: at(back, i) })).sort((a, b) => a.id - b.id);
  const nodes: Node[] = [...graph.nodes];
  const results: Value[] = [...graph.results];
  const add = (op: AnyOp, inputs: readonly Value[], attrs: Attrs = {}): Value => {
    const place: Place = {
      phase: "backward",
      replay: 0,
      where: undefined,
      scope: undefined,
      within: undefined,
    } as Place;
    const node = newNode(op, inputs, attrs, place);
    nodes.push(node);
    return resultOf(node);
  };
  for (const { value, nodes: unpacking } of inOrder) {
    nodes.push(...unpacking);
    const axes = value.type.shape.map((_, axis) => axis);
    const apart = add(sub, [resultOf(at(unpacking, unpacking.length - 1)), value]);
    for (const x of [apart, value]) results.push(add(sum, [add(square, [x])], { axes }));
  }
  return { graph: { ...graph, nodes, results }, keys: inOrder.map(({ id }) => residualKey(seed, id)) };
}
