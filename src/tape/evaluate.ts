/**
 * @file Computes values of a tape: what they depend on and is not in memory, in the order in which it was recorded. Within one evaluation
 * the last reader of every value is known; lifetimes.ts says what outlives it.
 */

import type { PoolMemory, PoolProgram } from "../api/pool-memory.ts";
import { TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { type Cuts, setContexts } from "./cuts.ts";
import { Eviction } from "./eviction.ts";
import { Executor, type LeafData } from "./executor.ts";
import { type LastingPlaces, Lifetimes } from "./lifetimes.ts";
import { EXECUTED, type Log, SEEN } from "./log.ts";
import { type CompiledRuns, type Run, runOf, type Surroundings } from "./runs.ts";

/** What computes, for all tapes. */
export interface Engine {
  readonly memory: PoolMemory;
  readonly runs: CompiledRuns;
  readonly cuts: Cuts;
  readonly lasting: LastingPlaces;
  /** Whether runs of several operations are compiled as one. */
  compilesRuns: boolean;
  /** Operations that ran by themselves, and within compiled runs. */
  readonly counts: { single: number; inRuns: number; recomputed: number };
}

/** Longer runs are cut, whether they come again or not. */
const MOST_OPERATIONS = 8192;

/** A part of what is computed, with its program. */
interface Piece {
  readonly run: Run;
  readonly program: PoolProgram;
}

/** How often values are read by what is computed now, and by entries of it that never ran before. */
interface Reads {
  readonly left: Map<number, number>;
  readonly first: Map<number, number>;
}

const count = (counts: Map<number, number>, value: number, by = 1): number => {
  const sum = (counts.get(value) ?? 0) + by;
  counts.set(value, sum);
  return sum;
};

export class Evaluation {
  readonly #log: Log;
  readonly #engine: Engine;
  readonly #executor: Executor;
  readonly #lifetimes: Lifetimes;
  #eviction: Eviction | null = null;

  constructor(log: Log, engine: Engine, leafData: LeafData) {
    this.#log = log;
    this.#engine = engine;
    this.#executor = new Executor(log, engine.memory, leafData);
    this.#lifetimes = new Lifetimes(log, engine.lasting, (value) => this.#executor.give(value));
  }

  /** Whether values make room for others where the pool's limit asks for it. */
  get recomputes(): boolean {
    return this.#eviction !== null;
  }

  set recomputes(wanted: boolean) {
    if (wanted === this.recomputes) return;
    const eviction = wanted
      ? new Eviction(this.#log, this.#engine.memory.pool, (value) => this.#executor.give(value))
      : null;
    this.#eviction = eviction;
    this.#executor.makeRoom = eviction ? (bytes: number) => eviction.makeRoom(bytes) : null;
  }

  /**
   * Has values in memory, each when it is visited with its block: what nothing reads afterwards is given back then. After the last call of a
   * tape nothing else has to be there.
   */
  compute(targets: readonly number[], isLast: boolean, visit: (block: number) => void = () => undefined): void {
    const lifetimes = this.#lifetimes;
    lifetimes.now += 1;
    const wanted = new Set(targets);
    for (const target of targets) lifetimes.noteTarget(target);
    const entries = this.#needed(targets);
    const reads = this.#readsOf(entries);
    setContexts(this.#log, entries);
    for (const target of targets) this.#mark(target, SEEN);
    const isNeeded = (value: number, inside: number): boolean => {
      if ((reads.left.get(value) ?? 0) > inside || wanted.has(value)) return true;
      return !isLast && lifetimes.mayLast(value, reads.first.get(value) ?? 0);
    };
    // what comes from outside is likely to be read again as long as the tape goes on
    const mayOverwrite = (value: number, inside: number): boolean =>
      (isLast || !this.#executor.isFromOutside(value)) &&
      this.#executor.mayOverwrite(value) &&
      !isNeeded(value, inside);
    const around: Surroundings = { isNeeded, mayOverwrite };
    this.#eviction?.pin(wanted);
    try {
      for (const piece of this.#pieces(entries, around)) {
        for (const run of this.#executed(piece, around)) {
          for (const entry of run.entries) this.#markRun(entry);
          for (const value of run.outputs) lifetimes.use(value);
          for (const entry of run.entries) {
            this.#eachInput(entry, (value) => {
              lifetimes.use(value);
              if (count(reads.left, value, -1) > 0 || wanted.has(value) || !this.#executor.isThere(value)) return;
              if (isLast) this.#executor.give(value);
              else lifetimes.retire(value, entry);
            });
          }
        }
      }
      for (const target of targets) {
        this.#restore([target]);
        visit(this.#executor.blockOf(target));
        lifetimes.use(target);
        if (!isLast) lifetimes.retire(target, -1);
      }
    } finally {
      this.#eviction?.unpin(wanted);
    }
    if (!isLast) lifetimes.settle();
  }

  /** A value from outside is in the pool already. */
  hold(value: number, block: number): void {
    this.#executor.hold(value, block);
  }

  /** What is held may be overwritten from now on. */
  letGo(): void {
    this.#executor.letGo();
  }

  /** A computed value outlives the tape, in its block; null where it shares that. */
  keep(value: number): number | null {
    return this.#executor.keep(value);
  }

  /** Gives back all memory of the tape. */
  end(): void {
    this.#executor.end();
  }

  /** Runs a piece: as a whole where there is room for that, else entry by entry. */
  *#executed({ run, program }: Piece, around: Surroundings): Generator<Run> {
    if (!this.#eviction) {
      this.#upload(run);
      this.#executor.execute(run, program);
      yield run;
      return;
    }
    try {
      this.#runEvicting(run, program);
      yield run;
    } catch (error) {
      const isRefused = error instanceof TidemarkError && error.code === "PoolExhausted";
      if (!isRefused || run.entries.length === 1) throw error;
      for (const entry of run.entries) {
        const single = this.#single(entry, around);
        this.#runEvicting(single.run, single.program);
        yield single.run;
      }
    }
  }

  /** Values from outside that are uploaded once more are likely to be needed again. */
  #upload({ inputs }: Run): void {
    for (const value of inputs) {
      const isAgain = (this.#log.readersRun[value] as number) > 0 && (this.#log.producer[value] as number) < 0;
      if (isAgain && !this.#executor.isThere(value)) this.#lifetimes.prolong(value);
    }
  }

  /** Inputs that were evicted are recomputed first; nothing that the run reads is evicted for it. */
  #runEvicting(run: Run, program: PoolProgram): void {
    const eviction = this.#eviction as Eviction;
    eviction.pin(run.inputs);
    try {
      this.#restore(run.inputs);
      eviction.use([...run.inputs, ...run.outputs]);
      this.#executor.execute(run, program);
      eviction.count(run.entries.length, 0);
    } finally {
      eviction.unpin(run.inputs);
    }
  }

  /** Recomputes those of some values that were evicted, one entry at a time. */
  #restore(values: readonly number[]): void {
    const eviction = this.#eviction;
    const missing = values.filter(
      (value) => !this.#executor.isThere(value) && (this.#log.producer[value] as number) >= 0,
    );
    if (!eviction || missing.length === 0) return;
    const wanted = new Set(missing);
    const entries = this.#needed(missing);
    const left = new Map<number, number>();
    for (const entry of entries) this.#eachInput(entry, (value) => count(left, value));
    const isMade = new Set(entries);
    for (const entry of entries) {
      const { run, program } = this.#single(entry, ALL_NEEDED);
      eviction.count(0, 1);
      this.#engine.counts.recomputed += 1;
      eviction.pin(run.inputs);
      try {
        this.#restore(run.inputs);
        eviction.use([...run.inputs, ...run.outputs]);
        this.#executor.execute(run, program);
      } finally {
        eviction.unpin(run.inputs);
      }
      for (const value of run.inputs) {
        const isTemporary = isMade.has(this.#log.producer[value] as number) && !wanted.has(value);
        if (count(left, value, -1) <= 0 && isTemporary) this.#executor.give(value);
      }
    }
  }

  /** An entry by itself. */
  #single(entry: number, around: Surroundings): Piece {
    const run = runOf(this.#log, [entry], around);
    const program = this.#engine.runs.programOf(this.#log, run);
    invariant(program, () => `${this.#log.signatureOf(entry).op.name} has too many operands`);
    return { run, program };
  }

  #eachInput(entry: number, visit: (value: number) => void): void {
    const log = this.#log;
    const inputs = log.signatureOf(entry).inputTypes.length;
    for (let i = 0; i < inputs; i++) visit(log.inputAt(entry, i));
  }

  /** Entries that have to run for values to be there, in order. */
  #needed(targets: readonly number[]): readonly number[] {
    const log = this.#log;
    const found = new Set<number>();
    const pending = [...targets];
    for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
      const entry = log.producer[value] as number;
      if ((log.block[value] as number) >= 0 || entry < 0 || found.has(entry)) continue;
      found.add(entry);
      this.#eachInput(entry, (input) => pending.push(input));
    }
    return [...found].sort((a, b) => a - b);
  }

  /** What is read; entries that run a second time are noted. */
  #readsOf(entries: readonly number[]): Reads {
    const log = this.#log;
    const reads: Reads = { left: new Map(), first: new Map() };
    for (const entry of entries) {
      const again = ((log.marks[entry] as number) & EXECUTED) !== 0;
      if (again) this.#noteRecomputed(entry);
      this.#eachInput(entry, (value) => {
        count(reads.left, value);
        if (again) return;
        count(reads.first, value);
        this.#lifetimes.noteRead(entry, value);
      });
    }
    return reads;
  }

  #noteRecomputed(entry: number): void {
    const log = this.#log;
    if (log.signatureOf(entry).isCheap) return;
    this.#engine.counts.recomputed += 1;
    const first = log.firstOutput[entry] as number;
    for (let i = 0; i < log.signatureOf(entry).outputTypes.length; i++) this.#lifetimes.prolong(first + i);
  }

  #mark(value: number, mark: number): void {
    this.#log.valueMarks[value] = (this.#log.valueMarks[value] as number) | mark;
  }

  #markRun(entry: number): void {
    const log = this.#log;
    const marks = log.marks[entry] as number;
    if (marks & EXECUTED) return;
    log.marks[entry] = marks | EXECUTED;
    this.#eachInput(entry, (value) => {
      log.readersRun[value] = (log.readersRun[value] as number) + 1;
    });
  }

  /** Entries as runs: all of them where they came before in this order, else in pieces that came before, else one by one. */
  *#pieces(entries: readonly number[], around: Surroundings): Generator<Piece> {
    if (entries.length === 0) return;
    const { compilesRuns, cuts, counts } = this.#engine;
    const log = this.#log;
    const whole = compilesRuns && entries.length <= MOST_OPERATIONS ? this.#known(entries, around) : null;
    if (whole) {
      counts.inRuns += entries.length;
      yield whole;
      return;
    }
    const ends = compilesRuns && entries.length > 1 ? cuts.of(log, entries) : [entries.length];
    let start = 0;
    for (const end of ends) {
      const part = entries.slice(start, end);
      start = end;
      const known = compilesRuns && part.length > 1 && part.length < entries.length ? this.#known(part, around) : null;
      if (known) {
        counts.inRuns += part.length;
        yield known;
        continue;
      }
      counts.single += part.length;
      for (const entry of part) yield this.#single(entry, around);
    }
  }

  #known(entries: readonly number[], around: Surroundings): Piece | null {
    const run = runOf(this.#log, entries, around);
    const program = this.#engine.runs.programOf(this.#log, run);
    return program && { run, program };
  }
}

/** Where values are recomputed for others. */
const ALL_NEEDED: Surroundings = { isNeeded: () => true, mayOverwrite: () => false };
