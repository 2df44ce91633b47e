/** @file Attention on processors: the facts about its stages that code generators share. */

import { attendStages } from "../../kernel/attend.ts";
import type { AttendStages, Stage } from "../../kernel/attend-stages.ts";
import type { Index, LoopVar } from "../../kernel/expr.ts";
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

/** The left side of a product, read in place: an operand at even steps of rows and depth. */
export interface InPlace {
  readonly operand: number;
  /** Of row 0 and depth 0. */
  readonly start: Index;
  readonly rowStep: number;
  readonly depthStep: number;
}

/** Null where the left side is computed, or read at uneven steps: it has to be copied. */
export function leftInPlace({ a, rows, depth, dtype }: ContractNest): InPlace | null {
  if (a.kind !== "load" || a.storage !== dtype) return null;
  const interner = new Interner();
  const steps = [rows, depth].map((v) => linearCoefficient(interner, a.index, v));
  const [rowStep, depthStep] = steps;
  if (rowStep === null || rowStep === undefined || depthStep === null || depthStep === undefined) return null;
  const terms = a.index.terms.filter(({ atom }) => atom !== rows && atom !== depth);
  return { operand: a.operand, start: { ...a.index, terms }, rowStep, depthStep };
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
export const copiedElements = (nest: ContractNest): number =>
  leftInPlace(nest) ? 0 : nest.rows.extent * nest.depth.extent;

const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;

/** Tiles, and room for a copy of a left side, as elements of one thread's workspace. */
export interface AttendLayout {
  readonly stages: AttendStages;
  /** Where each tile begins, and the copy. */
  readonly offsets: readonly number[];
  readonly copy: number;
  readonly elements: number;
}

export function attendLayout(nest: AttendNest, operands: number): AttendLayout {
  const stages = attendStages(nest, operands);
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

/** Elements of the workspace: of every thread where there is anything to compute. */
export function attendScratch(nest: AttendNest, threads: number): number {
  const { stages, elements } = attendLayout(nest, MANY_OPERANDS);
  return unitsOf(stages).count === 0 ? 0 : threads * elements;
}

/** Tiles of stages are numbered behind the operands of any kernel. */
const MANY_OPERANDS = 2 ** 20;

/** Runs of a product's depth: where each begins, and its length. */
export function depthRuns(depth: LoopVar): readonly (readonly [from: number, length: number])[] {
  const run = depthRun(depth.extent);
  if (depth.extent === 0) return [[0, 0]];
  const count = Math.ceil(depth.extent / run);
  return Array.from({ length: count }, (_, r) => [r * run, Math.min(run, depth.extent - r * run)]);
}
