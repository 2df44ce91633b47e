/**
 * @file `plan`: what a program would need, without making it. The function is traced, differentiated, optimised and
 * placed as `compile` does it; then nothing is emitted and nothing allocated, so arguments may be specs (`spec`,
 * `specsOf`) and arenas may be larger than any memory here.
 *
 *   trace ─→ passes ─→ kernels ─→ plan ─┬─→ PlanInfo                       plan
 *                                       └─→ WebAssembly, an arena, a run   compile
 */
import { ProgramPlans } from "../compiler/assemble.ts";
import type { Target } from "../runtime/device.ts";
import { requireFunction } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { currentHost, fastestFor, spilling, targetOf } from "./host.ts";
import { type PlanInfo, planInfo } from "./plan-info.ts";
import { type PlanningOptions, parsePlanning } from "./request.ts";
import { CallReader, type TracedProgram } from "./traced-program.ts";

/**
 * Plans a function over tensors without compiling it: the result takes the function's arguments and says what a program
 * for arguments of these types would need. Throws `PlanInfeasible` when that is more than `memory`.
 *
 * @memory Nothing is allocated for the program: arguments may be specs.
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
  const parsed = parsePlanning("plan", options);
  const planned = (args: A): PlanInfo => {
    const host = currentHost();
    const request = spilling(parsed, host);
    const source = new CallReader(fn as AnyFunction, request).trace(args);
    const target = fastestFor(source, targetOf(request, host, true));
    const plans = new ProgramPlans(source, target.target.description, request, host);
    const started = performance.now();
    const chosen = plans.choose();
    return planInfo(source, plans.placed(chosen, performance.now() - started), target);
  };
  return (...args) => currentHost().heap.keptSmall(() => planned(args));
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
  const host = currentHost();
  const request = spilling(parsePlanning("plan", options), host);
  const source = new CallReader(fn, request).trace(args);
  const { description } = target ?? fastestFor(source, targetOf(request, host, true)).target;
  return { source, plans: new ProgramPlans(source, description, request, host) };
}
