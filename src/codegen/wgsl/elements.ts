/**
 * @file Elements of storage types in WGSL. A bool in memory is a byte, and the least that can be addressed is a word of four: elements
 * of such an operand are parts of words. Where several operands share a part of the arena (bindings.ts) its array is of words, and
 * elements are their bits.
 */
import { InternalError } from "../../base/invariant.ts";
import type { DType } from "../../kernel/dtype.ts";

interface ElementTypes {
  /** Of values, and of elements in memory of a block or a thread. */
  readonly own: string;
  /** Four elements are in a word. */
  readonly packed: boolean;
}

const ELEMENTS: Readonly<Record<DType, ElementTypes | null>> = {
  f32: { own: "f32", packed: false },
  f64: null,
  i32: { own: "i32", packed: false },
  bool: { own: "bool", packed: true },
};

/** Storage types that WGSL has. */
export const WGSL_TYPES: readonly DType[] = (Object.keys(ELEMENTS) as DType[]).filter((dtype) => ELEMENTS[dtype]);

export function elementTypes(dtype: DType): ElementTypes {
  const found = ELEMENTS[dtype];
  if (!found) throw new InternalError(`WGSL has no ${dtype} in memory`);
  return found;
}

export const isPacked = (dtype: DType): boolean => elementTypes(dtype).packed;

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
}

const isAtomic = (type: string): boolean => type.startsWith("atomic");

/** A byte of a word: threads may own neighbouring bytes, so it is written by operations that leave the others alone. */
function packedAccess({ array, type, index }: ElementPlace): ElementAccess {
  const word = `${array}[u32(${index}) / 4u]`;
  const shift = `8u * (u32(${index}) % 4u)`;
  return {
    read: `((${isAtomic(type) ? `atomicLoad(&${word})` : word} >> (${shift})) & 1u) == 1u`,
    write: (value) =>
      `atomicAnd(&${word}, ~(255u << (${shift}))); atomicOr(&${word}, select(0u, 1u, ${value}) << (${shift}));`,
  };
}

export function accessTo(dtype: DType, place: ElementPlace): ElementAccess {
  const { own, packed } = elementTypes(dtype);
  if (packed) return packedAccess(place);
  const word = `${place.array}[${place.index}]`;
  if (place.type === own) return { read: word, write: (value) => `${word} = ${value};` };
  return {
    read: `bitcast<${own}>(${isAtomic(place.type) ? `atomicLoad(&${word})` : word})`,
    write: (value) =>
      isAtomic(place.type) ? `atomicStore(&${word}, bitcast<u32>(${value}));` : `${word} = bitcast<u32>(${value});`,
  };
}
