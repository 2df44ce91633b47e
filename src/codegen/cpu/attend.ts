/** @file Attention on processors: the facts about its stages that code generators share. */

import type { AttendStages, Stage } from "../../kernel/attend-stages.ts";
import type { Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { load } from "../../kernel/expr.ts";
import type { AttendNest, ContractNest, MapNest, Store } from "../../kernel/loops.ts";
import { depthRun } from "../../kernel/loops.ts";
import { mapIndices } from "../../kernel/rewrite.ts";
import { Interner, linearCoefficient } from "../intern.ts";
import { product } from "../units.ts";

/** Whether a product is added to what its tile holds. */
export function isAdded({ operand, index, value }: Store): boolean {
  if (value.kind !== "call" || value.fn !== "add") return false;
  const [before, acc] = value.args;
  return before?.kind === "load" && before.operand === operand && before.index.key === index.key && acc?.kind === "acc";
}

/** What follows a product, as a map over the tile that holds its sums. */
export function afterProduct({ rows, cols, dtype, stores }: ContractNest): MapNest {
  const made = stores.map((store): Store => {
    const sum = load(dtype, store.operand, store.index);
    return { ...store, value: mapIndices(store.value, (index) => index, sum) };
  });
  return { kind: "map", loops: [rows, cols], stores: made };
}

/** An operand read in place, at even steps of two counters. */
export interface InPlace {
  readonly operand: number;
  /** Where both are 0. */
  readonly start: Index;
  readonly steps: readonly [number, number];
}

/** Null where an expression is computed, or read at uneven steps. */
export function inPlace(expr: Expr, counters: readonly [LoopVar, LoopVar]): InPlace | null {
  if (expr.kind !== "load" || expr.storage !== expr.dtype) return null;
  const interner = new Interner();
  const [first, second] = counters.map((v) => linearCoefficient(interner, expr.index, v));
  if (first === null || first === undefined || second === null || second === undefined) return null;
  const terms = expr.index.terms.filter(({ atom }) => !counters.some((v) => v === atom));
  return { operand: expr.operand, start: { ...expr.index, terms }, steps: [first, second] };
}

/** Calls `visit` on every product of some stages. */
function visitProducts(stages: readonly Stage[], visit: (nest: ContractNest) => void): void {
  for (const stage of stages) {
    if (stage.kind === "repeat") visitProducts(stage.body, visit);
    else if (stage.kind === "contract") visit(stage);
  }
}

/** The products of a nest's stages. */
export function productsOf({ programs }: AttendStages): readonly ContractNest[] {
  const found: ContractNest[] = [];
  for (const { body } of programs) visitProducts(body, (nest) => found.push(nest));
  return found;
}

/** Elements of the copy of a left side that is not read in place. */
export const copiedElements = ({ a, rows, depth }: ContractNest): number =>
  inPlace(a, [rows, depth]) ? 0 : rows.extent * depth.extent;

const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;

/** Tiles, and room for a copy of a left side, as elements of one thread's workspace. */
export interface AttendLayout {
  readonly stages: AttendStages;
  /** Where each tile begins, and the copy. */
  readonly offsets: readonly number[];
  readonly copy: number;
  readonly elements: number;
}

export function attendLayout(stages: AttendStages): AttendLayout {
  const offsets: number[] = [];
  let top = 0;
  for (const elements of stages.tiles) {
    offsets.push(top);
    top += roundUp(elements, 16);
  }
  const copied = Math.max(0, ...productsOf(stages).map(copiedElements));
  return { stages, offsets, copy: top, elements: roundUp(top + copied, 16) };
}

/** Units of all programs, numbered one after the other. */
export function unitsOf({ programs }: AttendStages): { readonly starts: readonly number[]; readonly count: number } {
  let count = 0;
  const starts = programs.map(({ units }) => {
    const start = count;
    count += product(units);
    return start;
  });
  return { starts, count };
}

/** Whether heads are enough to be the units of so many threads. */
export const hasHeadsFor = ({ batch }: AttendNest, threads: number): boolean =>
  threads === 1 || product(batch) >= 2 * threads;

/** Tiles of stages are numbered behind the operands of any kernel. */
export const MANY_OPERANDS = 2 ** 20;

/** Runs of a product's depth: where each begins, and its length. */
export function depthRuns(depth: LoopVar): readonly (readonly [from: number, length: number])[] {
  const run = depthRun(depth.extent);
  if (depth.extent === 0) return [[0, 0]];
  const count = Math.ceil(depth.extent / run);
  return Array.from({ length: count }, (_, r) => [r * run, Math.min(run, depth.extent - r * run)]);
}
