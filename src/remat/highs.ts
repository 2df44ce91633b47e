/**
 * @file HiGHS (Huangfu and Hall, 2018) as the solver of integer programs: what the package `highs`, its WebAssembly build,
 * resolves to becomes an `ExactPlanner`. Nothing is loaded here: `tidemark/node` finds the package by itself, elsewhere it
 * is given as the option `solver`.
 */
import type { ExactPlanner, SolverAnswer, SolverLimits } from "../plan/recompute/solver.ts";
import { exactPlanner } from "./exact-planner.ts";

/** The part of the loaded package that is used. */
export interface Highs {
  createModel(source: { readonly format: "lp"; readonly data: string }): Model;
}

interface Model {
  readonly options: { set(values: Readonly<Record<string, number | boolean>>): unknown };
  readonly info: { get(name: string): number | bigint };
  run(): unknown;
  getModelStatus(): number;
  getObjectiveValue(): number;
  getSolution(): { readonly colValue: ArrayLike<number> };
  getColName(index: number): string;
  dispose(): void;
}

/** HiGHS's numbers for how a run ended. */
const OPTIMAL = 7;
const INFEASIBLE = 8;
/** `primal_solution_status` of a solution that satisfies all rows. */
const SATISFIES = 2;

function statusOf(model: Model): SolverAnswer["status"] {
  const status = model.getModelStatus();
  if (status === OPTIMAL) return "optimal";
  if (status === INFEASIBLE) return "infeasible";
  return model.info.get("primal_solution_status") === SATISFIES ? "feasible" : "unknown";
}

/** The variables that are not 0. */
function valuesOf(model: Model): ReadonlyMap<string, number> {
  const { colValue } = model.getSolution();
  const values = new Map<string, number>();
  for (let k = 0; k < colValue.length; k++) {
    const value = colValue[k] ?? 0;
    if (Math.abs(value) > 1e-9) values.set(model.getColName(k), value);
  }
  return values;
}

function solve(highs: Highs, program: string, { seconds, gap, nodes }: SolverLimits): SolverAnswer {
  const model = highs.createModel({ format: "lp", data: program });
  try {
    const limits = { time_limit: Math.min(seconds, 1e6), ...(nodes === undefined ? {} : { mip_max_nodes: nodes }) };
    model.options.set({ ...limits, mip_rel_gap: gap, output_flag: false });
    model.run();
    const status = statusOf(model);
    const whole = program.includes("\nBinary\n");
    const proven = whole ? Number(model.info.get("mip_dual_bound")) : Number.NEGATIVE_INFINITY;
    const objective = model.getObjectiveValue();
    const bound = status === "optimal" ? objective : proven;
    const values = status === "optimal" || status === "feasible" ? valuesOf(model) : new Map<string, number>();
    return { status, objective, bound, value: (name) => values.get(name) ?? 0 };
  } finally {
    model.dispose();
  }
}

/**
 * HiGHS for the strategy `"optimal"`, where `tidemark/node` does not find it by itself.
 *
 * @example
 * import { highsSolver } from "tidemark/remat";
 *
 * // compile(step, { memory: "64KiB", strategy: "optimal", solver: highsSolver(await highs()) })
 * console.log(typeof highsSolver); // function
 */
export function highsSolver(highs: Highs): ExactPlanner {
  return exactPlanner((program, limits) => solve(highs, program, limits));
}
