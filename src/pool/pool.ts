/**
 * @file A pool: one range of addresses from which values of any size are taken and given back, for programs whose memory cannot
 * be planned. Blocks lie side by side; tables beside the range hold what is known about each, so an allocation makes no object:
 *
 *   range    ├── used ──┼─ free ─┼──── used ────┼─ free ─┤        ← the top; above it nothing is reserved
 *   tables   address, bytes, asked, tag, generation, neighbours    one row per block
 *
 * Best fit: the smallest free block that is large enough, the lowest of equal ones (free-blocks.ts). What is freed joins its free
 * neighbours, at the top too: the top is lowered by `trim` alone. Where nothing fits, a free block at the top is extended; where that would
 * exceed the limit and the owner can move bytes, live blocks are moved together.
 *
 * Blocks belong to the generation in which they were allocated. Ending a generation frees them all at once, but those that were
 * carried out of it. The top never exceeds the limit: an allocation that does not fit is refused with a list of what is live.
 */
import { TidemarkError } from "../base/errors.ts";
import { badBytes, badHistory, limitOf, notInUse, requireOptions } from "./arguments.ts";
import { FreeBlocks } from "./free-blocks.ts";
import { wholeGranules } from "./granule.ts";
import { type PoolEvents, recorder } from "./history.ts";
import { poolRefused } from "./refusal.ts";

const NONE = -1;
/** Each takes twenty bytes. */
const MOST_EVENTS = 10_000_000;
const [UNUSED, FREE, USED] = [0, 1, 2];

/** Options of {@link Pool}. */
export interface PoolOptions {
  /** For messages. */
  readonly name?: string;
  /** The top of the range is never above it: a number of bytes, or `"64MiB"`; default: no limit. */
  readonly limitBytes?: string | number;
  /** Called before the top goes above where it was: memory behind the range has to be there. */
  readonly reserve?: (bytes: number) => void;
  /**
   * Copies bytes to a lower address, which they may overlap. Given, live blocks are moved together where an allocation would be refused
   * although all gaps together are large enough: addresses of blocks change with any allocation then, handles do not.
   */
  readonly move?: (from: number, to: number, bytes: number) => void;
  /** Allocations and frees that are remembered for snapshots, the last ones; default: none. */
  readonly history?: number;
}

/** The names are those of PyTorch's allocator. */
export interface PoolStats {
  /** Asked for by what is live. */
  readonly allocated: number;
  /** Of live blocks: what was asked for, rounded up. */
  readonly active: number;
  /** Of the range: from its start to its top. */
  readonly reserved: number;
  /** The most that was allocated, and reserved, so far. */
  readonly peak: { readonly allocated: number; readonly reserved: number };
  /** The largest free block. */
  readonly largestFree: number;
  /** Live blocks. */
  readonly blocks: number;
  readonly limit: number;
  /** Allocations so far. */
  readonly allocations: number;
  /** Bytes that were moved to close gaps, so far. */
  readonly moved: number;
}

/** A live block. */
export interface PoolBlock {
  readonly handle: number;
  readonly address: number;
  readonly bytes: number;
  /** What was asked for. */
  readonly asked: number;
  readonly tag: string | undefined;
}

/**
 * One range of memory that blocks of any size are taken from.
 *
 * @throws InvalidArgument for options that are none. Its methods throw PoolExhausted where an allocation would
 * exceed the limit, and InvalidArgument for blocks that are not in use and for sizes that are none
 *
 * @example
 * import { Pool } from "tidemark/tape";
 *
 * const pool = new Pool({ limitBytes: 4096 });
 * const block = pool.allocate(1000);
 * console.log(pool.stats().allocated); // → 1000
 * pool.free(block);
 * console.log(pool.stats().allocated); // → 0
 */
export class Pool {
  readonly name: string;
  events: PoolEvents | null = null;
  readonly #reserve: (bytes: number) => void;
  readonly #move: PoolOptions["move"];
  #address = new Float64Array(256);
  #bytes = new Float64Array(256);
  #asked = new Float64Array(256);
  #state = new Uint8Array(256);
  #tag = new Int32Array(256);
  #generation = new Int32Array(256);
  /** Neighbours by address; of rows that are not in use, `#after` is the next such row. */
  #before = new Int32Array(256);
  #after = new Int32Array(256);
  readonly #free: FreeBlocks;
  /** Rows below it have been in use. */
  #rows = 0;
  #spareRow = NONE;
  #last = NONE;
  #top = 0;
  #reservedSoFar = 0;
  #allocated = 0;
  #active = 0;
  #blocks = 0;
  #allocations = 0;
  #moved = 0;
  #peakAllocated = 0;
  #peakReserved = 0;
  #currentGeneration = 0;
  #limitBytes = Number.POSITIVE_INFINITY;
  readonly #tags: string[] = [];
  readonly #tagNumbers = new Map<string, number>();

  constructor(options: PoolOptions = {}) {
    requireOptions(options);
    const { name = "the pool", limitBytes, reserve, move, history = 0 } = options;
    this.name = name;
    this.#limitBytes = limitOf(limitBytes);
    this.#reserve = reserve ?? (() => undefined);
    this.#move = move;
    this.record(history);
    this.#free = new FreeBlocks({ address: this.#address, bytes: this.#bytes });
  }

  /** A lower one than there was holds from the next time that the top moves. */
  get limitBytes(): number {
    return this.#limitBytes;
  }

  set limitBytes(limit: string | number) {
    this.#limitBytes = limitOf(limit);
  }

  /** From now on the last `most` allocations and frees are remembered; 0: none. */
  record(most: number): void {
    if (!Number.isInteger(most) || most < 0 || most > MOST_EVENTS) badHistory(this.name, most, MOST_EVENTS);
    this.events = most > 0 ? recorder(most) : null;
  }

  /** A number for what a block is for: a source line, for instance. Tags are kept as long as the pool. */
  tag(text: string): number {
    const known = this.#tagNumbers.get(text);
    if (known !== undefined) return known;
    this.#tags.push(text);
    this.#tagNumbers.set(text, this.#tags.length);
    return this.#tags.length;
  }

  /**
   * Takes a block of at least so many bytes and gives its handle. Throws `PoolExhausted` where that would exceed the limit;
   * nothing has changed then.
   * @param tag from `tag()`; 0 for none
   */
  allocate(bytes: number, tag = 0): number {
    if (typeof bytes !== "number" || !(bytes >= 0 && bytes <= Number.MAX_SAFE_INTEGER)) badBytes(this.name, bytes);
    const size = wholeGranules(bytes);
    const fit = this.#free.bestFit(size);
    const block = fit >= 0 ? this.#takeFrom(fit, size) : this.#extend(size, bytes, tag);
    this.#state[block] = USED;
    this.#asked[block] = bytes;
    this.#tag[block] = tag;
    this.#generation[block] = this.#currentGeneration;
    this.#allocated += bytes;
    this.#active += size;
    this.#blocks += 1;
    this.#allocations += 1;
    if (this.#allocated > this.#peakAllocated) this.#peakAllocated = this.#allocated;
    this.events?.add(true, this.#address[block] as number, size, tag);
    return block;
  }

  /** Whether an allocation of so many bytes would be refused. */
  refuses(bytes: number): boolean {
    return !this.fits(bytes) && !this.#fitsMoved(wholeGranules(bytes));
  }

  /** Whether there is room for so many bytes where blocks are now. */
  fits(bytes: number): boolean {
    const size = wholeGranules(bytes);
    return this.#usedTop + size <= this.#limitBytes || this.#free.bestFit(size) >= 0;
  }

  #fitsMoved(size: number): boolean {
    return this.#move !== undefined && this.#active + size <= this.#limitBytes;
  }

  /** Gives a block back. */
  free(handle: number): void {
    this.#requireUsed(handle);
    const size = this.#bytes[handle] as number;
    this.#allocated -= this.#asked[handle] as number;
    this.#active -= size;
    this.#blocks -= 1;
    this.events?.add(false, this.#address[handle] as number, size, this.#tag[handle] as number);
    this.#release(handle);
  }

  #requireUsed(handle: number): void {
    if (this.#state[handle] !== USED) notInUse(this.name, handle);
  }

  address(handle: number): number {
    this.#requireUsed(handle);
    return this.#address[handle] as number;
  }

  /** Of the block: what was asked for, rounded up. */
  bytes(handle: number): number {
    this.#requireUsed(handle);
    return this.#bytes[handle] as number;
  }

  /** What is allocated from now on belongs to a new generation, whose number is returned. */
  begin(): number {
    this.#currentGeneration += 1;
    return this.#currentGeneration;
  }

  /** Frees everything of a generation and of those that began after it. */
  end(generation: number): void {
    for (let block = this.#last; block >= 0; ) {
      const before = this.#before[block] as number;
      if (this.#state[block] === USED && (this.#generation[block] as number) >= generation) {
        // a free neighbour below joins it and keeps its own number, so `before` may be gone afterwards
        const next = before >= 0 && this.#state[before] === FREE ? (this.#before[before] as number) : before;
        this.free(block);
        block = next;
      } else block = before;
    }
    this.#currentGeneration = generation - 1;
  }

  /** A block survives its generation: it now belongs to the one before. */
  carry(handle: number, generation: number): void {
    this.#requireUsed(handle);
    this.#generation[handle] = Math.min(this.#generation[handle] as number, generation - 1);
  }

  /**
   * Lowers the top to the end of the last live block.
   * @returns bytes above it that the caller may give back
   */
  trim(): number {
    const last = this.#last;
    if (last >= 0 && this.#state[last] === FREE) {
      this.#free.remove(last);
      this.#top = this.#address[last] as number;
      this.#unlink(last);
    }
    const bytes = this.#reservedSoFar - this.#top;
    this.#reservedSoFar = this.#top;
    return bytes;
  }

  /** Moves live blocks to the start of the range, one behind the other, where the owner can move bytes. */
  closeGaps(): void {
    if (!this.#move) return;
    this.#free.clear();
    let top = 0;
    for (let block = this.#first; block >= 0; ) {
      const after = this.#after[block] as number;
      if (this.#state[block] === FREE) this.#unlink(block);
      else {
        this.#moveTo(block, top);
        top += this.#bytes[block] as number;
      }
      block = after;
    }
    this.#top = top;
  }

  /** The end of the last live block. */
  get #usedTop(): number {
    const last = this.#last;
    return last >= 0 && this.#state[last] === FREE ? (this.#address[last] as number) : this.#top;
  }

  stats(): PoolStats {
    return {
      allocated: this.#allocated,
      active: this.#active,
      reserved: this.#top,
      peak: { allocated: this.#peakAllocated, reserved: this.#peakReserved },
      largestFree: this.#free.largestBytes,
      blocks: this.#blocks,
      limit: this.#limitBytes,
      allocations: this.#allocations,
      moved: this.#moved,
    };
  }

  /** Peaks are those of from now on. */
  resetPeak(): void {
    this.#peakAllocated = this.#allocated;
    this.#peakReserved = this.#top;
  }

  /** Every block by address; those that are not live have no handle. */
  *walk(): Generator<PoolBlock & { readonly live: boolean }> {
    for (let block = this.#first; block >= 0; block = this.#after[block] as number) yield this.#row(block);
  }

  /** The text of a tag. */
  tagText(tag: number): string | undefined {
    return this.#tags[tag - 1];
  }

  /** Rows of the tables, in use or not. */
  get rows(): number {
    return this.#rows;
  }

  #row(block: number): PoolBlock & { readonly live: boolean } {
    return {
      handle: block,
      address: this.#address[block] as number,
      bytes: this.#bytes[block] as number,
      asked: this.#asked[block] as number,
      tag: this.tagText(this.#tag[block] as number),
      live: this.#state[block] === USED,
    };
  }

  /** The lower part of a free block; the rest of it stays free. */
  #takeFrom(block: number, size: number): number {
    const rest = (this.#bytes[block] as number) - size;
    if (rest === 0) {
      this.#free.remove(block);
      return block;
    }
    const address = this.#address[block] as number;
    this.#free.keepUpper(block, rest);
    const taken = this.#newRow();
    const before = this.#before[block] as number;
    this.#address[taken] = address;
    this.#bytes[taken] = size;
    this.#before[taken] = before;
    this.#after[taken] = block;
    if (before >= 0) this.#after[before] = taken;
    this.#before[block] = taken;
    return taken;
  }

  #moveTo(block: number, to: number): void {
    const from = this.#address[block] as number;
    if (from === to) return;
    const size = this.#bytes[block] as number;
    const tag = this.#tag[block] as number;
    this.#move?.(from, to, size);
    this.#moved += size;
    this.#address[block] = to;
    this.events?.add(false, from, size, tag);
    this.events?.add(true, to, size, tag);
  }

  get #first(): number {
    let first = this.#last;
    while (first >= 0 && (this.#before[first] as number) >= 0) first = this.#before[first] as number;
    return first;
  }

  /** A block at the top; free space there is the start of it. */
  #extend(size: number, asked: number, tag: number): number {
    if (this.#usedTop + size > this.#limitBytes && this.#fitsMoved(size)) this.closeGaps();
    const address = this.#usedTop;
    const top = address + size;
    if (top > this.#limitBytes) throw poolRefused(this, { bytes: asked, tag: this.tagText(tag) });
    if (top > this.#reservedSoFar) this.#reserveUpTo(top, asked, tag);
    const isFree = address < this.#top;
    if (isFree) this.#free.remove(this.#last);
    const block = isFree ? this.#last : this.#newRow();
    if (!isFree) {
      this.#before[block] = this.#last;
      this.#after[block] = NONE;
      if (this.#last >= 0) this.#after[this.#last] = block;
      this.#last = block;
    }
    this.#address[block] = address;
    this.#bytes[block] = size;
    this.#top = top;
    if (top > this.#peakReserved) this.#peakReserved = top;
    return block;
  }

  #reserveUpTo(top: number, asked: number, tag: number): void {
    try {
      this.#reserve(top);
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error;
      throw poolRefused(this, { bytes: asked, tag: this.tagText(tag), cause: error });
    }
    this.#reservedSoFar = top;
  }

  /** Joins free neighbours. */
  #release(block: number): void {
    const before = this.#before[block] as number;
    const after = this.#after[block] as number;
    let merged = block;
    if (before >= 0 && this.#state[before] === FREE) {
      this.#free.remove(before);
      this.#bytes[before] = (this.#bytes[before] as number) + (this.#bytes[block] as number);
      this.#unlink(block);
      merged = before;
    }
    if (after >= 0 && this.#state[after] === FREE) {
      this.#free.remove(after);
      this.#bytes[merged] = (this.#bytes[merged] as number) + (this.#bytes[after] as number);
      this.#unlink(after);
    }
    this.#state[merged] = FREE;
    this.#free.add(merged);
  }

  #unlink(block: number): void {
    const before = this.#before[block] as number;
    const after = this.#after[block] as number;
    if (before >= 0) this.#after[before] = after;
    if (after >= 0) this.#before[after] = before;
    else this.#last = before;
    this.#state[block] = UNUSED;
    this.#after[block] = this.#spareRow;
    this.#spareRow = block;
  }

  #newRow(): number {
    const spare = this.#spareRow;
    if (spare >= 0) {
      this.#spareRow = this.#after[spare] as number;
      return spare;
    }
    if (this.#rows === this.#bytes.length) this.#growTables();
    this.#rows += 1;
    return this.#rows - 1;
  }

  #growTables(): void {
    const rows = 2 * this.#rows;
    const longer = <T extends Float64Array | Int32Array | Uint8Array>(into: T, from: T): T => {
      into.set(from);
      return into;
    };
    this.#address = longer(new Float64Array(rows), this.#address);
    this.#bytes = longer(new Float64Array(rows), this.#bytes);
    this.#asked = longer(new Float64Array(rows), this.#asked);
    this.#state = longer(new Uint8Array(rows), this.#state);
    this.#tag = longer(new Int32Array(rows), this.#tag);
    this.#generation = longer(new Int32Array(rows), this.#generation);
    this.#before = longer(new Int32Array(rows), this.#before);
    this.#after = longer(new Int32Array(rows), this.#after);
    this.#free.grow({ address: this.#address, bytes: this.#bytes });
  }
}
