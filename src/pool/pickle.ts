/**
 * @file Plain data as Python's pickle, protocol 2: what `pickle.load` of any Python 3 reads, and pages that read snapshots too. Dictionaries, lists,
 * texts, whole numbers, booleans and None; nothing that runs code.
 */
import { invariant } from "../base/invariant.ts";

export type Picklable = null | boolean | number | string | readonly Picklable[] | { readonly [key: string]: Picklable };

class Writer {
  #bytes = new Uint8Array(4096);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  readonly #encoder = new TextEncoder();
  /** Texts that were written, by their place in the memo. */
  readonly #memo = new Map<string, number>();

  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  /** An instruction, and room for its operand. */
  op(code: string | number, operandBytes = 0): number {
    const needed = this.#length + 1 + operandBytes;
    if (needed > this.#bytes.length) this.#grow(needed);
    this.#bytes[this.#length] = typeof code === "number" ? code : code.charCodeAt(0);
    const at = this.#length + 1;
    this.#length = needed;
    return at;
  }

  #grow(needed: number): void {
    const longer = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    longer.set(this.#bytes);
    this.#bytes = longer;
    this.#view = new DataView(longer.buffer);
  }

  number(value: number): void {
    invariant(Number.isSafeInteger(value), () => `${value} in a pickle`);
    if (value >= -(2 ** 31) && value < 2 ** 31) {
      const at = this.op("J", 4);
      this.#view.setInt32(at, value, true);
      return;
    }
    // LONG1: eight bytes, two's complement
    const at = this.op(0x8a, 9);
    this.#bytes[at] = 8;
    this.#view.setBigInt64(at + 1, BigInt(value), true);
  }

  text(value: string): void {
    const known = this.#memo.get(value);
    if (known !== undefined) {
      const at = this.op("j", 4);
      this.#view.setUint32(at, known, true);
      return;
    }
    const bytes = this.#encoder.encode(value);
    const at = this.op("X", 4 + bytes.length);
    this.#view.setUint32(at, bytes.length, true);
    this.#bytes.set(bytes, at + 4);
    const memo = this.op("r", 4);
    this.#view.setUint32(memo, this.#memo.size, true);
    this.#memo.set(value, this.#memo.size);
  }

  value(value: Picklable): void {
    if (value === null) this.op("N");
    else if (typeof value === "boolean") this.op(value ? 0x88 : 0x89);
    else if (typeof value === "number") this.number(value);
    else if (typeof value === "string") this.text(value);
    else if (Array.isArray(value)) this.#list(value as readonly Picklable[]);
    else this.#dictionary(value as { readonly [key: string]: Picklable });
  }

  #list(items: readonly Picklable[]): void {
    this.op("]");
    if (items.length === 0) return;
    this.op("(");
    for (const item of items) this.value(item);
    this.op("e");
  }

  #dictionary(entries: { readonly [key: string]: Picklable }): void {
    this.op("}");
    this.op("(");
    for (const [key, item] of Object.entries(entries)) {
      this.text(key);
      this.value(item);
    }
    this.op("u");
  }
}

export function writePickle(value: Picklable): Uint8Array {
  const writer = new Writer();
  writer.op(0x80);
  writer.op(2);
  writer.value(value);
  writer.op(".");
  return writer.finish();
}
