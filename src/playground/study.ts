/**
 * @file Everything the editor shows about a text: the graph that its function traces to, the graph with the derivative,
 * the plan of that and its curve. There are no time limits here: a text that takes too long has its worker terminated.
 */
import { valueAndGrad } from "../api/grad.ts";
import { plansOf } from "../api/plan.ts";
import type { ProgramPlans } from "../compiler/assemble.ts";
import { print } from "../ir/print.ts";
import { pipeline, runPasses } from "../passes/pipeline.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import { type AnyFunction, traceFunction } from "../trace/function.ts";
import type { PlanReply, ViewCurve, ViewEntry } from "../view/data.ts";
import { entryName, entryOf, growingCurves, type LivePlans, livePlans, storedAnd } from "../view/plans.ts";
import { type Complaint, isComplaint } from "./complaint.ts";
import { COMPARED } from "./planner.ts";
import { FMA } from "./program.ts";
import { orComplaint, type UserProgram, userProgram } from "./user-code.ts";

/** Points of the curve. */
const POINTS = 6;

/** The analysis of a text. */
export interface Sight {
  /** The function as it was traced. */
  readonly graph: string;
  /** With its derivative, after the standard passes. */
  readonly gradient: string;
  /** The plan with everything stored. */
  readonly entry: ViewEntry;
}

export class Study {
  #live: LivePlans | null = null;
  #plans: ProgramPlans | null = null;

  /**
   * Runs a text and plans its exports; after an incorrect text the plans of the previous one stay.
   * @param ran called when the text and its function have finished
   */
  look(text: string, ran: () => void = () => {}): Sight | Complaint {
    const program = userProgram(text);
    return isComplaint(program) ? program : orComplaint(() => this.#sight(program, ran));
  }

  within(budgetBytes: number): PlanReply {
    return this.#live?.within(budgetBytes) ?? { refusal: "there is no program to plan" };
  }

  /** The growing curve. */
  *curves(): Generator<ViewCurve> {
    if (this.#plans) yield* growingCurves(this.#plans, POINTS, { strategies: COMPARED });
  }

  story(asks: string, value: number): readonly string[] {
    return this.#live?.story(asks, value) ?? [];
  }

  #sight({ loss, args, wrt }: UserProgram, ran: () => void): Sight {
    const graph = print(traceFunction(loss, args).graph);
    ran();
    const derived = valueAndGrad(loss as (...given: unknown[]) => never, { argnums: wrt }) as unknown as AnyFunction;
    // Arguments get their names from the function's text.
    const joint = Object.assign(derived, { toString: () => loss.toString() });
    const { plans, source } = plansOf(joint, args, { name: loss.name === "" ? "loss" : loss.name }, wasmTarget(FMA));
    const { result, predictedMs } = plans.storeAll;
    const name = entryName(0);
    this.#plans = plans;
    this.#live = livePlans(plans, POINTS, new Map([[name, result.plan]]));
    const gradient = print(runPasses(source.graph, pipeline));
    const figures = storedAnd(plans, result);
    const entry = { label: "everything stored", predictedMs, budgetBytes: null, asks: name, ...figures };
    return { graph, gradient, entry: entryOf(result.plan, entry) };
  }
}
