/**
 * @file The elements of ONNX tensors: packed in one field, in a field of numbers, or in another file beside the model. Lengths are checked
 * against the shape before anything is allocated.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import { brainToNumber, halfToNumber } from "../kernel/half.ts";
import type { OnnxTensor } from "./onnx-file.ts";
import { badMessage } from "./protobuf.ts";

/** Names of element types, as operators of ONNX call them. */
export type OnnxElement =
  | ("float" | "double" | "float16" | "bfloat16")
  | ("int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64")
  | "bool";

/** Elements as exact numbers: bigints where the type has 64 bits. */
export type OnnxValues = ArrayLike<number> | ArrayLike<bigint>;

interface ElementRow {
  readonly code: number;
  readonly bytes: number;
  readonly read: (bytes: DataView, at: number) => number | bigint;
  make(count: number): number[] | Float32Array | Float64Array | Int32Array | BigInt64Array | BigUint64Array;
}

const ROWS: Readonly<Record<OnnxElement, ElementRow>> = {
  float: { code: 1, bytes: 4, read: (v, at) => v.getFloat32(at, true), make: (n) => new Float32Array(n) },
  uint8: { code: 2, bytes: 1, read: (v, at) => v.getUint8(at), make: (n) => new Int32Array(n) },
  int8: { code: 3, bytes: 1, read: (v, at) => v.getInt8(at), make: (n) => new Int32Array(n) },
  uint16: { code: 4, bytes: 2, read: (v, at) => v.getUint16(at, true), make: (n) => new Int32Array(n) },
  int16: { code: 5, bytes: 2, read: (v, at) => v.getInt16(at, true), make: (n) => new Int32Array(n) },
  int32: { code: 6, bytes: 4, read: (v, at) => v.getInt32(at, true), make: (n) => new Int32Array(n) },
  int64: { code: 7, bytes: 8, read: (v, at) => v.getBigInt64(at, true), make: (n) => new BigInt64Array(n) },
  bool: { code: 9, bytes: 1, read: (v, at) => (v.getUint8(at) === 0 ? 0 : 1), make: (n) => new Int32Array(n) },
  float16: {
    code: 10,
    bytes: 2,
    read: (v, at) => halfToNumber(v.getUint16(at, true)),
    make: (n) => new Float32Array(n),
  },
  double: { code: 11, bytes: 8, read: (v, at) => v.getFloat64(at, true), make: (n) => new Float64Array(n) },
  uint32: { code: 12, bytes: 4, read: (v, at) => v.getUint32(at, true), make: (n) => new Float64Array(n) },
  uint64: { code: 13, bytes: 8, read: (v, at) => v.getBigUint64(at, true), make: (n) => new BigUint64Array(n) },
  bfloat16: {
    code: 16,
    bytes: 2,
    read: (v, at) => brainToNumber(v.getUint16(at, true)),
    make: (n) => new Float32Array(n),
  },
};

/** What the schema calls the other types, for messages. */
const OTHERS: Readonly<Record<number, string>> = {
  0: "undefined",
  8: "string",
  14: "complex64",
  15: "complex128",
  17: "float8e4m3fn",
  18: "float8e4m3fnuz",
  19: "float8e5m2",
  20: "float8e5m2fnuz",
  21: "uint4",
  22: "int4",
  23: "float4e2m1",
};

const BY_CODE: ReadonlyMap<number, OnnxElement> = new Map(
  (Object.keys(ROWS) as OnnxElement[]).map((name) => [ROWS[name].code, name]),
);

/** The name of a type by its number in files; undefined for those that are not supported. */
export const elementOf = (code: number): OnnxElement | undefined => BY_CODE.get(code);

/** The number of a type in files. */
export const codeOf = (element: OnnxElement): number => ROWS[element].code;

/** The name of any type, for messages. */
export const elementText = (code: number): string => BY_CODE.get(code) ?? OTHERS[code] ?? `number ${code}`;

/** A file beside a model that is read in parts: it may be larger than memory. */
export interface ExternalFile {
  /** Bytes of the whole file. */
  readonly byteLength: number;
  /** `length` bytes from `offset` on, which are within the file. */
  read(offset: number, length: number): Uint8Array;
}

/** A file that a model refers to, by its path from the model: all of its bytes, or a way to read parts of it. */
export type ReadExternal = (location: string) => Uint8Array | ExternalFile;

/** Elements of a tensor by their type; null for a type without numbers here (texts, complex numbers, narrower floats). */
export interface DecodedTensor {
  readonly name: string;
  readonly type: OnnxElement;
  readonly shape: readonly number[];
  readonly values: OnnxValues;
}

export function decodeTensor(tensor: OnnxTensor, external: ReadExternal | undefined): DecodedTensor {
  const { name, shape } = tensor;
  const type = elementOf(tensor.type);
  if (type === undefined) {
    throw badMessage(
      `the tensor ${name} has elements of type ${elementText(tensor.type)}, which tensors cannot hold`,
      `types that can be read: ${Object.keys(ROWS).join(", ")}`,
    );
  }
  const count = shape.reduce((product, extent) => product * extent, 1);
  const raw = tensor.external ? externalBytes(tensor, external) : tensor.raw;
  const values =
    raw && (raw.length > 0 || count === 0) ? fromBytes(tensor, type, raw, count) : fromFields(tensor, type);
  if (values.length !== count) {
    throw badMessage(
      `the tensor ${name} has ${grouped(values.length)} elements, its shape [${shape.join(",")}] ${grouped(count)}`,
    );
  }
  return { name, type, shape, values };
}

function fromBytes({ name, shape }: OnnxTensor, type: OnnxElement, raw: Uint8Array, count: number): OnnxValues {
  const { bytes, read, make } = ROWS[type];
  if (raw.length !== count * bytes) {
    throw badMessage(
      `the tensor ${name} has ${grouped(raw.length)} bytes, ${type}[${shape.join(",")}] has ${grouped(count * bytes)}`,
    );
  }
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const values = make(count);
  for (let i = 0; i < count; i++) values[i] = read(view, i * bytes) as never;
  return values as OnnxValues;
}

/** Elements in a field of numbers: several types share the one for 32 bits. */
function fromFields({ message }: OnnxTensor, type: OnnxElement): OnnxValues {
  switch (type) {
    case "float":
      return Float32Array.from(message.floats(4));
    case "double":
      return Float64Array.from(message.doubles(10));
    case "int64":
      return BigInt64Array.from(message.ints(7));
    case "uint64":
      return BigUint64Array.from(message.ints(11));
    case "uint32":
      return Float64Array.from(message.ints(11), Number);
    case "float16":
      return Float32Array.from(message.ints(5), (bits) => halfToNumber(Number(bits)));
    case "bfloat16":
      return Float32Array.from(message.ints(5), (bits) => brainToNumber(Number(bits)));
    case "bool":
      return Int32Array.from(message.ints(5), (bit) => (bit === 0n ? 0 : 1));
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
      return Int32Array.from(message.ints(5), Number);
  }
}

/** A path that stays in the folder of the model. */
function requireInside(name: string, location: string): void {
  const parts = location.split(/[/\\]/);
  if (location !== "" && !parts.includes("..") && parts[0] !== "" && !/^[A-Za-z]:|\0/.test(location)) return;
  throw badMessage(
    `the tensor ${name} has its elements in ${JSON.stringify(location)}, outside of the model's folder`,
    "external data must lie beside the model; export it again",
  );
}

function externalBytes({ name, external }: OnnxTensor, read: ReadExternal | undefined): Uint8Array {
  const entry = (key: string, usual: number): number => {
    const value = Number(external?.get(key) ?? usual);
    if (Number.isSafeInteger(value) && value >= 0) return value;
    throw badMessage(`the tensor ${name} has ${key} ${JSON.stringify(external?.get(key))} in another file`);
  };
  const location = external?.get("location") ?? "";
  requireInside(name, location);
  if (!read) {
    throw new TidemarkError("InvalidFile", `the tensor ${name} has its elements in another file, ${location}`, {
      help: "give { external: (location) => bytes }; in Node readModel(path) finds it",
    });
  }
  const file = read(location);
  const offset = entry("offset", 0);
  const length = entry("length", file.byteLength - offset);
  if (offset + length > file.byteLength) {
    const there = `${location}, which has ${grouped(file.byteLength)}`;
    throw badMessage(`the tensor ${name} is at bytes ${grouped(offset)} to ${grouped(offset + length)} of ${there}`);
  }
  return file instanceof Uint8Array ? file.subarray(offset, offset + length) : file.read(offset, length);
}
