/**
 * @file Which products on tensor cores have their sides brought by the copy engine (tensor-copied.ts), and how they are cut. The
 * engine needs a matrix whose rows start at multiples of 16 bytes, and tensor cores want rows along the depth; a matrix that
 * lies the other way is transposed into the workspace first, where that takes less time than is gained. Bits are those
 * of the other form, so this is a choice by time alone.
 */
import { at } from "../../base/invariant.ts";
import { type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import type { ContractNest, Operand, Store } from "../../kernel/loops.ts";
import { product } from "../units.ts";
import { sumElements, type TensorDevice, type TensorPlan, TILE_ROWS } from "./tensor-plan.ts";
import { inFours, inRoomyFours, isWordFloat, matrixOf } from "./tensor-side.ts";

type Product = Omit<ContractNest, "scratch">;

/** One side: rows along the depth, in its operand or transposed at an element of the workspace. */
export interface CopiedSide {
  readonly operand: number;
  /** In elements from the operand's start, and from one row to the next. */
  readonly offset: number;
  readonly pitch: number;
  readonly rows: number;
  readonly transposedAt: number | null;
}

export interface CopiedPlan {
  /** Columns of a tile, and of one instruction. */
  readonly cols: 64 | 128 | 192 | 256;
  readonly stages: number;
  /** Blocks that run at once: on the device, and on one multiprocessor. */
  readonly blocks: number;
  readonly together: 1 | 2;
  readonly left: CopiedSide;
  readonly right: CopiedSide;
  /** Elements from one row of a transposed side to the next. */
  readonly pitch: number;
  /** Elements of it: sums of parts and transposed sides. */
  readonly workspace: number;
}

/** Stages that 227 KiB of shared memory have room for. */
const SHAPES = [
  { cols: 64, stages: 8, together: 1 },
  { cols: 128, stages: 6, together: 1 },
  { cols: 192, stages: 5, together: 1 },
  { cols: 256, stages: 4, together: 1 },
] as const;
/** Two blocks on a multiprocessor: one multiplies while the other computes what is made of its sums. */
const PAIRED = { cols: 128, stages: 3, together: 2 } as const;
/** Calls for one sum from which that takes as long as the product. */
const MANY_CALLS = 24;

/** Calls that results consist of, each once. */
export function callsIn(results: readonly Store[]): number {
  const seen = new Set<Expr>();
  for (const { value } of results) {
    walkExpr(value, (e) => {
      if (e.kind === "call") seen.add(e);
    });
  }
  return seen.size;
}

/** Of a step of a tile on an H200, in microseconds: at once, and for each column. */
const STEP_START = 0.08;
const STEP_COLUMN = 0.72 / 256;
/** Of a transpose: at once, and for each byte that it reads and writes. */
const TRANSPOSE_START = 2;
const TRANSPOSE_BYTE = 1 / 3.8e6;
/** Elements of a side that is transposed, at most: it takes workspace. */
const MOST_TRANSPOSED = 2 ** 23;
/** What must be gained to spend workspace. */
const GAIN = 0.9;
/** Elements that parts of the workspace start at multiples of. */
const ROUND = 64;

const rounded = (elements: number, to: number): number => Math.ceil(elements / to) * to;

type Found = Omit<CopiedSide, "transposedAt"> & { readonly isTurned: boolean };

/** A side as the copy engine can have it, or null. */
function foundSide(expr: Expr, along: LoopVar, depth: LoopVar): Found | null {
  const matrix = matrixOf(expr, along, depth);
  if (!matrix || matrix.offset % 4 !== 0) return null;
  const { operand, offset, alongStride, depthStride } = matrix;
  const side = { operand, offset, rows: along.extent };
  if (depthStride === 1 && alongStride % 4 === 0 && alongStride >= depth.extent) {
    return { ...side, pitch: alongStride, isTurned: false };
  }
  if (alongStride === 1 && depthStride >= along.extent) return { ...side, pitch: depthStride, isTurned: true };
  return null;
}

/**
 * Whether four neighbouring results are stored at once: sums of parts always are. Where the last four of a row are not full, rows must
 * have room for them, and nothing else is read at their columns.
 */
function storesFours({ stores, cols }: Product, operands: readonly Operand[], parts: number): boolean {
  const isWhole = cols.extent % 4 === 0;
  if (parts > 1) return isWhole;
  const fits = isWhole ? inFours : inRoomyFours;
  const isStored = stores.every((s) => fits(s.index, cols) && isWordFloat(at(operands, s.operand).dtype));
  return isStored && (isWhole || stores.every(({ value }) => !readsAlong(value, cols)));
}

/** Whether an element is read whose place depends on a counter. */
function readsAlong(value: Expr, along: LoopVar): boolean {
  let isFound = false;
  walkExpr(value, (e) => {
    isFound ||= e.kind === "load" && !isWithout(e.index, along);
  });
  return isFound;
}

const isWithout = ({ terms }: Index, along: LoopVar): boolean =>
  terms.every(({ atom }) => atom.kind === "var" && atom !== along);

/** Null where threads bring the sides. */
export function copiedPlan(
  nest: Product,
  operands: readonly Operand[],
  plan: TensorPlan,
  { multiprocessors, tileCols, blocks }: TensorDevice,
): CopiedPlan | null {
  const { batch, rows, cols, depth, split, within, span } = nest;
  if (product(batch) !== 1 || split !== null || within !== undefined || span !== undefined) return null;
  if (nest.start) return null;
  const [a, b] = [foundSide(nest.a, rows, depth), foundSide(nest.b, cols, depth)];
  if (!a || !b || !storesFours(nest, operands, plan.parts)) return null;
  const down = Math.ceil(rows.extent / TILE_ROWS) * plan.parts;
  const time = (width: number): number => {
    const waves = Math.ceil((down * Math.ceil(cols.extent / width)) / multiprocessors);
    return waves * Math.min(plan.partSteps, plan.steps) * (STEP_START + STEP_COLUMN * width);
  };
  const shapes = SHAPES.filter((shape) => tileCols === undefined || shape.cols === tileCols);
  const [best = SHAPES[1]] = [...shapes].sort((x, y) => time(x.cols) - time(y.cols));
  const turned = [a, b].filter(({ isTurned }) => isTurned);
  const transposes = turned.reduce((t, side) => t + TRANSPOSE_START + 8 * side.rows * depth.extent * TRANSPOSE_BYTE, 0);
  if (turned.some((side) => side.rows * depth.extent > MOST_TRANSPOSED)) return null;
  if (time(best.cols) + transposes > GAIN * plan.microseconds) return null;
  const isPaired = blocks === undefined ? plan.parts === 1 && callsIn(nest.stores) > MANY_CALLS : blocks === 2;
  const shape = isPaired && tileCols === undefined ? PAIRED : best;
  return { ...shape, blocks: shape.together * multiprocessors, ...placed(a, b, depth.extent, sumElements(nest, plan)) };
}

/** Sides with places in the workspace for those that are transposed, behind the sums of parts. */
function placed(
  a: Found,
  b: Found,
  depth: number,
  sums: number,
): Omit<CopiedPlan, "cols" | "stages" | "blocks" | "together"> {
  const pitch = rounded(depth, ROUND);
  const start = rounded(sums, ROUND);
  const elements = ({ isTurned, rows }: Found): number => (isTurned ? rows * pitch : 0);
  const side = ({ isTurned, ...rest }: Found, at: number): CopiedSide => ({
    ...rest,
    transposedAt: isTurned ? at : null,
  });
  const transposed = elements(a) + elements(b);
  return {
    left: side(a, start),
    right: side(b, start + elements(a)),
    pitch,
    workspace: transposed > 0 ? start + transposed : sums,
  };
}
