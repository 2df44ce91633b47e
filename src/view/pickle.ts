/**
 * @file A reader of Python's pickle format for data only. A pickle is a program for a stack machine; some of its
 * instructions import modules and call functions, which is how a pickle file takes over a computer. This machine has no
 * such instructions: it builds numbers, texts, bytes, lists, tuples, dicts and sets, and fails at the first instruction
 * that needs more. Protocols 0 to 5, as listed in Python's documentation of `pickletools`.
 *
 * Dicts become `Map`s: a key named `__proto__` is an ordinary key.
 */
import { TidemarkError } from "../base/errors.ts";

export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | PickleValue[]
  | Map<PickleValue, PickleValue>
  | Set<PickleValue>;

/** Instructions that would look up or call something, by their names in Python. */
const REFUSED: Readonly<Record<string, string>> = {
  c: "GLOBAL",
  "\x93": "STACK_GLOBAL",
  R: "REDUCE",
  b: "BUILD",
  i: "INST",
  o: "OBJ",
  "\x81": "NEWOBJ",
  "\x92": "NEWOBJ_EX",
  P: "PERSID",
  Q: "BINPERSID",
  "\x82": "EXT1",
  "\x83": "EXT2",
  "\x84": "EXT4",
  "\x97": "NEXT_BUFFER",
  "\x98": "READONLY_BUFFER",
};

function fail(summary: string, help: string): never {
  throw new TidemarkError("ParseError", `pickle: ${summary}`, { help });
}

const CUT_OFF = "the file may be cut off: write it again";
const NOT_DATA = "only files of plain data are read, and nothing in a file is executed";

class Machine {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #stack: PickleValue[] = [];
  /** Stacks below the marks. */
  readonly #below: PickleValue[][] = [];
  readonly #memo = new Map<number, PickleValue>();

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  run(): PickleValue {
    for (;;) {
      const at = this.#at;
      const code = String.fromCharCode(this.#u1());
      if (code === ".") return this.#pop();
      const does = INSTRUCTIONS[code];
      if (does) does(this);
      else if (REFUSED[code]) fail(`the instruction ${REFUSED[code]} at byte ${at} would run code`, NOT_DATA);
      else fail(`byte ${at} is no instruction: 0x${code.charCodeAt(0).toString(16)}`, "is it a pickle file at all?");
    }
  }

  #take(count: number): number {
    const from = this.#at;
    if (!(count >= 0) || from + count > this.#bytes.length) fail(`ends in the middle, at byte ${from}`, CUT_OFF);
    this.#at += count;
    return from;
  }

  #u1 = (): number => this.#view.getUint8(this.#take(1));
  u1 = (): number => this.#u1();
  u2 = (): number => this.#view.getUint16(this.#take(2), true);
  u4 = (): number => this.#view.getUint32(this.#take(4), true);
  i4 = (): number => this.#view.getInt32(this.#take(4), true);
  u8 = (): number => Number(this.#view.getBigUint64(this.#take(8), true));
  f8 = (): number => this.#view.getFloat64(this.#take(8), false);

  slice(count: number): Uint8Array {
    const from = this.#take(count);
    return this.#bytes.subarray(from, from + count);
  }

  text = (count: number): string => utf8(this.slice(count));

  line(): string {
    const end = this.#bytes.indexOf(10, this.#at);
    if (end < 0) fail(`ends in the middle, at byte ${this.#at}`, CUT_OFF);
    const line = this.text(end - this.#at);
    this.#at += 1;
    return line;
  }

  push(value: PickleValue): void {
    this.#stack.push(value);
  }

  #pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined) fail(`takes from an empty stack at byte ${this.#at}`, CUT_OFF);
    return value;
  }

  pop = (): PickleValue => this.#pop();

  top<T extends PickleValue>(is: (value: PickleValue | undefined) => value is T, what: string): T {
    const value = this.#stack.at(-1);
    if (!is(value)) fail(`expects a ${what} on the stack at byte ${this.#at}`, CUT_OFF);
    return value;
  }

  mark(): void {
    this.#below.push(this.#stack);
    this.#stack = [];
  }

  /** Everything above the last mark. */
  sinceMark(): PickleValue[] {
    const items = this.#stack;
    const below = this.#below.pop();
    if (!below) fail(`has no mark at byte ${this.#at}`, CUT_OFF);
    this.#stack = below;
    return items;
  }

  remember(key: number): void {
    const value = this.#stack.at(-1);
    if (value === undefined) fail(`has nothing to remember at byte ${this.#at}`, CUT_OFF);
    this.#memo.set(key, value);
  }

  memoize = (): void => this.remember(this.#memo.size);

  recall(key: number): void {
    const value = this.#memo.get(key);
    if (value === undefined) fail(`asks for number ${key}, which it did not store`, CUT_OFF);
    this.push(value);
  }

  popMark(): void {
    if (this.#stack.length > 0) this.#pop();
    else this.sinceMark();
  }
}

/** Bytes decoded at a time: a text of many megabytes must not become a list of as many strings. */
const PIECE = 4096;

/** The end of a piece that begins at `from`, not inside a character. */
function pieceEnd(bytes: Uint8Array, from: number): number {
  let end = Math.min(from + PIECE, bytes.length);
  // a character has at most three continuation bytes
  for (let k = 0; k < 3 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80; k++) end--;
  return end;
}

function decoded(piece: Uint8Array): string {
  if (piece.every((byte) => byte < 0x80)) return String.fromCharCode(...piece);
  return decodeURIComponent(Array.from(piece, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""));
}

function inPieces(bytes: Uint8Array, textOf: (piece: Uint8Array) => string): string {
  let text = "";
  for (let from = 0; from < bytes.length; ) {
    const end = pieceEnd(bytes, from);
    text += textOf(bytes.subarray(from, end));
    from = end;
  }
  return text;
}

/** Standard JavaScript only: the core has no TextDecoder. Invalid UTF-8 is decoded byte by byte. */
export function utf8(bytes: Uint8Array): string {
  try {
    return inPieces(bytes, decoded);
  } catch {
    return inPieces(bytes, (piece) => String.fromCharCode(...piece));
  }
}

const isList = (v: PickleValue | undefined): v is PickleValue[] => Array.isArray(v);
const isDict = (v: PickleValue | undefined): v is Map<PickleValue, PickleValue> => v instanceof Map;
const isSet = (v: PickleValue | undefined): v is Set<PickleValue> => v instanceof Set;

function setPairs(dict: Map<PickleValue, PickleValue>, items: readonly PickleValue[]): void {
  for (let i = 0; i + 1 < items.length; i += 2) dict.set(items[i] ?? null, items[i + 1] ?? null);
}

function dictOf(items: readonly PickleValue[]): Map<PickleValue, PickleValue> {
  const dict = new Map<PickleValue, PickleValue>();
  setPairs(dict, items);
  return dict;
}

/** Little-endian two's complement, as large as needed. */
function long(bytes: Uint8Array): number | bigint {
  if (bytes.length > 1024) fail(`a number of ${bytes.length} bytes`, "no size or address is that large");
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i] ?? 0);
  if ((bytes.at(-1) ?? 0) >= 0x80) value -= 1n << BigInt(8 * bytes.length);
  return simple(value);
}

const simple = (value: bigint): number | bigint => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

function decimal(text: string): number | bigint | boolean {
  if (text === "00" || text === "01") return text === "01";
  const digits = text.endsWith("L") ? text.slice(0, -1) : text;
  if (!/^-?\d{1,2000}$/.test(digits)) fail(`"${text.slice(0, 40)}" is not a number`, CUT_OFF);
  return simple(BigInt(digits));
}

/** `'a\\n'` with Python's escapes, protocol 0. */
function quoted(text: string): string {
  const inner = /^(['"])(.*)\1$/s.exec(text.trim())?.[2];
  if (inner === undefined) fail(`${text.slice(0, 40)} is not a text in quotes`, CUT_OFF);
  const names: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
  return inner.replaceAll(/\\(x[0-9a-f]{2}|.)/gis, (_, e: string) =>
    e.length === 3 ? String.fromCharCode(Number.parseInt(e.slice(1), 16)) : (names[e] ?? e),
  );
}

const rawUnicode = (text: string): string =>
  text.replaceAll(/\\u([0-9a-fA-F]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

type Instruction = (m: Machine) => void;

const NUMBERS: Readonly<Record<string, Instruction>> = {
  N: (m) => m.push(null),
  "\x88": (m) => m.push(true),
  "\x89": (m) => m.push(false),
  I: (m) => m.push(decimal(m.line())),
  L: (m) => m.push(decimal(m.line())),
  F: (m) => m.push(Number(m.line())),
  G: (m) => m.push(m.f8()),
  J: (m) => m.push(m.i4()),
  K: (m) => m.push(m.u1()),
  M: (m) => m.push(m.u2()),
  "\x8a": (m) => m.push(long(m.slice(m.u1()))),
  "\x8b": (m) => m.push(long(m.slice(m.i4()))),
};

const TEXTS: Readonly<Record<string, Instruction>> = {
  S: (m) => m.push(quoted(m.line())),
  T: (m) => m.push(m.text(m.i4())),
  U: (m) => m.push(m.text(m.u1())),
  V: (m) => m.push(rawUnicode(m.line())),
  X: (m) => m.push(m.text(m.u4())),
  "\x8c": (m) => m.push(m.text(m.u1())),
  "\x8d": (m) => m.push(m.text(m.u8())),
  B: (m) => m.push(m.slice(m.u4())),
  C: (m) => m.push(m.slice(m.u1())),
  "\x8e": (m) => m.push(m.slice(m.u8())),
  "\x96": (m) => m.push(m.slice(m.u8())),
};

const CONTAINERS: Readonly<Record<string, Instruction>> = {
  "(": (m) => m.mark(),
  "]": (m) => m.push([]),
  "}": (m) => m.push(new Map()),
  ")": (m) => m.push([]),
  "\x8f": (m) => m.push(new Set()),
  l: (m) => m.push(m.sinceMark()),
  t: (m) => m.push(m.sinceMark()),
  d: (m) => m.push(dictOf(m.sinceMark())),
  "\x91": (m) => m.push(new Set(m.sinceMark())),
  "\x85": (m) => m.push([m.pop()]),
  "\x86": (m) => m.push([m.pop(), m.pop()].reverse()),
  "\x87": (m) => m.push([m.pop(), m.pop(), m.pop()].reverse()),
  a: (m) => {
    const item = m.pop();
    m.top(isList, "list").push(item);
  },
  e: (m) => {
    const items = m.sinceMark();
    const list = m.top(isList, "list");
    for (const item of items) list.push(item);
  },
  s: (m) => {
    const value = m.pop();
    const key = m.pop();
    m.top(isDict, "dict").set(key, value);
  },
  u: (m) => {
    const items = m.sinceMark();
    setPairs(m.top(isDict, "dict"), items);
  },
  "\x90": (m) => {
    const items = m.sinceMark();
    const set = m.top(isSet, "set");
    for (const item of items) set.add(item);
  },
};

const STACK: Readonly<Record<string, Instruction>> = {
  "\x80": (m) => {
    const protocol = m.u1();
    if (protocol > 5) fail(`protocol ${protocol}`, "this reads protocols 0 to 5");
  },
  "\x95": (m) => {
    m.u8();
  },
  "0": (m) => m.popMark(),
  "1": (m) => {
    m.sinceMark();
  },
  "2": (m) => {
    const value = m.pop();
    m.push(value);
    m.push(value);
  },
  p: (m) => m.remember(Number(m.line())),
  q: (m) => m.remember(m.u1()),
  r: (m) => m.remember(m.u4()),
  "\x94": (m) => m.memoize(),
  g: (m) => m.recall(Number(m.line())),
  h: (m) => m.recall(m.u1()),
  j: (m) => m.recall(m.u4()),
};

const INSTRUCTIONS: Readonly<Record<string, Instruction>> = { ...NUMBERS, ...TEXTS, ...CONTAINERS, ...STACK };

/** The data of a pickle file. */
export function readPickle(bytes: Uint8Array): PickleValue {
  return new Machine(bytes).run();
}
