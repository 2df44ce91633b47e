/** @file How all figures plan: on WebAssembly without fused multiply-add, which not every browser has, so that numbers are the same everywhere. */
import { valueAndGrad } from "../../../src/api/grad.ts";
import "../../../src/api/index.ts";
import { plansOf, type TracedPlans } from "../../../src/api/plan.ts";
import type { PlanningOptions } from "../../../src/api/request.ts";
import type { ProgramPlans } from "../../../src/compiler/assemble.ts";
import type { PlannedProgram } from "../../../src/compiler/assembler.ts";
import type { Candidate } from "../../../src/plan/budget/budget-levels.ts";
import { wasmTarget } from "../../../src/runtime/wasm-target.ts";
import type { AnyFunction } from "../../../src/trace/function.ts";
import type { Tensor } from "../../../src/trace/tensor.ts";
import type { ViewEntry } from "../../../src/view/data.ts";
import { entryOf, storedAnd } from "../../../src/view/plans.ts";

const FMA = false;

export const target = wasmTarget(FMA);

/** A function with its arguments, as specs. */
export interface Planned {
  readonly fn: AnyFunction;
  readonly args: readonly unknown[];
}

/** Minification changes the names of a function's parameters, and values in a plan are named after them. */
export function named(fn: AnyFunction, name: string, params: readonly string[]): AnyFunction {
  const text = `(${params.join(", ")}) => 0`;
  return Object.defineProperty(Object.assign(fn, { toString: () => text }), "name", { value: name });
}

/** The loss and its gradients with respect to the first argument. */
export function withGradient(loss: AnyFunction, name: string, params: readonly string[]): AnyFunction {
  const own = named((...args: readonly never[]) => loss(...args), name, params);
  return named(valueAndGrad(own as (...args: readonly Tensor[]) => Tensor) as AnyFunction, name, params);
}

export function tracedPlans({ fn, args }: Planned, options: PlanningOptions = {}): TracedPlans {
  return plansOf(fn, args, { name: fn.name, ...options }, target);
}

export const plansFor = (planned: Planned, options: PlanningOptions = {}): ProgramPlans =>
  tracedPlans(planned, options).plans;

/** What figures say about a plan. */
export interface PlanFigures {
  readonly arenaBytes: number;
  readonly predictedMs: number;
}

export const figuresOf = ({ arenaBytes, predictedMs }: Candidate<PlannedProgram>): PlanFigures => ({
  arenaBytes,
  predictedMs,
});

/** A plan for the views of `tidemark view`. */
export function viewEntry(
  plans: ProgramPlans,
  chosen: Candidate<PlannedProgram>,
  label: string,
  budgetBytes: number | null = null,
): ViewEntry {
  const { result, predictedMs } = chosen;
  return entryOf(result.plan, { label, predictedMs, budgetBytes, asks: null, ...storedAnd(plans, result) });
}
