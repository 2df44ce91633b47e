/** @file How the elements of one side of a product lie in memory: which neighbours are read together. */
import { bytesOf, type DType, isFloat, typeOf } from "../../kernel/dtype.ts";
import { type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { addIndex, divIndex, modIndex, scaleIndex } from "../../kernel/index-math.ts";
import { Interner, linearCoefficient } from "../intern.ts";

/** Whether an operand starts at a multiple of 16 bytes. */
export type Alignment = (operand: number) => boolean;

export interface SideAccess {
  /** Neighbours in memory follow the depth, and not the rows or columns. */
  readonly deep: boolean;
  /** It is nothing but a load, of which four neighbours are read at once. */
  readonly vector: boolean;
}

export interface SideCounters {
  readonly along: LoopVar;
  readonly depth: LoopVar;
  readonly aligned: Alignment;
}

export function neighbours(expr: Expr, { along, depth, aligned }: SideCounters): SideAccess {
  const interner = new Interner();
  let [deep, wide] = [false, false];
  walkExpr(expr, (e) => {
    if (e.kind !== "load") return;
    deep ||= linearCoefficient(interner, e.index, depth) === 1;
    wide ||= linearCoefficient(interner, e.index, along) === 1;
  });
  const isDeep = deep && !wide;
  const inner = isDeep ? depth : along;
  const isPlain = expr.kind === "load" && typeOf(expr.storage).plain && (isDeep || wide);
  return { deep: isDeep, vector: isPlain && aligned(expr.operand) && inFours(expr.index, inner) };
}

/** Whether so many neighbours from a multiple of as many on are there together, and the first of them at a multiple. */
export function inRuns({ terms, offset }: Index, inner: LoopVar, count: number): boolean {
  if (inner.extent % count !== 0 || offset % count !== 0 || terms.every(({ atom }) => atom !== inner)) return false;
  return terms.every(({ atom, coef }) => (atom === inner ? coef === 1 : atom.kind === "var" && coef % count === 0));
}

export const inFours = (index: Index, inner: LoopVar): boolean => inRuns(index, inner, 4);

/**
 * Whether that is so in all rows of a matrix, each with room for a last four that is not full: for columns whose number is no
 * multiple of four.
 */
export function inRoomyFours({ terms, offset }: Index, cols: LoopVar): boolean {
  if (offset % 4 !== 0 || terms.every(({ atom }) => atom !== cols)) return false;
  const room = Math.ceil(cols.extent / 4) * 4;
  return terms.every(({ atom, coef }) =>
    atom === cols ? coef === 1 : atom.kind === "var" && coef % 4 === 0 && coef >= room,
  );
}

/** Whether elements are floats of four bytes, as registers have them. */
export const isWordFloat = (dtype: DType): boolean => isFloat(dtype) && typeOf(dtype).plain && bytesOf(dtype) === 4;

/** Whether four neighbours are read and written at once as floats of four bytes: those, or halves of them. */
export const isFourFloat = (dtype: DType): boolean => isWordFloat(dtype) || (isFloat(dtype) && bytesOf(dtype) === 2);

/** A side that is a matrix in memory: rows at a distance, or columns. */
export interface Matrix {
  readonly operand: number;
  /** Of its first element in the operand. */
  readonly offset: number;
  readonly alongStride: number;
  readonly depthStride: number;
}

/** The matrix of a type that a side is, where it is one. */
export function matrixOf(expr: Expr, along: LoopVar, depth: LoopVar, storage: DType): Matrix | null {
  if (expr.kind !== "load" || expr.storage !== storage) return null;
  const { terms, offset } = expr.index;
  if (terms.some(({ atom }) => atom !== along && atom !== depth)) return null;
  const stride = (v: LoopVar): number => terms.find(({ atom }) => atom === v)?.coef ?? 0;
  return { operand: expr.operand, offset, alongStride: stride(along), depthStride: stride(depth) };
}

/**
 * Where row r of a side is in its tile. Producers of a side that does not follow the depth read four rows at once, eight of
 * them a line of memory; they write one row each at a time, which must be eight neighbours to lie in different banks:
 *
 *   row in memory   0  1  2  3   4  5  6  7   8 …         row in the tile   0  8 16 24   1  9 17 25   2 …
 */
export function placeOf(side: SideAccess & { readonly across: unknown }, r: Index): Index {
  if (side.deep || side.across) return r;
  const within = modIndex(r, 32);
  return addIndex(scaleIndex(divIndex(r, 32), 32), scaleIndex(modIndex(within, 4), 8), divIndex(within, 4));
}
