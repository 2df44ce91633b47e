/**
 * @file Elements of files as elements of tensors. A type that tensors have is taken over byte by byte; narrower floats become
 * f32, which holds each of their numbers exactly; other whole numbers become i32 where they fit, and are refused where they
 * do not. Bytes are little-endian, as in the memory of every host that runs this.
 */
import { grouped } from "../base/errors.ts";
import { type DType, isBool, newElements, type TypedArray } from "../kernel/dtype.ts";
import { badFile, type FileTensor, type FileType } from "./safetensors.ts";

/** What tensors of each type are in files. */
export const FILE_TYPE_OF: Readonly<Record<DType, FileType>> = { f32: "F32", f64: "F64", i32: "I32", bool: "BOOL" };

interface Conversion {
  readonly dtype: DType;
  /** Element `i` of a file, as a number; null where the bytes are the same. */
  readonly number: ((bytes: DataView, i: number) => number | bigint) | null;
}

/** 1 sign bit, 5 exponent bits with bias 15, 10 fraction bits. */
function halfToNumber(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 0x1f, bits & 0x3ff];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const WORD = new DataView(new ArrayBuffer(4));

/** The upper half of an f32. */
function brainToNumber(bits: number): number {
  WORD.setUint32(0, bits << 16);
  return WORD.getFloat32(0);
}

const CONVERSIONS: Partial<Record<FileType, Conversion>> = {
  F32: { dtype: "f32", number: null },
  F64: { dtype: "f64", number: null },
  I32: { dtype: "i32", number: null },
  BOOL: { dtype: "bool", number: null },
  F16: { dtype: "f32", number: (bytes, i) => halfToNumber(bytes.getUint16(2 * i, true)) },
  BF16: { dtype: "f32", number: (bytes, i) => brainToNumber(bytes.getUint16(2 * i, true)) },
  U8: { dtype: "i32", number: (bytes, i) => bytes.getUint8(i) },
  I8: { dtype: "i32", number: (bytes, i) => bytes.getInt8(i) },
  U16: { dtype: "i32", number: (bytes, i) => bytes.getUint16(2 * i, true) },
  I16: { dtype: "i32", number: (bytes, i) => bytes.getInt16(2 * i, true) },
  U32: { dtype: "i32", number: (bytes, i) => bytes.getUint32(4 * i, true) },
  I64: { dtype: "i32", number: (bytes, i) => bytes.getBigInt64(8 * i, true) },
  U64: { dtype: "i32", number: (bytes, i) => bytes.getBigUint64(8 * i, true) },
};

function conversionOf({ name, type }: FileTensor): Conversion {
  const conversion = CONVERSIONS[type];
  if (conversion) return conversion;
  const known = Object.keys(CONVERSIONS).join(", ");
  throw badFile(`${name} has elements of type ${type}, which tensors cannot hold`, `types that can be read: ${known}`);
}

/** The element type that a tensor of a file gets. */
export const dtypeInMemory = (tensor: FileTensor): DType => conversionOf(tensor).dtype;

/** The elements of a tensor from its bytes, which become the tensor's where they can. */
export function elementsFromFile(tensor: FileTensor, bytes: Uint8Array): TypedArray {
  const { dtype, number } = conversionOf(tensor);
  const count = tensor.shape.reduce((product, extent) => product * extent, 1);
  const elements = newElements(dtype, count);
  if (number === null) {
    const into = new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
    into.set(bytes);
    if (isBool(dtype)) requireBits(tensor, into);
    return elements;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < count; i++) {
    const value = number(view, i);
    elements[i] = Number(value);
    if (typeof value === "bigint" || tensor.type === "U32") requireFit(tensor, value, elements[i] as number);
  }
  return elements;
}

function requireBits({ name }: FileTensor, bytes: Uint8Array): void {
  const at = bytes.findIndex((byte) => byte > 1);
  if (at >= 0) throw badFile(`${name} is a BOOL tensor whose element ${grouped(at)} is ${bytes[at]}, not 0 or 1`);
}

function requireFit({ name, type }: FileTensor, value: number | bigint, stored: number): void {
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint equals the number with its value
  if (value == stored) return;
  throw badFile(
    `${name} has ${value} as an element of type ${type}, which does not fit i32`,
    "write it as floats or as I32",
  );
}
