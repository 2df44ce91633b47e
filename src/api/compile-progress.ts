/**
 * @file How far `compileAsync` is, and whether it is still wanted. The number of plans that a search compares is not known
 * before; over programs and budgets it is 15 to 60, each taking about the same time, so the share of planning grows with the
 * number of plans, linearly to one half and ever more slowly from there:
 *
 *   plans    1    5   10   16   20   30   56
 *   share  .05  .25  .50  .73  .82  .93  1.0     of planning
 */
import { TidemarkError } from "../base/errors.ts";
import type { PlanProgress } from "../compiler/request.ts";
import type { AbortSignalLike } from "./event-loop.ts";

/**
 * What is being done, in this order. Told once, after the promise: `refine`, the search for a better plan is done; `move`, a program that
 * started on WebAssembly is native code from the next call on, or the note says why it is not.
 */
export type CompileStage = "trace" | "plan" | "generate" | "load" | "refine" | "move";

/** How far a compilation is. */
export interface CompileProgress {
  readonly stage: CompileStage;
  /** Of the whole, from 0 to 1; it never decreases. While plans are compared it is an estimate. */
  readonly share: number;
  readonly elapsedMs: number;
  /** What should remain, estimated from the share and the time so far; missing at the start. */
  readonly estimateMs?: number;
  /** Plans that were compared so far. */
  readonly plans: number;
  /** The one that was made last. */
  readonly plan?: PlanProgress;
  /** Where something is done on this thread, which it keeps busy: what, and why. */
  readonly note?: string;
}

/** Where each stage begins. */
const BEGINS: Readonly<Record<CompileStage, number>> = {
  trace: 0,
  plan: 0.05,
  generate: 0.9,
  load: 0.95,
  refine: 1,
  move: 1,
};

/** Plans of an average search. */
const USUAL_PLANS = 20;

/** How much of a search is done when so many plans were compared. @internal */
export function planningShare(plans: number): number {
  const x = plans / USUAL_PLANS;
  return x <= 0.5 ? x : 1 - 0.5 * Math.exp(-2 * (x - 0.5));
}

interface WatchOptions {
  readonly onProgress: ((progress: CompileProgress) => void) | undefined;
  readonly signal: AbortSignalLike | undefined;
  /** Of the function, and the line that asked for it: for errors. */
  readonly name: string;
  readonly where: string | undefined;
}

/** Reports on one compilation. */
export class CompileWatch {
  readonly where: string | undefined;
  readonly #options: WatchOptions;
  readonly #started = performance.now();
  #stage: CompileStage = "trace";
  #share = 0;
  #plans = 0;
  #plan: PlanProgress | undefined;
  #note: string | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.where = options.where;
  }

  get signal(): AbortSignalLike | undefined {
    return this.#options.signal;
  }

  get elapsedMs(): number {
    return performance.now() - this.#started;
  }

  /** A stage begins. */
  begin(stage: CompileStage, note?: string): void {
    this.#stage = stage;
    this.#note = note ?? this.#note;
    this.#tell(BEGINS[stage]);
  }

  /** A plan was made. */
  planned(plan: PlanProgress): void {
    this.#plans++;
    this.#plan = plan;
    const { plan: begin, generate: end } = BEGINS;
    this.#tell(begin + (end - begin) * planningShare(this.#plans));
    this.check();
  }

  done(): void {
    this.#tell(1);
  }

  /** The search for a better plan is done: the one that is used from now on. */
  refined({ strategy, arenaBytes, predictedMs }: PlanProgress): void {
    this.#plan = { strategy, arenaBytes, predictedMs };
    this.begin("refine");
  }

  /** A program that started on WebAssembly has moved, or stays there. */
  moved({ strategy, arenaBytes, predictedMs }: PlanProgress, note: string): void {
    this.#plan = { strategy, arenaBytes, predictedMs };
    this.begin("move", note);
  }

  /** Throws `Aborted` where the result is not wanted any more. */
  check(): void {
    if (this.signal?.aborted) throw this.aborted();
  }

  aborted(): TidemarkError {
    const { name, signal, where } = this.#options;
    const reason = signal?.reason instanceof Error ? signal.reason.message : signal?.reason;
    const why = typeof reason === "string" ? `: ${reason}` : "";
    return new TidemarkError("Aborted", `the compilation of ${name} was aborted${why}`, {
      where,
      help: "nothing is left of it; call compileAsync again, with another signal",
    });
  }

  #tell(share: number): void {
    this.#share = Math.max(this.#share, share);
    const { onProgress } = this.#options;
    if (!onProgress) return;
    const elapsedMs = this.elapsedMs;
    const remains = (elapsedMs * (1 - this.#share)) / this.#share;
    onProgress({
      ...{ stage: this.#stage, share: this.#share, elapsedMs, plans: this.#plans },
      ...(this.#plans > 0 ? { estimateMs: remains } : {}),
      ...(this.#plan ? { plan: this.#plan } : {}),
      ...(this.#note === undefined ? {} : { note: this.#note }),
    });
  }
}
