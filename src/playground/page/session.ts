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
import type { Engine, Told } from "../protocol.ts";
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

const isComplete = (curve: ViewCurve | null): boolean => curve?.whole === true && curve.progress === undefined;

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

export class Session {
  readonly #events: SessionEvents;
  readonly #kept = createKeptPlans();
  readonly #planning = createPlanning((told) => this.#heard(told));
  readonly #trainer = createClient((told) => this.#heard(told));
  #at: Mutable | null = null;
  #openings = 0;
  #engine: Engine = "wasm";
  /** Why there is no training on the GPU. */
  #problem: string | null = null;
  /** A curve may come before its model is open. */
  #early: { readonly of: string; readonly curve: ViewCurve } | null = null;

  constructor(events: SessionEvents) {
    this.#events = events;
  }

  progress(): Progress {
    const { stored, ...rest } = this.#current();
    return { ...rest, stored: stored.entry };
  }

  /**
   * Plans a model and prepares its training; returns the plan with everything stored, or null if a later call replaced
   * it.
   */
  async open(model: string): Promise<ViewEntry | null> {
    const mine = ++this.#openings;
    const known = await this.#known(model);
    if (mine !== this.#openings) return null;
    await this.#begin(model, known.stored);
    if (mine !== this.#openings) return null;
    const early = this.#early?.of === model ? this.#early.curve : null;
    const at = begun(model, { ...known, curve: known.curve ?? early });
    this.#at = at;
    this.#kept.write(model, at);
    this.#events.moved();
    // The rest of the curve of an earlier visit.
    if (!isComplete(at.curve)) void this.#planner();
    return at.stored.entry;
  }

  /** Trains from the beginning, on a processor or a GPU; what is wrong with the latter, or null. */
  async use(engine: Engine): Promise<string | null> {
    this.#engine = engine;
    await this.restart();
    const problem = this.#problem;
    this.#problem = null;
    return problem;
  }

  get engine(): Engine {
    return this.#engine;
  }

  /** Where there is no GPU after all, training is on WebAssembly again. */
  async #begin(model: string, { program }: SentPlan): Promise<void> {
    const problem = await this.#trainer.call("train", model, program, this.#engine);
    if (problem === null) return;
    this.#problem = problem;
    this.#engine = "wasm";
    await this.#trainer.call("train", model, program, "wasm");
  }

  /** Trains from the beginning in the same plan. */
  async restart(): Promise<void> {
    const mine = this.#current();
    mine.running = false;
    await this.#begin(mine.model, mine.stored);
    if (mine.plan !== mine.stored) await this.#trainer.call("change", mine.plan.program);
    if (this.#current() !== mine) return;
    Object.assign(mine, { reports: [], changes: [], hashes: null, running: false });
    this.#events.moved();
  }

  run(until: number): void {
    Object.assign(this.#current(), { running: true, until });
    void this.#trainer.call("run", until);
    this.#events.moved();
  }

  pause(): void {
    this.#current().running = false;
    void this.#trainer.call("pause");
    this.#events.moved();
  }

  /** Plans for a budget and continues in that plan. */
  async within(budgetBytes: number): Promise<PlanReply> {
    const mine = this.#current();
    const all = budgetBytes >= mine.stored.program.arenaBytes;
    const known = all ? mine.stored : mine.budgets.get(budgetBytes);
    const plan = known ?? (await (await this.#planner()).call("planWithin", budgetBytes));
    // Another session began meanwhile.
    if (this.#current() !== mine) return { entry: this.#current().stored.entry };
    if (typeof plan === "string") return { refusal: plan };
    await changePlan(this.#trainer, mine, plan);
    if (!known) {
      mine.budgets.set(budgetBytes, plan);
      this.#kept.write(mine.model, mine);
    }
    this.#events.moved();
    return { entry: plan.entry };
  }

  async story(asks: string, value: number): Promise<readonly string[]> {
    return (await this.#planner()).call("planStory", asks, value);
  }

  #current(): Mutable {
    return this.#at as Mutable;
  }

  /** The planner for the current model. */
  async #planner(): Promise<Client> {
    const { model, curve } = this.#current();
    await this.#planning.open(model, !isComplete(curve));
    return this.#planning.client;
  }

  /** What is known of a model: from this session, from an earlier visit, or from the planner. */
  async #known(model: string): Promise<KeptModel> {
    const before = this.#at?.model === model ? this.#at : await this.#kept.read(model);
    return before ?? { stored: await this.#planning.open(model, true), budgets: new Map(), curve: null };
  }

  #heard(told: Told): void {
    const at = this.#at;
    if (told.told === "curve") {
      this.#early = told;
      if (at?.model !== told.of) return;
      at.curve = told.curve;
      if (isComplete(told.curve)) this.#kept.write(at.model, at);
      this.#events.curve(told.curve);
      return;
    }
    if (at && told.told === "hashes") at.hashes = told.hashes;
    if (at && told.told === "steps") {
      at.reports.push(...told.reports);
      at.running = told.running;
    }
    if (at) this.#events.moved();
  }
}
