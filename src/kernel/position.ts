/**
 * @file A position in a tensor, as a multi-index or as a row-major element number; the other form is computed on demand.
 * Elementwise operations pass a position on unchanged and a reshape keeps its element number, so a chain of them reads
 * memory contiguously without divisions.
 */
import type { Index } from "./expr.ts";
import { linearIndex, splitIndex } from "./index-math.ts";

export class Position {
  readonly shape: readonly number[];
  #idx: readonly Index[] | null;
  #linear: Index | null;

  private constructor(shape: readonly number[], idx: readonly Index[] | null, linear: Index | null) {
    this.shape = shape;
    this.#idx = idx;
    this.#linear = linear;
  }

  static at(shape: readonly number[], idx: readonly Index[]): Position {
    return new Position(shape, idx, null);
  }

  static linear(shape: readonly number[], linear: Index): Position {
    return new Position(shape, null, linear);
  }

  get idx(): readonly Index[] {
    this.#idx ??= splitIndex(this.linear, this.shape);
    return this.#idx;
  }

  get linear(): Index {
    this.#linear ??= linearIndex(this.#idx ?? [], this.shape);
    return this.#linear;
  }

  /** The element with the same number in a tensor of another shape. */
  reshaped(shape: readonly number[]): Position {
    return new Position(shape, null, this.linear);
  }

  /** Equal keys mean the same element. */
  get key(): string {
    return this.linear.key;
  }
}
