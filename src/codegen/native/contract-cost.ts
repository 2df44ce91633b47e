/** @file What ways of computing a product cost, in rough cycles: for comparing them with each other alone. */
import { type Expr, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { type Interner, linearCoefficient } from "../intern.ts";
import { product } from "../units.ts";
import { grainOf, type Side, type Stretches } from "./contract-access.ts";
import type { Product, ProductPlan } from "./contract-plan.ts";
import { columnsOf } from "./contract-window.ts";

/** Cycles an element of an expression costs to compute with a counter in the lanes; rough, for comparisons alone. */
function fillCost(interner: Interner, expr: Expr, v: LoopVar, lanes: number): number {
  let [calls, guards] = [0, 0];
  walkExpr(expr, (e) => {
    if (e.kind === "call") calls += 1;
    if (e.kind !== "guard") return;
    for (const { index } of e.bounds) {
      const coef = linearCoefficient(interner, index, v);
      // Divisions are done lane by lane.
      if (coef === null) guards += 5;
      else if (coef !== 0) guards += 1;
    }
  });
  const { whole, single } = grainOf(interner, expr, v);
  const filled = (Math.ceil(v.extent / lanes) * lanes) / v.extent;
  return filled * (0.15 + 0.15 * whole + 0.07 * calls + 0.4 * guards) + (guards > 0 ? 5 : 2) * single;
}

/** An expression with a counter in the lanes. */
type LaneFill = Pick<Side, "expr" | "lane">;

/** The same for a counter of a product: along places of a window, rows of them are packed one by one. */
export function sideCost(interner: Interner, nest: Product, { expr, lane }: LaneFill, lanes: number): number {
  const columns = columnsOf(nest, lane);
  if (columns === null) return fillCost(interner, expr, lane, lanes);
  let calls = 0;
  walkExpr(expr, (e) => (calls += e.kind === "call" ? 1 : 0));
  return (Math.ceil(columns / lanes) * lanes * (0.3 + 0.07 * calls) + 20) / columns;
}

/** Cycles an element costs where blocks of stretches are turned round. */
export function transposeCost({ count, length }: Stretches, lanes: number, depth: number): number {
  return (0.5 * count * Math.ceil(length / lanes) * lanes) / Math.max(1, depth);
}

/** Rough cycles of a plan: multiplications, packing, turning tiles. */
export function cyclesOf(interner: Interner, nest: Product, plan: ProductPlan): number {
  const { lanes } = plan;
  const all = product([...plan.batch, ...plan.folded]);
  const rows = all * plan.spread.extent;
  const depth = nest.depth.extent;
  const cost = (width: number): number => (width === lanes ? 1 : 0.5);
  const of = (widths: readonly number[]): number => widths.reduce((sum, w) => sum + cost(w), 0);
  const vectors = plan.panels.count * of(plan.panels.widths) + of(plan.panels.tail);
  const height = plan.tiling.period / plan.tiling.sizes.length;
  const perPanel = Math.max(1, Math.min(plan.panels.widths.length, vectors));
  const held = height * perPanel;
  const waits = Math.max(1, (perPanel + height / 2) / held, 6 / held);
  const inner = (nest.split ?? [nest.depth]).at(-1) as LoopVar;
  const fill = (expr: Expr, lane: LoopVar): number => sideCost(interner, nest, { expr, lane }, lanes);
  const spreadFill = {
    direct: 0,
    padded: plan.s.kind === "padded" ? (plan.s.padding.elements / Math.max(1, plan.spread.extent * depth)) * 0.3 : 0,
    rows: fill(plan.spreadExpr, inner),
    along: fill(plan.spreadExpr, plan.spread),
  }[plan.s.kind];
  const vectorFill = {
    direct: 0,
    along: fill(plan.vectorExpr, plan.vector),
    across: 0.4,
    permuted: plan.v.kind === "permuted" ? transposeCost(plan.v.stretches, lanes, depth) : 0,
    turned: fill(plan.vectorExpr, inner) + 0.4,
  }[plan.v.kind];
  const tiles = (rows / plan.tiling.period) * plan.tiling.sizes.length;
  const times = plan.resident ? product(plan.batch) : Math.max(1, tiles / plan.blockTiles);
  return (
    rows * vectors * depth * waits +
    rows * depth * spreadFill +
    times * plan.vector.extent * depth * vectorFill +
    rows * plan.vector.extent * (plan.swapped ? 0.6 : 0.1)
  );
}
