/**
 * @file The plan of a product: which operand is vectorised, which operands are packed and which are read in place, tiles,
 * blocks, workspace. A pure function of the nest and the machine; the planner asks for the workspace before code is emitted.
 *
 *   for batch
 *     for blocks of tiles of the broadcast side                      as many as stay in the second-level cache
 *       for blocks of panels of the vector side                      all, unless partial sums need workspace
 *         for runs of the depth (depthRun)
 *           pack the broadcast side's block, unless read in place
 *           for panels: pack the vector side's panel, unless read in place
 *             for tiles: sums in registers (gemm-micro.ts) → result, tile or partial sums;  stores after the last run
 *
 * Usually the columns of the result are vectorised, since results are stored along them. If swapped, its rows are: the image
 * of a convolution becomes the broadcast operand and is read in place, only the weights are packed, and each tile is
 * transposed before it is stored.
 *
 * Batch counters that the vector side does not depend on extend the broadcast side (`mergedBatch`): one packed panel serves
 * all of them.
 *
 * Invariant: runs of the depth follow from its extent alone, so no choice made here changes a bit of the result.
 */
import { at } from "../../base/invariant.ts";
import { bytesOf, type ProductType } from "../../kernel/dtype.ts";
import { type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { type ContractNest, depthRun, type Operand } from "../../kernel/loops.ts";
import { Interner, linearCoefficient } from "../intern.ts";
import { product } from "../units.ts";
import { type BlockBytes, blockBytesOf } from "./block-bytes.ts";
import {
  type Access,
  accessOf,
  depthStride,
  evenTiling,
  type Side,
  type Stretches,
  stretchesOf,
  strideOf,
  type Tiling,
  tilingOf,
} from "./contract-access.ts";
import { cyclesOf, sideCost, transposeCost } from "./contract-cost.ts";
import { type Padding, paddingOf } from "./contract-padded.ts";
import type { DepthStep } from "./gemm-micro.ts";
import type { NativeOptions } from "./options.ts";

/** A product whose workspace is not known yet. */
export type Product = Omit<ContractNest, "scratch">;

/** How the broadcast side is read: in place; from a copy padded with zeros; packed as [row][depth] or as [depth][row]. */
export type BroadcastSide =
  | { readonly kind: "in-place"; readonly access: Access; readonly step: DepthStep }
  | { readonly kind: "padded"; readonly access: Access; readonly step: DepthStep; readonly padding: Padding }
  | { readonly kind: "row-major" | "depth-major"; readonly stride: number; readonly step: number };

/**
 * How the vector side is read: in place; packed as [depth][lane]; transposed from memory, or from rows that are computed first.
 * `permuted`: memory runs along the depth, in another order (weights of a convolution), so all of the depth is packed at once.
 */
export type VectorSide =
  | { readonly kind: "in-place"; readonly access: Access; readonly step: DepthStep }
  | { readonly kind: "depth-major" }
  | { readonly kind: "permuted"; readonly access: Access; readonly stride: number; readonly stretches: Stretches }
  | { readonly kind: "transposed"; readonly access: Access; readonly stride: number; readonly step: number }
  | { readonly kind: "computed-transposed"; readonly stride: number };

/** Columns of a tile: `count` panels of `widths` vectors, then one of `tail` for the remainder. */
export interface Panels {
  readonly count: number;
  readonly widths: readonly number[];
  readonly tail: readonly number[];
}

export const widthOf = (widths: readonly number[]): number => widths.reduce((a, b) => a + b, 0);

export interface ProductPlan extends Blocks {
  readonly dtype: ProductType;
  /** Lanes of a whole register. */
  readonly lanes: number;
  readonly swapped: boolean;
  readonly broadcast: LoopVar;
  readonly vector: LoopVar;
  readonly broadcastExpr: Expr;
  readonly vectorExpr: Expr;
  readonly batch: readonly LoopVar[];
  readonly mergedBatch: readonly LoopVar[];
  /** Access to the two sides; in C, `s` and `v` are their pointers. */
  readonly s: BroadcastSide;
  readonly v: VectorSide;
  readonly tiling: Tiling;
  readonly panels: Panels;
  /** Length of a run of the depth. */
  readonly run: number;
  /** Destination of sums: a tile that is stored at once, the result itself, or a block of the workspace. */
  readonly sums: "tile" | "result" | "block";
}

export interface Blocks {
  /** Tiles and panels of a block, lanes of a row of its partial sums. */
  readonly blockTiles: number;
  readonly blockPanels: number;
  readonly sumsWidth: number;
  /** Copies of images that a block reads, at most. */
  readonly copies: number;
  /** All panels are packed at once and kept, since several blocks read them. */
  readonly resident: boolean;
  /** First lane that is packed, and lanes from there on. */
  readonly packedFirst: number;
  readonly packedWidth: number;
  /** Elements of the parts of one thread's workspace. */
  readonly parts: Workspace;
}

/** Each part is a variable in C, `w_spread` for the broadcast side. */
export interface Workspace {
  readonly spread: number;
  readonly panel: number;
  readonly rows: number;
  readonly sums: number;
  readonly tables: number;
}

/** Of a copy of an image that is padded with zeros. */
const PADDED_BYTES = 1024 * 1024;
const FEW_ROWS = 42;
/** A larger matrix is not in a cache when its product begins. */
const FAR_BYTES = 8 * 1024 * 1024;
/** Longest depth whose order in memory is examined step by step. */
const LONGEST_PERMUTED = 16384;
/** Lanes of a block of partial sums. */
const SUMS_LANES = 256;
/** The first-level cache of all supported machines: lines this many bytes apart compete for this many ways. */
const CACHE_PERIOD = 4096;
const CACHE_WAYS = 8;
/** Up to this depth, storing a tile takes a large part of its time. */
const SHORT_DEPTH = 64;
/** Up to this many panels, packing rows costs more than it saves. */
const FEW_PANELS = 2;

/** Registers for sums, and the most rows of a tile with two vectors. */
function tileLimits(options: NativeOptions): { readonly sums: number; readonly rows: number } {
  return options.lanes === 16 ? { sums: 28, rows: 14 } : { sums: 12, rows: 6 };
}

/** Whole registers, then the narrowest that holds the remainder. */
function panelsOf(extent: number, lanes: number, perPanel: number): Panels {
  const [whole, left] = [Math.floor(extent / lanes), extent % lanes];
  let narrow = left === 0 ? 0 : lanes;
  while (narrow > 4 && narrow / 2 >= left) narrow /= 2;
  const widths = new Array<number>(perPanel).fill(lanes);
  const count = Math.floor(whole / perPanel);
  const tail = [...widths.slice(0, whole % perPanel), ...(narrow > 0 ? [narrow] : [])];
  return { count, widths, tail };
}

/** Whether rows of a tile, a multiple of the cache's period apart, evict each other from the first-level cache. */
function collides(tiling: Tiling, bytes: number): boolean {
  const lines = new Set((tiling.patterns[0] ?? []).map((offset) => Math.floor((offset * bytes) / 64)));
  const sets = new Map<number, number>();
  for (const line of lines) sets.set(line % 64, (sets.get(line % 64) ?? 0) + 1);
  return Math.max(...sets.values()) > CACHE_WAYS;
}

/** Elements of workspace for the broadcast side. */
function broadcastElements(s: BroadcastSide, rows: number, run: number): number {
  switch (s.kind) {
    case "in-place":
      return 0;
    case "padded":
      return s.padding.elements;
    case "row-major":
      return rows * s.stride;
    case "depth-major":
      return run * s.stride;
  }
}

/** A block packed as [depth][row], with `stride` elements from one step of the depth to the next. */
const depthMajorSide = (stride: number): BroadcastSide => ({ kind: "depth-major", stride, step: stride });

class Planner {
  readonly nest: Product;
  readonly operands: readonly Operand[];
  readonly options: NativeOptions;
  readonly interner: Interner = new Interner();
  readonly dtype: ProductType;
  readonly bytes: number;
  readonly lanes: number;
  readonly depth: readonly LoopVar[];
  readonly run: number;
  readonly block: BlockBytes;

  constructor(nest: Product, operands: readonly Operand[], options: NativeOptions) {
    this.nest = nest;
    this.operands = operands;
    this.options = options;
    this.dtype = nest.dtype;
    this.bytes = bytesOf(this.dtype);
    this.lanes = (options.lanes * 4) / this.bytes;
    this.depth = nest.split ?? [nest.depth];
    this.run = Math.max(1, depthRun(nest.depth.extent));
    this.block = blockBytesOf(options);
  }

  /** The cheaper of both; swapped only if that is clearly less work. */
  best(): ProductPlan {
    const [plain, swapped] = [this.plan(false), this.plan(true)];
    const cycles = (plan: ProductPlan): number => cyclesOf(this.interner, this.nest, plan);
    return cycles(swapped) < 0.95 * cycles(plain) ? swapped : plain;
  }

  plan(swapped: boolean): ProductPlan {
    const { nest, options, lanes } = this;
    const [broadcast, vector] = swapped ? [nest.cols, nest.rows] : [nest.rows, nest.cols];
    const [broadcastExpr, vectorExpr] = swapped ? [nest.b, nest.a] : [nest.a, nest.b];
    const apart = this.spanCounters();
    const mergedBatch = nest.batch.filter(
      (b) =>
        b.extent > 1 && !apart.has(b) && !this.interner.of(vectorExpr).has(b) && this.interner.of(broadcastExpr).has(b),
    );
    const limits = tileLimits(options);
    const vectors = Math.ceil(vector.extent / lanes);
    const v = this.vectorSide(vectorExpr, vector, product(mergedBatch) * broadcast.extent);
    // Few rows take many vectors, to keep the multipliers busy; limited so that a packed panel stays in cache.
    const widest = v.kind === "in-place" ? 8 : 4;
    const held = Math.max(2, Math.floor(limits.sums / Math.min(broadcast.extent, limits.rows)));
    const perPanel = Math.min(widest, vectors, held);
    const most = perPanel === 1 ? limits.rows : Math.max(limits.rows, Math.floor(limits.sums / perPanel));
    const tallest = !swapped && this.storesCollide() ? Math.min(most, CACHE_WAYS) : most;
    const panels = panelsOf(vector.extent, lanes, perPanel);
    const { side, tiling } = this.broadcastSide(this.side(broadcastExpr, broadcast), tallest, panels);
    return this.blocks({
      dtype: this.dtype,
      lanes,
      swapped,
      broadcast,
      vector,
      broadcastExpr,
      vectorExpr,
      batch: nest.batch.filter((b) => b.extent !== 1 && !mergedBatch.includes(b)),
      mergedBatch,
      s: side,
      v,
      tiling,
      panels,
      run: this.run,
      sums: this.sumsOf(swapped),
    });
  }

  /** Batch counters that the part of the depth with terms depends on. */
  spanCounters(): ReadonlySet<LoopVar> {
    const { span } = this.nest;
    if (!span) return new Set();
    return new Set([...this.interner.ofIndex(span.from), ...this.interner.ofIndex(span.to)]);
  }

  /** Adds blocks and workspace to the choices so far. */
  blocks(plan: Omit<ProductPlan, keyof Blocks>): ProductPlan {
    const { nest, bytes } = this;
    const { s, v, panels, tiling, vector, sums } = plan;
    const rows = Math.max(...tiling.sizes);
    const panelWidth = widthOf(panels.widths);
    const whole = panels.count * panelWidth + widthOf(panels.tail);
    const packedFirst = v.kind === "in-place" ? panels.count * panelWidth : 0;
    const packedWidth = v.kind === "in-place" && whole === vector.extent ? 0 : whole - packedFirst;
    const blockPanels = sums === "block" ? Math.max(1, Math.floor(SUMS_LANES / panelWidth)) : panels.count + 1;
    const sumsWidth = Math.min(blockPanels * panelWidth, whole);
    const forSums = sums === "block" ? this.block.sums / (bytes * rows * sumsWidth) : Number.POSITIVE_INFINITY;
    const perOuter = (tiling.extent / tiling.period) * tiling.sizes.length;
    const tiles = perOuter * product(plan.mergedBatch);
    const keeps = packedWidth * nest.depth.extent * bytes <= this.block.resident;
    // Several images in a block, where panels would otherwise be packed again for each.
    const several = s.kind === "padded" && !keeps;
    const images = several ? Math.max(1, Math.floor(this.block.images / (s.padding.elements * bytes))) : 1;
    const together = s.kind === "in-place" ? tiles : perOuter * Math.min(images, product(plan.mergedBatch));
    const most = Math.max(1, Math.floor(Math.min(this.blockRows(s, keeps, vector) / rows, forSums, together)));
    const resident = packedWidth > 0 && keeps && most < tiles;
    // One tile with all panels, then the next: results are stored in the order of memory.
    const blockTiles = resident && s.kind === "in-place" && nest.depth.extent <= SHORT_DEPTH ? 1 : most;
    const widest = panels.count > 0 && v.kind !== "in-place" ? panelWidth : widthOf(panels.tail);
    const kept = resident ? packedWidth : widest;
    const steps = resident || v.kind === "permuted" ? nest.depth.extent : this.run;
    const copies = Math.min(Math.ceil(blockTiles / perOuter), images);
    const side = s.kind === "depth-major" ? depthMajorSide(this.padded(blockTiles * rows)) : s;
    const parts = this.workspace({
      s: side,
      v,
      blockRows: blockTiles * rows,
      copies,
      packed: packedWidth === 0 ? 0 : kept * steps,
      widest,
      sums: sums === "block" ? blockTiles * rows * sumsWidth : 0,
    });
    return { ...plan, s: side, blockTiles, blockPanels, copies, sumsWidth, resident, packedFirst, packedWidth, parts };
  }

  /** Rows of a block: its reads and stores stay in cache, unless panels would be packed again for each block. */
  blockRows(s: BroadcastSide, keeps: boolean, vector: LoopVar): number {
    const read = this.run * this.bytes;
    if (s.kind === "row-major" || s.kind === "depth-major") return this.block.packed / read;
    if (s.kind === "padded") return Number.POSITIVE_INFINITY;
    if (!keeps) return this.block.read / read;
    let touched = this.nest.stores.length;
    for (const { value } of this.nest.stores) walkExpr(value, (e) => (touched += e.kind === "load" ? 1 : 0));
    return this.block.packed / (read + touched * vector.extent * this.bytes);
  }

  /** A stride of whole registers that is no multiple of the cache's period. */
  padded(elements: number): number {
    return Math.ceil(elements / this.lanes) * this.lanes + this.lanes;
  }

  side(expr: Expr, lane: LoopVar): Side {
    return { expr, lane, depth: this.depth, operands: this.operands };
  }

  broadcastSide(from: Side, most: number, panels: Panels): { readonly side: BroadcastSide; readonly tiling: Tiling } {
    const { expr, lane: v } = from;
    const access = accessOf(this.interner, from);
    const whole = access && tilingOf(access, v, most);
    const few = panels.count + Math.sign(panels.tail.length) <= FEW_PANELS;
    const low = access && few && whole && collides(whole, this.bytes) ? tilingOf(access, v, CACHE_WAYS) : null;
    const tiling = low ?? whole;
    const step = (access && depthStride(access.depth, this.nest.depth, this.nest.split)) ?? "table";
    if (
      access &&
      tiling &&
      !collides(tiling, this.bytes) &&
      !this.conflicts(step) &&
      !(few && this.conflictsInMemory(access, step))
    ) {
      return { side: { kind: "in-place", access, step }, tiling };
    }
    const padding = paddingOf(this.interner, from, this.mostPadded(v));
    const around = padding && tilingOf(padding.access, v, most);
    if (padding && around) {
      const step = depthStride(padding.access.depth, this.nest.depth, this.nest.split) ?? "table";
      return { side: { kind: "padded", access: padding.access, step, padding }, tiling: around };
    }
    const inner = this.depth[this.depth.length - 1] as LoopVar;
    const rows = this.cost(expr, inner) <= this.cost(expr, v);
    if (!rows) return { side: depthMajorSide(0), tiling: evenTiling(v.extent, most, 1) };
    const stride = this.padded(this.run);
    return { side: { kind: "row-major", stride, step: 1 }, tiling: evenTiling(v.extent, most, stride) };
  }

  /** Rough cycles of packing an element with a counter in the lanes. */
  cost(expr: Expr, counter: LoopVar): number {
    return sideCost(this.interner, this.nest, { expr, lane: counter }, this.lanes);
  }

  /** Whether the steps of a long depth map to a few sets of the cache: they are multiples of `period` bytes apart. */
  conflicts(step: DepthStep, period = CACHE_PERIOD): boolean {
    return step !== "table" && step !== 0 && (step * this.bytes) % period === 0 && this.run > 256;
  }

  /** The same for a matrix too large for the caches, which few panels read: each line comes from memory once. */
  conflictsInMemory(access: Access, step: DepthStep): boolean {
    const { elements, dtype } = at(this.operands, access.load.operand);
    return elements * bytesOf(dtype) > FAR_BYTES && this.conflicts(step, CACHE_PERIOD / 2);
  }

  /** Whether rows of results, or of operands of the epilogue, evict each other from the cache while the depth is short. */
  storesCollide(): boolean {
    const { nest, operands, interner } = this;
    if (nest.depth.extent > SHORT_DEPTH) return false;
    const far = (index: Index, operand: number): boolean => {
      const rows = linearCoefficient(interner, index, nest.rows) ?? 0;
      return rows !== 0 && (rows * bytesOf(at(operands, operand).dtype)) % CACHE_PERIOD === 0;
    };
    let found = false;
    for (const { index, operand, value } of nest.stores) {
      found ||= far(index, operand);
      walkExpr(value, (e) => {
        if (e.kind === "load") found ||= far(e.index, e.operand);
      });
    }
    return found;
  }

  /** Largest padded copy that is worth making, in elements. */
  mostPadded(v: LoopVar): number {
    return Math.min(PADDED_BYTES / this.bytes, v.extent * this.nest.depth.extent);
  }

  /** `rows`: how many rows will read a panel. */
  vectorSide(expr: Expr, v: LoopVar, rows: number): VectorSide {
    const access = accessOf(this.interner, this.side(expr, v));
    const stride = access && strideOf(access.lane, v);
    const step = access && depthStride(access.depth, this.nest.depth, this.nest.split);
    const far = rows > FEW_ROWS && v.extent * this.nest.depth.extent * this.bytes > this.block.near;
    const several = rows > tileLimits(this.options).rows;
    const stacked = access !== null && several && step !== null && this.conflictsInMemory(access, step);
    if (access && stride === 1 && !far && !stacked) return { kind: "in-place", access, step: step ?? "table" };
    const inner = this.depth[this.depth.length - 1] as LoopVar;
    if (access && stride !== null && step === 1) return { kind: "transposed", access, stride, step: 1 };
    const cost = (counter: LoopVar): number => this.cost(expr, counter);
    const permuted = access && stride !== null && this.permuted(access, stride);
    // A panel of the whole depth is large: only if it is small after all, or if rows would have to be gathered.
    const small = 2 * this.lanes * this.bytes * this.nest.depth.extent <= this.block.resident;
    const transposing = permuted
      ? transposeCost(permuted.stretches, this.lanes, this.nest.depth.extent)
      : Number.POSITIVE_INFINITY;
    if (permuted && transposing < cost(v) && (small ? transposing < cost(inner) + 0.4 : cost(inner) > 1))
      return permuted;
    if (cost(inner) + 0.4 < cost(v)) return { kind: "computed-transposed", stride: this.padded(this.run) };
    return { kind: "depth-major" };
  }

  permuted(access: Access, stride: number): Extract<VectorSide, { kind: "permuted" }> | null {
    const { depth, split } = this.nest;
    if (depth.extent < this.lanes || depth.extent > LONGEST_PERMUTED) return null;
    const stretches = stretchesOf(access.depth, depth, split);
    return stretches && { kind: "permuted", access, stride, stretches };
  }

  /** Partial sums are kept in the result only if it is the plain sum, stored in rows along the lanes. */
  sumsOf(swapped: boolean): ProductPlan["sums"] {
    const { nest, operands } = this;
    const [store] = nest.stores;
    const plain = !swapped && nest.stores.length === 1 && store?.value.kind === "acc";
    const stride = (v: LoopVar): number | null => (store ? linearCoefficient(this.interner, store.index, v) : null);
    const inRows = stride(nest.cols) === 1 && stride(nest.rows) !== null;
    if (plain && inRows && operands[store.operand]?.dtype === nest.dtype) return "result";
    return this.run < nest.depth.extent ? "block" : "tile";
  }

  workspace(shape: {
    /** Access to the two sides; in C, `s` and `v` are their pointers. */
    readonly s: BroadcastSide;
    readonly v: VectorSide;
    readonly blockRows: number;
    /** Copies of images. */
    readonly copies: number;
    /** Elements of packed panels, and lanes of the widest. */
    readonly packed: number;
    readonly widest: number;
    readonly sums: number;
  }): Workspace {
    const { s, v, blockRows, packed, widest } = shape;
    const { lanes, run } = this;
    const line = 64 / this.bytes;
    const lines = (n: number): number => Math.ceil(n / line) * line;
    const forVector = {
      "in-place": v.kind === "in-place" && v.step === "table" ? run : 0,
      permuted: v.kind === "permuted" ? v.stretches.count * v.stretches.length : 0,
    };
    const tables =
      (s.step === "table" ? run : 0) + (v.kind === "in-place" || v.kind === "permuted" ? forVector[v.kind] : 0);
    const broadcast = shape.copies * broadcastElements(s, blockRows, run);
    return {
      spread: lines(broadcast === 0 ? 0 : broadcast + lanes),
      panel: packed === 0 ? 0 : lines(packed + lanes),
      rows: v.kind === "computed-transposed" ? lines(widest * v.stride) : 0,
      sums: shape.sums === 0 ? 0 : lines(shape.sums + lanes),
      tables: lines(tables),
    };
  }
}

export function planProduct(nest: Product, operands: readonly Operand[], options: NativeOptions): ProductPlan {
  return new Planner(nest, operands, options).best();
}

/** How the left side is packed in panels of one register of rows, and the workspace it needs beside the panel. */
export function planPanels(
  nest: Product,
  operands: readonly Operand[],
  options: NativeOptions,
): Pick<ProductPlan, "dtype" | "lanes" | "vector" | "vectorExpr" | "v" | "run"> & Pick<Workspace, "rows" | "tables"> {
  const planner = new Planner(nest, operands, options);
  const { dtype, lanes, run } = planner;
  const v = planner.vectorSide(nest.a, nest.rows, Number.POSITIVE_INFINITY);
  const rows = v.kind === "computed-transposed" ? lanes * v.stride : 0;
  const tables = v.kind === "permuted" ? v.stretches.count * v.stretches.length : 0;
  return { dtype, lanes, vector: nest.rows, vectorExpr: nest.a, v, run, rows, tables };
}

/** Elements of one thread's workspace. */
export function workspaceElements({ parts }: ProductPlan): number {
  return parts.spread + parts.panel + parts.rows + parts.sums + parts.tables;
}
