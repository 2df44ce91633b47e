/**
 * @file Messages between pages and workers. A call has an id and one answer; a worker also sends notifications. All
 * messages are plain data that can be cloned.
 */
import type { PlanReply, ViewCurve } from "../view/data.ts";
import type { Complaint } from "./complaint.ts";
import type { SentPlan } from "./planner.ts";
import type { SentProgram } from "./program.ts";
import type { Sight } from "./study.ts";
import type { StateHashes, StepReport } from "./trainer.ts";

/** The calls of a worker; one worker does one kind of work. */
export interface Calls {
  /**
   * Plans of a model: the one with everything stored, then those of budgets. Sends `curve` as points arrive, if that is
   * asked for.
   */
  planModel(model: string, withCurve: boolean): SentPlan;
  planWithin(budgetBytes: number): SentPlan | string;
  planStory(asks: string, value: number): readonly string[];

  /** Trains from the beginning in a program with everything stored; with `webgpu` in one that is made for the GPU. What is wrong with that. */
  train(model: string, stored: SentProgram, on: Engine): Promise<string | null>;
  /** Continues in another program. */
  change(program: SentProgram): Promise<StateHashes>;
  /** Trains until a step; sends `steps`. */
  run(until: number): null;
  pause(): null;

  /** Sends `ran` when the text and its function have finished, and `curve` as points arrive. */
  study(text: string): Sight | Complaint;
  studyWithin(budgetBytes: number): PlanReply;
  studyStory(asks: string, value: number): readonly string[];
}

/** What trains. */
export type Engine = "wasm" | "webgpu";

export type Answer =
  | { readonly id: number; readonly result: unknown }
  /** An internal error; user errors are results. */
  | { readonly id: number; readonly failure: string };

/** Notifications of a worker. */
export type Told =
  | { readonly told: "curve"; readonly of: string; readonly curve: ViewCurve }
  | { readonly told: "steps"; readonly reports: readonly StepReport[]; readonly running: boolean }
  | { readonly told: "ran" }
  | { readonly told: "hashes"; readonly hashes: StateHashes };
