/**
 * @file Loads and stores that convert each storage type to its compute type and back, in C. Only this file of the target, with the
 * functions of the prelude that it names, knows the representation in memory.
 */
import { InternalError } from "../../base/invariant.ts";
import { DTYPES, type DType } from "../../kernel/dtype.ts";

export interface ElementForm {
  /** The C type of an element in memory. */
  readonly c: string;
  /** Name of the functions of the prelude that load and store registers of it: `f32x16_load`. */
  readonly functions: string;
  /** One element as a lane, and one lane as an element. */
  lane(element: string): string;
  element(lane: string): string;
}

/** Memory and lanes have the same representation. */
const plain = (c: string): ElementForm => ({ c, functions: c, lane: (element) => element, element: (lane) => lane });

/** Sixteen bits become an f32 (halves.ts). */
const half = (name: string): ElementForm => ({
  c: "u16",
  functions: name,
  lane: (element) => `${name}_lane(${element})`,
  element: (lane) => `${name}_of(${lane})`,
});

const FORMS: Readonly<Record<DType, ElementForm>> = {
  f32: plain("f32"),
  f64: plain("f64"),
  bf16: half("bf16"),
  f16: half("f16"),
  i32: plain("i32"),
  i64: plain("i64"),
  i8: { c: "i8", functions: "i8", lane: (element) => `(i32)${element}`, element: (lane) => `(i8)(${lane})` },
  u8: { c: "u8", functions: "u8", lane: (element) => `(i32)${element}`, element: (lane) => `(u8)(${lane})` },
  // a byte, 0 or 1, becomes a mask
  bool: { c: "u8", functions: "bool", lane: (element) => `-${element}`, element: (lane) => `(u8)(${lane} & 1)` },
};

/** Types that memory may hold. */
export const STORAGE_TYPES: readonly DType[] = DTYPES.filter((dtype) => dtype in FORMS);

export function elementForm(dtype: DType): ElementForm {
  const form: ElementForm | undefined = FORMS[dtype];
  if (!form) throw new InternalError(`C has no loads and stores of ${dtype}`);
  return form;
}
