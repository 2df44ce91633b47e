/**
 * @file A value of an ONNX graph while it is followed: numbers that are known now, or a tensor of the program. Shapes, axes and counts are
 * tensors in ONNX like everything else; here they stay known as long as they do not depend on data, so that what is computed from shapes
 * is done when the graph is followed, exactly, with 64-bit integers.
 */

import type { OnnxElement, OnnxValues } from "../../formats/onnx-tensor.ts";
import type { Shape } from "../../ir/type.ts";
import { type DType, type FloatType, isFloat } from "../../kernel/dtype.ts";
import { fail } from "../../trace/arguments.ts";
import { tensor } from "../../trace/literal.ts";
import type { Tensor } from "../../trace/tensor.ts";

/** Which float type takes the place of all others; null: each its own. */
export type FloatChoice = FloatType | null;

/** Numbers that are known when the graph is followed. */
export interface Known {
  readonly type: OnnxElement;
  readonly shape: Shape;
  readonly values: OnnxValues;
}

const DTYPES: Readonly<Partial<Record<OnnxElement, DType>>> = {
  float: "f32",
  double: "f64",
  float16: "f16",
  bfloat16: "bf16",
  int8: "i8",
  int16: "i32",
  int32: "i32",
  int64: "i32",
  uint8: "u8",
  uint16: "i32",
  bool: "bool",
};

const FLOATS: readonly OnnxElement[] = ["float", "double", "float16", "bfloat16"];
const WHOLE: readonly OnnxElement[] = [
  ...(["int8", "int16", "int32", "int64"] as const),
  ...(["uint8", "uint16", "uint32", "uint64"] as const),
];
const WIDE: readonly OnnxElement[] = ["int64", "uint64"];

export const isFloatElement = (type: OnnxElement): boolean => FLOATS.includes(type);
export const isWholeElement = (type: OnnxElement): boolean => WHOLE.includes(type);
/** Whether elements are truth values. */
export const isBoolElement = (type: OnnxElement): boolean => !isFloatElement(type) && !isWholeElement(type);
/** Whether numbers of a type are bigints. */
export const isWide = (type: OnnxElement): boolean => WIDE.includes(type);

/** The element type of tensors for a type of ONNX. */
export function dtypeFor(type: OnnxElement, floats: FloatChoice, what: string): DType {
  const dtype = floats && isFloatElement(type) ? floats : DTYPES[type];
  if (dtype !== undefined) return dtype;
  return fail(
    "DtypeMismatch",
    `${what} is of type ${type}, which tensors do not have`,
    "export the model with int32 or int64",
  );
}

/** The type of ONNX that a tensor has, where nothing says more. */
export const elementFor = (dtype: DType, integers: OnnxElement): OnnxElement => {
  const table: Readonly<Record<DType, OnnxElement>> = {
    f32: "float",
    f64: "double",
    bf16: "bfloat16",
    f16: "float16",
    i32: integers,
    i64: "int64",
    i8: "int8",
    u8: "uint8",
    bool: "bool",
  };
  return table[dtype];
};

/** Known numbers as a tensor. Whole numbers that do not fit i32 are refused. */
export function tensorFrom({ type, shape, values }: Known, floats: FloatChoice, what: string): Tensor {
  const dtype = dtypeFor(type, floats, what);
  if (values instanceof Float32Array || values instanceof Float64Array) {
    if (isFloat(dtype)) return tensor(values, { dtype, shape });
  }
  if (isFloat(dtype)) return tensor(Float64Array.from(values as ArrayLike<number>), { dtype, shape });
  const numbers = Array.from(values as ArrayLike<number>, Number);
  const large = numbers.find((x) => (x | 0) !== x);
  if (large !== undefined) {
    const help = "whole numbers of data are i32 here; those of shapes and ranges may be larger";
    fail("DtypeMismatch", `${what} has the element ${large}, which does not fit i32`, help);
  }
  return tensor(dtype === DTYPES.bool ? Uint8Array.from(numbers) : Int32Array.from(numbers), { dtype, shape });
}

/** One value of a graph. */
export class Value {
  readonly name: string;
  readonly type: OnnxElement;
  readonly shape: Shape;
  /** Null where it is computed by the program. */
  readonly known: Known | null;
  readonly #floats: FloatChoice;
  #tensor: Tensor | null;

  private constructor(of: Pick<Value, "name" | "type" | "shape" | "known">, made: Tensor | null, floats: FloatChoice) {
    this.name = of.name;
    this.type = of.type;
    this.shape = of.shape;
    this.known = of.known;
    this.#tensor = made;
    this.#floats = floats;
  }

  static known(name: string, known: Known, floats: FloatChoice): Value {
    return new Value({ name, type: known.type, shape: known.shape, known }, null, floats);
  }

  static tensor(name: string, type: OnnxElement, made: Tensor): Value {
    return new Value({ name, type, shape: made.shape, known: null }, made, null);
  }

  /** As a tensor, whatever it is. */
  get tensor(): Tensor {
    this.#tensor ??= tensorFrom(this.known as Known, this.#floats, this.name || "a constant");
    return this.#tensor;
  }

  get rank(): number {
    return this.shape.length;
  }
}
