/**
 * @file Products on tensor cores: which there are, and how each is cut. Operands of f32 are rounded to the nearest number with
 * eleven significant bits (tf32), those of bf16 and f16 are taken as they are; products are added in f32 by the tensor core along
 * the depth in ascending order, eight at a time in tf32 and sixteen otherwise. Where tiles are few, the depth is cut into parts, whose sums are added in order. Which nests are products of this
 * kind, and the parts, follow from the nest's extents alone; tiles change no bit.
 */
import type { ContractNest } from "../../kernel/loops.ts";
import { product } from "../units.ts";
import { type Matrix, matrixOf, neighbours } from "./tensor-side.ts";
import { type FactorType, factorsOf } from "./tensor-types.ts";

type Product = Omit<ContractNest, "scratch">;

/** Rows of a tile: 64 for each of two groups of warps. */
export const TILE_ROWS = 128;
/** Depth of a step: rows of 128 bytes in shared memory in tf32. */
export const TILE_DEPTH = 32;
/** Depth of the pieces that parts consist of, in tiles. */
const PIECE = 16;
/** Extents below which a product is one of f32. */
const LEAST_SIDE = 64;
const LEAST_DEPTH = 32;
/**
 * Tiles of 128 × 128 below which the depth is cut, so that there are at least twice as many; and parts at most. A long depth is cut
 * whatever the tiles, so that strips of rows, which have few, are cut as the whole is.
 */
const FEW_TILES = 264;
const MOST_PARTS = 8;
const LONG_DEPTH = 2 ** 14;

export interface TensorPlan {
  readonly factors: FactorType;
  /** Columns of a tile. */
  readonly cols: 64 | 128 | 192 | 256;
  /** Tiles of shared memory in flight. */
  readonly stages: number;
  /** Threads that fill shared memory. */
  readonly producers: number;
  /** Columns of one instruction. */
  readonly width: 64 | 128 | 192;
  readonly parts: number;
  /** Tiles of depth in a part, and in all. */
  readonly partSteps: number;
  readonly steps: number;
  /** The left side where it is a matrix across the depth, which the copy engine can bring as it is. */
  readonly across: Matrix | null;
  /** Predicted time. */
  readonly microseconds: number;
}

const SHAPES = [
  { cols: 64, width: 64, stages: 8, producers: 256 },
  { cols: 128, width: 128, stages: 6, producers: 256 },
  { cols: 192, width: 192, stages: 4, producers: 256 },
  { cols: 256, width: 128, stages: 4, producers: 256 },
] as const;

/** Time of a step before anything is read, in times of one read of every producer, and that in microseconds: of an H200. */
const STEP_START = 3;
const READ_TIME = 0.07;

/** Time of a step: producers read four elements at a time, or four by four where memory does not follow the depth. */
function stepTime(cols: number, isDeep: boolean, isLeftRead: boolean): number {
  const reads = isDeep ? cols / 32 : 4 * Math.ceil(cols / 128);
  return STEP_START + (isLeftRead ? TILE_ROWS / 32 : 0) + reads;
}

/** The left side as a matrix across the depth whose rows start at multiples of 16 bytes. */
function acrossOf({ a, batch, rows, depth, split, within, span }: Product, factors: FactorType): Matrix | null {
  if (factors !== "tf32" || product(batch) !== 1 || split !== null || within !== undefined || span !== undefined)
    return null;
  const matrix = matrixOf(a, rows, depth, "f32");
  const isAcross = matrix?.alongStride === 1 && matrix.depthStride >= rows.extent;
  return isAcross && matrix.depthStride % 4 === 0 && matrix.offset % 4 === 0 ? matrix : null;
}

/** What the choice of tiles depends on: how many can run at once, and for tests the only shape there is. */
export interface TensorDevice {
  readonly multiprocessors: number;
  readonly tileCols?: TensorPlan["cols"];
}

/** How a product is computed, or null where it is none for tensor cores. */
export function tensorPlan(nest: Product, { multiprocessors, tileCols }: TensorDevice): TensorPlan | null {
  const { batch, rows, cols, depth } = nest;
  const factors = factorsOf(nest);
  if (!factors || depth.extent < LEAST_DEPTH || Math.min(rows.extent, cols.extent) < LEAST_SIDE) return null;
  const down = product(batch) * Math.ceil(rows.extent / TILE_ROWS);
  const tiles = down * Math.ceil(cols.extent / TILE_ROWS);
  const steps = Math.ceil(depth.extent / TILE_DEPTH);
  const pieces = Math.ceil(steps / PIECE);
  const forTiles = tiles < FEW_TILES ? Math.ceil((2 * FEW_TILES) / tiles) : 1;
  const wanted = depth.extent >= LONG_DEPTH ? MOST_PARTS : forTiles;
  const partSteps = Math.ceil(pieces / Math.min(wanted, MOST_PARTS, pieces)) * PIECE;
  const parts = Math.ceil(steps / partSteps);
  const waves = (width: number): number => Math.ceil((down * Math.ceil(cols.extent / width) * parts) / multiprocessors);
  const shapes = SHAPES.filter((shape) => tileCols === undefined || shape.cols === tileCols);
  const counters = { along: cols, depth: nest.split?.[1] ?? depth, aligned: () => true };
  const { deep } = neighbours(nest.b, counters);
  const across = acrossOf(nest, factors);
  const time = (width: number): number => waves(width) * stepTime(width, deep, across === null);
  const [best = SHAPES[1]] = shapes.sort((a, b) => time(a.cols) - time(b.cols));
  const microseconds = time(best.cols) * Math.min(partSteps, steps) * READ_TIME;
  return { ...best, factors, parts, partSteps, steps, across, microseconds };
}

/** Elements of workspace: the sums of every part where there are several. */
export const sumElements = (nest: Product, { parts }: TensorPlan): number =>
  parts > 1 ? parts * product([...nest.batch, nest.rows, nest.cols]) : 0;
