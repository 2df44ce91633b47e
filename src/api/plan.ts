/**
 * @file `plan`: what a program would need, without making it. The function is traced, differentiated, optimised and
 * placed as `compile` does it; then nothing is emitted and nothing allocated, so arguments may be specs (`spec`,
 * `specsOf`) and arenas may be larger than any memory here.
 *
 *   trace ─→ passes ─→ kernels ─→ plan ─┬─→ PlanInfo                       plan
 *                                       └─→ WebAssembly, an arena, a run   compile
 */
import { type ChosenProgram, ProgramPlans } from "../compiler/assemble.ts";
import type { PlanRequest } from "../compiler/request.ts";
import type { Graph } from "../ir/graph.ts";
import type { Plan } from "../plan/problem.ts";
import type { ChosenTarget } from "../runtime/choose-target.ts";
import type { Target } from "../runtime/device.ts";
import { requireFunction } from "../trace/arguments.ts";
import { type AnyFunction, flattenArguments, traceFlat } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type Tree, unflatten } from "../trace/tree.ts";
import { spec } from "./create.ts";
import { currentHost, fastestFor, targetOf } from "./host.ts";
import { type PlacedFigures, placedFigures } from "./placed-figures.ts";
import { type PlanningOptions, parsePlanning } from "./request.ts";
import { CallReader, pathsOf, type TracedProgram } from "./traced-program.ts";

/** What a program needs. */
export interface PlanInfo {
  /** After all passes, in planned order. */
  readonly graph: Graph;
  readonly plan: Plan;
  readonly arenaBytes: number;
  /** With nothing recomputed, and loops that keep all that their reverses read. */
  readonly storeAllArenaBytes: number;
  /** What it is for, and with `target: "auto"` why it is not for a faster one. */
  readonly target: string;
  readonly targetNote: string | null;
  /** Which strategy decided what is recomputed. */
  readonly strategy: string;
  /** How long a run should take, and the same as a multiple of what it would take with nothing recomputed. */
  readonly predictedMs: number;
  readonly slowdown: number;
  /**
   * Under the strategy `"optimal"`: what recomputation costs over the solver's bound for this budget, less 1, in the planner's
   * own count (docs/budget.md). Null where no solver was asked.
   */
  readonly gap: number | null;
  /** Whether the solver showed that no plan costs less; false where none was asked. */
  readonly proven: boolean;
  readonly lowerBoundBytes: number;
  readonly persistentBytes: number;
  /** Where each parameter of the graph comes from: `state.params.w0` of the arguments, or `captured[0]`. */
  readonly paths: readonly string[];
  /** Floating-point operations of one run. */
  readonly flops: number;
  readonly kernelCalls: number;
  readonly traceMs: number;
  /** Passes, kernels and the plan. */
  readonly planMs: number;
  /** Whether the plan was read from the cache (`cache`): `planMs` is then the time to read and check it. */
  readonly planCached: boolean;
}

/** The figures of a placed program with what is known of the traced function and of the target. @internal */
export function programFigures(
  figures: PlacedFigures,
  source: TracedProgram,
  { target, note }: ChosenTarget,
): Omit<PlanInfo, "graph" | "plan"> {
  const about = { target: target.description.name, targetNote: note };
  return { ...figures, ...about, paths: pathsOf(source), traceMs: source.traceMs };
}

/** The numbers of a placed program; throws when `validate` finds the plan broken. @internal */
export function planInfo(
  source: TracedProgram,
  placed: ChosenProgram,
  request: PlanRequest,
  target: ChosenTarget,
): PlanInfo {
  const { plan, graph } = placed;
  return { graph, plan, ...programFigures(placedFigures(placed, request), source, target) };
}

/**
 * Plans a function over tensors without compiling it: the result takes the function's arguments and says what a program
 * for arguments of these types would need. Throws `PlanInfeasible` when that is more than `memory`.
 *
 * @example
 * import { plan, spec, type Tensor, valueAndGrad } from "tidemark";
 *
 * const step = (w: Tensor, x: Tensor) => valueAndGrad((v: Tensor) => x.matmul(v).tanh().sum())(w);
 * const { arenaBytes, lowerBoundBytes } = plan(step)(spec([64, 16]), spec([32, 64]));
 * console.log(arenaBytes === lowerBoundBytes); // true
 */
export function plan<A extends readonly Tree[] = [Tensor], R = unknown>(
  fn: (...args: A) => R,
  options: PlanningOptions = {},
): (...args: A) => PlanInfo {
  requireFunction("plan", "its first argument", fn);
  const request = parsePlanning("plan", options);
  return (...args) => {
    const host = currentHost();
    const source = new CallReader(fn as AnyFunction, request).trace(args);
    const target = fastestFor(source, targetOf(request, host, true));
    const plans = new ProgramPlans(source, target.target.description, request, host);
    const started = performance.now();
    const chosen = plans.choose();
    return planInfo(source, plans.placed(chosen, performance.now() - started), request, target);
  };
}

/** A traced function and all plans of its program. @internal */
export interface TracedPlans {
  readonly source: TracedProgram;
  readonly plans: ProgramPlans;
}

/** All plans of a function's program for arguments like these. @internal */
export function plansOf(
  fn: AnyFunction,
  args: readonly unknown[],
  options: PlanningOptions,
  target?: Pick<Target, "description">,
): TracedPlans {
  const [request, host] = [parsePlanning("plan", options), currentHost()];
  const source = new CallReader(fn, request).trace(args);
  const { description } = target ?? fastestFor(source, targetOf(request, host, true)).target;
  return { source, plans: new ProgramPlans(source, description, request, host) };
}

/**
 * What a function returns, as specs: it is traced and not run, so that the state of a model can be planned with before
 * there is memory for it. Constants of the function are specs of their types as well.
 *
 * @example
 * import { spec, specsOf } from "tidemark";
 * import { adam } from "tidemark/optim";
 *
 * const state = specsOf(() => adam().init({ w: spec([50257, 768]) }))();
 * console.log(state.slots.m?.w.shape); // [50257, 768]
 */
export function specsOf<A extends readonly Tree[], R>(fn: (...args: A) => R): (...args: A) => R {
  requireFunction("specsOf", "its argument", fn);
  return (...args) => {
    const { graph, resultTree } = traceFlat(fn as AnyFunction, flattenArguments(fn as AnyFunction, args));
    return unflatten(
      resultTree,
      graph.results.map(({ type }) => spec(type.shape, type.dtype)),
    ) as R;
  };
}
