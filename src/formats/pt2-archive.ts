/**
 * @file `.pt2` archives of `torch.export.save` (PyTorch 2.9 and newer): a zip with the program as JSON and every weight as plain bytes.
 *
 *   NAME/archive_format                            "pt2"
 *   NAME/models/model.json                         the program
 *   NAME/data/weights/model_weights_config.json    names, types and shapes of weights, and the file of each
 *   NAME/data/weights/weight_0 …                   their bytes
 *   NAME/data/constants/…                          the same for constants
 *
 * Nothing is unpickled: sample inputs are ignored, and a weight or constant that is a pickle is refused. An archive may lack the bytes of its
 * weights; their types are enough to plan.
 */

import type { DType, TypedArray } from "../kernel/dtype.ts";
import { dtypeInMemory, elementsFromFile } from "./elements.ts";
import type { FileType } from "./safetensors.ts";
import { readZip, type ZipEntry } from "./zip.ts";
import { badArchive } from "./zip-error.ts";

/** Numbers of element types in programs. */
const TYPES: Readonly<Record<number, FileType>> = {
  1: "U8",
  2: "I8",
  3: "I16",
  4: "I32",
  5: "I64",
  6: "F16",
  7: "F32",
  8: "F64",
  12: "BOOL",
  13: "BF16",
  28: "U16",
};

export interface Pt2Weight {
  readonly name: string;
  /** The same for weights that share their storage. */
  readonly path: string;
  readonly isParam: boolean;
  readonly type: FileType;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Null where the archive has only the description. */
  readonly elements: (() => TypedArray) | null;
}

export interface Pt2Archive {
  /** The program as JSON, not looked at yet. */
  readonly program: unknown;
  readonly weights: ReadonlyMap<string, Pt2Weight>;
}

const HELP = "export the model with PyTorch 2.9 or newer: torch.export.save(torch.export.export(model, args), path)";

/** The type of files for a number in a program. */
export function torchType(code: unknown): FileType {
  const type = typeof code === "number" ? TYPES[code] : undefined;
  if (type) return type;
  throw badArchive(`the program has elements of PyTorch's type ${String(code)}, which tensors cannot hold`, HELP);
}

export function readPt2(file: Uint8Array): Pt2Archive {
  const entries = readZip(file);
  const names = [...entries.keys()];
  const mark = names.find((name) => name.endsWith("/archive_format") || name === "archive_format");
  if (mark === undefined) {
    const isOld = names.some((name) => name.endsWith("serialized_exported_program.json"));
    throw badArchive(isOld ? "the archive was written by PyTorch before 2.9" : "the archive is no .pt2 file", HELP);
  }
  const root = mark.slice(0, -"archive_format".length);
  const order = entries.get(`${root}byteorder`);
  if (order && textOf(order) !== "little") throw badArchive(`the archive is in byte order ${textOf(order)}`, HELP);
  const models = names.filter((name) => name.startsWith(`${root}models/`) && name.endsWith(".json"));
  const [model] = models;
  if (model === undefined || models.length > 1) {
    const isCompiled = names.some((name) => name.startsWith(`${root}data/aotinductor/`));
    const what = isCompiled ? "compiled code and no program" : `${models.length} programs`;
    throw badArchive(`the archive has ${what}`, HELP);
  }
  const weights = [...configured(entries, `${root}data/weights/`), ...configured(entries, `${root}data/constants/`)];
  return { program: jsonOf(entries.get(model) as ZipEntry), weights: new Map(weights.map((one) => [one.name, one])) };
}

const textOf = (entry: ZipEntry): string => new TextDecoder("utf-8", { fatal: false }).decode(entry.read()).trim();

function jsonOf(entry: ZipEntry): unknown {
  try {
    return JSON.parse(textOf(entry));
  } catch (error) {
    throw badArchive(`${entry.name} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

interface TensorMeta {
  readonly dtype?: unknown;
  readonly sizes?: readonly { readonly as_int?: unknown }[];
  readonly strides?: readonly { readonly as_int?: unknown }[];
  readonly storage_offset?: { readonly as_int?: unknown };
}

interface WeightEntry {
  readonly path_name?: unknown;
  readonly is_param?: unknown;
  readonly use_pickle?: unknown;
  readonly tensor_meta?: TensorMeta | null;
}

function configured(entries: ReadonlyMap<string, ZipEntry>, folder: string): readonly Pt2Weight[] {
  const name = [...entries.keys()].find((path) => path.startsWith(folder) && path.endsWith("_config.json"));
  if (name === undefined) return [];
  const { config } = jsonOf(entries.get(name) as ZipEntry) as {
    readonly config?: Readonly<Record<string, WeightEntry>>;
  };
  return Object.entries(config ?? {}).map(([weight, entry]) => weightOf(weight, entry ?? {}, folder, entries));
}

const whole = (name: string, value: unknown): number => {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw badArchive(`${name} has ${JSON.stringify(value)} among its sizes`);
};

/** Sizes or strides; those of a scalar may be left out. */
function wholes(name: string, value: unknown): readonly number[] {
  if (!Array.isArray(value ?? [])) throw badArchive(`${name} has ${JSON.stringify(value)} for its sizes`);
  return ((value ?? []) as readonly { readonly as_int?: unknown }[]).map((one) => whole(name, one?.as_int));
}

function weightOf(name: string, entry: WeightEntry, folder: string, entries: ReadonlyMap<string, ZipEntry>): Pt2Weight {
  const { path_name: path, tensor_meta: meta } = entry;
  if (entry.use_pickle === true || typeof path !== "string" || !meta) {
    throw badArchive(`${name} is a pickle, which is not read`, "export the model without objects among its constants");
  }
  const type = torchType(meta.dtype);
  const shape = wholes(name, meta.sizes);
  const strides = wholes(name, meta.strides);
  const offset = whole(name, meta.storage_offset?.as_int ?? 0);
  const stored = entries.get(`${folder}${path}`);
  const described = { name, path: `${folder}${path}`, isParam: entry.is_param === true, type, shape };
  const dtype = dtypeInMemory({ name, type, shape, begin: 0, end: 0 });
  const elements = stored ? () => strided({ name, type, shape, strides, offset }, stored.read()) : null;
  return { ...described, dtype, elements };
}

interface Strided {
  readonly name: string;
  readonly type: FileType;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

const BYTES: Readonly<Partial<Record<FileType, number>>> = {
  ...{ U8: 1, I8: 1, BOOL: 1, I16: 2, U16: 2, F16: 2, BF16: 2, I32: 4, F32: 4, I64: 8, F64: 8 },
};

/** Elements row by row, wherever they lie in their storage. */
function strided({ name, type, shape, strides, offset }: Strided, bytes: Uint8Array): TypedArray {
  const width = BYTES[type] as number;
  const count = shape.reduce((product, extent) => product * extent, 1);
  const last =
    count === 0 ? 0 : offset + shape.reduce((sum, extent, a) => sum + (extent - 1) * (strides[a] ?? 0), 0) + 1;
  if (!Number.isSafeInteger(count) || strides.length !== shape.length || last * width > bytes.length) {
    throw badArchive(
      `${name} reaches beyond its ${bytes.length} bytes: ${type}[${shape.join(",")}] by [${strides.join(",")}]`,
    );
  }
  const isPlain = shape.every(
    (_, a) => strides[a] === shape.slice(a + 1).reduce((product, extent) => product * extent, 1),
  );
  const entry = (raw: Uint8Array) =>
    elementsFromFile({ name, type, shape: [raw.length / width], begin: 0, end: raw.length }, raw);
  if (isPlain || count === 0) return entry(bytes.subarray(offset * width, (offset + count) * width));
  const all = entry(bytes.subarray(0, bytes.length - (bytes.length % width)));
  const out = all.slice(0, count);
  const position = shape.map(() => 0);
  for (let i = 0; i < count; i++) {
    out[i] = all[position.reduce((at, p, a) => at + p * (strides[a] as number), offset)] as number;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      position[axis] = (position[axis] as number) + 1;
      if ((position[axis] as number) < (shape[axis] as number)) break;
      position[axis] = 0;
    }
  }
  return out;
}
