/**
 * @file The work of each form of loop nest: how often its body runs, the work of the body (instructions.ts), and, for
 * products, the cost of packing. Counted as targets run it, not by the mathematical definition: rows whose length is no multiple
 * of a register end in iterations with one lane in use; the sides of a product are rounded up to its tile; an input gradient
 * of a strided convolution multiplies the zeros between its elements.
 */

import { attendStages } from "../../kernel/attend.ts";
import { stageRuns } from "../../kernel/attend-stages.ts";
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import type {
  AttendNest,
  ContractNest,
  MapNest,
  Nest,
  ReduceNest,
  ScanNest,
  ScatterNest,
  ShuffleNest,
  SortNest,
  StagedNest,
  Store,
} from "../../kernel/loops.ts";
import { depthRun, scanExprs, tileRows } from "../../kernel/loops.ts";
import { MANY_OPERANDS } from "./attend.ts";
import { BodyCounter, Dependence, LANES, type Place, WEIGHT } from "./instructions.ts";

/** How a target blocks its products. */
export interface ProductTile {
  readonly rows: number;
  readonly columns: number;
  /** Bytes of the left side that are packed at a time; the right side is packed once for each such block. */
  readonly blockBytes: number;
  /** A product of few rows has as many tiles, each of no more rows than it needs (`tileRows`). */
  readonly even?: boolean;
  /** Operands are read where they are, and nothing is packed. */
  readonly inPlace?: boolean;
  /** Of a product that another algorithm computes; null where none does. */
  otherAlgorithm?(nest: ContractNest): ProductCycles | null;
}

/** Cycles of a product, each a multiplication of registers of so many lanes; packing is among them. */
export interface ProductCycles {
  readonly cycles: number;
  readonly lanes: number;
}

/** Tiles of 4 × 8, blocks of 192 KiB. */
export const DEFAULT_TILE: ProductTile = { rows: 4, columns: 8, blockBytes: 192 * 1024, even: true };

/** The work of a nest: flops of products, and element operations (a vector operation counts for all its lanes). */
export interface NestWork {
  readonly productFlops: number;
  readonly arithmetic: number;
}

const product = (loops: readonly LoopVar[]): number => loops.reduce((n, v) => n * v.extent, 1);
const live = (loops: readonly LoopVar[]): LoopVar[] => loops.filter((v) => v.extent !== 1);
/** Iterations over a row: whole registers, then element by element. */
const iterationsOf = (extent: number): number => Math.floor(extent / LANES) + (extent % LANES);
const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;
const arithmetic = (vectorOperations: number): NestWork => ({
  productFlops: 0,
  arithmetic: vectorOperations * LANES,
});

function counter(place: Place, exprs: readonly Expr[], stores: readonly Store[]): BodyCounter {
  const body = new BodyCounter(place);
  for (const expr of exprs) body.add(expr);
  for (const store of stores) body.store(store);
  return body;
}

/** A loop over registers, several of them in one iteration. */
function loop(body: BodyCounter, registers: number, abreast = 1): number {
  const { each, iteration, entry } = body.count;
  return entry + registers * (each + iteration / abreast);
}

function mapWork({ loops, stores }: MapNest): NestWork {
  const outer = live(loops);
  const inner = outer.pop() ?? null;
  return arithmetic(
    product(outer) * loop(counter({ lane: inner, inner }, [], stores), iterationsOf(inner?.extent ?? 1)),
  );
}

/** Registers that a reduction adds in one iteration, so that additions need not wait for each other. */
const ABREAST = 4;

/** Block sums add nothing measurable: one combination in 256. */
function reduceWork(nest: ReduceNest): NestWork {
  const [kept, reduced] = [live(nest.loops), live(nest.reduce)];
  const inner = reduced.pop() ?? null;
  const across = nest.order === "interleaved";
  const lane = across ? inner : (kept.pop() ?? null);
  const body = counter({ lane, inner }, [nest.body], []);
  body.simple(1);
  const end = counter({ lane: across ? null : lane, inner: null }, [], nest.stores).count.each;
  const [rows, runs] = [product(kept), product(reduced)];
  const registers = iterationsOf(lane?.extent ?? 1);
  if (across) {
    // accumulators are joined at the end of every row
    return arithmetic(rows * (runs * loop(body, registers, ABREAST) + end + 3 * LANES * WEIGHT.simple));
  }
  const abreast = Math.min(ABREAST, registers);
  return arithmetic(rows * registers * (runs * loop(body, inner?.extent ?? 1, abreast) + end));
}

function scanWork(nest: ScanNest): NestWork {
  const { loops, along, stores } = nest;
  const outer = live(loops);
  const lane = outer.pop() ?? null;
  const exprs = scanExprs(nest);
  const all = counter({ lane, inner: along }, exprs, stores);
  all.simple(exprs.length);
  return arithmetic(product(outer) * iterationsOf(lane?.extent ?? 1) * loop(all, along.extent));
}

/** A vector at a time where a row lands side by side, else one update after the other. */
function scatterWork({ loops, bounds, index, value, operand }: ScatterNest): NestWork {
  const dependence = new Dependence();
  const outer = live(loops);
  const last = outer.at(-1) ?? null;
  const dense =
    last !== null &&
    dependence.coefficient(index, last) === 1 &&
    bounds.every((bound) => dependence.coefficient(bound.index, last) === 0);
  const inner = dense ? last : null;
  if (dense) outer.pop();
  const body = counter({ lane: inner, inner }, [], [{ operand, index, value }]);
  body.simple(2 + 2 * bounds.length);
  return arithmetic(product(outer) * loop(body, iterationsOf(inner?.extent ?? 1)));
}

/** How much of the depth has anything to add, over all rows and columns: 1 where nothing is left out. */
function depthShare({ batch, rows, cols, depth, span, within = [] }: ContractNest): number {
  let share = span ? Math.min(1, span.terms / Math.max(1, product(batch) * depth.extent)) : 1;
  for (const half of within) {
    const [side, coef] = half.rows === 0 ? [cols, half.cols] : [rows, half.rows];
    let inside = 0;
    for (let i = 0; i < side.extent; i++) {
      // depth · l ≤ -(coef · i + constant)
      const most = -(coef * i + half.constant) / half.depth;
      const count = half.depth > 0 ? Math.floor(most) + 1 : depth.extent - Math.ceil(most);
      inside += Math.min(depth.extent, Math.max(0, count));
    }
    share = Math.min(share, inside / Math.max(1, side.extent * depth.extent));
  }
  return share;
}

/**
 * Panels of both sides are packed element by element from their expressions, in runs along the depth; tiles are stored
 * row by row as they are finished.
 */
function contractWork(nest: ContractNest, most: ProductTile, elementBytes: number): NestWork {
  const [m, n, k] = [nest.rows.extent, nest.cols.extent, nest.depth.extent];
  const tile = most.even ? { ...most, rows: tileRows(m, most.rows) } : most;
  const [high, wide] = [roundUp(m, tile.rows), roundUp(n, tile.columns)];
  const batch = product(nest.batch);
  const inner = nest.split?.[1] ?? nest.depth;
  const runs = k / Math.max(1, inner.extent);
  const panel = (expr: Expr, lane: LoopVar, lanes: number): number => {
    const { each, iteration, entry } = counter({ lane, inner, panel: true }, [expr], []).count;
    const registers = Math.max(1, lanes / LANES);
    // every register of a panel is stored
    return runs * (entry * registers + inner.extent * (iteration + WEIGHT.bump + registers * (each + WEIGHT.access)));
  };
  const kc = Math.max(1, depthRun(k));
  const block = Math.max(tile.rows, Math.floor(tile.blockBytes / (kc * elementBytes) / tile.rows) * tile.rows);
  const packed = tile.inPlace ? 0 : 1;
  const left = packed * (high / tile.rows) * panel(nest.a, nest.rows, tile.rows);
  const right = packed * (wide / tile.columns) * panel(nest.b, nest.cols, tile.columns) * Math.ceil(m / block);
  const end = counter({ lane: nest.cols, inner: nest.cols }, [], nest.stores).count;
  const pieces = kc < k ? 1 : wide / tile.columns;
  const stores = m * (pieces * end.entry + iterationsOf(n) * (end.each + end.iteration + WEIGHT.access + WEIGHT.bump));
  const other = tile.otherAlgorithm?.(nest) ?? null;
  if (other) return { productFlops: 2 * other.lanes * other.cycles, arithmetic: LANES * batch * stores };
  const share = depthShare(nest);
  return {
    productFlops: 2 * batch * high * wide * k * share,
    arithmetic: LANES * batch * (share * left + right + stores),
  };
}

/** Two elements change places for every element, one at a time. */
function shuffleWork({ along, bits }: ShuffleNest): NestWork {
  const body = counter({ lane: null, inner: along }, [bits], []);
  body.simple(3 * LANES);
  return arithmetic(loop(body, along.extent));
}

/** A count and a move for every byte of the keys, one element at a time. */
function sortWork({ loops, along, rank, keys, stores }: SortNest): NestWork {
  const body = counter({ lane: along, inner: along }, keys, []);
  const end = counter({ lane: rank, inner: rank }, [], stores);
  const moves = 8 * keys.length * along.extent;
  return arithmetic(
    product(loops) * (loop(body, iterationsOf(along.extent)) + moves + loop(end, iterationsOf(rank.extent))),
  );
}

/** That of its stages, as often as they run. */
function attendWork(nest: AttendNest, tile: ProductTile, elementBytes: number): NestWork {
  const sum = { productFlops: 0, arithmetic: 0 };
  for (const units of attendStages(nest, MANY_OPERANDS).programs) {
    for (const { nest: stage, runs } of stageRuns(units)) {
      const { productFlops, arithmetic } = nestWork(stage, tile, elementBytes);
      sum.productFlops += runs * productFlops;
      sum.arithmetic += runs * arithmetic;
    }
  }
  return sum;
}

function stagedWork({ units, body }: StagedNest): NestWork {
  const once = body.reduce((sum, map) => sum + mapWork(map).arithmetic, 0);
  return { productFlops: 0, arithmetic: product(units) * once };
}

export function nestWork(nest: Nest, tile: ProductTile, elementBytes: number): NestWork {
  switch (nest.kind) {
    case "map":
      return mapWork(nest);
    case "reduce":
      return reduceWork(nest);
    case "scan":
      return scanWork(nest);
    case "scatter":
      return scatterWork(nest);
    case "contract":
      return contractWork(nest, tile, elementBytes);
    case "shuffle":
      return shuffleWork(nest);
    case "sort":
      return sortWork(nest);
    case "staged":
      return stagedWork(nest);
    case "attend":
      return attendWork(nest, tile, elementBytes);
    // what it moves is counted as bytes
    case "collective":
      return arithmetic(0);
    case "routine":
      return arithmetic((product(nest.loops) * nest.flops) / LANES);
  }
}
