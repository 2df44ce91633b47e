/**
 * @file The memory that tapes run in: one, with a pool over all of it behind the table that programs read their addresses from
 * (compiler/relocatable.ts). Programs are loaded once and run on whatever blocks their operands are in.
 *
 *   ├─ table ─┼──── pool: values, and the slot of the program that runs ────┤
 */
import { currentHost } from "../api/host.ts";
import { type RelocatableProgram, type RelocatableSource, relocatable } from "../compiler/relocatable.ts";
import { byteLength, elementsOf, type TensorType } from "../ir/type.ts";
import { elementsIn, newElements, type TypedArray } from "../kernel/dtype.ts";
import { Pool } from "../pool/pool.ts";
import type { DeviceMemory, Target } from "../runtime/device.ts";

/** Of the table: four bytes for each parameter and result of a program. */
export const TABLE_BYTES = 32768;
/** Registers may be loaded up to so many bytes past the last element. */
const SLACK_BYTES = 64;

/** A program that runs in the pool. */
export interface PoolProgram extends Pick<RelocatableProgram, "slotBytes" | "bufferBytes" | "results"> {
  run(): void;
  readonly codeBytes: number;
}

export class TapeMemory {
  readonly pool: Pool;
  readonly #memory: DeviceMemory;
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
    this.#memory = target.allocate();
    this.#memory.reserve(TABLE_BYTES);
    this.pool = new Pool({
      name: "tape",
      reserve: (bytes) => this.#memory.reserve(TABLE_BYTES + bytes + SLACK_BYTES),
    });
  }

  /** Of the engine's or the system's: never less than what the pool has reserved. */
  get allocatedBytes(): number {
    return this.#memory.allocatedBytes;
  }

  /** Plans and loads a graph; null where it has too many parameters and results for the table. */
  load(source: RelocatableSource): PoolProgram | null {
    const host = currentHost();
    const made = host.heap.keptSmall(() => relocatable(source, this.#target.description, host, TABLE_BYTES));
    if (!made) return null;
    const machine = this.#target.load(made.placed, { stepwise: false, memory: this.#memory });
    const { slotBytes, bufferBytes, results } = made;
    return { slotBytes, bufferBytes, results, run: () => machine.run(), codeBytes: machine.moduleBytes };
  }

  /** Writes addresses of blocks into the table, from its start. */
  bind(blocks: ArrayLike<number>, count: number): void {
    const { pool } = this;
    this.#memory.write(0, 4 * count, (into) => {
      const words = new Uint32Array(into.buffer, into.byteOffset, count);
      for (let i = 0; i < count; i++) {
        const block = blocks[i] as number;
        words[i] = TABLE_BYTES + (block >= 0 ? pool.address(block) : 0);
      }
    });
  }

  write(block: number, type: TensorType, fill: (into: TypedArray) => void): void {
    const bytes = byteLength(type);
    if (bytes === 0) return;
    this.#memory.write(TABLE_BYTES + this.pool.address(block), bytes, (into) => {
      fill(elementsIn(type.dtype, into.buffer as ArrayBuffer, into.byteOffset, elementsOf(type.shape)));
    });
  }

  read(block: number, type: TensorType): TypedArray {
    const data = newElements(type.dtype, elementsOf(type.shape));
    if (data.length === 0) return data;
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#memory.readInto?.(TABLE_BYTES + this.pool.address(block), bytes);
    return data;
  }
}
