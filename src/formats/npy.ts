/**
 * @file NumPy's `.npy` files: a short text in Python's notation, then the elements.
 *
 *   \x93NUMPY 1 0  ⟨length⟩  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n  ⟨bytes⟩
 *
 * Types become those of tensors as in safetensors files (elements.ts). Python objects, which would have to be unpickled, records,
 * texts and complex numbers are refused.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import type { DType, TypedArray } from "../kernel/dtype.ts";
import { dtypeInMemory, elementsFromFile } from "./elements.ts";
import type { FileTensor, FileType } from "./safetensors.ts";

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
/** NumPy writes a few hundred bytes; version 1 cannot have more than this. */
const MOST_HEADER = 65_535;
const ALIGNMENT = 64;

const TYPES: Readonly<Record<string, FileType>> = {
  b1: "BOOL",
  i1: "I8",
  u1: "U8",
  i2: "I16",
  u2: "U16",
  f2: "F16",
  i4: "I32",
  u4: "U32",
  f4: "F32",
  i8: "I64",
  u8: "U64",
  f8: "F64",
};
/** NumPy has no bf16 of its own. */
const DESCR: Readonly<Record<DType, string | null>> = {
  f32: "<f4",
  f64: "<f8",
  bf16: null,
  f16: "<f2",
  i32: "<i4",
  i64: "<i8",
  i8: "|i1",
  u8: "|u1",
  bool: "|b1",
};

export interface NpyArray {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly elements: TypedArray;
}

function badNpy(summary: string, help = "the file is damaged or not an .npy file; write it again"): TidemarkError {
  return new TidemarkError("InvalidFile", summary, { help });
}

interface Header {
  readonly descr: string;
  readonly columns: boolean;
  readonly shape: readonly number[];
  /** Where the elements begin. */
  readonly start: number;
}

function headerOf(name: string, file: Uint8Array): Header {
  const isNpy = MAGIC.every((byte, i) => file[i] === byte);
  if (!isNpy || file.length < 12) throw badNpy(`${name} does not begin as an .npy file does`);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const version = file[6] as number;
  if (version < 1 || version > 3) throw badNpy(`${name} is of version ${version}; 1, 2 and 3 are known`);
  const [length, first] = version === 1 ? [view.getUint16(8, true), 10] : [view.getUint32(8, true), 12];
  if (length > MOST_HEADER || first + length > file.length) {
    throw badNpy(`${name} has a header of ${grouped(length)} bytes in a file of ${grouped(file.length)}`);
  }
  const text = new TextDecoder("utf-8", { fatal: false }).decode(file.subarray(first, first + length));
  const field = (key: string, form: string): string | undefined =>
    new RegExp(`['"]${key}['"]\\s*:\\s*(?:${form})`).exec(text)?.[1];
  const descr = field("descr", "['\"]([^'\"]*)['\"]");
  const order = field("fortran_order", "(True|False)");
  const shape = field("shape", "\\(([\\d,\\sL]*)\\)");
  if (descr === undefined || order === undefined || shape === undefined) {
    if (/['"]descr['"]\s*:\s*\[/.test(text)) throw badNpy(`${name} holds records`, "save one array for each field");
    throw badNpy(`${name} has the header ${JSON.stringify(text.trim().slice(0, 80))}`);
  }
  const extents = shape.split(",").filter((part) => part.trim() !== "");
  return {
    descr,
    columns: order === "True",
    shape: extents.map((part) => Number.parseInt(part, 10)),
    start: first + length,
  };
}

/** The array of a file; `name` is for messages. */
export function parseNpy(name: string, file: Uint8Array): NpyArray {
  const { descr, columns, shape, start } = headerOf(name, file);
  const [, order, kind] = /^([<>|=])?(\w+)$/.exec(descr) ?? [];
  const type = kind === undefined || !Object.hasOwn(TYPES, kind) ? undefined : TYPES[kind];
  if (type === undefined) {
    const help = `types that can be read: ${Object.keys(TYPES).join(", ")}; convert the array with astype`;
    throw badNpy(`${name} has elements of NumPy's type ${JSON.stringify(descr)}`, help);
  }
  const width = Number(kind?.slice(1));
  const count = shape.reduce((product, extent) => product * extent, 1);
  const bytes = count * width;
  if (!Number.isSafeInteger(bytes) || bytes !== file.length - start) {
    const has = `${grouped(file.length - start)} bytes of elements`;
    throw badNpy(`${name} has ${has}, ${descr}[${shape.join(",")}] has ${grouped(bytes)}`);
  }
  const raw = file.slice(start);
  if (order === ">") for (let i = 0; i < raw.length; i += width) raw.subarray(i, i + width).reverse();
  const entry: FileTensor = { name, type, shape, begin: 0, end: bytes };
  const elements = elementsFromFile(entry, raw);
  return { dtype: dtypeInMemory(entry), shape, elements: columns ? byRows(elements, shape) : elements };
}

/** Elements whose first axis varies fastest, as elements whose last one does. */
function byRows(elements: TypedArray, shape: readonly number[]): TypedArray {
  const out = elements.slice();
  const strides = shape.map((_, axis) => shape.slice(0, axis).reduce((product, extent) => product * extent, 1));
  const position = shape.map(() => 0);
  for (let i = 0; i < out.length; i++) {
    out[i] = elements[position.reduce((at, p, axis) => at + p * (strides[axis] as number), 0)] as number;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      position[axis] = (position[axis] as number) + 1;
      if ((position[axis] as number) < (shape[axis] as number)) break;
      position[axis] = 0;
    }
  }
  return out;
}

/** An array as a file; its elements begin at a multiple of 64 bytes. */
export function writeNpy({ dtype, shape, elements }: NpyArray): Uint8Array {
  const descr = DESCR[dtype];
  if (descr === null) throw badNpy(`NumPy has no type ${dtype}`, 'convert it first: cast(x, "f32")');
  const extents = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${extents}), }`;
  const start = Math.ceil((MAGIC.length + 4 + text.length + 1) / ALIGNMENT) * ALIGNMENT;
  const out = new Uint8Array(start + elements.byteLength).fill(0x20, 0, start);
  out.set([...MAGIC, 1, 0]);
  new DataView(out.buffer).setUint16(8, start - 10, true);
  out.set(new TextEncoder().encode(text), 10);
  out[start - 1] = 0x0a;
  out.set(new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength), start);
  return out;
}
