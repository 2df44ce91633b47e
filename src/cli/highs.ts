/**
 * @file The solver of integer programs, loaded when it is first asked for: HiGHS (Huangfu and Hall, 2018) compiled to
 * WebAssembly, the optional package `highs`. The planners take it as an argument and do without if there is none.
 */
import type { IntegerSolver, SolverAnswer } from "../plan/recompute/optimal.ts";

/** The part of the package that is used. Its own types describe a CommonJS module, which is not what Node loads. */
interface Highs {
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

function solve(highs: Highs, program: string, seconds: number, gap: number): SolverAnswer {
  const model = highs.createModel({ format: "lp", data: program });
  try {
    model.options.set({ time_limit: Math.min(seconds, 1e6), mip_rel_gap: gap, output_flag: false });
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

/** HiGHS, or undefined where the package is not installed. */
export async function loadSolver(): Promise<IntegerSolver | undefined> {
  const module = await import("highs").catch(() => undefined);
  if (!module) return undefined;
  const load = module.default as unknown as () => Promise<Highs>;
  const highs = await load();
  return (program, { seconds, gap }) => solve(highs, program, seconds, gap);
}
