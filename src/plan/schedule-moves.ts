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
 *   2. while the link in is free, the value that is used next comes back, if it fits from now until it is used;
 *   3. while the link out is free and some later step has too much, the value that is used last starts to leave, if it would be
 *      gone by then (Belady's rule: what is used latest makes room for longest);
 *   4. where the step itself has too much, the program waits for copies, or moves one more value and waits.
 *
 * So a value is moved only if the arena is too small without it, and the link is kept busy from the first step on that has
 * something to move. O((steps + moves) · moves), without the log.
 */
import { at } from "../base/invariant.ts";
import { idleValues, type Move } from "./move.ts";
import { alignUp, type Plan, type Step } from "./problem.ts";
import { returnStepOf } from "./program.ts";

export interface MoveTimes {
  /** Predicted milliseconds of each step. */
  readonly stepMs: readonly number[];
  /** Of a copy of so many bytes, either way. */
  readonly copyMs: (bytes: number) => number;
}

export interface MoveSchedule {
  /** In the order in which they leave. */
  readonly moves: readonly Move[];
  /** Milliseconds of all steps and of waiting for copies. */
  readonly ms: number;
}

interface Traveller {
  readonly value: Move["value"];
  readonly bytes: number;
  readonly written: Step;
  readonly last: Step;
  readonly next: Step;
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

/** The moves with which a plan takes so many bytes of the arena, before placement; null where there are none. */
export function scheduleMoves(plan: Plan, arenaBytes: number, times: MoveTimes): MoveSchedule | null {
  return new Simulation(plan, arenaBytes, times).run();
}

/** Bytes of the arena at each step, the return step included. */
function profileOf({ program, problem }: Plan): Float64Array {
  const live = new Float64Array(returnStepOf(program) + 1);
  const { alignment } = program.spaces[0];
  for (const { lifespan, bytes, space } of problem.buffers) {
    if (space !== 0) continue;
    const taken = alignUp(bytes, alignment);
    for (let k = lifespan.start; k < lifespan.end; k++) live[k] = (live[k] ?? 0) + taken;
  }
  return live;
}

class Simulation {
  readonly #limit: number;
  readonly #stepMs: readonly number[];
  readonly #steps: number;
  /** Bytes at each step from now on, as far as it is decided; and the same once the values that are leaving are gone. */
  readonly #live: Float64Array;
  readonly #expected: Float64Array;
  /** For each step, the first from there on where `expected` is too much; made when it is asked for. */
  #tooMuch: Int32Array | null = null;
  /** When a step would begin if nothing had to wait. */
  readonly #begins: Float64Array;
  /** Those that are used last first. */
  readonly #travellers: readonly Traveller[];
  readonly #left: Traveller[] = [];
  #now = 0;
  #outFree = 0;
  #inFree = 0;

  constructor(plan: Plan, arenaBytes: number, { stepMs, copyMs }: MoveTimes) {
    this.#limit = arenaBytes;
    this.#stepMs = stepMs;
    this.#live = profileOf(plan);
    this.#expected = this.#live.slice();
    this.#steps = this.#live.length;
    this.#begins = new Float64Array(this.#steps + 1);
    for (let k = 0; k < this.#steps; k++) this.#begins[k + 1] = at(this.#begins, k) + (stepMs[k] ?? 0);
    const { alignment } = plan.program.spaces[0];
    const idle = idleValues(plan.program).map(
      ({ value, bytes, written, last, next }): Traveller => ({
        ...{ value, bytes: alignUp(bytes, alignment), written, last, next, ms: copyMs(bytes) },
        ...{ state: "here", done: 0, gone: 0, outStart: 0, outWait: 0, backStart: 0 },
      }),
    );
    this.#travellers = idle.sort((a, b) => b.next - a.next || b.bytes - a.bytes);
  }

  run(): MoveSchedule | null {
    for (let k = 0; k < this.#steps; k++) {
      this.#free(k);
      this.#fetch(k);
      this.#send(k);
      if (!this.#makeRoom(k)) return null;
      this.#arrive(k);
      this.#now += this.#stepMs[k] ?? 0;
    }
    const moves = this.#left.map(
      ({ value, outStart, outWait, backStart, next }): Move => ({
        value,
        outStart,
        outWait,
        backStart,
        backWait: next,
      }),
    );
    return { moves, ms: this.#now };
  }

  #free(k: Step): void {
    for (const one of this.#left)
      if (one.state === "leaving" && one.done <= this.#now && one.last < k) this.#gone(one, k);
  }

  #gone(one: Traveller, k: Step): void {
    one.state = "away";
    one.outWait = k;
    add(this.#live, k, one.next, -one.bytes);
    if (one.gone === k) return;
    // it was expected to be gone at another step
    add(this.#expected, one.gone, one.next, one.bytes);
    add(this.#expected, k, one.next, -one.bytes);
    this.#tooMuch = null;
  }

  /** The values that are used next come back, as long as they fit and the link has time before the next step. */
  #fetch(k: Step): void {
    const until = this.#now + (this.#stepMs[k] ?? 0);
    const away = this.#left.filter(({ state }) => state === "away").sort((a, b) => a.next - b.next);
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
    add(this.#live, k, one.next, one.bytes);
    add(this.#expected, k, one.next, one.bytes);
    this.#tooMuch = null;
  }

  #send(k: Step): void {
    const until = this.#now + (this.#stepMs[k] ?? 0);
    while (this.#outFree < until) {
      const one = this.#travellers.find((other) => this.#isWorthSending(other, k));
      if (!one) return;
      this.#leave(one, k, this.#goneAt(one, k));
    }
  }

  #isWorthSending(one: Traveller, k: Step): boolean {
    if (one.state !== "here" || one.written >= k || one.next <= k) return false;
    return this.#firstTooMuch(this.#goneAt(one, k)) < one.next;
  }

  /** Before which step a value would be gone that starts to leave now. */
  #goneAt({ ms, last }: Traveller, k: Step): Step {
    const done = Math.max(this.#now, this.#outFree) + ms;
    let step = k;
    while (step < this.#steps && this.#now + at(this.#begins, step) - at(this.#begins, k) < done) step++;
    return Math.max(step, last + 1);
  }

  #leave(one: Traveller, k: Step, gone: Step): void {
    one.state = "leaving";
    one.outStart = k;
    one.gone = Math.min(gone, one.next);
    one.done = Math.max(this.#now, this.#outFree) + one.ms;
    this.#outFree = one.done;
    this.#left.push(one);
    add(this.#expected, one.gone, one.next, -one.bytes);
    this.#tooMuch = null;
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
}

function add(to: Float64Array, from: Step, end: Step, bytes: number): void {
  for (let k = from; k < end; k++) to[k] = (to[k] ?? 0) + bytes;
}

function most(of: Float64Array, from: Step, end: Step): number {
  let bytes = 0;
  for (let k = from; k < end; k++) bytes = Math.max(bytes, of[k] ?? 0);
  return bytes;
}
