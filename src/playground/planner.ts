/** @file All plans of a model's training step, in a form that can be sent to the trainer. */

import { plansOf } from "../api/plan.ts";
import type { TracedProgram } from "../api/traced-program.ts";
import { formatBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { emitProgram, pagesOf } from "../codegen/wasm/program.ts";
import type { ProgramPlans } from "../compiler/assemble.ts";
import type { PlannedProgram } from "../compiler/assembler.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import type { Plan } from "../plan/problem.ts";
import type { StrategyName } from "../plan/recompute/strategy.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import type { AnyFunction } from "../trace/function.ts";
import { storageOf } from "../trace/tensor.ts";
import type { ViewCurve, ViewEntry } from "../view/data.ts";
import { entryOf, growingCurves, storedAnd } from "../view/plans.ts";
import { storyOf } from "../view/stories.ts";
import { type PlaygroundModel, specsOfModel } from "./model.ts";
import { FMA, type Place, type SentProgram } from "./program.ts";

/** The name of the plan with everything stored. */
const STORED = "stored";

/** Points of the whole curve. */
const POINTS = 8;

/** Strategies drawn beside the curve: those of the literature that take little time to plan. */
export const COMPARED: readonly StrategyName[] = ["every-k", "sqrt", "selective", "min-cut"];

export interface SentPlan {
  readonly entry: ViewEntry;
  readonly program: SentProgram;
}

export class Planner {
  readonly model: PlaygroundModel;
  readonly #plans: ProgramPlans;
  readonly #source: TracedProgram;
  /** Plans sent so far, by name. */
  readonly #given = new Map<string, Plan>();
  readonly #names = new Map<Plan, string>();

  constructor(model: PlaygroundModel) {
    this.model = model;
    const options = { donate: [0], name: model.name };
    const { plans, source } = plansOf(model.step as AnyFunction, specsOfModel(model), options, wasmTarget(FMA));
    this.#plans = plans;
    this.#source = source;
  }

  /** With everything stored. */
  stored(): SentPlan {
    return this.#sent("everything stored", this.#plans.storeAll, null);
  }

  /** The fastest plan within a budget; an error text if there is none. */
  within(budgetBytes: number): SentPlan | string {
    try {
      const chosen = this.#plans.choose({ budgetBytes });
      return this.#sent(`budget ${formatBytes(budgetBytes)}`, chosen, budgetBytes);
    } catch (error) {
      if (error instanceof TidemarkError && error.code === "PlanInfeasible") return error.message;
      throw error;
    }
  }

  /** Growing curves. */
  curves(): Generator<ViewCurve> {
    return growingCurves(this.#plans, POINTS, { strategies: COMPARED });
  }

  /** Of a plan that was sent, or that another planner of this model sent: its name says how to make it. */
  story(asks: string, value: number): readonly string[] {
    const [name = ""] = asks.split("/");
    const budget = /^budget-(\d+)$/.exec(name)?.[1];
    if (!this.#given.has(name) && name === STORED) this.stored();
    if (!this.#given.has(name) && budget !== undefined) this.within(Number(budget));
    return storyOf(this.#given, asks, value) ?? [];
  }

  #sent(label: string, chosen: Candidate<PlannedProgram>, budgetBytes: number | null): SentPlan {
    const { plan } = chosen.result;
    const name = budgetBytes === null ? STORED : `budget-${budgetBytes}`;
    const asks = this.#names.get(plan) ?? name;
    this.#names.set(plan, asks);
    this.#given.set(name, plan);
    this.#given.set(asks, plan);
    const { predictedMs } = chosen;
    const figures = storedAnd(this.#plans, chosen.result);
    const entry = entryOf(plan, { label, predictedMs, budgetBytes, asks, ...figures });
    return { entry, program: this.#program(chosen) };
  }

  #program(chosen: Candidate<PlannedProgram>): SentProgram {
    const { kernels, copies, plan, params, results } = this.#plans.placed(chosen, 0);
    const { traced } = this.#source;
    const places = params.map((address, i): Place => ({ address, type: at(traced.graph.params, i).type }));
    const stateLeaves = traced.leaves.filter((leaf) => leaf.argument === 0).length;
    const last = results.length - 1;
    return {
      code: emitProgram(kernels, copies, plan.height, { fma: FMA, winograd: "paying" }).bytes,
      pages: pagesOf(plan.height),
      arenaBytes: plan.height,
      state: places.slice(0, stateLeaves),
      batch: places.slice(stateLeaves, traced.leaves.length),
      constants: traced.captures.map(({ tensor }, i) => ({
        ...at(places, traced.leaves.length + i),
        data: storageOf(tensor).read(),
      })),
      loss: { address: at(results, last), type: at(traced.graph.results, last).type },
    };
  }
}
