/**
 * @file What pages and workers say to each other. A call has a number and is answered once; a worker also tells what
 * nobody asked for. Everything said is plain data, so it crosses by itself.
 */
import type { PlanReply, ViewCurve } from "../view/data.ts";
import type { Complaint } from "./complaint.ts";
import type { SentPlan } from "./planner.ts";
import type { SentProgram } from "./program.ts";
import type { Sight } from "./study.ts";
import type { StateHashes, StepReport } from "./trainer.ts";

/** What a worker can be asked; one worker does one kind of work. */
export interface Calls {
  /** Plans of a model: the one with everything stored, then those of budgets. Tells `curve` as it becomes known. */
  planModel(model: string): SentPlan;
  planWithin(budgetBytes: number): SentPlan | string;
  planStory(asks: string, value: number): readonly string[];

  /** Trains from the beginning in a program with everything stored. */
  train(model: string, stored: SentProgram): null;
  /** Goes on in another program. */
  change(program: SentProgram): StateHashes;
  /** Runs until a step has been made; tells `steps`. */
  run(until: number): null;
  pause(): null;

  /** Tells `ran` when the text and its function have come to an end, and `curve` as it becomes known. */
  study(text: string): Sight | Complaint;
  studyWithin(budgetBytes: number): PlanReply;
  studyStory(asks: string, value: number): readonly string[];
}

export type CallName = keyof Calls;

export interface Call<K extends CallName = CallName> {
  readonly id: number;
  readonly name: K;
  readonly args: Parameters<Calls[K]>;
}

export type Answer =
  | { readonly id: number; readonly result: unknown }
  /** An internal error: what is the user's to fix is a result. */
  | { readonly id: number; readonly failure: string };

/** What a worker tells. */
export type Told =
  | { readonly told: "curve"; readonly of: string; readonly curve: ViewCurve }
  | { readonly told: "steps"; readonly reports: readonly StepReport[]; readonly running: boolean }
  | { readonly told: "ran" }
  | { readonly told: "hashes"; readonly hashes: StateHashes };

export type Said = Answer | Told;
