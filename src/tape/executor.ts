/**
 * @file Values of a tape in memory: their blocks, and programs run on them. Where the pool has no room and the tape may recompute, values
 * are evicted first (eviction.ts).
 */

import type { PoolMemory, PoolProgram } from "../api/pool-memory.ts";
import { at, invariant } from "../base/invariant.ts";
import { byteLength } from "../ir/type.ts";
import type { TypedArray } from "../kernel/dtype.ts";
import type { Pool } from "../pool/pool.ts";
import type { Log } from "./log.ts";
import type { Run } from "./runs.ts";

/** Elements of values from outside. */
export type LeafData = (value: number) => (into: TypedArray) => void;

/** Makes room for so many bytes, as far as that can be done. */
export type MakeRoom = (bytes: number) => void;

/** Bytes of a block from which on overwriting it is worth another program. */
const LEAST_OVERWRITTEN = 4096;

export class Executor {
  readonly #log: Log;
  readonly #memory: PoolMemory;
  readonly #leafData: LeafData;
  readonly #blocks: SharedBlocks;
  /** Before an allocation for which there is no room. */
  makeRoom: MakeRoom | null = null;
  /** Tags of the pool by the numbers of lines. */
  readonly #tags: number[] = [0];
  #table = new Int32Array(64);
  /** Blocks of values from outside that are in the pool already. They are not given back before the last evaluation. */
  readonly #held = new Map<number, number>();

  constructor(log: Log, memory: PoolMemory, leafData: LeafData) {
    this.#log = log;
    this.#memory = memory;
    this.#leafData = leafData;
    this.#blocks = new SharedBlocks(memory.pool);
  }

  isThere(value: number): boolean {
    return (this.#log.block[value] as number) >= 0;
  }

  /** Whether a result may be stored over a value: nothing else is in its block, and it is large enough to matter. */
  mayOverwrite(value: number): boolean {
    const block = this.#log.block[value] as number;
    // a value from outside will have a block of its own
    if (block < 0) return this.isFromOutside(value) && byteLength(this.#log.typeOf(value)) >= LEAST_OVERWRITTEN;
    return this.#memory.pool.bytes(block) >= LEAST_OVERWRITTEN && this.#blocks.isAlone(block);
  }

  isFromOutside(value: number): boolean {
    return (this.#log.producer[value] as number) < 0;
  }

  /** Runs a program on the blocks of its inputs; its outputs have blocks afterwards. Where there is no room, nothing has changed. */
  execute({ entries, inputs, outputs, donated }: Run, program: PoolProgram): void {
    const log = this.#log;
    const { pool } = this.#memory;
    const words = 1 + inputs.length + program.bufferBytes.length;
    if (words > this.#table.length) this.#table = new Int32Array(2 * words);
    const table = this.#table;
    const tag = this.#tagOf(entries[entries.length - 1] as number);
    const made: number[] = [];
    try {
      inputs.forEach((value, i) => {
        table[1 + i] = this.blockOf(value, entries[entries.length - 1]);
      });
      program.results.forEach((place, i) => {
        if (!("buffer" in place) || place.buffer < made.length) return;
        const line = this.#tagOf(log.producer[at(outputs, i)] as number);
        made.push(this.#allocate(at(program.bufferBytes, place.buffer), line));
        table[inputs.length + made.length] = at(made, place.buffer);
      });
      table[0] = program.slotBytes > 0 ? this.#allocate(program.slotBytes, tag) : -1;
    } catch (error) {
      for (const block of made) pool.free(block);
      throw error;
    }
    this.#memory.bind(table, words);
    program.run();
    if ((table[0] as number) >= 0) pool.free(table[0] as number);
    outputs.forEach((value, i) => {
      const place = at(program.results, i);
      const block = "buffer" in place ? at(made, place.buffer) : (table[1 + place.param] as number);
      if (this.isThere(value)) this.give(value);
      this.#blocks.share(block);
      log.block[value] = block;
    });
    // what a result was stored over is gone
    for (const [input, output] of donated) {
      const place = at(program.results, output);
      if ("param" in place && place.param === input) this.give(at(inputs, input));
    }
  }

  /**
   * The block of a value that is in memory or comes from outside.
   * @param reader the entry that it is for
   */
  blockOf(value: number, reader?: number): number {
    const log = this.#log;
    const known = log.block[value] as number;
    if (known >= 0) return known;
    const held = this.#held.get(value);
    if (held !== undefined) return this.#put(value, held);
    const entry = log.producer[value] as number;
    invariant(entry < 0, () => `value ${value} of ${log.signatureOf(entry).op.name} was not computed`);
    const type = log.typeOf(value);
    const block = this.#allocate(byteLength(type), this.#outsideTag(reader));
    this.#memory.write(block, type, this.#leafData(value));
    return this.#put(value, block);
  }

  #put(value: number, block: number): number {
    this.#blocks.share(block);
    this.#log.block[value] = block;
    return block;
  }

  /** A value from outside is in a block, which stays as it is until `letGo`. */
  hold(value: number, block: number): void {
    this.#held.set(value, block);
    this.#blocks.share(block);
    this.#put(value, block);
  }

  /** From now on held blocks are like those of other values. */
  letGo(): void {
    for (const [value, block] of this.#held) {
      this.blockOf(value);
      this.#blocks.release(block);
    }
    this.#held.clear();
  }

  /** The block of a value that outlives the tape; null where other values are in it too. */
  keep(value: number): number | null {
    const block = this.#log.block[value] as number;
    if (!this.#blocks.isAlone(block)) return null;
    this.#blocks.share(block);
    return block;
  }

  /** A value's memory is given back. */
  give(value: number): void {
    const { block } = this.#log;
    const own = block[value] as number;
    if (own < 0) return;
    block[value] = -1;
    this.#blocks.release(own);
  }

  /** Gives back all memory of the tape. */
  end(): void {
    for (let value = 0; value < this.#log.values; value++) this.give(value);
  }

  #allocate(bytes: number, tag: number): number {
    const { pool } = this.#memory;
    if (this.makeRoom && !pool.fits(bytes)) this.makeRoom(bytes);
    return pool.allocate(bytes, tag);
  }

  #outsideTag(reader: number | undefined): number {
    const line = reader === undefined ? undefined : this.#log.lineOf(reader);
    return this.#memory.pool.tag(`${line ? `${line}, ` : ""}from outside of the tape`);
  }

  #tagOf(entry: number): number {
    const line = entry < 0 ? 0 : (this.#log.line[entry] as number);
    const known = this.#tags[line];
    if (known !== undefined) return known;
    const tag = this.#memory.pool.tag(at(this.#log.lines, line));
    this.#tags[line] = tag;
    return tag;
  }
}

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

  isAlone(block: number): boolean {
    return this.#values[block] === 1;
  }

  release(block: number): void {
    const values = (this.#values[block] as number) - 1;
    this.#values[block] = values;
    if (values === 0) this.#pool.free(block);
  }
}
