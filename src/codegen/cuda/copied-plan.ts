/**
 * @file Which products on tensor cores have their sides brought by the copy engine (tensor-copied.ts), and how they are cut. The
 * engine needs a matrix whose rows start at multiples of 16 bytes, and tensor cores want rows along the depth. A left side that
 * lies across the depth goes to them through registers; a right one is transposed into the workspace first, where that takes less
 * time than is gained. Where it is too large for that, and the sums of parts go to the workspace anyway, sides may change places:
 *
 *   gradient of a weight       xᵀ · dy    right side dy, 8,192 × 3,072, too large to transpose
 *   changed                    dyᵀ · x    the same sums, stored transposed; x, 8,192 × 768, is transposed
 *
 * Bits are those of the other form, so all this is a choice by time alone. Matrices of bf16 and f16 go to tensor cores as they lie.
 */
import { at } from "../../base/invariant.ts";
import { type Expr, type Index, type LoopVar, operandsOf, walkExpr } from "../../kernel/expr.ts";
import type { ContractNest, Operand, Store } from "../../kernel/loops.ts";
import { product } from "../units.ts";
import { deviceCall } from "./device-math.ts";
import { sumElements, type TensorDevice, type TensorPlan, TILE_DEPTH, TILE_ROWS } from "./tensor-plan.ts";
import { inFours, inRoomyFours, isFourFloat, isWordFloat, matrixOf } from "./tensor-side.ts";
import { FACTORS, type FactorType, rowElements, rowUnit } from "./tensor-types.ts";

type Product = Omit<ContractNest, "scratch">;

/** One side: rows along the depth, in its operand or transposed at an element of the workspace. */
export interface CopiedSide {
  readonly operand: number;
  /** In elements from the operand's start, and from one row to the next. */
  readonly offset: number;
  readonly pitch: number;
  readonly rows: number;
  /** Where in the workspace it is transposed to. */
  readonly transposedAt: number | null;
  /** It lies across the depth, and `pitch` is from one depth to the next. */
  readonly isAcross: boolean;
}

export interface CopiedPlan {
  /** Columns of a tile, and of one instruction. */
  readonly cols: 64 | 128 | 192 | 256;
  readonly stages: number;
  /** Blocks that run at once. */
  readonly blocks: number;
  readonly left: CopiedSide;
  readonly right: CopiedSide;
  /** Sides have changed places, and sums of parts are stored transposed. */
  readonly isChanged: boolean;
  /** Elements from one row of a transposed side to the next. */
  readonly pitch: number;
  /** Elements of it: sums of parts and transposed sides. */
  readonly workspace: number;
  /** Predicted time, transposes included. */
  readonly microseconds: number;
}

/** Stages that 227 KiB of shared memory have room for. */
const SHAPES = [
  { cols: 64, stages: 8 },
  { cols: 128, stages: 6 },
  { cols: 192, stages: 5 },
  { cols: 256, stages: 4 },
] as const;

/** Calls that results consist of, each once, those of the device included. */
export function callsIn(results: readonly Store[]): number {
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (expr.kind === "const" || seen.has(expr)) return;
    seen.add(expr);
    for (const inner of deviceCall(expr)?.args ?? operandsOf(expr)) visit(inner);
  };
  for (const { value } of results) visit(value);
  return [...seen].filter(({ kind }) => kind === "call").length;
}

/** Of a stage of a tile on an H200, in microseconds: at once, and for each column. */
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
function foundSide(expr: Expr, along: LoopVar, depth: LoopVar, factors: FactorType): Found | null {
  const [{ storage, eitherOrder }, unit] = [FACTORS[factors], rowUnit(factors)];
  const matrix = matrixOf(expr, along, depth, storage);
  if (!matrix || matrix.offset % unit !== 0) return null;
  const { operand, offset, alongStride, depthStride } = matrix;
  const side = { operand, offset, rows: along.extent, isAcross: false };
  if (depthStride === 1 && alongStride % unit === 0 && alongStride >= depth.extent) {
    return { ...side, pitch: alongStride, isTurned: false };
  }
  if (alongStride !== 1 || depthStride < along.extent) return null;
  if (!eitherOrder) return { ...side, pitch: depthStride, isTurned: true };
  return depthStride % unit === 0 ? { ...side, pitch: depthStride, isTurned: false, isAcross: true } : null;
}

/** A left side is read through registers where it lies across the depth. */
const throughRegisters = (side: Found | null): Found | null =>
  side?.isTurned && side.pitch % 4 === 0 ? { ...side, isTurned: false, isAcross: true } : side;

/**
 * Whether four neighbouring results are stored at once: sums of parts always are. Where the last four of a row are not full, rows must
 * have room for them, and nothing else is read at their columns.
 */
function storesFours({ stores, cols, start }: Product, operands: readonly Operand[], parts: number): boolean {
  const isWhole = cols.extent % 4 === 0;
  if (start && !(start.kind === "load" && isWordFloat(start.storage) && inFours(start.index, cols))) return false;
  if (parts > 1) return isWhole;
  const fits = isWhole ? inFours : inRoomyFours;
  const isStored = stores.every((s) => fits(s.index, cols) && isFourFloat(at(operands, s.operand).dtype));
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

/** The product with its sides in each other's place. */
export const changedSides = <P extends Product>(nest: P): P => ({
  ...nest,
  ...{ a: nest.b, b: nest.a, rows: nest.cols, cols: nest.rows },
});

/** Null where threads bring the sides. */
export function copiedPlan(
  nest: Product,
  operands: readonly Operand[],
  plan: TensorPlan,
  device: TensorDevice,
): CopiedPlan | null {
  const { batch, split, within, span, start } = nest;
  if (product(batch) !== 1 || split !== null || within !== undefined || span !== undefined) return null;
  const straight = timedPlan(nest, operands, plan, device);
  const mayChange = plan.factors === "tf32" && plan.parts > 1 && !start;
  const other = mayChange ? timedPlan(changedSides(nest), operands, plan, device) : null;
  const isChanged = other !== null && (straight === null || other.time < straight.time);
  const best = isChanged ? other : straight;
  if (!best) return null;
  if (plan.factors === "tf32" && !best.left.isAcross && best.time > GAIN * plan.microseconds) return null;
  const places = placed(best.left, best.right, nest.depth.extent, sumElements(nest, plan));
  return { ...best.shape, blocks: device.multiprocessors, isChanged, ...places, microseconds: best.time };
}

interface TimedPlan {
  readonly left: Found;
  readonly right: Found;
  readonly shape: (typeof SHAPES)[number];
  /** In microseconds, transposing included. */
  readonly time: number;
}

function timedPlan(
  nest: Product,
  operands: readonly Operand[],
  plan: TensorPlan,
  { multiprocessors, tileCols }: TensorDevice,
): TimedPlan | null {
  const { rows, cols, depth } = nest;
  const left = throughRegisters(foundSide(nest.a, rows, depth, plan.factors));
  const right = foundSide(nest.b, cols, depth, plan.factors);
  if (!left || !right || !storesFours(nest, operands, plan.parts)) return null;
  const down = Math.ceil(rows.extent / TILE_ROWS) * plan.parts;
  // of 128 bytes a row, whatever the type
  const stages = (Math.min(plan.partSteps, plan.steps) * TILE_DEPTH) / rowElements(plan.factors);
  const time = (width: number): number => {
    const waves = Math.ceil((down * Math.ceil(cols.extent / width)) / multiprocessors);
    return waves * stages * (STEP_START + STEP_COLUMN * width);
  };
  const shapes = SHAPES.filter((shape) => tileCols === undefined || shape.cols === tileCols);
  const [shape = SHAPES[1]] = [...shapes].sort((x, y) => time(x.cols) - time(y.cols));
  const turned = [left, right].filter(({ isTurned }) => isTurned);
  if (turned.some((side) => side.rows * depth.extent > MOST_TRANSPOSED)) return null;
  const transposes = turned.reduce((t, side) => t + TRANSPOSE_START + 8 * side.rows * depth.extent * TRANSPOSE_BYTE, 0);
  return { left, right, shape, time: time(shape.cols) + transposes };
}

/** Sides with places in the workspace for those that are transposed, behind the sums of parts. */
function placed(
  a: Found,
  b: Found,
  depth: number,
  sums: number,
): Pick<CopiedPlan, "left" | "right" | "pitch" | "workspace"> {
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
