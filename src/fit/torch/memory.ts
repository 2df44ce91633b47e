/** @file Storages with counts of references in a modelled allocator, and the peak of what they take, told apart by what they are for. */
import { type Block, CachingAllocator } from "./allocator.ts";

/** What a storage is for; at the peak, bytes are told apart by it. */
export const PURPOSES = [
  "parameters",
  "buffers",
  "inputs",
  "gradients",
  "optimizer state",
  "activations",
  "temporaries",
  "workspaces",
] as const;
export type Purpose = (typeof PURPOSES)[number];

export type BytesByPurpose = Readonly<Record<Purpose, number>>;

const noBytes = (): Record<Purpose, number> =>
  Object.fromEntries(PURPOSES.map((purpose) => [purpose, 0])) as Record<Purpose, number>;

export class Storage {
  readonly bytes: number;
  /** Null: not on the device, as numbers that are operands are. */
  readonly block: Block | null;
  references = 1;
  purpose: Purpose;

  constructor(bytes: number, block: Block | null, purpose: Purpose) {
    this.bytes = bytes;
    this.block = block;
    this.purpose = purpose;
  }
}

export interface Peak {
  readonly bytes: number;
  readonly byPurpose: BytesByPurpose;
  /** What the step was doing. */
  readonly at: string;
}

export class DeviceMemory {
  readonly #allocator = new CachingAllocator();
  readonly #live = noBytes();
  #peak: Peak = { bytes: 0, byPurpose: noBytes(), at: "" };
  /** Where set, new storages are noted in it. */
  made: Set<Storage> | null = null;
  /** What the step is doing, for the report of the peak. */
  at = "";

  get allocated(): number {
    return this.#allocator.allocated;
  }

  get reserved(): number {
    return this.#allocator.reserved;
  }

  get peak(): Peak {
    return this.#peak;
  }

  /** Bytes of blocks in use for a purpose. */
  live(purpose: Purpose): number {
    return this.#live[purpose];
  }

  resetPeak(): void {
    this.#peak = { bytes: 0, byPurpose: noBytes(), at: "" };
    this.#note();
  }

  /** While set, storages are made without memory: their operations do not run. */
  isSkipping = false;

  allocate(bytes: number, purpose: Purpose): Storage {
    if (bytes === 0 || this.isSkipping) return new Storage(0, null, purpose);
    const block = this.#allocator.allocate(bytes);
    this.#live[purpose] += block.size;
    this.#note();
    const storage = new Storage(bytes, block, purpose);
    this.made?.add(storage);
    return storage;
  }

  retain(storage: Storage): Storage {
    storage.references += 1;
    return storage;
  }

  release(storage: Storage): void {
    storage.references -= 1;
    if (storage.references > 0 || !storage.block) return;
    this.#live[storage.purpose] -= storage.block.size;
    this.#allocator.free(storage.block);
  }

  /** Says that a storage is for something else from now on. */
  become(storage: Storage, purpose: Purpose): void {
    const bytes = storage.block?.size ?? 0;
    this.#live[storage.purpose] -= bytes;
    this.#live[purpose] += bytes;
    storage.purpose = purpose;
  }

  /** What one kernel has while it runs. */
  workspace(bytes: number): void {
    if (bytes > 0) this.release(this.allocate(bytes, "workspaces"));
  }

  #note(): void {
    const { allocated } = this.#allocator;
    if (allocated > this.#peak.bytes) this.#peak = { bytes: allocated, byPurpose: { ...this.#live }, at: this.at };
  }
}
