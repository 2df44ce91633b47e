/**
 * @file The free blocks of a pool, found by size. Below 64 KiB there is a list for every multiple of the granule, and a bit for
 * every list that is not empty, so that the smallest fitting size is found by counting zeros:
 *
 *   words   …00100000 01000010…      one bit per size class
 *   classes  [128] → b7 → b3         the block freed last is used first
 *
 * Larger blocks are in a treap ordered by size, then by address: the first one that is large enough is the best fit, and among
 * equal ones the lowest. Priorities are a hash of the block's number, so the same calls always give the same tree.
 */
import { GRANULE } from "./granule.ts";

/** Sizes from here on are in the tree. */
export const LARGE_BYTES = 65536;

const CLASSES = LARGE_BYTES / GRANULE;
const WORDS = CLASSES / 32;
const NONE = -1;

/** Sizes and addresses of blocks, which belong to the pool. */
export interface BlockPlaces {
  readonly address: Float64Array;
  readonly bytes: Float64Array;
}

export class FreeBlocks {
  /** First block of each class. */
  readonly #heads = new Int32Array(CLASSES).fill(NONE);
  readonly #words = new Uint32Array(WORDS);
  #summary = 0;
  #root: number = NONE;
  /** The next smaller one of what `bestFit` found in the tree. */
  #beforeBest: number = NONE;
  /** Of a list: previous and next block. Of the tree: left and right child. */
  #left: Int32Array;
  #right: Int32Array;
  #places: BlockPlaces;

  constructor(places: BlockPlaces) {
    this.#places = places;
    this.#left = new Int32Array(places.bytes.length);
    this.#right = new Int32Array(places.bytes.length);
  }

  /** The tables of blocks have been replaced by longer ones. */
  grow(places: BlockPlaces): void {
    const left = this.#left;
    const right = this.#right;
    this.#places = places;
    this.#left = new Int32Array(places.bytes.length);
    this.#right = new Int32Array(places.bytes.length);
    this.#left.set(left);
    this.#right.set(right);
  }

  clear(): void {
    this.#heads.fill(NONE);
    this.#words.fill(0);
    this.#summary = 0;
    this.#root = NONE;
  }

  add(block: number): void {
    const bytes = this.#places.bytes[block] as number;
    if (bytes >= LARGE_BYTES) {
      this.#root = this.#insert(this.#root, block);
      return;
    }
    const kind = bytes / GRANULE;
    const head = this.#heads[kind] as number;
    this.#left[block] = NONE;
    this.#right[block] = head;
    if (head >= 0) this.#left[head] = block;
    this.#heads[kind] = block;
    const word = kind >>> 5;
    (this.#words[word] as number) |= 1 << (kind & 31);
    this.#summary |= 1 << word;
  }

  remove(block: number): void {
    const bytes = this.#places.bytes[block] as number;
    if (bytes >= LARGE_BYTES) {
      this.#root = this.#delete(this.#root, block);
      return;
    }
    const before = this.#left[block] as number;
    const after = this.#right[block] as number;
    if (after >= 0) this.#left[after] = before;
    if (before >= 0) {
      this.#right[before] = after;
      return;
    }
    const kind = bytes / GRANULE;
    this.#heads[kind] = after;
    if (after >= 0) return;
    const word = kind >>> 5;
    (this.#words[word] as number) &= ~(1 << (kind & 31));
    if (this.#words[word] === 0) this.#summary &= ~(1 << word);
  }

  /** The smallest block of at least so many bytes; -1 if there is none. */
  bestFit(bytes: number): number {
    if (bytes < LARGE_BYTES) {
      const kind = this.#smallestClass(bytes / GRANULE);
      if (kind >= 0) return this.#heads[kind] as number;
    }
    const { bytes: sizes } = this.#places;
    let best: number = NONE;
    let before: number = NONE;
    let at = this.#root;
    while (at >= 0) {
      if ((sizes[at] as number) >= bytes) {
        best = at;
        at = this.#left[at] as number;
      } else {
        before = at;
        at = this.#right[at] as number;
      }
    }
    this.#beforeBest = before;
    return best;
  }

  /**
   * The block that `bestFit` just gave keeps its upper `rest` bytes. Where it is still the next larger one after the one before
   * it, it stays in its place in the tree.
   */
  keepUpper(block: number, rest: number): void {
    const { bytes, address } = this.#places;
    const size = bytes[block] as number;
    const before = this.#beforeBest;
    const inPlace = rest >= LARGE_BYTES && (before < 0 || (bytes[before] as number) < rest);
    if (!inPlace) this.remove(block);
    bytes[block] = rest;
    address[block] = (address[block] as number) + size - rest;
    if (!inPlace) this.add(block);
  }

  /** Bytes of the largest; 0 if there is none. */
  get largestBytes(): number {
    let at = this.#root;
    if (at >= 0) {
      while ((this.#right[at] as number) >= 0) at = this.#right[at] as number;
      return this.#places.bytes[at] as number;
    }
    if (this.#summary === 0) return 0;
    const word = 31 - Math.clz32(this.#summary);
    return (word * 32 + 31 - Math.clz32(this.#words[word] as number)) * GRANULE;
  }

  /** The first class from `from` on that has a block. */
  #smallestClass(from: number): number {
    const word = from >>> 5;
    // A shift counts modulo 32, and `from` is below 32 words.
    const here = (this.#words[word] as number) & (-1 << (from & 31));
    if (here !== 0) return word * 32 + lowestBit(here);
    const later = word === 31 ? 0 : this.#summary & (-1 << (word + 1));
    if (later === 0) return NONE;
    const next = lowestBit(later);
    return next * 32 + lowestBit(this.#words[next] as number);
  }

  #isBefore(a: number, b: number): boolean {
    const { bytes, address } = this.#places;
    const difference = (bytes[a] as number) - (bytes[b] as number);
    return difference !== 0 ? difference < 0 : (address[a] as number) < (address[b] as number);
  }

  /** Goes down to where the block's priority is the highest, and splits what is there around it. */
  #insert(root: number, block: number): number {
    const left = this.#left;
    const right = this.#right;
    const rank = priority(block);
    let parent: number = NONE;
    let at = root;
    let isLeft = false;
    while (at >= 0 && priority(at) >= rank) {
      parent = at;
      isLeft = this.#isBefore(block, at);
      at = (isLeft ? left[at] : right[at]) as number;
    }
    this.#split(at, block);
    if (parent < 0) return block;
    (isLeft ? left : right)[parent] = block;
    return root;
  }

  /** Makes everything below `at` the children of `block`. */
  #split(from: number, block: number): void {
    const left = this.#left;
    const right = this.#right;
    let at = from;
    let lower = block;
    let upper = block;
    left[block] = NONE;
    right[block] = NONE;
    while (at >= 0) {
      if (this.#isBefore(at, block)) {
        if (lower === block) left[block] = at;
        else right[lower] = at;
        lower = at;
        at = right[at] as number;
      } else {
        if (upper === block) right[block] = at;
        else left[upper] = at;
        upper = at;
        at = left[at] as number;
      }
    }
    if (lower !== block) right[lower] = NONE;
    if (upper !== block) left[upper] = NONE;
  }

  #delete(root: number, block: number): number {
    const left = this.#left;
    const right = this.#right;
    let parent: number = NONE;
    let at = root;
    let isLeft = false;
    while (at !== block) {
      parent = at;
      isLeft = this.#isBefore(block, at);
      at = (isLeft ? left[at] : right[at]) as number;
    }
    const merged = this.#merge(left[block] as number, right[block] as number);
    if (parent < 0) return merged;
    (isLeft ? left : right)[parent] = merged;
    return root;
  }

  /** One tree of two, all of the first before all of the second. */
  #merge(a: number, b: number): number {
    const left = this.#left;
    const right = this.#right;
    let lower = a;
    let upper = b;
    let parent: number = NONE;
    let isLeft = false;
    let root = NONE;
    const hang = (at: number): void => {
      if (parent < 0) root = at;
      else (isLeft ? left : right)[parent] = at;
    };
    while (lower >= 0 && upper >= 0) {
      const isLower = priority(lower) >= priority(upper);
      const at = isLower ? lower : upper;
      hang(at);
      parent = at;
      isLeft = !isLower;
      if (isLower) lower = right[at] as number;
      else upper = left[at] as number;
    }
    hang(lower >= 0 ? lower : upper);
    return root;
  }
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}

/** A number that looks random, different for every block. */
function priority(block: number): number {
  const mixed = Math.imul(block ^ (block >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
