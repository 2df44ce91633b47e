/**
 * @file Elements of files as elements of tensors. The common types are taken over byte by byte; narrower floats become
 * f32, which holds each of their numbers exactly, unless they are wanted as they are; other whole numbers become i32 where they fit, and are refused where they
 * do not. On request the way back is the same: a file that was read is written with its types. Bytes are little-endian, as in the memory of every host that runs this.
 */
import { grouped } from "../base/errors.ts";
import { type DType, isBool, newElements, type TypedArray } from "../kernel/dtype.ts";
import { brainToNumber, halfToNumber, numberToBrain, numberToHalf } from "../kernel/half.ts";
import { badFile, type FileTensor, type FileType } from "./safetensors.ts";

/** What tensors of each type are in files, where nothing else is asked for. */
export const FILE_TYPE_OF: Readonly<Record<DType, FileType>> = {
  f32: "F32",
  f64: "F64",
  bf16: "BF16",
  f16: "F16",
  i32: "I32",
  i64: "I64",
  i8: "I8",
  u8: "U8",
  bool: "BOOL",
};

interface Conversion {
  readonly dtype: DType;
  /** Element `i` of a file, as a number; null where the bytes are the same. */
  readonly number: ((bytes: DataView, i: number) => number | bigint) | null;
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

/** Whether tensors of an element type are in files what this one is: its bytes are taken over as they are. */
const isOwn = ({ type }: FileTensor, wanted: DType | undefined): wanted is DType =>
  wanted !== undefined && FILE_TYPE_OF[wanted] === type;

/** The element type that a tensor of a file gets: the wanted one where the file has it, else one that holds its numbers. */
export const dtypeInMemory = (tensor: FileTensor, wanted?: DType): DType =>
  isOwn(tensor, wanted) ? wanted : conversionOf(tensor).dtype;

/** The elements of a tensor from its bytes, which become the tensor's where they can. */
export function elementsFromFile(tensor: FileTensor, bytes: Uint8Array, wanted?: DType): TypedArray {
  const { dtype, number } = isOwn(tensor, wanted) ? { dtype: wanted, number: null } : conversionOf(tensor);
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
    type === "I64"
      ? 'read it into a tree that has i64 in its place, such as spec(shape, "i64")'
      : "write it as floats or as I32",
  );
}

interface Narrowing {
  readonly dtype: DType;
  readonly bytes: number;
  /** The numbers that fit; null where all do, rounded. */
  readonly range: readonly [number, number] | null;
  write(into: DataView, i: number, value: number): void;
}

/** Types that files can have in place of a tensor's own. */
const NARROWINGS: Partial<Record<FileType, Narrowing>> = {
  F16: { dtype: "f32", bytes: 2, range: null, write: (v, i, x) => v.setUint16(2 * i, numberToHalf(x), true) },
  BF16: { dtype: "f32", bytes: 2, range: null, write: (v, i, x) => v.setUint16(2 * i, numberToBrain(x), true) },
  U8: { dtype: "i32", bytes: 1, range: [0, 255], write: (v, i, x) => v.setUint8(i, x) },
  I8: { dtype: "i32", bytes: 1, range: [-128, 127], write: (v, i, x) => v.setInt8(i, x) },
  U16: { dtype: "i32", bytes: 2, range: [0, 65535], write: (v, i, x) => v.setUint16(2 * i, x, true) },
  I16: { dtype: "i32", bytes: 2, range: [-32768, 32767], write: (v, i, x) => v.setInt16(2 * i, x, true) },
  U32: { dtype: "i32", bytes: 4, range: [0, 2 ** 32 - 1], write: (v, i, x) => v.setUint32(4 * i, x, true) },
  I64: { dtype: "i32", bytes: 8, range: null, write: (v, i, x) => v.setBigInt64(8 * i, BigInt(x), true) },
  U64: {
    dtype: "i32",
    bytes: 8,
    range: [0, 2 ** 32],
    write: (v, i, x) => v.setBigUint64(8 * i, BigInt(x), true),
  },
};

/** Whether a tensor of an element type can be written as a type of files. */
export const canWriteAs = (dtype: DType, type: string): type is FileType =>
  FILE_TYPE_OF[dtype] === type || NARROWINGS[type as FileType]?.dtype === dtype;

/** What a tensor of an element type can be in a file. */
export const typesFor = (dtype: DType): readonly FileType[] => [
  FILE_TYPE_OF[dtype],
  ...(Object.keys(NARROWINGS) as FileType[]).filter((type) => NARROWINGS[type]?.dtype === dtype),
];

/** The bytes of a tensor as a type of files: floats are rounded to the nearest, whole numbers that do not fit are refused. */
export function bytesInFile(name: string, type: FileType, elements: TypedArray): Uint8Array {
  const narrowing = NARROWINGS[type];
  // elements of one or two bytes have a type of files of their own
  const isOwnType = !narrowing || elements.BYTES_PER_ELEMENT < 4;
  if (isOwnType) return new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
  const { bytes, range, write } = narrowing;
  const out = new Uint8Array(elements.length * bytes);
  const view = new DataView(out.buffer);
  elements.forEach((x, i) => {
    if (range && (x < range[0] || x > range[1])) {
      const where = `element ${grouped(i)} of ${name} is ${x}`;
      throw badFile(`${where}, which ${type} cannot hold`, "write it in its own type");
    }
    write(view, i, x);
  });
  return out;
}
