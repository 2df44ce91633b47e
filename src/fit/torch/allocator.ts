/**
 * @file PyTorch's caching allocator for CUDA, as far as it decides what `max_memory_allocated` counts: the sizes of blocks, not of tensors.
 *
 *   request ── rounded up to 512 ──┬─ at most 1 MiB: small pool, cut from segments of 2 MiB
 *                                  └─ more: large pool, cut from segments of 20 MiB, or of its own size in steps of 2 MiB from 10 MiB on
 *
 * The best fit among free blocks of the pool is taken, the smallest that is large enough and among those the one at the lowest address. A
 * larger block is split, except where the rest of a large block is at most 1 MiB: then the whole block counts as allocated. Freed
 * blocks merge with free neighbours of their segment and are kept for the next request. (c10/cuda/CUDACachingAllocator.cpp; default settings,
 * one stream, a device on which nothing else needs memory.)
 */

const MIB = 2 ** 20;
const SMALLEST = 512;
const SMALL_LIMIT = MIB;
const SMALL_SEGMENT = 2 * MIB;
const LARGE_SEGMENT = 20 * MIB;
const OWN_SEGMENT = 10 * MIB;
const SEGMENT_STEP = 2 * MIB;

export interface Block {
  readonly address: number;
  size: number;
  readonly isSmall: boolean;
  isFree: boolean;
  before: Block | null;
  after: Block | null;
}

const roundedTo = (bytes: number, step: number): number => Math.ceil(bytes / step) * step;

const isBefore = (a: Block, b: Block): boolean => a.size < b.size || (a.size === b.size && a.address < b.address);

/** Free blocks by size, then address. */
class FreeList {
  readonly #blocks: Block[] = [];

  /** The first position whose block is not before `block`. */
  #find(block: Block): number {
    let [low, high] = [0, this.#blocks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#blocks[middle] as Block, block)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  insert(block: Block): void {
    this.#blocks.splice(this.#find(block), 0, block);
  }

  remove(block: Block): void {
    this.#blocks.splice(this.#find(block), 1);
  }

  takeBestFit(size: number): Block | undefined {
    const at = this.#find({ address: -1, size, isSmall: false, isFree: true, before: null, after: null });
    return this.#blocks.splice(at, 1)[0];
  }
}

export class CachingAllocator {
  readonly #free = { small: new FreeList(), large: new FreeList() };
  #nextAddress = 0;
  #allocated = 0;
  #reserved = 0;

  /** Bytes of blocks in use: `torch.cuda.memory_allocated()`. */
  get allocated(): number {
    return this.#allocated;
  }

  /** Bytes of segments: `torch.cuda.memory_reserved()`. */
  get reserved(): number {
    return this.#reserved;
  }

  allocate(bytes: number): Block {
    const size = roundedTo(Math.max(bytes, 1), SMALLEST);
    const isSmall = size <= SMALL_LIMIT;
    const list = isSmall ? this.#free.small : this.#free.large;
    const block = list.takeBestFit(size) ?? this.#segment(size, isSmall);
    block.isFree = false;
    this.#split(block, size, list);
    this.#allocated += block.size;
    return block;
  }

  free(block: Block): void {
    this.#allocated -= block.size;
    const list = block.isSmall ? this.#free.small : this.#free.large;
    const { before, after } = block;
    let merged = block;
    if (before?.isFree) {
      list.remove(before);
      before.size += block.size;
      this.#join(before, after);
      merged = before;
    }
    if (after?.isFree) {
      list.remove(after);
      merged.size += after.size;
      this.#join(merged, after.after);
    }
    merged.isFree = true;
    list.insert(merged);
  }

  #join(left: Block, right: Block | null): void {
    left.after = right;
    if (right) right.before = left;
  }

  #segment(size: number, isSmall: boolean): Block {
    const large = size < OWN_SEGMENT ? LARGE_SEGMENT : roundedTo(size, SEGMENT_STEP);
    const bytes = isSmall ? SMALL_SEGMENT : large;
    const address = this.#nextAddress;
    this.#nextAddress += bytes;
    this.#reserved += bytes;
    return { address, size: bytes, isSmall, isFree: false, before: null, after: null };
  }

  #split(block: Block, size: number, list: FreeList): void {
    const rest = block.size - size;
    if (block.isSmall ? rest < SMALLEST : rest <= SMALL_LIMIT) return;
    const { isSmall, after } = block;
    const remainder: Block = { address: block.address + size, size: rest, isSmall, isFree: true, before: block, after };
    if (after) after.before = remainder;
    block.after = remainder;
    block.size = size;
    list.insert(remainder);
  }
}
