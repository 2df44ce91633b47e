/**
 * @file Lets collectives go on beside other steps: a simulation of the program with its predicted times. A collective starts where it
 * was; what needs its result is put off while there are other steps to run, and runs as soon as the exchange is done. Nothing waits before:
 *
 *     given     │ B3 │ R3 │ U3 │ B2 │ R2 │ U2 │ B1 │ R1 │ U1 │          B: backward, R: reduce a gradient, U: update
 *     steps     │ B3 │ start R3 │ B2 │ wait R3 │ U3 │ start R2 │ B1 │ wait R2 │ U2 │ …
 *     network        └──── R3 ─────┘            └──── R2 ───┘
 *
 * With `early`, a collective whose operands are there starts before its place, by as many steps as it takes time: the parameters that a
 * layer will read are gathered while the layer before it runs.
 *
 * At most two are in flight: exchanges on one link take the time of all, and what is in flight takes memory. Where a step would be
 * above the limit of bytes, or nothing is left to run, the oldest is waited for. Nothing but what depends on one changes its place. The
 * order is a function of the program and of predicted times, so it is the same on all devices that plan with the same rates.
 *
 * Libraries make progress when they are called: between starts and waits a `test` runs at least every fifth of a millisecond,
 * as far as steps are that short.
 *
 * Bytes are those of values and workspace, an operand written over at its last use counted once; the placement has the last word.
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { flightOf, isBlockingExchange, startExchange, testExchanges, waitExchange } from "./exchange-step.ts";
import { type Storage, type Storages, storagesOf } from "./liveness.ts";
import { alignUp } from "./problem.ts";
import { type Flight, needsSlot, type PlanStep, type Program, replacementOf } from "./program.ts";

/** Collectives in flight at a time. */
const MOST_IN_FLIGHT = 2;
/** Milliseconds between two calls of the library. */
const TEST_MS = 0.2;
/** An exchange of less is not worth a start and a wait. */
const LEAST_MS = 0.005;

export interface OverlapTimes {
  /** Milliseconds of a step, without what its collectives wait for others. */
  readonly stepMs: (step: PlanStep) => number;
  /** Of a collective on the network. */
  readonly networkMs: (step: PlanStep) => number;
}

export interface OverlapOptions {
  readonly times: OverlapTimes;
  /** That steps may have in the arena, before placement. */
  readonly limitBytes: number;
  /** Collectives that are not written over what they read, although they could be: the planner had another use for it. */
  readonly apart: ReadonlySet<PlanStep["node"]>;
  /** Collectives may start before their place. */
  readonly early?: boolean;
}

/** The program with its collectives in flight while other steps run; null where there are none. */
export function overlapExchanges(program: Program, options: OverlapOptions): Program | null {
  if (program.spaceOf || !program.steps.some((step) => isWorthFlying(step, options.times))) return null;
  const given = options.early ? { ...program, steps: startedEarly(program.steps, options.times) } : program;
  return { ...program, steps: new Overlap(given, options).run() };
}

const isWorthFlying = (step: PlanStep, { networkMs }: OverlapTimes): boolean =>
  isBlockingExchange(step) && networkMs(step) >= LEAST_MS;

/** Each collective behind what writes its operands, or where the steps up to its place take as long as it does. */
function startedEarly(steps: readonly PlanStep[], times: OverlapTimes): readonly PlanStep[] {
  const made: PlanStep[] = [];
  for (const step of steps) {
    let place = made.length;
    const least = isWorthFlying(step, times) ? times.networkMs(step) : 0;
    for (let ms = 0; ms < least && place > 0; place--) {
      const before = at(made, place - 1);
      if (before.writes.some((value) => step.reads.includes(value))) break;
      ms += times.stepMs(before);
    }
    made.splice(place, 0, step);
  }
  return made;
}

interface Flying {
  readonly flight: Flight;
  readonly isOver: boolean;
  /** When it is done, in the simulation. */
  readonly done: number;
}

class Overlap {
  readonly #program: Program;
  readonly #options: OverlapOptions;
  readonly #storages: Storages;
  readonly #steps: PlanStep[] = [];
  readonly #flying: Flying[] = [];
  /** Steps that wait for something in flight, in their order. */
  #deferred: PlanStep[] = [];
  /** Values that are in flight, or that a deferred step writes. */
  readonly #pending = new Set<Value>();
  /** Readers of each storage that are still to come. */
  readonly #uses = new Map<Storage, number>();
  #live = 0;
  #now = 0;
  #free = 0;
  #tested = 0;

  constructor(program: Program, options: OverlapOptions) {
    this.#program = program;
    this.#options = options;
    this.#storages = storagesOf(program);
    for (const { reads } of program.steps) for (const value of reads) this.#use(value, 1);
    for (const value of program.results) this.#use(value, 1);
    for (const param of program.params) {
      // storage that a result takes over lives on as the result's
      if (needsSlot(program, param) && !replacementOf(program, param)) this.#use(param, 1);
      this.#live += this.#bytesOf(this.#storages.of(param));
    }
  }

  run(): readonly PlanStep[] {
    for (const step of this.#program.steps) {
      this.#land();
      if (step.reads.some((value) => this.#pending.has(value))) {
        this.#defer(step);
        this.#land();
      } else this.#take(step);
    }
    while (this.#flying.length > 0) this.#wait();
    return this.#steps;
  }

  #use(value: Value, count: number): number {
    const storage = this.#storages.of(value);
    const uses = (this.#uses.get(storage) ?? 0) + count;
    this.#uses.set(storage, uses);
    return uses;
  }

  #bytesOf({ bytes }: Storage): number {
    return alignUp(bytes, this.#program.spaces[0].alignment);
  }

  #defer(step: PlanStep): void {
    this.#deferred.push(step);
    for (const value of step.writes) this.#pending.add(value);
  }

  /** Waits for what is done by now, where a step is put off for it: times are predicted, and others may come later. */
  #land(): void {
    while (this.#deferred.length > 0 && this.#flying[0] && this.#flying[0].done <= this.#now) this.#wait();
  }

  /** Runs a step whose operands are there; room is made for it by waiting. */
  #take(step: PlanStep): void {
    while (this.#flying.length > 0 && this.#live + this.#added(step) > this.#options.limitBytes) this.#wait();
    if (isWorthFlying(step, this.#options.times)) this.#start(step);
    else this.#emit(step);
  }

  /** Bytes that are live in a step, beyond those before it. */
  #added({ reads, writes, scratch, inPlace, alias }: PlanStep): number {
    if (alias) return 0;
    const over = new Set<Value>();
    let bytes = 0;
    for (const value of writes) {
      const free = inPlace.find(([read, written]) => written === value && !over.has(read) && this.#diesIn(read, reads));
      if (free) over.add(free[0]);
      else bytes += this.#bytesOf(this.#storages.of(value));
    }
    return scratch.reduce((sum, own) => sum + alignUp(own, this.#program.spaces[0].alignment), bytes);
  }

  #diesIn(read: Value, reads: readonly Value[]): boolean {
    const storage = this.#storages.of(read);
    return this.#uses.get(storage) === reads.filter((value) => this.#storages.of(value) === storage).length;
  }

  #emit(step: PlanStep): void {
    this.#steps.push(step);
    this.#now += this.#options.times.stepMs(step);
    this.#touch(step.reads, step);
    if (this.#flying.length === 0 || this.#now - this.#tested < TEST_MS) return;
    this.#steps.push(testExchanges(step.node.phase));
    this.#tested = this.#now;
  }

  /** What a step writes is live; what it read for the last time is not. */
  #touch(reads: readonly Value[], { writes, alias }: PlanStep): void {
    if (!alias) {
      for (const value of writes) {
        const storage = this.#storages.of(value);
        this.#live += this.#bytesOf(storage);
        if (!this.#uses.has(storage)) this.#live -= this.#bytesOf(storage);
      }
    }
    for (const value of reads) {
      if (this.#use(value, -1) === 0) this.#live -= this.#bytesOf(this.#storages.of(value));
    }
  }

  #start(step: PlanStep): void {
    if (this.#flying.length === MOST_IN_FLIGHT) this.#wait();
    const { times, apart } = this.#options;
    const flight = flightOf(step);
    const isOver = !apart.has(step.node) && step.reads.every((value) => this.#mayBeOver(step, value));
    this.#steps.push(startExchange(step, flight, isOver));
    if (this.#flying.length === 0) this.#tested = this.#now;
    this.#free = Math.max(this.#now, this.#free) + times.networkMs(step);
    this.#flying.push({ flight, isOver, done: this.#free });
    for (const value of step.writes) this.#pending.add(value);
    // what is read stays until the wait, which reads it again
    if (!isOver) for (const value of step.reads) this.#use(value, 1);
    this.#touch(step.reads, step);
    for (const value of step.writes) this.#use(value, 1);
  }

  #mayBeOver({ inPlace, reads }: PlanStep, value: Value): boolean {
    return inPlace.some(([read]) => read === value) && this.#diesIn(value, reads);
  }

  /** Waits for the oldest, then runs what it held up. */
  #wait(): void {
    const { flight, isOver, done } = this.#flying.shift() as Flying;
    const wait = waitExchange(flight, isOver, flight.node.phase);
    this.#steps.push(wait);
    this.#now = Math.max(this.#now, done);
    this.#touch(wait.reads, wait);
    for (const value of flight.writes) this.#pending.delete(value);
    const deferred = this.#deferred;
    this.#deferred = [];
    for (const step of deferred) {
      if (step.reads.some((value) => this.#pending.has(value))) {
        this.#deferred.push(step);
        continue;
      }
      for (const value of step.writes) this.#pending.delete(value);
      this.#take(step);
    }
  }
}
