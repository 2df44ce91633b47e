/**
 * @file A training session of the page. One worker trains and one plans, so that neither waits for the other: dragging
 * the budget requests a plan, and training then continues in it from the same state. Plans are kept for the next visit.
 *
 *   slider ─→ kept plans ─→ plan ─┬─→ views
 *               │ ▲               ╰─→ trainer ─→ losses, times, hashes
 *               ▼ │
 *             planner
 */
import type { PlanReply, ViewCurve, ViewEntry } from "../../view/data.ts";
import type { SentPlan } from "../planner.ts";
import type { Told } from "../protocol.ts";
import type { StateHashes, StepReport } from "../trainer.ts";
import { type Client, createClient } from "./client.ts";
import { createKeptPlans, type KeptModel } from "./kept-plans.ts";
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
   * Plans a model and prepares its training; returns the plan with everything stored, or null if a later call replaced
   * it.
   */
  open(model: string): Promise<ViewEntry | null>;
  /** Trains from the beginning in the same plan. */
  restart(): Promise<void>;
  run(until: number): void;
  pause(): void;
  /** Plans for a budget and continues in that plan. */
  within(budgetBytes: number): Promise<PlanReply>;
  story(asks: string, value: number): Promise<readonly string[]>;
}

interface Mutable {
  readonly model: string;
  readonly stored: SentPlan;
  readonly budgets: Map<number, SentPlan>;
  curve: ViewCurve | null;
  reports: StepReport[];
  changes: number[];
  hashes: StateHashes | null;
  running: boolean;
  until: number;
  /** The plan that is being trained in. */
  plan: SentPlan;
}

const begun = (model: string, { stored, budgets, curve }: KeptModel): Mutable => ({
  ...{ model, stored, budgets: new Map(budgets), curve, plan: stored },
  ...{ reports: [], changes: [], hashes: null, running: false, until: 0 },
});

/** Continues in a plan, unless it is the current one. */
async function changePlan(trainer: Client, mine: Mutable, plan: SentPlan): Promise<void> {
  if (mine.plan.entry.asks === plan.entry.asks) return;
  mine.plan = plan;
  const hashes = await trainer.call("change", plan.program);
  mine.hashes = hashes;
  if (hashes.step > 0) mine.changes.push(hashes.step);
}

/** The planner's worker: it is started with a model when that is first needed. */
function createPlanning(heard: (told: Told) => void) {
  const client = createClient(heard);
  let model = "";
  let ready: Promise<SentPlan> | null = null;
  const open = (wanted: string, withCurve: boolean): Promise<SentPlan> => {
    if (wanted !== model || !ready) ready = client.call("planModel", wanted, withCurve);
    model = wanted;
    return ready;
  };
  return { client, open };
}

export function createSession(events: SessionEvents): Session {
  const kept = createKeptPlans();
  let at: Mutable | null = null;
  let openings = 0;
  const current = (): Mutable => at as Mutable;
  /** A curve may come before its model is open. */
  let early: { readonly of: string; readonly curve: ViewCurve } | null = null;
  const heard = (told: Told): void => {
    if (told.told === "curve") {
      early = told;
      if (at?.model !== told.of) return;
      at.curve = told.curve;
      if (told.curve.whole) kept.write(at.model, at);
      events.curve(told.curve);
      return;
    }
    if (at && told.told === "hashes") at.hashes = told.hashes;
    if (at && told.told === "steps") {
      at.reports.push(...told.reports);
      at.running = told.running;
    }
    if (at) events.moved();
  };
  const planning = createPlanning(heard);
  const trainer = createClient(heard);
  /** The planner for the current model. */
  const planner = async (): Promise<Client> => {
    const { model, curve } = current();
    await planning.open(model, !curve?.whole);
    return planning.client;
  };
  const begin = async (model: string): Promise<KeptModel> => {
    const before = at?.model === model ? at : await kept.read(model);
    return before ?? { stored: await planning.open(model, true), budgets: new Map(), curve: null };
  };
  return {
    progress: () => ({ ...current(), stored: current().stored.entry }),
    async open(model) {
      const mine = ++openings;
      const known = await begin(model);
      if (mine !== openings) return null;
      await trainer.call("train", model, known.stored.program);
      if (mine !== openings) return null;
      at = begun(model, { ...known, curve: known.curve ?? (early?.of === model ? early.curve : null) });
      kept.write(model, at);
      events.moved();
      // The rest of the curve of an earlier visit.
      if (!at.curve?.whole) void planner();
      return at.stored.entry;
    },
    async restart() {
      const mine = current();
      mine.running = false;
      await trainer.call("train", mine.model, mine.stored.program);
      if (mine.plan !== mine.stored) await trainer.call("change", mine.plan.program);
      if (current() !== mine) return;
      Object.assign(mine, { reports: [], changes: [], hashes: null, running: false });
      events.moved();
    },
    run(until) {
      Object.assign(current(), { running: true, until });
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
      const known = all ? mine.stored : mine.budgets.get(budgetBytes);
      const plan = known ?? (await (await planner()).call("planWithin", budgetBytes));
      // Another session began meanwhile.
      if (current() !== mine) return { entry: current().stored.entry };
      if (typeof plan === "string") return { refusal: plan };
      await changePlan(trainer, mine, plan);
      if (!known) {
        mine.budgets.set(budgetBytes, plan);
        kept.write(mine.model, mine);
      }
      events.moved();
      return { entry: plan.entry };
    },
    story: async (asks, value) => (await planner()).call("planStory", asks, value),
  };
}
