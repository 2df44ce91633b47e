/**
 * @file Bytes of a module under construction, within what engines take: the WebAssembly JavaScript interface limits a
 * function to 7,654,321 bytes and a module to 1 GiB. Beyond that there is no program, and the user is told so here rather
 * than by a list that cannot grow any more.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";

export const LARGEST_FUNCTION = 7_654_321;
export const LARGEST_MODULE = 2 ** 30;

/** The target cannot run a program for the code that it is. */
export function codeRefused(summary: string): TidemarkError {
  return new TidemarkError("TargetUnsupported", summary, {
    help: "split the program into functions that are compiled separately, or use the target native",
  });
}

export class ByteBuffer {
  readonly #what: string;
  readonly #most: number;
  #bytes = new Uint8Array(256);
  #length = 0;

  /** `what` it is the bytes of, and the most that it may have. */
  constructor(what: string, most: number) {
    this.#what = what;
    this.#most = most;
  }

  get length(): number {
    return this.#length;
  }

  push(...bytes: readonly number[]): void {
    this.append(bytes);
  }

  append(bytes: ArrayLike<number>): void {
    const end = this.#length + bytes.length;
    if (end > this.#most)
      throw codeRefused(`${this.#what} is beyond the ${grouped(this.#most)} bytes that engines take`);
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.min(this.#most, Math.max(end, 2 * this.#bytes.length)));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = end;
  }

  /** The bytes so far. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}
