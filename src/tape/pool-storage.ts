/**
 * @file Results that stay in the pool of tapes, for the next tape that they are donated to: `tape(fn, { donate: state })`.
 *
 *   tape ──→ in the pool ──(donated to the next tape)──→ a value of it, without a copy
 *                │       ──(another tape begins)──→ an array
 *                ╰── read: a copy
 *
 * Nothing says when a tensor is not used any more. So they stay until another tape begins, at most one set of them, and are moved into arrays then,
 * which the engine collects.
 */
import type { PoolMemory } from "../api/pool-memory.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import type { TypedArray } from "../kernel/dtype.ts";
import { ArrayStorage, type Donation, donatedTensor, type TensorStorage } from "../trace/storage.ts";

export class PoolStorage implements TensorStorage {
  readonly dtype: TensorStorage["dtype"];
  readonly shape: TensorStorage["shape"];
  readonly #memory: PoolMemory;
  #block: number | null;
  #data: TypedArray | null = null;
  #donation: Donation | null = null;

  /** Takes over the block. */
  constructor({ dtype, shape }: TensorType, memory: PoolMemory, block: number) {
    this.dtype = dtype;
    this.shape = shape;
    this.#memory = memory;
    this.#block = block;
  }

  /** Where it is in a pool; null where it is not in that one. */
  blockIn(memory: PoolMemory): number | null {
    return memory === this.#memory ? this.#block : null;
  }

  read(): TypedArray {
    if (this.#donation) throw donatedTensor(this, this.#donation);
    return this.#data ?? this.#memory.read(this.#block as number, tensorType(this.dtype, this.shape));
  }

  copy(): TypedArray {
    return this.#data ? this.read().slice() : this.read();
  }

  spare(): ArrayStorage {
    return new ArrayStorage(this.dtype, this.shape, this.copy());
  }

  get isConsumed(): boolean {
    return this.#donation !== null;
  }

  consume(to: Donation): void {
    const block = this.take();
    if (block !== null) this.#memory.pool.free(block);
    this.#donation ??= to;
    this.#data = null;
  }

  /** Gives its block to a tape, which reads and frees it from now on. */
  take(): number | null {
    const block = this.#block;
    this.#block = null;
    return block;
  }

  /** Its elements go into an array, and its block back to the pool. */
  moveOut(): void {
    if (this.#block === null) return;
    this.#data = this.read();
    this.#memory.pool.free(this.take() as number);
  }
}
