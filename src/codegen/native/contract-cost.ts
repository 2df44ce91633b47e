/** @file The cost of ways to compute a product, in rough cycles: only for comparing them with each other. */
import { type Expr, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { type Interner, linearCoefficient } from "../intern.ts";
import { product } from "../units.ts";
import { grainOf, type Side, type Stretches } from "./contract-access.ts";
import type { Product, ProductPlan } from "./contract-plan.ts";
import { columnsOf } from "./contract-window.ts";

/** Rough cycles to compute an element of an expression with a counter in the lanes. */
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

/** The same for a counter of a product. Places of a window are packed row by row. */
export function sideCost(interner: Interner, nest: Product, { expr, lane }: LaneFill, lanes: number): number {
  const columns = columnsOf(nest, lane);
  if (columns === null) return fillCost(interner, expr, lane, lanes);
  let calls = 0;
  walkExpr(expr, (e) => (calls += e.kind === "call" ? 1 : 0));
  return (Math.ceil(columns / lanes) * lanes * (0.3 + 0.07 * calls) + 20) / columns;
}

/** Cycles of an element where blocks of stretches are transposed. */
export function transposeCost({ count, length }: Stretches, lanes: number, depth: number): number {
  return (0.5 * count * Math.ceil(length / lanes) * lanes) / Math.max(1, depth);
}

/** Rough cycles of a plan: multiplications, packing, transposing tiles. */
export function cyclesOf(interner: Interner, nest: Product, plan: ProductPlan): number {
  const { lanes } = plan;
  const all = product([...plan.batch, ...plan.mergedBatch]);
  const rows = all * plan.broadcast.extent;
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
  const broadcastFill = {
    "in-place": 0,
    padded: plan.s.kind === "padded" ? (plan.s.padding.elements / Math.max(1, plan.broadcast.extent * depth)) * 0.3 : 0,
    "row-major": fill(plan.broadcastExpr, inner),
    "depth-major": fill(plan.broadcastExpr, plan.broadcast),
  }[plan.s.kind];
  const vectorFill = {
    "in-place": 0,
    "depth-major": fill(plan.vectorExpr, plan.vector),
    transposed: 0.4,
    permuted: plan.v.kind === "permuted" ? transposeCost(plan.v.stretches, lanes, depth) : 0,
    "computed-transposed": fill(plan.vectorExpr, inner) + 0.4,
  }[plan.v.kind];
  const tiles = (rows / plan.tiling.period) * plan.tiling.sizes.length;
  const times = plan.resident ? product(plan.batch) : Math.max(1, tiles / plan.blockTiles);
  return (
    rows * vectors * depth * waits +
    rows * depth * broadcastFill +
    times * plan.vector.extent * depth * vectorFill +
    rows * plan.vector.extent * (plan.swapped ? 0.6 : 0.1)
  );
}
