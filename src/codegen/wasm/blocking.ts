/**
 * @file Block sizes of products on WebAssembly, and the workspace that follows from them: one A block, one B panel and the
 * sums, for each thread. Pure functions of the product's size, since the planner asks before code exists.
 */
import { bytesOf, type ProductType } from "../../kernel/dtype.ts";
import { depthRun } from "../../kernel/loops.ts";
import { columnsOf, type Tile, tileOf } from "./micro-kernel.ts";

/** Bytes of the packed A block and of the block of partial sums; decisions/0004 has the measurements. */
const BLOCK_BYTES = 192 * 1024;
const SUMS_BYTES = 256 * 1024;
/** Up to this depth, sums of rows from this length on are stored a block at a time, of this size and as many columns. */
const SHORT_DEPTH = 64;
const LONG_ROW = 256;
const SHORT_BYTES = 64 * 1024;
const SHORT_COLUMNS = 64;

/** How a product is cut into blocks. */
export interface Blocking {
  readonly tile: Tile;
  readonly mr: number;
  readonly nr: number;
  readonly mc: number;
  readonly kc: number;
  readonly nc: number;
  /** There are several depth blocks. */
  readonly deep: boolean;
  /** Sums are kept for a whole block, and stored when all of it is there: between depth blocks, or for longer rows. */
  readonly whole: boolean;
  /** Elements of scratch: A block, B panel, sums. */
  readonly scratch: readonly [number, number, number];
}

/** Rows and columns of the result, and elements of a sum. */
export type Extents = readonly [m: number, n: number, k: number];

const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;
/** The greatest multiple of `to` that is at most n, but at least one. */
const roundDown = (n: number, to: number): number => Math.max(1, Math.floor(n / to)) * to;

/**
 * Block sizes for a product. Pure: the planner asks for the scratch size before code exists.
 *
 * @example
 * import { blockingOf } from "tidemark/wasm";
 *
 * console.log(blockingOf("f32", false, [64, 64, 64])); // → { tile: { rows: 4, vectors: 2 }, mr: 4, nr: 8, mc: 64, kc: 64, nc: 64, deep: false, whole: false, scratch: [4096, 512, 32] }
 */
export function blockingOf(dtype: ProductType, fma: boolean, [m, n, k]: Extents): Blocking {
  const tile = tileOf(dtype, fma, m);
  const mr = tile.rows;
  const width = bytesOf(dtype);
  const nr = columnsOf(dtype, tile);
  const kc = depthRun(k);
  const deep = kc < k;
  // With little to sum up, stores are much of the work, and rows of a tile are too short for them.
  const short = !deep && k <= SHORT_DEPTH && n >= LONG_ROW;
  const rows = Math.min(roundUp(m, mr), roundDown(BLOCK_BYTES / (Math.max(1, kc) * width), mr));
  const mc = short ? Math.min(rows, roundDown(SHORT_BYTES / (SHORT_COLUMNS * width), mr)) : rows;
  const most = short ? SHORT_COLUMNS : roundDown(SUMS_BYTES / (mc * width), nr);
  const whole = deep || short;
  const nc = whole ? Math.min(roundUp(n, nr), most) : roundUp(n, nr);
  return { tile, mr, nr, mc, kc, nc, deep, whole, scratch: [mc * kc, kc * nr, whole ? mc * nc : mr * nr] };
}

/** Elements of a thread's workspace where there are several: threads write to cache lines of their own. */
export const threadElements = ({ scratch: [a, b, c] }: Blocking, width: number): number =>
  roundUp(a + b + c, 64 / width);

/**
 * Elements of the workspace operand.
 *
 * @example
 * import { contractScratch } from "tidemark/wasm";
 *
 * console.log(contractScratch("f32", false, [64, 64, 64]) > 0); // → true
 */
export function contractScratch(dtype: ProductType, fma: boolean, extents: Extents, threads = 1): number {
  const [m, n] = extents;
  if (m === 0 || n === 0) return 0;
  const block = blockingOf(dtype, fma, extents);
  const [a, b, c] = block.scratch;
  return threads === 1 ? a + b + c : threads * threadElements(block, bytesOf(dtype));
}
