/**
 * @file The wire format of protocol buffers: a message is a list of fields, each with a number and one of four forms.
 *
 *   key = number · 8 + form      0: a whole number, 7 bits a byte     1: 8 bytes     2: a length, then as many bytes     5: 4 bytes
 *
 * A message is cut into its fields without looking into them; what a field means is said where it is read (onnx-file.ts). Bytes are
 * parts of the file, not copies. A length beyond its message, an unknown form, a number of more than 64 bits are errors.
 */
import { grouped, TidemarkError } from "../base/errors.ts";

export function badMessage(summary: string, help?: string): TidemarkError {
  return new TidemarkError("InvalidFile", summary, {
    help: help ?? "the file is damaged or not a protocol-buffer message; fetch or write it again",
  });
}

/** Whole numbers as bigints, as their 64 bits; everything else as bytes. */
type FieldValue = bigint | Uint8Array;

/** Cuts bytes into numbers of 7 bits a byte. */
class Cursor {
  readonly bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get isDone(): boolean {
    return this.at >= this.bytes.length;
  }

  /** Of at most 64 bits. */
  whole(): bigint {
    let [low, shift] = [0, 0];
    // seven bytes fit a number
    for (let i = 0; i < 7; i++) {
      const byte = this.#byte();
      low += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return BigInt(low);
      shift += 7;
    }
    let high = 0;
    for (let i = 0; i < 3; i++) {
      const byte = this.#byte();
      high |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return BigInt.asUintN(64, BigInt(low) + (BigInt(high) << 49n));
    }
    throw badMessage("a number has more than 64 bits");
  }

  /** One that is a length or a key. */
  small(): number {
    return Number(this.whole());
  }

  take(count: number): Uint8Array {
    const end = this.at + count;
    if (end > this.bytes.length) {
      const left = grouped(this.bytes.length - this.at);
      throw badMessage(`a field has ${grouped(count)} bytes where ${left} are left: the file was cut off or changed`);
    }
    const part = this.bytes.subarray(this.at, end);
    this.at = end;
    return part;
  }

  #byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw badMessage("the file ends inside of a number: it was cut off");
    return byte;
  }
}

const view = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** One message, with its fields by number. A field that is not there reads as nothing, zero, or an empty list. */
export class Message {
  readonly #fields = new Map<number, FieldValue[]>();

  constructor(bytes: Uint8Array) {
    const cursor = new Cursor(bytes);
    while (!cursor.isDone) {
      const key = cursor.small();
      const number = Math.floor(key / 8);
      if (number < 1 || number > 0x1fffffff) throw badMessage(`a field has the number ${number}`);
      const value = fieldValue(cursor, key % 8);
      const values = this.#fields.get(number);
      if (values) values.push(value);
      else this.#fields.set(number, [value]);
    }
  }

  has(field: number): boolean {
    return this.#fields.has(field);
  }

  #bytesOf(field: number): readonly Uint8Array[] {
    return (this.#fields.get(field) ?? []).map((value) => {
      if (value instanceof Uint8Array) return value;
      throw badMessage(`field ${field} is a number where bytes are expected`);
    });
  }

  /** The last value, as the format asks for. */
  bytes(field: number): Uint8Array | undefined {
    return this.#bytesOf(field).at(-1);
  }

  texts(field: number): readonly string[] {
    return this.#bytesOf(field).map(textOf);
  }

  text(field: number): string {
    return this.texts(field).at(-1) ?? "";
  }

  messages<T>(field: number, parse: (message: Message) => T): readonly T[] {
    return this.#bytesOf(field).map((bytes) => parse(new Message(bytes)));
  }

  message<T>(field: number, parse: (message: Message) => T): T | undefined {
    return this.messages(field, parse).at(-1);
  }

  /** Signed whole numbers, one by one or packed. */
  ints(field: number): readonly bigint[] {
    return (this.#fields.get(field) ?? []).flatMap((value) => {
      if (!(value instanceof Uint8Array)) return BigInt.asIntN(64, value);
      const cursor = new Cursor(value);
      const list: bigint[] = [];
      while (!cursor.isDone) list.push(BigInt.asIntN(64, cursor.whole()));
      return list;
    });
  }

  int(field: number): number {
    return Number(this.ints(field).at(-1) ?? 0n);
  }

  floats(field: number): readonly number[] {
    return this.#fixed(field, 4, (bytes, at) => bytes.getFloat32(at, true));
  }

  float(field: number): number {
    return this.floats(field).at(-1) ?? 0;
  }

  doubles(field: number): readonly number[] {
    return this.#fixed(field, 8, (bytes, at) => bytes.getFloat64(at, true));
  }

  #fixed(field: number, width: number, read: (bytes: DataView, at: number) => number): readonly number[] {
    return this.#bytesOf(field).flatMap((bytes) => {
      if (bytes.length % width !== 0)
        throw badMessage(`field ${field} has ${bytes.length} bytes, no multiple of ${width}`);
      return Array.from({ length: bytes.length / width }, (_, i) => read(view(bytes), i * width));
    });
  }
}

function fieldValue(cursor: Cursor, form: number): FieldValue {
  switch (form) {
    case 0:
      return cursor.whole();
    case 1:
      return cursor.take(8);
    case 2:
      return cursor.take(cursor.small());
    case 5:
      return cursor.take(4);
    default:
      throw badMessage(`a field has the form ${form}, which the wire format does not have`);
  }
}

/** Text that may be anything in a damaged file. */
function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badMessage("a name is not UTF-8 text");
  }
}
