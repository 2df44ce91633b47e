/**
 * @file Computes values of a tape: what they depend on and is not in memory, in the order in which it was recorded. Within one evaluation
 * the last reader of every value is known; lifetimes.ts says what outlives it.
 */
import { at, invariant } from "../base/invariant.ts";
import { byteLength } from "../ir/type.ts";
import type { TypedArray } from "../kernel/dtype.ts";
import type { Pool } from "../pool/pool.ts";
import { type Cuts, setContexts } from "./cuts.ts";
import { type LastingPlaces, Lifetimes } from "./lifetimes.ts";
import { EXECUTED, type Log, SEEN } from "./log.ts";
import type { PoolProgram, TapeMemory } from "./memory.ts";
import { type CompiledRuns, type Run, runOf } from "./runs.ts";

/** What computes, for all tapes. */
export interface Engine {
  readonly memory: TapeMemory;
  readonly runs: CompiledRuns;
  readonly cuts: Cuts;
  readonly lasting: LastingPlaces;
  /** Whether runs of several operations are compiled as one. */
  compilesRuns: boolean;
  /** Operations that ran by themselves, and within compiled runs. */
  readonly counts: { single: number; inRuns: number; recomputed: number };
}

/** Elements of values from outside. */
export type LeafData = (value: number) => (into: TypedArray) => void;

/** Longer runs are cut, whether they come again or not. */
const MOST_OPERATIONS = 20_000;

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
  readonly #leafData: LeafData;
  readonly #blocks: SharedBlocks;
  readonly #lifetimes: Lifetimes;
  /** Tags of the pool by the numbers of lines. */
  readonly #tags: number[] = [0];
  #table = new Int32Array(64);

  constructor(log: Log, engine: Engine, leafData: LeafData) {
    this.#log = log;
    this.#engine = engine;
    this.#leafData = leafData;
    this.#blocks = new SharedBlocks(engine.memory.pool);
    this.#lifetimes = new Lifetimes(log, engine.lasting, (value) => this.#give(value));
  }

  /** Makes sure that values are in memory. After the last call of a tape nothing else has to be. */
  compute(targets: readonly number[], isLast: boolean): void {
    const lifetimes = this.#lifetimes;
    lifetimes.now += 1;
    const wanted = new Set(targets);
    const entries = this.#needed(targets);
    const reads = this.#readsOf(entries);
    setContexts(this.#log, entries);
    for (const target of targets) this.#mark(target, SEEN);
    const isNeeded = (value: number, inside: number): boolean => {
      if ((reads.left.get(value) ?? 0) > inside || wanted.has(value)) return true;
      return !isLast && lifetimes.mayLast(value, reads.first.get(value) ?? 0);
    };
    for (const { run, program } of this.#pieces(entries, isNeeded)) {
      this.#execute(run, program);
      for (const entry of run.entries) this.#markRun(entry);
      for (const entry of run.entries) {
        this.#eachInput(entry, (value) => {
          lifetimes.use(value);
          if (count(reads.left, value, -1) > 0 || wanted.has(value) || (this.#log.block[value] as number) < 0) return;
          if (isLast) this.#give(value);
          else lifetimes.retire(value, entry);
        });
      }
    }
    for (const target of targets) {
      this.#blockOf(target);
      lifetimes.use(target);
      if (!isLast) lifetimes.retire(target, -1);
    }
    if (!isLast) lifetimes.settle();
  }

  /** Gives back all memory of the tape. */
  end(): void {
    const { block, values } = this.#log;
    for (let value = 0; value < values; value++) if ((block[value] as number) >= 0) this.#give(value);
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
  *#pieces(entries: readonly number[], isNeeded: IsNeeded): Generator<Piece> {
    if (entries.length === 0) return;
    const { compilesRuns, runs, cuts, counts } = this.#engine;
    const log = this.#log;
    const whole = compilesRuns && entries.length <= MOST_OPERATIONS ? this.#known(entries, isNeeded) : null;
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
      const known =
        compilesRuns && part.length > 1 && part.length < entries.length ? this.#known(part, isNeeded) : null;
      if (known) {
        counts.inRuns += part.length;
        yield known;
        continue;
      }
      counts.single += part.length;
      for (const entry of part) {
        const run = runOf(log, [entry], isNeeded);
        const program = runs.programOf(log, run);
        invariant(program, () => `${log.signatureOf(entry).op.name} has too many operands`);
        yield { run, program };
      }
    }
  }

  #known(entries: readonly number[], isNeeded: IsNeeded): Piece | null {
    const run = runOf(this.#log, entries, isNeeded);
    const program = this.#engine.runs.programOf(this.#log, run);
    return program && { run, program };
  }

  /** Runs a program on the blocks of its inputs; its outputs have blocks afterwards. */
  #execute({ entries, inputs, outputs }: Run, program: PoolProgram): void {
    const log = this.#log;
    const { memory } = this.#engine;
    const { pool } = memory;
    const words = 1 + inputs.length + program.bufferBytes.length;
    if (words > this.#table.length) this.#table = new Int32Array(2 * words);
    const table = this.#table;
    const tag = this.#tagOf(entries[entries.length - 1] as number);
    const made: number[] = [];
    try {
      inputs.forEach((value, i) => {
        table[1 + i] = this.#blockOf(value);
      });
      program.results.forEach((place, i) => {
        if (!("buffer" in place) || place.buffer < made.length) return;
        const line = this.#tagOf(log.producer[at(outputs, i)] as number);
        made.push(pool.allocate(at(program.bufferBytes, place.buffer), line));
        table[inputs.length + made.length] = at(made, place.buffer);
      });
      table[0] = program.slotBytes > 0 ? pool.allocate(program.slotBytes, tag) : -1;
    } catch (error) {
      for (const block of made) pool.free(block);
      throw error;
    }
    memory.bind(table, words);
    program.run();
    if ((table[0] as number) >= 0) pool.free(table[0] as number);
    outputs.forEach((value, i) => {
      const place = at(program.results, i);
      const block = "buffer" in place ? at(made, place.buffer) : (log.block[at(inputs, place.param)] as number);
      this.#blocks.share(block);
      log.block[value] = block;
      this.#lifetimes.use(value);
    });
  }

  #tagOf(entry: number): number {
    const line = entry < 0 ? 0 : (this.#log.line[entry] as number);
    const known = this.#tags[line];
    if (known !== undefined) return known;
    const tag = this.#engine.memory.pool.tag(at(this.#log.lines, line));
    this.#tags[line] = tag;
    return tag;
  }

  /** The block of a value that is in memory or comes from outside. */
  #blockOf(value: number): number {
    const log = this.#log;
    const known = log.block[value] as number;
    if (known >= 0) return known;
    const entry = log.producer[value] as number;
    invariant(entry < 0, () => `value ${value} of ${log.signatureOf(entry).op.name} was not computed`);
    const { memory } = this.#engine;
    const type = log.typeOf(value);
    const block = memory.pool.allocate(byteLength(type), memory.pool.tag("from outside of the tape"));
    memory.write(block, type, this.#leafData(value));
    this.#blocks.share(block);
    log.block[value] = block;
    if (log.readersRun[value] as number) this.#lifetimes.prolong(value);
    return block;
  }

  #give(value: number): void {
    const { block } = this.#log;
    const own = block[value] as number;
    if (own < 0) return;
    block[value] = -1;
    this.#blocks.release(own);
  }
}

type IsNeeded = (value: number, inside: number) => boolean;

/** Blocks by how many values are in them: a value and its views share one. */
class SharedBlocks {
  readonly #pool: Pool;
  #values = new Int32Array(256);

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  share(block: number): void {
    if (block >= this.#values.length) {
      const longer = new Int32Array(2 * (block + 1));
      longer.set(this.#values);
      this.#values = longer;
    }
    this.#values[block] = (this.#values[block] as number) + 1;
  }

  release(block: number): void {
    const values = (this.#values[block] as number) - 1;
    this.#values[block] = values;
    if (values === 0) this.#pool.free(block);
  }
}
