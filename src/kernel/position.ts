/**
 * @file A place in a tensor, as a multi-index or as a row-major element number, whichever was given; the other is worked
 * out only when asked for. Elementwise operations hand a position on untouched and a reshape keeps its element number,
 * so a chain of them reads memory straight through with no division.
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
