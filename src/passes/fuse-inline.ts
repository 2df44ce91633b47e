/**
 * @file Which nodes are recomputed wherever they are read, and so belong to no group of their own:
 *
 *   views and constants                         fusion "always"
 *   cheap functions of much smaller values      a mask from labels, a table from a vector: slower to read than to compute
 *   narrower forms of a parameter               a weight in bf16: the parameter is there in any case, and products that pack
 *                                               what they read round it on the way
 *   cheap functions of one value and of         x - max x, x - mean x: x is stored anyway, since what is reduced from it comes
 *   what is reduced from it                     first, and is as large; a reader computes them from x as fast as it reads them
 *   cheap functions of windows that overlap     which element of each is its largest: more elements than what they are computed from
 *
 * Not those whose index, after many views, would be more code than a copy, nor functions of a value that a product reads: it reads
 * an element several times.
 */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { resultOf } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import { producersOf } from "../ir/walk.ts";
import { isFloat } from "../kernel/dtype.ts";
import type { FusionLimits } from "../target/description.ts";
import { evaluationsOfView } from "./fuse-size.ts";

/** Work an element below which it is cheaper to recompute a value than to store it and read it back. */
const CHEAP_FLOPS = 16;
/** The same for a function of a value of its own size, which each reader computes. */
const CHEAP_SHIFT = 4;
/** How much larger than all its sources a value must be to be cheaper to compute than to read. */
const EXPANSION = 8;

/** Evaluations (fuse-size.ts) that an element read through views may take, and views in a row that never take so many. */
const MOST_IN_VIEW = 64;
const FEW_VIEWS = 3;

/** Nodes from a reduction to a small value that counts as reduced. */
const MOST_STEPS = 16;

/** The cost of an inlined value: work an element, nodes one after the other, and the stored values it depends on. */
interface Inlined {
  readonly flops: number;
  readonly depth: number;
  readonly sources: ReadonlySet<Value>;
}

/** These anchors read an element of an input several times, and compute what is in front of them as often. */
export function packs(node: Node): boolean {
  const { kind } = node.op.lower;
  return kind === "contract" || kind === "attend" || kind === "routine";
}

/** Work an element of a node's result. */
function flopsAnElement(node: Node): number {
  const { type } = resultOf(node);
  const types = node.inputs.map((v) => v.type);
  return node.op.cost(types, [type], node.attrs, node.regions).flops / Math.max(1, elementsOf(type.shape));
}

function bytesOfAll(values: Iterable<Value>): number {
  let bytes = 0;
  for (const { type } of values) bytes += byteLength(type);
  return bytes;
}

type InliningLimits = Pick<FusionLimits, "maxPackedFlops" | "storesCheap">;

class Inlining {
  readonly inlined = new Set<Node>();
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #madeFrom = new Map<Value, Inlined>();
  /** Values that products read, straight or through views. */
  readonly #packed = new Set<Value>();
  /** By a value: the values of which it is a function through values that are much smaller. */
  readonly #reducedFrom = new Map<Value, ReadonlySet<Value>>();

  readonly #params: ReadonlySet<Value>;
  readonly #maxPackedFlops: number;
  readonly #storesCheap: boolean;

  constructor(graph: Graph, { maxPackedFlops, storesCheap = false }: InliningLimits) {
    this.#producer = producersOf(graph);
    this.#params = new Set(graph.params);
    this.#maxPackedFlops = maxPackedFlops;
    this.#storesCheap = storesCheap;
    for (const node of graph.nodes.toReversed()) {
      const isView = node.op.lower.kind === "map" && node.op.lower.fusion === "always";
      const isPacked = isView ? node.outputs.some((value) => this.#packed.has(value)) : packs(node);
      if (isPacked) for (const value of node.inputs) this.#packed.add(value);
    }
    for (const node of graph.nodes) this.#visit(node);
  }

  /** Most nodes are stored, and are done with before anything is made for them. */
  #visit(node: Node): void {
    const { lower } = node.op;
    if (lower.kind !== "map") return;
    const isAlways = lower.fusion === "always";
    if (!isAlways && (this.#storesCheap || !lower.pointwise)) return;
    const out = resultOf(node);
    const own = flopsAnElement(node);
    if (!isAlways && own > CHEAP_FLOPS) return;
    const { flops, depth, sources } = this.#madeOf(node, own);
    if (!isAlways && !this.#isFasterThanReading(out, flops, sources)) return;
    const inlinedNode = (v: Value): Node | null => {
      if (v === out) return node;
      return this.#madeFrom.has(v) ? (this.#producer.get(v) ?? null) : null;
    };
    if (depth > FEW_VIEWS && evaluationsOfView(node, inlinedNode, MOST_IN_VIEW) > MOST_IN_VIEW) return;
    this.inlined.add(node);
    this.#madeFrom.set(out, { flops, depth, sources });
  }

  /** What a node would cost as an inlined one. */
  #madeOf(node: Node, own: number): Inlined {
    const sources = new Set<Value>();
    let [flops, deepest] = [own, 0];
    for (const input of node.inputs) {
      const part = this.#madeFrom.get(input);
      if (!part) {
        sources.add(input);
        continue;
      }
      flops += part.flops;
      deepest = Math.max(deepest, part.depth);
      for (const source of part.sources) sources.add(source);
    }
    return { flops, depth: 1 + deepest, sources };
  }

  #isFasterThanReading(out: Value, flops: number, sources: ReadonlySet<Value>): boolean {
    if (this.#storesCheap) return false;
    return (
      this.#isExpanded(out, flops, sources) ||
      this.#isShift(out, flops, sources) ||
      this.#isOverlapping(out, flops, sources) ||
      this.#isNarrowed(out, flops, sources)
    );
  }

  /** A cheap function of fewer elements than its own: of windows that overlap. */
  #isOverlapping(out: Value, flops: number, sources: ReadonlySet<Value>): boolean {
    if (flops > CHEAP_SHIFT || this.#packed.has(out)) return false;
    let elements = 0;
    for (const { type } of sources) elements += elementsOf(type.shape);
    return elements < elementsOf(out.type.shape);
  }

  /** A cheap function of much smaller values. */
  #isExpanded(out: Value, flops: number, sources: ReadonlySet<Value>): boolean {
    return flops <= CHEAP_FLOPS && bytesOfAll(sources) * EXPANSION <= byteLength(out.type);
  }

  /** A cheap function of a parameter, in fewer bytes. */
  #isNarrowed(out: Value, flops: number, sources: ReadonlySet<Value>): boolean {
    if (sources.size !== 1 || flops > CHEAP_SHIFT || !isFloat(out.type.dtype)) return false;
    const [param] = sources;
    if (!param || !this.#params.has(param)) return false;
    const most = this.#packed.has(out) ? this.#maxPackedFlops : CHEAP_SHIFT;
    return flops <= most && byteLength(out.type) < byteLength(param.type);
  }

  /** A cheap function of a value of at most its size and of much smaller ones, one of which was reduced from the former. */
  #isShift(out: Value, flops: number, sources: ReadonlySet<Value>): boolean {
    if (flops > CHEAP_SHIFT || sources.size < 2 || this.#packed.has(out)) return false;
    const bytes = byteLength(out.type);
    let x: Value | null = null;
    let small = 0;
    for (const source of sources) {
      const own = byteLength(source.type);
      if (own * EXPANSION <= bytes) small += own;
      else if (x || own > bytes) return false;
      else x = source;
    }
    if (!x || small * EXPANSION > bytes) return false;
    for (const source of sources) if (source !== x && this.#originsOf(source).has(x)) return true;
    return false;
  }

  /** The values at least EXPANSION times as large from which a value follows through values of its own order. */
  #originsOf(value: Value, steps = MOST_STEPS): ReadonlySet<Value> {
    const known = this.#reducedFrom.get(value);
    if (known) return known;
    const bytes = byteLength(value.type);
    const origins = new Set<Value>();
    this.#reducedFrom.set(value, origins);
    if (steps === 0) return origins;
    for (const input of this.#producer.get(value)?.inputs ?? []) {
      for (const v of this.#madeFrom.get(input)?.sources ?? [input]) {
        if (byteLength(v.type) >= EXPANSION * bytes) origins.add(v);
        else for (const origin of this.#originsOf(v, steps - 1)) origins.add(origin);
      }
    }
    return origins;
  }
}

/** Nodes that are recomputed wherever they are read. */
export const inlinedNodes = (graph: Graph, limits: InliningLimits): ReadonlySet<Node> =>
  new Inlining(graph, limits).inlined;
