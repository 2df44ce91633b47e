/**
 * @file Routines: what one thread does to one matrix, step by step, where each step needs the ones before it (a factorization, an
 * iteration until something is small). A routine is the body of a nest of its own kind (loops.ts), written once in the scalar
 * language and rendered by every target:
 *
 *   for k in [0, n):                         a loop whose bounds may depend on counters around it, and on data
 *     set d = √a[k, k]                       assignments: all values first, then all stores
 *     each i in [k + 1, n): a[i, k] /= d     a loop whose iterations do not read what others of them store
 *     if d < ε: …
 *     while test, at most 30 times: …
 *
 * A unit has memory of its own, its tiles, numbered from `FIRST_TILE` on in loads and stores: single values, and arrays of the
 * nest's type in workspace. They are not set when a unit starts. Bounds of loops are read once, before the first iteration.
 *
 * Only iterations of `each` may run in any order, or in lanes; and what such a loop reads at places that do not depend on its
 * counter it does not store. Nothing is contracted, and nothing else is left to targets: the order of arithmetic is the text.
 */
import type { FloatScalar } from "./dtype.ts";
import { type Expr, type Index, type LoopVar, walkExpr } from "./expr.ts";
import type { RoutineNest, Store } from "./loops.ts";

export type Step =
  | { readonly kind: "set"; readonly stores: readonly Store[] }
  | { readonly kind: "for"; readonly counter: LoopVar; readonly from: Index; readonly to: Index; readonly body: Steps }
  /** The body is assignments alone. */
  | {
      readonly kind: "each";
      readonly counter: LoopVar;
      readonly from: Index;
      readonly to: Index;
      readonly body: readonly Assignment[];
    }
  | { readonly kind: "if"; readonly test: Expr; readonly body: Steps; readonly otherwise: Steps }
  | { readonly kind: "while"; readonly test: Expr; readonly most: number; readonly body: Steps };

export type Steps = readonly Step[];
export type Assignment = Extract<Step, { kind: "set" }>;

/** Memory of a unit: a single value of any of these types, or an array of the nest's type. */
export type Tile =
  | { readonly kind: "single"; readonly dtype: FloatScalar | "i32" }
  | { readonly kind: "array"; readonly elements: number };

/** The number of the first tile: above that of any operand. */
export const FIRST_TILE: number = 2 ** 20;

export const isTile = (operand: number): boolean => operand >= FIRST_TILE;

/** Where the arrays of a unit begin in its workspace, by tile; those of single values are null. */
export function tileOffsets(tiles: readonly Tile[]): {
  readonly offsets: readonly (number | null)[];
  readonly elements: number;
} {
  let elements = 0;
  const offsets = tiles.map((tile) => {
    if (tile.kind === "single") return null;
    const start = elements;
    // at whole cache lines
    elements += Math.ceil(tile.elements / 16) * 16;
    return start;
  });
  return { offsets, elements };
}

const asValue = (index: Index): Expr => ({ kind: "index", dtype: "i32", index });

/** Calls `visit` on every step, outer ones first. */
export function walkSteps(steps: Steps, visit: (step: Step) => void): void {
  for (const step of steps) {
    visit(step);
    if (step.kind === "set") continue;
    walkSteps(step.body, visit);
    if (step.kind === "if") walkSteps(step.otherwise, visit);
  }
}

/** All stores of a routine. */
export function routineStores({ body }: Pick<RoutineNest, "body">): readonly Store[] {
  const stores: Store[] = [];
  walkSteps(body, (step) => {
    if (step.kind === "set") stores.push(...step.stores);
  });
  return stores;
}

/** All expressions of a routine, addresses and bounds too. */
export function routineExprs({ body }: Pick<RoutineNest, "body">): readonly Expr[] {
  const exprs: Expr[] = [];
  walkSteps(body, (step) => {
    if (step.kind === "set") exprs.push(...step.stores.flatMap(({ value, index }) => [value, asValue(index)]));
    else if (step.kind === "if" || step.kind === "while") exprs.push(step.test);
    else exprs.push(asValue(step.from), asValue(step.to));
  });
  return exprs;
}

/** A memory and a constant element offset in it. */
export interface Place {
  readonly operand: number;
  readonly offset: number;
}

/** The places that a routine reads and stores to, each once; of tiles or of operands. */
export function routinePlaces(nest: Pick<RoutineNest, "body">, tiles: boolean): readonly Place[] {
  const places = new Map<string, Place>();
  const add = (operand: number, { offset }: Index): void => {
    if (isTile(operand) === tiles) places.set(`${operand}+${offset}`, { operand, offset });
  };
  const seen = new Set<Expr>();
  for (const expr of routineExprs(nest)) {
    walkExpr(expr, (e) => (e.kind === "load" ? add(e.operand, e.index) : undefined), seen);
  }
  for (const { operand, index } of routineStores(nest)) add(operand, index);
  return [...places.values()];
}
