/**
 * @file Runs of operations that come again. A run is written as whole numbers that are equal for equal runs, whatever values they are applied to:
 *
 *   signature, replay, operands: the n-th operation of the run (and which result), or the n-th value from outside; which results are needed
 *
 * so that what was compiled for one run serves all that have the same code. A run of one operation is compiled when it first comes, a
 * longer one when it comes the second time.
 */

import type { PoolMemory, PoolProgram } from "../api/pool-memory.ts";
import { TidemarkError } from "../base/errors.ts";
import { Recent } from "../base/recent.ts";
import { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import { sameType } from "../ir/type.ts";
import type { Log } from "./log.ts";

/** A run as code, and what it is applied to. */
export interface Run {
  readonly entries: readonly number[];
  readonly code: readonly number[];
  /** Values from outside, in the order of their first use. */
  readonly inputs: readonly number[];
  /** Values that are needed afterwards, in order. */
  readonly outputs: readonly number[];
  /** Numbers of inputs that nothing reads afterwards, with the number of an output that may be stored over them. */
  readonly donated: ReadonlyMap<number, number>;
  readonly hash: number;
}

/** What is known about values around a run. */
export interface Surroundings {
  /** Whether a value is read after the run, from how often it is read inside. */
  isNeeded(value: number, inside: number): boolean;
  /** Whether the block of a value from outside may be overwritten. */
  mayOverwrite(value: number, inside: number): boolean;
}

export function runOf(log: Log, entries: readonly number[], { isNeeded, mayOverwrite }: Surroundings): Run {
  const code: number[] = [];
  const inputs: number[] = [];
  const outputs: number[] = [];
  /** Of values that are made inside: their number among those; of values from outside: -1 - their number. */
  const places = new Map<number, number>();
  const reads = new Map<number, number>();
  let made = 0;
  let hash = 17;
  const push = (word: number): void => {
    code.push(word);
    hash = Math.imul(hash ^ word, 0x01000193);
    hash ^= hash >>> 15;
  };
  for (const entry of entries) {
    const { number, inputTypes, outputTypes } = log.signatureOf(entry);
    push(number);
    push(log.replay[entry] as number);
    for (let i = 0; i < inputTypes.length; i++) {
      const value = log.inputAt(entry, i);
      let place = places.get(value);
      if (place === undefined) {
        place = -1 - inputs.length;
        inputs.push(value);
        places.set(value, place);
      }
      reads.set(value, (reads.get(value) ?? 0) + 1);
      push(place);
    }
    const first = log.firstOutput[entry] as number;
    for (let i = 0; i < outputTypes.length; i++) places.set(first + i, made++);
  }
  for (const entry of entries) {
    const first = log.firstOutput[entry] as number;
    for (let i = 0; i < log.signatureOf(entry).outputTypes.length; i++) {
      if (!isNeeded(first + i, reads.get(first + i) ?? 0)) continue;
      push(places.get(first + i) as number);
      outputs.push(first + i);
    }
  }
  const donated = donatedOf(log, { inputs, outputs, places }, (value) => mayOverwrite(value, reads.get(value) ?? 0));
  for (const [input, output] of donated) {
    push(-1 - input);
    push(output);
  }
  return { entries, code, inputs, outputs, donated, hash };
}

/** Values between an output and what it may be stored over that are looked at. */
const MOST_FOLLOWED = 24;

/** A new state is computed from the old one in a few operations: m · β + g · (1 - β) takes the place of m. */
function donatedOf(
  log: Log,
  { inputs, outputs, places }: Pick<Run, "inputs" | "outputs"> & { readonly places: ReadonlyMap<number, number> },
  mayOverwrite: (value: number) => boolean,
): ReadonlyMap<number, number> {
  const donated = new Map<number, number>();
  const free = new Set(inputs.filter(mayOverwrite));
  if (free.size === 0) return donated;
  const found = outputs.flatMap((output, i) =>
    nearest(log, output, places, free).map(({ input, distance }) => ({ output: i, input, distance })),
  );
  found.sort((a, b) => a.distance - b.distance || a.output - b.output);
  const taken = new Set<number>();
  for (const { output, input } of found) {
    const number = -1 - (places.get(input) as number);
    if (taken.has(output) || donated.has(number)) continue;
    taken.add(output);
    donated.set(number, output);
  }
  return donated;
}

/** Values from outside that an output is computed from, of its type and in `free`, those in the fewest operations first. */
function nearest(log: Log, output: number, places: ReadonlyMap<number, number>, free: ReadonlySet<number>) {
  const found: { readonly input: number; readonly distance: number }[] = [];
  const type = log.typeOf(output);
  const pending = [{ value: output, distance: 0 }];
  const seen = new Set<number>();
  for (let next = 0; next < pending.length && next < MOST_FOLLOWED; next++) {
    const { value, distance } = pending[next] as (typeof pending)[number];
    const entry = log.producer[value] as number;
    for (let i = 0; i < log.signatureOf(entry).inputTypes.length; i++) {
      const operand = log.inputAt(entry, i);
      if (seen.has(operand)) continue;
      seen.add(operand);
      const isInside = (places.get(operand) as number) >= 0;
      if (isInside) pending.push({ value: operand, distance: distance + 1 });
      else if (free.has(operand) && sameType(log.typeOf(operand), type)) found.push({ input: operand, distance });
    }
  }
  return found;
}

function sameCode(a: readonly number[], b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

interface CompiledRun {
  readonly code: Int32Array;
  readonly program: PoolProgram;
}

/** Runs that were seen and not compiled: only hashes are kept. */
const MOST_SEEN = 65536;
/** Programs, of which the one longest unused makes room for another. */
const MOST_COMPILED = 2048;

export class CompiledRuns {
  readonly #memory: PoolMemory;
  /** By hash. */
  readonly #compiled = new Recent<number, CompiledRun[]>(MOST_COMPILED);
  #seen = new Set<number>();
  /** Too large for the target, or for the table. */
  readonly #refused = new Set<number>();
  compiledRuns = 0;

  constructor(memory: PoolMemory) {
    this.#memory = memory;
  }

  /** The program of a run, if there is one by now; compiles it if it is time for that. */
  programOf(log: Log, run: Run): PoolProgram | null {
    const known = this.#compiled.find(run.hash);
    const found = known?.find(({ code }) => sameCode(run.code, code));
    if (found) return found.program;
    if (run.entries.length > 1 && !this.#isSecond(run.hash)) return null;
    const program = this.#load(log, run);
    if (!program) return null;
    this.compiledRuns += 1;
    const compiled = { code: Int32Array.from(run.code), program };
    if (known) known.push(compiled);
    else this.#compiled.add(run.hash, [compiled]);
    return program;
  }

  /** Null where a run of several operations cannot be one program: they run by themselves. */
  #load(log: Log, run: Run): PoolProgram | null {
    try {
      const program = this.#memory.load({ graph: graphOf(log, run), donated: run.donated });
      if (!program) this.#refused.add(run.hash);
      return program;
    } catch (error) {
      if (!(error instanceof TidemarkError) || run.entries.length === 1) throw error;
      this.#refused.add(run.hash);
      return null;
    }
  }

  #isSecond(hash: number): boolean {
    if (this.#refused.has(hash)) return false;
    if (this.#seen.delete(hash)) return true;
    if (this.#seen.size >= MOST_SEEN) this.#seen = new Set();
    this.#seen.add(hash);
    return false;
  }
}

/** The run as a graph from its inputs to its outputs. */
export function graphOf(log: Log, { entries, inputs, outputs }: Run): ReturnType<Build["finish"]> {
  const b = new Build(entries.length === 1 ? log.signatureOf(entries[0] as number).op.name : "run");
  const values = new Map<number, Value>();
  for (const input of inputs) values.set(input, b.param(log.typeOf(input)));
  for (const entry of entries) {
    const { op, attrs, regions, inputTypes } = log.signatureOf(entry);
    const operands = inputTypes.map((_, i) => values.get(log.inputAt(entry, i)) as Value);
    const replay = log.replay[entry] as number;
    const made = b.callAll(op, operands, attrs, { regions, replay, where: log.lineOf(entry) });
    const first = log.firstOutput[entry] as number;
    made.forEach((value, i) => {
      values.set(first + i, value);
    });
  }
  return b.finish(outputs.map((output) => values.get(output) as Value));
}
