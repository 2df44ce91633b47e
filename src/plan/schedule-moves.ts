/**
 * @file Chooses which values leave the arena for a slower memory, and when: a simulation of the program with its predicted
 * times, in which the arena has a number of bytes and each direction of the link does one copy after the other.
 *
 *     steps     │ F1 │ F2 │ F3 │ … │ Fn │ Bn │ … │ B3 │ B2 │ B1 │
 *     link out       │ h1 │ h2 │ h3 │                                while more would be live later than fits
 *     link in                               │ h3 │ h2 │ h1 │         as soon as there is room until they are used
 *
 * Before each step:
 *
 *   1. values whose copy is done, and that no step before the gap reads any more, are freed;
 *   2. where a later step has too much, values that are at home in the other memory, and the same there, are freed;
 *   3. while the link in is free, the value that is used next comes back, if it fits from now until it is used;
 *   4. while the link out is free, what replaces a value at home leaves; and if some later step has too much, the value that is
 *      used last starts to leave, if it would be gone by then (Belady's rule: what is used latest makes room for longest);
 *   5. where the step itself has too much, the program waits for copies, or moves one more value and waits.
 *
 * So a value is moved only if the arena is too small without it, and the link is kept busy from the first step on that has
 * something to move. Values whose home is the other memory (homes.ts) are given: they are away at the start, and their replacements
 * leave before the end. O((steps + moves) · moves), without the log.
 */
import { at } from "../base/invariant.ts";
import type { Home, Homeable } from "./homes.ts";
import { idleValues, type Move } from "./move.ts";
import { alignUp, type Plan, type Step } from "./problem.ts";
import { bytesByStep, type Gap, gapsOf, homesOf } from "./schedule-homes.ts";

export interface MoveTimes {
  /** Predicted milliseconds of each step. */
  readonly stepMs: readonly number[];
  /** Of a copy of so many bytes, either way. */
  readonly copyMs: (bytes: number) => number;
  /** Whether nothing else happens during a copy. */
  readonly blocks?: boolean | undefined;
  /** Of values that are moved; default: any. */
  readonly leastBytes?: number;
}

export interface MoveSchedule {
  /** In the order in which they leave. */
  readonly moves: readonly Move[];
  /** When the values come and go whose home is the other memory. */
  readonly homes: readonly Home[];
  /** Milliseconds of all steps and of waiting for copies. */
  readonly ms: number;
}

/** A value in a gap between two uses, or before its first, or after its last. */
interface Traveller extends Gap {
  readonly ms: number;
  state: "here" | "leaving" | "away" | "returning" | "back";
  /** When the copy at hand is done. */
  done: number;
  /** The step before which it is expected to be gone. */
  gone: Step;
  outStart: Step;
  outWait: Step;
  backStart: Step;
}

/**
 * The moves with which a plan takes so many bytes of the arena, before placement; null where there are none.
 * @param atHome persistent parameters whose home is the other memory
 */
export function scheduleMoves(
  plan: Plan,
  arenaBytes: number,
  times: MoveTimes,
  atHome: readonly Homeable[] = [],
): MoveSchedule | null {
  return new Simulation(plan, arenaBytes, times, atHome).run();
}

class Simulation {
  readonly #limit: number;
  readonly #blocks: boolean;
  readonly #stepMs: readonly number[];
  readonly #steps: number;
  readonly #atHome: readonly Homeable[];
  /** Bytes at each step from now on, as far as it is decided; and the same once the values that are leaving are gone. */
  readonly #live: Float64Array;
  readonly #expected: Float64Array;
  /** For each step, the first from there on where `expected` is too much; made when it is asked for. */
  #tooMuch: Int32Array | null = null;
  /** When a step would begin if nothing had to wait. */
  readonly #begins: Float64Array;
  /** Those that are used last first. */
  readonly #travellers: readonly Traveller[];
  /** Those of them that have to leave for good, in the order in which they are made. */
  readonly #stores: readonly Traveller[];
  readonly #left: Traveller[] = [];
  #now = 0;
  #outFree = 0;
  #inFree = 0;

  constructor(
    plan: Plan,
    arenaBytes: number,
    { stepMs, copyMs, leastBytes = 1, blocks = false }: MoveTimes,
    atHome: readonly Homeable[],
  ) {
    this.#limit = arenaBytes;
    this.#blocks = blocks;
    this.#stepMs = stepMs;
    this.#atHome = atHome;
    this.#live = bytesByStep(plan, atHome);
    this.#expected = this.#live.slice();
    this.#steps = this.#live.length;
    this.#begins = new Float64Array(this.#steps + 1);
    for (let k = 0; k < this.#steps; k++) this.#begins[k + 1] = at(this.#begins, k) + (stepMs[k] ?? 0);
    const { alignment } = plan.program.spaces[0];
    const { buffers } = plan.problem;
    const idle = idleValues(plan.program)
      .filter(({ value, bytes }) => {
        // storage that persists is there anyway
        return bytes >= leastBytes && at(buffers, plan.bufferOf.get(value) ?? -1).kind !== "persistent";
      })
      .map((one): Gap => ({ ...one, kind: "trip" }));
    const gaps = [...idle, ...atHome.flatMap((one) => gapsOf(one, this.#steps))];
    this.#travellers = gaps
      .map((gap) => this.#travellerOf({ ...gap, bytes: alignUp(gap.bytes, alignment) }, copyMs(gap.bytes)))
      .sort((a, b) => b.next - a.next || b.bytes - a.bytes);
    this.#left.push(...this.#travellers.filter(({ state }) => state === "away"));
    this.#stores = this.#travellers.filter(({ kind }) => kind === "store").sort((a, b) => a.written - b.written);
    for (const one of this.#stores) this.#expectGone(one, this.#stepAt(one.written + 1, one.ms, one));
  }

  #travellerOf(gap: Gap, ms: number): Traveller {
    const isAway = gap.kind === "visit" && gap.last < 0;
    const state = isAway ? "away" : "here";
    return { ...gap, ms, state, done: 0, gone: this.#steps, outStart: 0, outWait: 0, backStart: 0 };
  }

  run(): MoveSchedule | null {
    for (let k = 0; k < this.#steps; k++) {
      this.#free(k);
      this.#drop(k);
      this.#fetch(k);
      this.#send(k);
      if (!this.#makeRoom(k)) return null;
      this.#arrive(k);
      this.#now += this.#stepMs[k] ?? 0;
    }
    this.#finish();
    const moves = this.#left
      .filter(({ kind }) => kind === "trip")
      .map(
        ({ value, outStart, outWait, backStart, next }): Move => ({
          value,
          outStart,
          outWait,
          backStart,
          backWait: next,
        }),
      );
    return { moves, homes: homesOf(this.#atHome, this.#left), ms: this.#now };
  }

  #free(k: Step): void {
    for (const one of this.#left)
      if (one.state === "leaving" && one.done <= this.#now && one.last < k) this.#gone(one, k);
  }

  #gone(one: Traveller, k: Step): void {
    one.state = "away";
    one.outWait = k;
    add(this.#live, k, one.next, -one.bytes);
    this.#expectGone(one, k);
  }

  /** From which step on it is not counted among what is expected. */
  #expectGone(one: Traveller, gone: Step): void {
    if (one.gone === gone) return;
    if (one.gone < this.#steps) add(this.#expected, one.gone, one.next, one.bytes);
    one.gone = gone;
    add(this.#expected, gone, one.next, -one.bytes);
    this.#tooMuch = null;
  }

  /** What is the same at home is freed where a step before its next use has too much. */
  #drop(k: Step): void {
    for (const one of this.#travellers) {
      if (one.kind !== "visit" || one.state !== "here" || one.last >= k || one.next <= k) continue;
      if (this.#firstTooMuch(k) >= one.next) continue;
      this.#dropOne(one, k);
    }
  }

  #dropOne(one: Traveller, k: Step): void {
    this.#left.push(one);
    this.#gone(one, k);
  }

  /** The values that are used next come back, as long as they fit and the link has time before the next step. */
  #fetch(k: Step): void {
    const until = this.#now + (this.#stepMs[k] ?? 0);
    const away = this.#left
      .filter(({ state, next }) => state === "away" && next < this.#steps)
      .sort((a, b) => a.next - b.next);
    for (const one of away) {
      const isRoom = most(this.#expected, k, one.next) + one.bytes <= this.#limit;
      if (this.#inFree >= until || !isRoom || most(this.#live, k, k + 1) + one.bytes > this.#limit) return;
      this.#comeBack(one, k);
    }
  }

  #comeBack(one: Traveller, k: Step): void {
    one.state = "returning";
    one.backStart = k;
    one.done = Math.max(this.#now, this.#inFree) + one.ms;
    this.#inFree = one.done;
    if (this.#blocks) this.#now = one.done;
    add(this.#live, k, one.next, one.bytes);
    add(this.#expected, k, one.next, one.bytes);
    this.#tooMuch = null;
  }

  #send(k: Step): void {
    const until = this.#now + (this.#stepMs[k] ?? 0);
    while (this.#outFree < until) {
      const one =
        this.#stores.find(({ state, written }) => state === "here" && written < k) ??
        this.#travellers.find((other) => this.#isWorthSending(other, k));
      if (!one) return;
      this.#leave(one, k, this.#goneAt(one, k));
    }
  }

  #isWorthSending(one: Traveller, k: Step): boolean {
    if (one.kind !== "trip" || one.state !== "here" || one.written >= k || one.next <= k) return false;
    return this.#firstTooMuch(this.#goneAt(one, k)) < one.next;
  }

  /** Before which step a value would be gone that starts to leave now. */
  #goneAt(one: Traveller, k: Step): Step {
    return this.#stepAt(k, Math.max(this.#now, this.#outFree) + one.ms - this.#now, one);
  }

  /** The step that begins so many milliseconds after step k, and after the last use before the gap. */
  #stepAt(k: Step, ms: number, { last }: Gap): Step {
    let step = k;
    while (step < this.#steps && at(this.#begins, step) - at(this.#begins, k) < ms) step++;
    return Math.max(step, last + 1);
  }

  #leave(one: Traveller, k: Step, gone: Step): void {
    one.state = "leaving";
    one.outStart = k;
    one.done = Math.max(this.#now, this.#outFree) + one.ms;
    this.#outFree = one.done;
    if (this.#blocks) this.#now = one.done;
    this.#left.push(one);
    this.#expectGone(one, Math.min(gone, one.next));
  }

  #firstTooMuch(from: Step): Step {
    if (!this.#tooMuch) {
      this.#tooMuch = new Int32Array(this.#steps + 1).fill(this.#steps);
      for (let k = this.#steps - 1; k >= 0; k--)
        this.#tooMuch[k] = at(this.#expected, k) > this.#limit ? k : at(this.#tooMuch, k + 1);
    }
    return this.#tooMuch[Math.min(from, this.#steps)] ?? this.#steps;
  }

  /** Waits until a step has room. */
  #makeRoom(k: Step): boolean {
    const canGo = ({ written, last, next }: Traveller): boolean => written < k && last < k && next > k;
    while (at(this.#live, k) > this.#limit) {
      let one = this.#left.find((other) => other.state === "leaving" && canGo(other));
      if (!one) {
        one = this.#travellers.find((other) => other.state === "here" && canGo(other));
        if (!one) return false;
        if (one.kind === "visit") {
          this.#dropOne(one, k);
          continue;
        }
        this.#leave(one, k, k);
      }
      this.#now = Math.max(this.#now, one.done);
      this.#gone(one, k);
    }
    return true;
  }

  /** Waits for what a step uses. */
  #arrive(k: Step): void {
    const used = this.#left.filter(({ next }) => next === k);
    for (const one of used) {
      // not gone in time: it never left
      if (one.state === "leaving") this.#left.splice(this.#left.indexOf(one), 1);
      if (one.state === "away") this.#comeBack(one, k);
    }
    for (const one of used) {
      if (one.state === "returning") this.#now = Math.max(this.#now, one.done);
      one.state = "back";
    }
  }

  /** The program ends when everything that has to be at home is there. */
  #finish(): void {
    const end = this.#steps - 1;
    for (const one of this.#stores) {
      if (one.state === "here") this.#leave(one, end, end);
      if (one.state !== "leaving") continue;
      one.outWait = end;
      this.#now = Math.max(this.#now, one.done);
    }
  }
}

function add(to: Float64Array, from: Step, end: Step, bytes: number): void {
  for (let k = from; k < end; k++) to[k] = (to[k] ?? 0) + bytes;
}

function most(of: Float64Array, from: Step, end: Step): number {
  let bytes = 0;
  for (let k = from; k < end; k++) bytes = Math.max(bytes, of[k] ?? 0);
  return bytes;
}
