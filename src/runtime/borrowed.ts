/**
 * @file Results that stay where a run left them, until the next run in the same arena: `compile(fn, { results: "borrowed" })`.
 *
 *   run ──→ borrowed ──(borrow)──→ the arena's own bytes           no copy
 *              │     ──(read)────→ a copy
 *              ╰── next run ──→ stale: reading is an error, since other values may be there
 */
import { TidemarkError } from "../base/errors.ts";
import { type Shape, type TensorType, typeText } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { ArrayStorage, type Donation, donatedTensor, type TensorStorage } from "../trace/storage.ts";
import type { Elements } from "./executable.ts";

/** Whose memory it is in. */
interface Lender {
  /** Counts runs. */
  readonly runs: number;
  read(type: TensorType, address: number): Elements;
  view(type: TensorType, address: number): Elements;
}

export class BorrowedStorage implements TensorStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly #lender: Lender;
  readonly #address: number;
  readonly #run: number;
  #donation: Donation | null = null;

  constructor({ dtype, shape }: TensorType, lender: Lender, address: number) {
    this.dtype = dtype;
    this.shape = shape;
    this.#lender = lender;
    this.#address = address;
    this.#run = lender.runs;
  }

  read(): Elements {
    this.#requireValid();
    return this.#lender.read(this, this.#address);
  }

  copy(): Elements {
    return this.read();
  }

  borrow(): Elements {
    this.#requireValid();
    return this.#lender.view(this, this.#address);
  }

  get isConsumed(): boolean {
    return this.#donation !== null;
  }

  consume(to: Donation): void {
    this.#donation ??= to;
  }

  spare(): TensorStorage {
    return new ArrayStorage(this.dtype, this.shape, this.read());
  }

  #requireValid(): void {
    if (this.#donation) throw donatedTensor(this, this.#donation);
    if (this.#lender.runs === this.#run) return;
    const summary = `this ${typeText(this)} was borrowed, and the function that returned it has run again since`;
    throw new TidemarkError("StaleResult", summary, {
      where: sourceLocation(),
      help: 'read it before the next call, keep a copy with data(), or leave `results: "borrowed"` out',
    });
  }
}
