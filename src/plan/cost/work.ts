/**
 * @file What a kernel does, enough to predict its time. It is read off the kernel itself, lowered as for running: what is
 * free once fused (views, broadcasts, constants, operands that never reach memory) is free here because it is not in the
 * kernel, and what the kernel does beyond the mathematics (packing, padding, single elements at the ends of rows) counts.
 *
 *   fused(x, w, b) { h = relu(x); y = matmul(h, w); z = add(y, broadcast(b)) }
 *
 *   productFlops   of the product, its sides rounded up to the target's tile
 *   arithmetic     max where x is packed, add where z is stored, the packing and storing themselves
 *   bytes          x, w, b read, z written: h and y are not in memory
 *   calls          1
 *
 * Pure: the same node has the same work, and equal nodes are lowered once.
 */
import type { Graph, Node } from "../../ir/graph.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import { type Expr, walkExpr } from "../../kernel/expr.ts";
import type { Kernel, Nest } from "../../kernel/loops.ts";
import { nestExprs } from "../../kernel/loops.ts";
import { sharedLowering } from "../../lower/share.ts";
import { graphCost } from "../../ops/control.ts";
import { nestWork, type ProductTile } from "./nests.ts";
import { kernelTraffic, runningNests } from "./traffic.ts";

/** What a kernel does: enough to predict its time. */
export interface Work {
  /** Of matrix products and convolutions. */
  readonly productFlops: number;
  /** Element operations outside products: an addition is 1, a division 5, a transcendental function what it is made of. */
  readonly arithmetic: number;
  /** Read and written in memory, each element of an operand once. */
  readonly bytes: number;
  /** Kernels launched; none for views. */
  readonly calls: number;
}

export interface WorkOptions {
  /** Default: 4 × 8, blocks of 192 KiB. */
  readonly tile?: ProductTile;
  /** The first result is in the place of an input: what only copies that input does nothing. */
  readonly inPlace?: boolean;
}

export const NO_WORK: Work = { productFlops: 0, arithmetic: 0, bytes: 0, calls: 0 };
export const DEFAULT_TILE: ProductTile = { rows: 4, columns: 8, blockBytes: 192 * 1024, even: true };

export function addWork(a: Work, b: Work): Work {
  return {
    productFlops: a.productFlops + b.productFlops,
    arithmetic: a.arithmetic + b.arithmetic,
    bytes: a.bytes + b.bytes,
    calls: a.calls + b.calls,
  };
}

const scaleWork = (work: Work, by: number): Work => ({
  productFlops: work.productFlops * by,
  arithmetic: work.arithmetic * by,
  bytes: work.bytes * by,
  calls: work.calls * by,
});

/** Kernels that are remembered for equal nodes; then it starts anew, so that a long process does not keep them all. */
const MOST_REMEMBERED = 4096;
// Work does not look at workspace.
const newLowering = (): ReturnType<typeof sharedLowering> => sharedLowering({ contractScratch: () => 0 });
let lowering = newLowering();
let asked = 0;

const kernels = new WeakMap<Node, Kernel>();

function kernelOf(node: Node): Kernel {
  const found = kernels.get(node);
  if (found) return found;
  if (asked++ >= MOST_REMEMBERED) [lowering, asked] = [newLowering(), 0];
  const { kernel } = lowering(node);
  kernels.set(node, kernel);
  return kernel;
}

/** What running a node takes: nothing for a view, one kernel for an operation or fusion group, else the sum of its inside. */
export function workOfNode(node: Node, options: WorkOptions = {}): Work {
  if (node.op.alias !== null) return NO_WORK;
  const kernel = kernelOfNode(node);
  return kernel ? kernelWork(kernel, options) : regionWork(node, options);
}

/** The kernel that a node becomes; null where it becomes several, or loops and branches around them. */
export const kernelOfNode = (node: Node): Kernel | null => (isKernel(node) ? kernelOf(node) : null);

const hasRegions = ({ op }: Node): boolean => op.lower.kind === "region" || op.lower.kind === "control";

/** Whether a node becomes one kernel: a plain operation, or a region of such with at most one that is not a map. */
function isKernel(node: Node): boolean {
  if (!hasRegions(node)) return true;
  const [region, ...others] = node.regions;
  if (node.op.lower.kind === "control" || !region || others.length > 0) return false;
  const anchors = region.nodes.filter((inner) => inner.op.lower.kind !== "map");
  return anchors.length <= 1 && !anchors.some(hasRegions);
}

/** How often regions run, where a node says so, and the bytes that it copies itself. */
export function controlRuns({
  op,
  inputs,
  attrs,
}: Node): { readonly runs: readonly number[]; readonly copied: number } | null {
  const { lower } = op;
  const runs = lower.kind === "control" ? lower.runs?.(attrs) : undefined;
  if (!runs || lower.kind !== "control") return null;
  const types = inputs.map((value) => value.type);
  return { runs, copied: lower.copied?.(attrs, types) ?? 0 };
}

/** Calls, loops and branches: how often regions run is said, or shows in the cost compared with running each once. */
function regionWork(node: Node, options: WorkOptions): Work {
  const { op, inputs, outputs, attrs, regions } = node;
  const works = regions.map((region) => graphWork(region, options));
  const known = controlRuns(node);
  if (known) {
    const moved = { ...NO_WORK, bytes: 2 * known.copied };
    return works.reduce((sum, work, n) => addWork(sum, scaleWork(work, known.runs[n] ?? 0)), moved);
  }
  const once = works.reduce(addWork, NO_WORK);
  const inside = regions.reduce((sum, region) => sum + graphCost(region).flops, 0);
  const [from, to] = [inputs.map((value) => value.type), outputs.map((value) => value.type)];
  const { flops } = op.cost(from, to, attrs, regions);
  return inside > 0 && flops > 0 ? scaleWork(once, flops / inside) : once;
}

/** Of all nodes of a graph, each on its own. */
export function graphWork(graph: Graph, options: WorkOptions = {}): Work {
  return graph.nodes.reduce((sum, node) => addWork(sum, workOfNode(node, options)), NO_WORK);
}

/** By kernel: with one tile, in place or not. */
const known = new WeakMap<Kernel, Map<string, Work>>();

/** Of a lowered kernel. */
export function kernelWork(kernel: Kernel, { tile = DEFAULT_TILE, inPlace = false }: WorkOptions = {}): Work {
  const { rows, columns, blockBytes, even = false, winogradLanes = 0 } = tile;
  const key = [rows, columns, blockBytes, even, winogradLanes, inPlace].join();
  const works = known.get(kernel) ?? new Map<string, Work>();
  known.set(kernel, works);
  const found = works.get(key);
  if (found) return found;
  const nests = runningNests(kernel, inPlace);
  const made = nests.reduce((sum, nest) => {
    const elementBytes = "dtype" in nest ? bytesOf(nest.dtype) : 4;
    const { productFlops, arithmetic } = nestWork(nest, tile, elementBytes);
    // registers hold half as many elements of 64 bits, and everything in such a nest keeps step with them
    const wide = isWide(nest, kernel) ? 2 : 1;
    return addWork(sum, { productFlops: wide * productFlops, arithmetic: wide * arithmetic, bytes: 0, calls: 1 });
  }, NO_WORK);
  const work = { ...made, bytes: kernelTraffic(kernel, nests).least };
  works.set(key, work);
  return work;
}

/** Whether a nest computes, loads or stores anything of 64 bits. */
function isWide(nest: Nest, kernel: Kernel): boolean {
  const stored = "stores" in nest ? nest.stores.map(({ operand }) => kernel.operands[operand]?.dtype) : [];
  const types = new Set(stored);
  const { atStore, elsewhere } = nestExprs(nest);
  const seen = new Set<Expr>();
  for (const root of [...atStore, ...elsewhere]) walkExpr(root, (e) => types.add(e.dtype), seen);
  return types.has("f64") || types.has("i64");
}
