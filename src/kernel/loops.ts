/**
 * @file The loop-nest form: every operation is lowered to it, and it is all that a target has to render.
 *
 * A kernel is a list of nests run one after the other over numbered operands. A nest is one of these kinds:
 *
 *   map         for loops:                       stores
 *   reduce      for loops: acc = ⊕ over reduce of body;   stores (which may use acc)
 *   scan        for loops: acc = 0; for along: acc = acc · scale + body, or acc ⊕ body; stores
 *   contract    for batch, rows, cols: acc = Σ over depth of a · b;   stores     the part of the depth may be data (Span)
 *   scatter     for loops: if bounds: operand[index] ⊕= value          in loop order, one after the other
 *   shuffle     the permutation that a sequence of random bits encodes
 *   sort        for loops: the numbers of the elements along a row in the order of their keys; stores for the first of them
 *   staged      for units: maps one after the other, over operands and a tile of the unit's own
 *   attend      softmax(scores of queries and keys) · values, or its derivatives, block by block (attend.ts)
 *   routine     for loops: steps one after the other (routine.ts)
 *   collective  exchange with the devices of a group (collective.ts)
 *
 * All stores of one iteration happen after all its loads, so an operand that is read only at the element being stored may
 * be overwritten in place.
 *
 * The order of arithmetic is part of a nest's meaning; neither the target nor fusion changes it: `reduce` adds
 * sequentially or in a fixed interleaving over its last counter, both in blocks of limited length (see ReduceNest);
 * `contract` sums runs of at most 512 along depth and adds up the runs (see depthRun); `scan` and `scatter` go in loop
 * order.
 */

import type { CollectiveNest } from "./collective.ts";
import {
  type Accumulator,
  type DType,
  type FloatScalar,
  isFloatScalar,
  laneBytes,
  type ProductType,
  typeOf,
} from "./dtype.ts";
import type { Bound, Expr, Index, LoopVar } from "./expr.ts";
import { walkExpr } from "./expr.ts";
import { addIndex, scaleIndex } from "./index-math.ts";
import { routineExprs, type Steps, type Tile } from "./routine.ts";

export interface Operand {
  /** Of its elements in memory. */
  readonly dtype: DType;
  readonly elements: number;
  /** `scratch` is workspace that lives only while the kernel runs; it is planned like any other buffer. */
  readonly role: "in" | "out" | "scratch";
}

export interface Store {
  readonly operand: number;
  readonly index: Index;
  readonly value: Expr;
}

export type Combine = "add" | "mul" | "max" | "min" | "or" | "and";

/** How running values and scattered ones are combined; sums where nothing is said. */
export type Accumulation = Exclude<Combine, "or" | "and">;

/** The operand that is the nest's workspace while it runs, where a target asked for one. */
interface Workspaced {
  readonly scratch?: number;
}

export interface MapNest extends Workspaced {
  readonly kind: "map";
  readonly loops: readonly LoopVar[];
  readonly stores: readonly Store[];
  /** Skip the nest if these two operands have the same address (a copy onto itself). */
  readonly skipIfAliased?: readonly [number, number];
}

/**
 * Interleaved: partial accumulators over the last reduce counter r are kept per r mod 16 for the part of the range that
 * fills sixteen, then per r mod 4 (joining accumulators 0-3), then one by one into accumulator 0; they are joined as
 * ((q0+q1)+(q2+q3)) over the four groups of four, then lane 0+lane 2, lane 1+lane 3, and the two sums. For f64 the
 * numbers are 8 and 2. Outer reduce counters run sequentially on the same accumulators.
 *
 * Long sums and products of floats (`usesBlockSums`) are blocked in two levels, so that their error grows with hundreds
 * and not with millions of terms: after every `blockElements` elements of the last counter, and at the end of its range,
 * each accumulator is flushed into a block sum; after every 256 flushes the block sums are flushed into totals; at the end
 * all are.
 *
 *   acc ── 256 iterations ──→ block sum ── 256 flushes ──→ total
 */
export interface ReduceNest extends Workspaced {
  readonly kind: "reduce";
  readonly loops: readonly LoopVar[];
  readonly reduce: readonly LoopVar[];
  readonly order: "sequential" | "interleaved";
  readonly combine: Combine;
  readonly dtype: Accumulator;
  readonly body: Expr;
  readonly stores: readonly Store[];
}

export interface ScanNest extends Workspaced {
  readonly kind: "scan";
  readonly loops: readonly LoopVar[];
  readonly along: LoopVar;
  readonly dtype: Accumulator;
  /** Default: add. Others start from their identity and have no scale. */
  readonly combine?: Accumulation;
  /** Factor of the accumulator before the body is added; null: none. Product and sum are both rounded. */
  readonly scale: Expr | null;
  readonly body: Expr;
  readonly stores: readonly Store[];
}

/**
 * A half-space of a product's counters: outside of it, where rows · i + cols · j + depth · l + constant is above 0, one
 * factor is zero and the term may be left out. Whether a factor that is not finite comes through there is not defined.
 */
export interface Within {
  readonly rows: number;
  readonly cols: number;
  /** ± 1, so that the inside is one run of the depth whose ends need no division. */
  readonly depth: 1 | -1;
  readonly constant: number;
}

/**
 * The product is one of a convolution's: `b` at place p and tap t, both row-major, is a function of p + slides · t on each
 * axis, also after fusion. Which counters they are depends on the axis that is summed:
 *
 *   sums "channels"   columns: places             depth: taps × channels     batch: images, … ; `a` is the same for all images
 *   sums "places"     columns: channels × taps    depth: images × places                       `a` has no taps
 */
export interface Window {
  readonly sums: "channels" | "places";
  readonly places: readonly number[];
  readonly taps: readonly number[];
  readonly slides: 1 | -1;
}

/**
 * The part of a product's depth that is added, [from, to) by batch, where that is data: groups of rows whose ends are known when
 * the program runs. Factors elsewhere are other groups', not zeros.
 */
export interface Span {
  /** Over batch; at least 0. */
  readonly from: Index;
  /** Over batch; at most the depth. Not above `from`: nothing is added. */
  readonly to: Index;
  /** All of the depth or nothing. */
  readonly whole: boolean;
  /** Terms of all batches together, at most: what is expected. */
  readonly terms: number;
}

export interface ContractNest {
  readonly kind: "contract";
  readonly batch: readonly LoopVar[];
  readonly rows: LoopVar;
  readonly cols: LoopVar;
  readonly depth: LoopVar;
  /** When given, `a` and `b` use these two counters in place of depth: depth = outer · inner.extent + inner. */
  readonly split: readonly [outer: LoopVar, inner: LoopVar] | null;
  readonly window?: Window;
  readonly dtype: ProductType;
  /** The type of both factors where it is a narrower one than `dtype`: all of their values are numbers of it. */
  readonly factors?: DType;
  /** Over batch, rows, depth. */
  readonly a: Expr;
  /** Over batch, depth, cols. */
  readonly b: Expr;
  /** Terms are added only inside all of these. */
  readonly within?: readonly Within[];
  /** Terms are added only in it. Not together with `split`. */
  readonly span?: Span;
  /** Over batch, rows, cols: what sums start from, on targets that can (`startsSums`). Not together with `within` or `span`. */
  readonly start?: Expr;
  readonly stores: readonly Store[];
  /** Operand number of the workspace for packed panels. */
  readonly scratch: number;
}

export interface ScatterNest extends Workspaced {
  readonly kind: "scatter";
  readonly loops: readonly LoopVar[];
  /** Default: add. */
  readonly combine?: Accumulation;
  readonly bounds: readonly Bound[];
  readonly operand: number;
  readonly index: Index;
  readonly value: Expr;
}

export interface ShuffleNest extends Workspaced {
  readonly kind: "shuffle";
  /** Counter over the elements; `bits` gives an i32 for each. */
  readonly along: LoopVar;
  readonly bits: Expr;
  readonly operand: number;
}

/**
 * The order of a row's elements. Keys are words of i32 (sort-key.ts), compared one after the other as signed numbers; elements
 * with equal keys stay in the order of the row. So the result is one, whichever way it is computed.
 */
export interface SortNest extends Workspaced {
  readonly kind: "sort";
  readonly loops: readonly LoopVar[];
  /** Counter over the elements of a row, and over places in order, of which only the first may be wanted. */
  readonly along: LoopVar;
  readonly rank: LoopVar;
  /** Of workspace. */
  readonly dtype: "i32";
  /** Over loops and along, the highest word first. */
  readonly keys: readonly Expr[];
  /** Over loops and rank; the accumulator is the number of the element in that place, an i32. */
  readonly stores: readonly Store[];
}

/**
 * Maps that run one after the other for each unit of work; what one leaves for the next is in a tile, which stays in a cache. Units
 * depend on nothing that others store. A target that shares them among threads has a tile for each thread; the others are given maps.
 */
export interface StagedNest {
  readonly kind: "staged";
  readonly units: readonly LoopVar[];
  /** Of the tile. */
  readonly dtype: Accumulator;
  /** The operand that has the tiles of all threads, and the elements of one tile. Indices are those of the first one. */
  readonly tile: { readonly operand: number; readonly elements: number };
  readonly body: readonly MapNest[];
}

/**
 * Attention: the counters of batches, of the query heads that share their keys, of queries, keys, and of the elements of a key
 * and of a value. attend.ts has what is computed, and in which order.
 */
export interface AttendNest extends Workspaced {
  readonly kind: "attend";
  readonly batch: readonly LoopVar[];
  readonly group: LoopVar;
  readonly rows: LoopVar;
  readonly cols: LoopVar;
  readonly depth: LoopVar;
  readonly width: LoopVar;
  readonly dtype: ProductType;
  /**
   * Keys that there are, and by how much a key's number may differ from that of a query that sees it, over batch; null: no
   * limit. The score says the same: this saves time.
   */
  readonly length: Index | null;
  readonly sees: readonly [least: Index | null, most: Index | null];
  /** Over batch, group, rows, depth. */
  readonly q: Expr;
  /** Over batch, cols, depth. */
  readonly k: Expr;
  /** Over batch, cols, width. */
  readonly v: Expr;
  /** Over batch, group, rows, cols, with q·k as the accumulator; -∞ hides a key from a query. */
  readonly score: Expr;
  /** Factor of a weight after the softmax (dropout), over batch, group, rows, cols; null: 1. */
  readonly weight: Expr | null;
  /** Cotangent of the result, over batch, group, rows, width; the rest over batch, group, rows. Forward: null. */
  readonly backward: { readonly g: Expr; readonly logsum: Expr; readonly delta: Expr } | null;
  /** Forward: result and logsum. Backward: cotangents of q, k and v. */
  readonly stores: readonly Store[];
}

/** Steps for every value of the counters, each of which is a unit with tiles of its own (routine.ts). */
export interface RoutineNest extends Workspaced {
  readonly kind: "routine";
  readonly loops: readonly LoopVar[];
  /** Of arrays among the tiles, and of workspace. */
  readonly dtype: FloatScalar;
  readonly tiles: readonly Tile[];
  readonly body: Steps;
  /** Scalar operations of a unit, roughly. */
  readonly flops: number;
}

export type Nest =
  | CollectiveNest
  | MapNest
  | ReduceNest
  | ScanNest
  | ContractNest
  | ScatterNest
  | ShuffleNest
  | SortNest
  | StagedNest
  | AttendNest
  | RoutineNest;

export interface Kernel {
  readonly operands: readonly Operand[];
  readonly nests: readonly Nest[];
  /** No two nests store to one element: they are parts of one result. */
  readonly disjoint?: boolean;
}

/** All stores of a nest, those of its stages too. */
export function storesOf(nest: Nest): readonly Store[] {
  if (nest.kind === "staged") return nest.body.flatMap((map) => map.stores);
  return "stores" in nest ? nest.stores : [];
}

/** Two-level blocked summation: additions to an accumulator between flushes, and flushes into a block sum. */
export const BLOCK_TERMS = 256;

/** Elements of the last counter between flushes into block sums. */
export function blockElements(nest: ReduceNest): number {
  if (nest.order === "sequential") return BLOCK_TERMS;
  return (BLOCK_TERMS * 64) / laneBytes(nest.dtype);
}

/** Whether a reduction is blocked: one that rounds, and of more terms than a block. */
export function usesBlockSums(nest: ReduceNest): boolean {
  const rounds = isFloatScalar(nest.dtype) && (nest.combine === "add" || nest.combine === "mul");
  return rounds && nest.reduce.reduce((terms, v) => terms * v.extent, 1) > blockElements(nest);
}

/** Longest run along the depth of a product with one accumulator. */
export const LONGEST_DEPTH = 512;

/** Length of the runs: equal cuts of at most 512. Each is summed from zero, then they are added up in order. */
export function depthRun(depth: number): number {
  return depth <= LONGEST_DEPTH ? depth : Math.ceil(depth / Math.ceil(depth / LONGEST_DEPTH));
}

/** Rows of each tile where `rows` are cut into the fewest tiles of at most `most`, all equal. */
export function tileRows(rows: number, most: number): number {
  const tiles = Math.ceil(rows / most);
  return tiles === 0 ? 1 : Math.ceil(rows / tiles);
}

/** The identity of a combination. */
export function identityOf(combine: Combine, dtype: Accumulator): number {
  switch (combine) {
    case "add":
    case "or":
      return 0;
    case "mul":
    case "and":
      return 1;
    case "max":
      return typeOf(dtype).lowest;
    case "min":
      return typeOf(dtype).highest;
  }
}

/** An index as an expression. */
export const asExpr = (index: Index): Expr => ({ kind: "index", dtype: "i32", index });

/** Addresses of stores that depend on data (an update at an index computed at run time). */
function dataAddresses(stores: readonly Store[]): readonly Expr[] {
  return stores.filter((s) => s.index.terms.some(({ atom }) => atom.kind !== "var")).map((s) => asExpr(s.index));
}

/** The expressions that a scan evaluates for each element. */
export const scanExprs = ({ scale, body }: ScanNest): readonly Expr[] => (scale ? [scale, body] : [body]);

/** The expressions of attention but for those that are stored. */
export function attendExprs({ q, k, v, score, weight, backward, length, sees }: AttendNest): readonly Expr[] {
  const limits = [length, ...sees].flatMap((limit) => (limit && limit.terms.length > 0 ? [asExpr(limit)] : []));
  return [
    q,
    k,
    v,
    score,
    ...(weight ? [weight] : []),
    ...(backward ? [backward.g, backward.logsum, backward.delta] : []),
    ...limits,
  ];
}

const spanExprs = (span?: Span): readonly Expr[] => (span ? [asExpr(span.from), asExpr(span.to)] : []);

/** That place `l` of the depth is in the span: two bounds. `most`: the depth. */
export function spanBounds({ from, to }: Span, l: Index, most: number): readonly Bound[] {
  return [
    { index: addIndex(l, scaleIndex(from, -1)), lo: 0, hi: most },
    { index: addIndex(to, scaleIndex(l, -1)), lo: 1, hi: most + 1 },
  ];
}

/** Expressions evaluated at the stored element, and those evaluated elsewhere (reduction bodies, panels, addresses). */
export function nestExprs(nest: Nest): { readonly atStore: readonly Expr[]; readonly elsewhere: readonly Expr[] } {
  switch (nest.kind) {
    case "map":
      return { atStore: nest.stores.map((s) => s.value), elsewhere: dataAddresses(nest.stores) };
    case "reduce":
      return { atStore: nest.stores.map((s) => s.value), elsewhere: [nest.body] };
    case "scan":
      return { atStore: [...nest.stores.map((s) => s.value), ...scanExprs(nest)], elsewhere: [] };
    case "contract":
      return {
        atStore: [...nest.stores.map((s) => s.value), ...(nest.start ? [nest.start] : [])],
        elsewhere: [nest.a, nest.b, ...spanExprs(nest.span)],
      };
    case "scatter":
      return {
        atStore: [],
        elsewhere: [nest.value, asExpr(nest.index), ...nest.bounds.map((b) => asExpr(b.index))],
      };
    case "shuffle":
      return { atStore: [], elsewhere: [nest.bits] };
    case "collective":
      return { atStore: [], elsewhere: nest.read ? [nest.read] : [] };
    case "sort":
      return { atStore: [], elsewhere: [...nest.keys, ...nest.stores.map((s) => s.value)] };
    case "staged": {
      const all = nest.body.map(nestExprs);
      return { atStore: [], elsewhere: all.flatMap(({ atStore, elsewhere }) => [...atStore, ...elsewhere]) };
    }
    case "attend":
      return { atStore: [], elsewhere: [...attendExprs(nest), ...nest.stores.map((s) => s.value)] };
    case "routine":
      return { atStore: [], elsewhere: routineExprs(nest) };
  }
}

/**
 * Pairs [in, out] of operands that may share storage: the input is read only at the very element that is stored, in the
 * same iteration. If several nests run one after the other, this must hold for the first one, and no other may read the
 * input. Two exceptions. A `skipIfAliased` copy does nothing if x and y are aliased, so a later nest may read x at the
 * element that it stores:
 *
 *   copy, skipped if aliased:  y[i] = x[i]
 *   map over a window:         y[2 u + 1] = x[2 u + 1] · s[u]
 *
 * And where nests compute disjoint parts of one result, each may read the elements that it stores.
 */
export function inPlacePairs(kernel: Kernel): readonly (readonly [number, number])[] {
  const [first, ...rest] = kernel.nests;
  if (!first) return [];
  if (first.kind === "collective")
    return first.what === "all_reduce" && first.read ? [[first.read.operand, first.to]] : [];
  const copied = first.kind === "map" ? first.skipIfAliased : undefined;
  const later = rest.map((nest) => ({ nest, reads: readsOf(nest) }));
  return pairsOf(first, readsOf(first), kernel.operands).filter(([from, to]) => {
    const untouched = copied?.[0] === from && copied[1] === to;
    return later.every(({ nest, reads }) => {
      if (!reads.atStore.has(from) && !reads.elsewhere.has(from)) return true;
      return (
        (untouched || kernel.disjoint) && pairsOf(nest, reads, kernel.operands).some(([f, t]) => f === from && t === to)
      );
    });
  });
}

interface Reads {
  /** Operand → keys of the indices at which it is read where the nest stores. */
  readonly atStore: ReadonlyMap<number, ReadonlySet<string>>;
  /** Operands read anywhere else. */
  readonly elsewhere: ReadonlySet<number>;
}

function readsOf(nest: Nest): Reads {
  const exprs = nestExprs(nest);
  const atStore = new Map<number, Set<string>>();
  const elsewhere = new Set<number>();
  for (const expr of exprs.elsewhere)
    walkExpr(expr, (e) => {
      if (e.kind === "load") elsewhere.add(e.operand);
    });
  const seen = new Set<Expr>();
  for (const expr of exprs.atStore) {
    walkExpr(
      expr,
      (e) => {
        if (e.kind !== "load") return;
        const keys = atStore.get(e.operand) ?? new Set();
        keys.add(e.index.key);
        atStore.set(e.operand, keys);
      },
      seen,
    );
  }
  return { atStore, elsewhere };
}

/** The pairs that one nest allows. */
function pairsOf(nest: Nest, reads: Reads, operands: readonly Operand[]): readonly (readonly [number, number])[] {
  const stores = "stores" in nest ? nest.stores : [];
  const pairs: (readonly [number, number])[] = [];
  operands.forEach((input, i) => {
    const keys = reads.atStore.get(i);
    if (input.role !== "in" || reads.elsewhere.has(i) || keys?.size !== 1) return;
    for (const store of stores) {
      const out = operands[store.operand];
      if (out && out.dtype === input.dtype && out.elements === input.elements && keys.has(store.index.key)) {
        pairs.push([i, store.operand]);
      }
    }
  });
  return pairs;
}
