/**
 * @file The memory that tapes run in, and operations by themselves: one, with a pool over all of it behind the table that programs
 * read their addresses from (compiler/relocatable.ts). Programs are loaded once and run on whatever blocks their operands are in.
 *
 *   ├─ table ─┼──── pool: values, and the slot of the program that runs ────┤
 */
import { invariant } from "../base/invariant.ts";
import { type RelocatableProgram, type RelocatableSource, relocatable } from "../compiler/relocatable.ts";
import { byteLength, elementsOf, type TensorType } from "../ir/type.ts";
import { type DType, elementsIn, newElements, type TypedArray } from "../kernel/dtype.ts";
import { Pool } from "../pool/pool.ts";
import type { DeviceMemory, Target } from "../runtime/device.ts";
import { currentHost } from "./host.ts";

/** Of the table: four bytes for each parameter and result of a program. */
export const TABLE_BYTES = 32768;
/** Registers may be loaded up to so many bytes past the last element. */
const SLACK_BYTES = 64;
/** Elements that are copied one by one: making a view of them takes longer. */
const FEW = 32;

/** A program that runs in the pool. */
export interface PoolProgram extends Pick<RelocatableProgram, "slotBytes" | "bufferBytes" | "results"> {
  run(): void;
  readonly codeBytes: number;
}

export class PoolMemory {
  readonly pool: Pool;
  readonly #memory: DeviceMemory;
  readonly #target: Target;
  readonly #views = new Map<DType, TypedArray>();

  /** @param name of the pool, for messages */
  constructor(target: Target, name: string) {
    this.#target = target;
    this.#memory = target.allocate();
    this.#memory.reserve(TABLE_BYTES);
    this.pool = new Pool({
      name,
      reserve: (bytes) => this.#memory.reserve(TABLE_BYTES + bytes + SLACK_BYTES),
      move: (from, to, bytes) => {
        const start = TABLE_BYTES + from;
        this.#elements("u8", start + bytes).copyWithin(TABLE_BYTES + to, start, start + bytes);
      },
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
    const words = this.#elements("i32", count);
    for (let i = 0; i < count; i++) {
      const block = blocks[i] as number;
      words[i] = TABLE_BYTES + (block >= 0 ? this.pool.address(block) : 0);
    }
  }

  write(block: number, type: TensorType, fill: (into: TypedArray) => void): void {
    const bytes = byteLength(type);
    if (bytes === 0) return;
    this.#memory.write(TABLE_BYTES + this.pool.address(block), bytes, (into) => {
      fill(elementsIn(type.dtype, into.buffer as ArrayBuffer, into.byteOffset, elementsOf(type.shape)));
    });
  }

  /** Writes all elements of a block. */
  put(block: number, dtype: DType, data: TypedArray): void {
    if (data.length === 0) return;
    const start = this.#start(block, data);
    this.#elements(dtype, start + data.length).set(data, start);
  }

  read(block: number, { dtype, shape }: TensorType): TypedArray {
    const data = newElements(dtype, elementsOf(shape));
    if (data.length === 0) return data;
    const start = this.#start(block, data);
    const all = this.#elements(dtype, start + data.length);
    if (data.length > FEW) data.set(all.subarray(start, start + data.length));
    else for (let i = 0; i < data.length; i++) data[i] = all[start + i] as number;
    return data;
  }

  /** The number of a block's first element among all elements of memory. */
  #start(block: number, { BYTES_PER_ELEMENT }: TypedArray): number {
    return (TABLE_BYTES + this.pool.address(block)) / BYTES_PER_ELEMENT;
  }

  /**
   * All memory as elements of a type, of which the first `count` are there. One view serves until memory grows, which leaves it without
   * elements or too short: making one takes as long as a small operation.
   */
  #elements(dtype: DType, count: number): TypedArray {
    const known = this.#views.get(dtype);
    if (known && known.length >= count) return known;
    const bytes = this.#memory.bytesAt?.(0, this.#memory.bytes);
    invariant(bytes, () => "a pool in memory that the host does not see");
    const { BYTES_PER_ELEMENT } = newElements(dtype, 0);
    const made = elementsIn(dtype, bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / BYTES_PER_ELEMENT);
    this.#views.set(dtype, made);
    return made;
  }
}
