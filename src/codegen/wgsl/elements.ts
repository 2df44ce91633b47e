/**
 * @file Elements of storage types in WGSL. A bool in memory is a byte, a bf16 or f16 two, and the least that can be addressed is a
 * word of four: elements of such an operand are parts of words. Where several operands share a part of the arena (bindings.ts) its array is of words, and
 * elements are their bits. An array that is larger than a binding is several, of which functions choose by the element's number.
 */
import { InternalError } from "../../base/invariant.ts";
import type { DType } from "../../kernel/dtype.ts";

interface ElementTypes {
  /** Of values, and of elements in memory of a block or a thread. */
  readonly own: string;
  /** How elements are parts of a word; null where they are words. */
  readonly packed: Packing | null;
}

interface Packing {
  /** Of an element. */
  readonly bits: 8 | 16;
  /** A value from the lowest bits of a word, where others may be above it; and those bits from a value. */
  value(bits: string): string;
  bitsOf(value: string): string;
}

/** Functions of the prelude (halves.ts) convert. */
const half = (name: string): ElementTypes => ({
  own: "f32",
  packed: { bits: 16, value: (bits) => `${name}_value(${bits})`, bitsOf: (value) => `${name}_bits(${value})` },
});

const ELEMENTS: Readonly<Record<DType, ElementTypes | null>> = {
  f32: { own: "f32", packed: null },
  f64: null,
  bf16: half("bf16"),
  f16: half("f16"),
  i32: { own: "i32", packed: null },
  i64: null,
  i8: {
    own: "i32",
    packed: {
      bits: 8,
      value: (bits) => `extractBits(bitcast<i32>(${bits}), 0u, 8u)`,
      bitsOf: (value) => `(bitcast<u32>(${value}) & 255u)`,
    },
  },
  u8: {
    own: "i32",
    packed: {
      bits: 8,
      value: (bits) => `i32(${bits} & 255u)`,
      bitsOf: (value) => `(bitcast<u32>(${value}) & 255u)`,
    },
  },
  bool: {
    own: "bool",
    packed: { bits: 8, value: (bits) => `(${bits} & 1u) == 1u`, bitsOf: (value) => `select(0u, 1u, ${value})` },
  },
};

/** Storage types that WGSL has. */
export const WGSL_TYPES: readonly DType[] = (Object.keys(ELEMENTS) as DType[]).filter((dtype) => ELEMENTS[dtype]);

export function elementTypes(dtype: DType): ElementTypes {
  const found = ELEMENTS[dtype];
  if (!found) throw new InternalError(`WGSL has no ${dtype} in memory`);
  return found;
}

export const isPacked = (dtype: DType): boolean => elementTypes(dtype).packed !== null;

/** An element of an array of some type: how it is read, and the statement that writes it. */
export interface ElementAccess {
  readonly read: string;
  write(value: string): string;
}

/** Where an element is: the array, the type of the array's elements, and the element's number. */
export interface ElementPlace {
  readonly array: string;
  readonly type: string;
  readonly index: string;
  /** The array is several (`pieceFunctions`). */
  readonly isCut: boolean;
}

const isAtomic = (type: string): boolean => type.startsWith("atomic");

/** Statements that change an element of an array. */
const STATEMENTS: Readonly<Record<"set" | "and" | "or", (place: string, value: string, type: string) => string>> = {
  set: (place, value, type) => (isAtomic(type) ? `atomicStore(&${place}, ${value});` : `${place} = ${value};`),
  and: (place, value) => `atomicAnd(&${place}, ${value});`,
  or: (place, value) => `atomicOr(&${place}, ${value});`,
};

const readText = (place: string, type: string): string => (isAtomic(type) ? `atomicLoad(&${place})` : place);

/** The name of a piece of an array that is too large for one binding. */
export const pieceName = (array: string, piece: number): string => (piece === 0 ? array : `${array}_piece${piece}`);

/**
 * Functions that read and write elements of an array in pieces of so many elements each, by the number of an element:
 *
 *   fn global_1_get(i: i32) -> f32 {
 *     if (i < 33554432) { return global_1[i]; }
 *     return global_1_piece1[i - 33554432];
 *   }
 */
export function pieceFunctions(array: string, type: string, { pieces, elements }: PieceSizes): readonly string[] {
  const value = isAtomic(type) ? "u32" : type;
  const cases = (on: (place: string) => string): string => {
    const lines = Array.from({ length: pieces }, (_, piece) => {
      const from = piece * elements;
      const text = on(`${pieceName(array, piece)}[${from === 0 ? "i" : `i - ${from}`}]`);
      return piece === pieces - 1 ? `  ${text}` : `  if (i < ${from + elements}) { ${text} }`;
    });
    return `${lines.join("\n")}\n}`;
  };
  const writers = isAtomic(type) ? (["set", "and", "or"] as const) : (["set"] as const);
  return [
    `fn ${array}_get(i: i32) -> ${value} {\n${cases((place) => `return ${readText(place, type)};`)}`,
    ...writers.map((name) => {
      const statement = (place: string): string => `${STATEMENTS[name](place, "a", type)} return;`;
      return `fn ${array}_${name}(i: i32, a: ${value}) {\n${cases(statement)}`;
    }),
  ];
}

export interface PieceSizes {
  readonly pieces: number;
  /** Of every piece but the last. */
  readonly elements: number;
}

/** How elements of an array are read and changed: in place, or by the functions of its pieces. */
function arrayAccess({ array, type, isCut }: ElementPlace) {
  const change = (name: keyof typeof STATEMENTS) => (index: string, value: string) =>
    isCut ? `${array}_${name}(i32(${index}), ${value});` : STATEMENTS[name](`${array}[${index}]`, value, type);
  return {
    get: (index: string): string => (isCut ? `${array}_get(i32(${index}))` : readText(`${array}[${index}]`, type)),
    set: change("set"),
    and: change("and"),
    or: change("or"),
  };
}

/** A part of a word: threads may own neighbouring parts, so it is written by operations that leave the others alone. */
function packedAccess(place: ElementPlace, { bits, value, bitsOf }: Packing): ElementAccess {
  const words = arrayAccess(place);
  const inWord = 32 / bits;
  const word = `u32(${place.index}) / ${inWord}u`;
  const shift = `${bits}u * (u32(${place.index}) % ${inWord}u)`;
  const all = 2 ** bits - 1;
  return {
    read: value(`(${words.get(word)} >> (${shift}))`),
    write: (text) =>
      `${words.and(word, `~(${all}u << (${shift}))`)} ${words.or(word, `${bitsOf(text)} << (${shift})`)}`,
  };
}

export function accessTo(dtype: DType, place: ElementPlace): ElementAccess {
  const { own, packed } = elementTypes(dtype);
  if (packed) return packedAccess(place, packed);
  const { get, set } = arrayAccess(place);
  if (place.type === own) return { read: get(place.index), write: (value) => set(place.index, value) };
  return {
    read: `bitcast<${own}>(${get(place.index)})`,
    write: (value) => set(place.index, `bitcast<u32>(${value})`),
  };
}
