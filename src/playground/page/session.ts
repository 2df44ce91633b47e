/**
 * @file A training session of the page. One worker trains and one plans, so that neither waits for the other: dragging
 * the budget requests a plan, and training then continues in it from the same state.
 *
 *   slider ─→ planner ─→ plan ─┬─→ views
 *                              ╰─→ trainer ─→ losses, times, hashes
 */
import type { PlanReply, ViewCurve, ViewEntry } from "../../view/data.ts";
import type { SentPlan } from "../planner.ts";
import type { Told } from "../protocol.ts";
import type { StateHashes, StepReport } from "../trainer.ts";
import { type Client, createClient } from "./client.ts";
import type { Run } from "./losses.ts";

/** The progress of a session. */
export interface Progress extends Run {
  readonly model: string;
  /** The plan with everything stored. */
  readonly stored: ViewEntry;
  readonly hashes: StateHashes | null;
  readonly running: boolean;
  /** The points known so far. */
  readonly curve: ViewCurve | null;
}

export interface SessionEvents {
  /** The progress changed. */
  moved(): void;
  curve(curve: ViewCurve): void;
}

export interface Session {
  progress(): Progress;
  /**
   * Plans a model and starts its training; returns the plan with everything stored, or null if a later call replaced
   * it.
   */
  open(model: string): Promise<ViewEntry | null>;
  run(until: number): void;
  pause(): void;
  /** Plans for a budget and continues in that plan. */
  within(budgetBytes: number): Promise<PlanReply>;
  story(asks: string, value: number): Promise<readonly string[]>;
}

interface Mutable {
  model: string;
  stored: SentPlan;
  reports: StepReport[];
  changes: number[];
  hashes: StateHashes | null;
  running: boolean;
  /** Name of the plan that is being trained in. */
  plan: string | null;
}

/** Continues in a plan, unless it is the current one. */
async function changePlan(trainer: Client, mine: Mutable, { entry, program }: SentPlan): Promise<void> {
  if (mine.plan === entry.asks) return;
  mine.plan = entry.asks;
  const hashes = await trainer.call("change", program);
  mine.hashes = hashes;
  if (hashes.step > 0) mine.changes.push(hashes.step);
}

export function createSession(events: SessionEvents): Session {
  let at: Mutable | null = null;
  let openings = 0;
  /** The model that is planned for, and its curve. */
  let planned: { readonly model: string; readonly curve: ViewCurve | null } = { model: "", curve: null };
  const heard = (told: Told): void => {
    if (told.told === "curve" && told.of === planned.model) {
      planned = { model: told.of, curve: told.curve };
      events.curve(told.curve);
    }
    if (at && told.told === "hashes") at.hashes = told.hashes;
    if (at && told.told === "steps") {
      at.reports.push(...told.reports);
      at.running = told.running;
    }
    if (at && told.told !== "curve") events.moved();
  };
  const [planner, trainer] = [createClient(heard), createClient(heard)];
  const current = (): Mutable => at as Mutable;
  return {
    progress: () => ({ ...current(), stored: current().stored.entry, curve: planned.curve }),
    async open(model) {
      const mine = ++openings;
      // While another model is being opened, the trained model differs from the planned one.
      const same = planned.model === model && at?.model === model;
      if (!same) planned = { model, curve: null };
      const stored = at && same ? at.stored : await planner.call("planModel", model);
      if (mine !== openings) return null;
      await trainer.call("train", model, stored.program);
      if (mine !== openings) return null;
      at = { model, stored, reports: [], changes: [], hashes: null, running: false, plan: stored.entry.asks };
      events.moved();
      return stored.entry;
    },
    run(until) {
      current().running = true;
      void trainer.call("run", until);
      events.moved();
    },
    pause() {
      current().running = false;
      void trainer.call("pause");
      events.moved();
    },
    async within(budgetBytes) {
      const mine = current();
      const all = budgetBytes >= mine.stored.program.arenaBytes;
      if (planned.model !== mine.model) return { refusal: `${planned.model} is being planned` };
      const plan = all ? mine.stored : await planner.call("planWithin", budgetBytes);
      // Another session began meanwhile.
      if (current() !== mine) return { entry: current().stored.entry };
      if (typeof plan === "string") return { refusal: plan };
      await changePlan(trainer, mine, plan);
      events.moved();
      return { entry: plan.entry };
    },
    story: (asks, value) => planner.call("planStory", asks, value),
  };
}
