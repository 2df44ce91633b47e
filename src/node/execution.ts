/**
 * @file Executes a schedule of actions on real states: steps run in their programs, snapshots go to slots of one block
 * of memory or to files, and durable points are written on the way.
 *
 * ```
 *   0 ──────── base ───────────────── left ───────── L      steps from `left` on are reversed
 *   ▪ given    ▪ file   schedule of [base, left)            then the file before base is the next one to start from
 * ```
 *
 * A schedule begins at an available state: initially the given one, after a crash the last file before `left`. The
 * choice of kept states does not change a bit of the result, only how often steps run; so a damaged state is recomputed
 * from the nearest earlier one.
 */
import { TidemarkError } from "../base/errors.ts";
import { at, invariant } from "../base/invariant.ts";
import type { Tensor } from "../trace/tensor.ts";
import { DurablePoints } from "./durable-points.ts";
import { Pace } from "./pace.ts";
import type { ReversePrograms } from "./programs.ts";
import type { Action } from "./reverse/action.ts";
import type { KnownLoopPlan } from "./reverse/plan-loop.ts";
import type { Store } from "./store.ts";

/** The name of the level whose snapshots are files. */
export const DISK = "disk";

/** Progress of a run. */
export interface Progress {
  readonly phase: "forward" | "backward";
  /** The last step run or reversed. */
  readonly step: number;
  readonly steps: number;
  /** Steps run and steps reversed by this process. */
  readonly forwardSteps: number;
  readonly reversedSteps: number;
}

export interface ExecutionOptions {
  readonly programs: ReversePrograms;
  readonly steps: number;
  /** The leaves of the first state. */
  readonly start: readonly Tensor[];
  readonly store: Store | null;
  readonly every: number | null;
  readonly onProgress: ((progress: Progress) => void) | null;
}

/** The point from which a run starts or resumes. */
export interface ResumePoint {
  readonly left: number;
  readonly begun: boolean;
  /** Steps of the existing files: states, and cotangents, oldest first. */
  readonly states: readonly number[];
  readonly adjoints: readonly number[];
  readonly damaged: readonly string[];
}

/** Memory of a schedule: its levels consecutive in one block; the last level is the disk. */
interface SlotMemory {
  readonly block: Uint8Array;
  readonly levels: readonly { readonly from: number; readonly unitBytes: number }[];
}

export class Execution {
  forwardSteps = 0;
  reversedSteps = 0;
  /** Files that were damaged; their states were recomputed. */
  readonly damaged: string[];
  /** Steps before this one are not reversed. */
  left: number;
  /** Whether the loss is known. */
  begun: boolean;
  /** The last state, once it is known. */
  final: Uint8Array | null = null;
  /** States in files that are to be kept, by step. */
  readonly files: Set<number>;
  readonly #o: ExecutionOptions;
  readonly #pace: Pace;
  readonly #trails: { readonly state: DurablePoints; readonly adjoint: DurablePoints } | null;
  /** States in memory: step by offset in the block. */
  readonly #inMemory = new Map<number, number>();
  /** Steps of the schedule's files, by slot. */
  readonly #onDisk = new Map<number, number>();
  #slots: SlotMemory = { block: new Uint8Array(0), levels: [] };
  #base = 0;

  constructor(options: ExecutionOptions, point: ResumePoint) {
    this.#o = options;
    this.left = point.left;
    this.begun = point.begun;
    this.files = new Set(point.states);
    this.damaged = [...point.damaged];
    this.#pace = new Pace(options.every);
    const { store } = options;
    this.#trails = store && {
      state: new DurablePoints(store, "state"),
      adjoint: new DurablePoints(store, "adjoint", point.adjoints),
    };
  }

  /** Makes the state before `step` current, starting from the nearest kept state. */
  async goTo(step: number): Promise<void> {
    const from = await this.load(step);
    if (from < step) await this.#advance(from, step);
  }

  /** Reverses the steps from `base`, whose state is current, to `left`. */
  async reverseFrom(base: number, plan: KnownLoopPlan): Promise<void> {
    this.#base = base;
    this.#makeSlots(plan);
    this.#inMemory.clear();
    this.#onDisk.clear();
    for (const action of plan.schedule.actions()) {
      const pending = this.#act(action);
      if (pending) await pending;
    }
  }

  /** The state is the last one: computes the loss. */
  async begin(): Promise<void> {
    const { programs, store, steps } = this.#o;
    programs.begin();
    this.begun = true;
    this.keepFinal();
    this.#report(steps);
    if (store) await this.#keepFile(steps);
  }

  /** The current state is the last one. */
  keepFinal(): void {
    const { programs } = this.#o;
    this.final ??= new Uint8Array(programs.state.bytes);
    programs.readState(this.final);
  }

  /** Writes the last state and the gradients, so that a repeated call returns the result at once. */
  async finish(): Promise<void> {
    const { store, steps } = this.#o;
    if (!store || !this.#trails) return;
    await this.#saveAdjoint();
    await store.settled();
    for (const label of await store.labels()) {
      if (label.step !== (label.kind === "state" ? steps : 0)) await store.remove(label);
    }
  }

  async dropFile(step: number): Promise<void> {
    this.files.delete(step);
    await this.#o.store?.remove({ kind: "state", step });
  }

  #makeSlots({ levels, unitBytes }: KnownLoopPlan): void {
    let bytes = 0;
    const places = levels.flatMap((level, k) => {
      // files are not in the block
      if (level.name === DISK) return [];
      const place = { from: bytes, unitBytes: at(unitBytes, k) };
      bytes += level.units * place.unitBytes;
      return [place];
    });
    const { block } = this.#slots;
    this.#slots = { block: block.length >= bytes ? block : new Uint8Array(bytes), levels: places };
  }

  /** The offset of a slot in the block; null for a file. */
  #offset(level: number, slot: number): number | null {
    const place = this.#slots.levels[level];
    return place ? place.from + slot * place.unitBytes : null;
  }

  #part(offset: number, bytes: number): Uint8Array {
    return this.#slots.block.subarray(offset, offset + bytes);
  }

  #act(action: Action): Promise<void> | null {
    const base = this.#base;
    switch (action.kind) {
      case "advance":
        return this.#advance(base + action.from, base + action.to);
      case "tape":
        return this.#tape(base + action.step, action.level, action.slot);
      case "reverse":
        return this.#reverse(base + action.step, action.level, action.slot);
      case "snapshot":
        return this.#snapshot(base + action.step, action.level, action.slot);
      case "restore":
        return this.#restore(base + action.step, this.#offset(action.level, action.slot));
      case "free":
        return this.#free(action.level, action.slot);
    }
  }

  #snapshot(step: number, level: number, slot: number): Promise<void> | null {
    const { programs } = this.#o;
    const offset = this.#offset(level, slot);
    if (offset === null) {
      this.#onDisk.set(slot, step);
      return this.#keepFile(step);
    }
    programs.readState(this.#part(offset, programs.state.bytes));
    this.#inMemory.set(offset, step);
    return null;
  }

  #restore(step: number, offset: number | null): Promise<void> | null {
    const { programs } = this.#o;
    if (offset === null) return this.#restoreFile(step);
    programs.writeState(this.#part(offset, programs.state.bytes));
    return null;
  }

  #free(level: number, slot: number): Promise<void> | null {
    const offset = this.#offset(level, slot);
    if (offset === null) return this.dropFile(this.#onDisk.get(slot) ?? -1);
    this.#inMemory.delete(offset);
    return null;
  }

  async #keepFile(step: number): Promise<void> {
    const { store, programs } = this.#o;
    invariant(store, () => "a schedule with files and no folder");
    this.files.add(step);
    await store.put({ kind: "state", step }, (block) => programs.readState(block));
    this.#pace.saved();
  }

  /** Makes a kept file's state current; a damaged one is recomputed and rewritten. */
  async #restoreFile(step: number): Promise<void> {
    await this.goTo(step);
    if (!this.files.has(step)) await this.#keepFile(step);
  }

  /** Makes the last available state at or before `step` current. */
  async load(step: number): Promise<number> {
    const { store, programs, start } = this.#o;
    for (;;) {
      const snapshots = [...this.#inMemory].filter(([, each]) => each <= step);
      const best = snapshots.reduce<readonly [number, number]>((a, b) => (b[1] > a[1] ? b : a), [-1, 0]);
      const file = Math.max(-1, ...[...this.files].filter((each) => each <= step));
      if (store && file > best[1]) {
        if (await this.#loaded(store, file)) return file;
        continue;
      }
      if (best[0] >= 0) programs.writeState(this.#part(best[0], programs.state.bytes));
      else programs.startFrom(start);
      return best[1];
    }
  }

  /** Loads a file's state; returns whether it succeeded. A damaged file is recorded and not tried again. */
  async #loaded(store: Store, step: number): Promise<boolean> {
    try {
      await store.get({ kind: "state", step }, (block) => this.#o.programs.writeState(block));
      return true;
    } catch (error) {
      store.check();
      if (!(error instanceof TidemarkError)) throw error;
      this.damaged.push(error.summary);
      this.files.delete(step);
      return false;
    }
  }

  async #advance(from: number, to: number): Promise<void> {
    const { programs } = this.#o;
    for (let step = from; step < to; step++) {
      programs.advance(step);
      this.forwardSteps++;
      if (this.#stepped()) await this.#saveState(step + 1);
      if (this.#pace.shouldYield(this.#busy)) await this.#breathe(step);
    }
  }

  async #tape(step: number, level: number, slot: number): Promise<void> {
    const { programs } = this.#o;
    programs.tape(step);
    this.forwardSteps++;
    const offset = level < 0 ? null : this.#offset(level, slot);
    if (offset !== null) programs.readTape(this.#part(offset, programs.tapeLayout.bytes));
    // the state after a tape is kept only in the forward sweep
    if (this.#stepped() && !this.begun && step + 1 < this.left) await this.#saveState(step + 1);
  }

  async #reverse(step: number, level: number, slot: number): Promise<void> {
    const { programs } = this.#o;
    if (!this.begun) await this.begin();
    const offset = level < 0 ? null : this.#offset(level, slot);
    programs.reverse(step, offset === null ? null : this.#part(offset, programs.tapeLayout.bytes));
    this.left = step;
    this.reversedSteps++;
    if (this.#stepped()) await this.#saveAdjoint();
    if (this.#pace.shouldYield(this.#busy)) await this.#breathe(step);
  }

  get #busy(): boolean {
    return this.#o.store?.busy ?? false;
  }

  #stepped(): boolean {
    const { store } = this.#o;
    return store !== null && this.#pace.stepped(store.writeMs);
  }

  async #saveState(step: number): Promise<void> {
    const { programs } = this.#o;
    await this.#trails?.state.add(
      step,
      (block) => programs.readState(block),
      (each) => this.files.has(each),
    );
    this.#pace.saved();
  }

  async #saveAdjoint(): Promise<void> {
    const { programs } = this.#o;
    await this.#trails?.adjoint.add(
      this.left,
      (block) => programs.readAdjoint(block),
      () => false,
    );
    this.#pace.saved();
  }

  #report(step: number): void {
    const { onProgress, steps } = this.#o;
    const phase = this.begun ? "backward" : "forward";
    onProgress?.({ phase, step, steps, forwardSteps: this.forwardSteps, reversedSteps: this.reversedSteps });
  }

  async #breathe(step: number): Promise<void> {
    this.#report(step);
    await this.#pace.yieldToEvents();
    this.#o.store?.check();
  }
}
