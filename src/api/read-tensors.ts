/**
 * @file The tensors of a safetensors file, read in order. `readTensors` is the reader without its input: it yields how many
 * bytes it needs next and is given them, so that arrays, streams and files are read by the same code.
 *
 *   8 bytes → N bytes (header: everything is checked here) → the bytes of the first tensor → of the second → …
 */
import { TidemarkError } from "../base/errors.ts";
import { dtypeInMemory, elementsFromFile } from "../formats/elements.ts";
import { type FileHeader, type FileTensor, headerBytes, PREFIX_BYTES, parseHeader } from "../formats/safetensors.ts";
import { type Shape, shapeText, typeText } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";

/** What a tree has a place for. */
export interface WantedTensor {
  readonly path: string;
  /** In the file. */
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
}

export interface Wanted {
  readonly tensors: readonly WantedTensor[];
  readonly ignoreExtra: boolean;
}

/** Which tensors of a file are kept, after a look at its header. */
interface Choice {
  check(header: FileHeader): void;
  keeps(entry: FileTensor): boolean;
  /** The element type that it should have, if the file has it. */
  dtype?(entry: FileTensor): DType | undefined;
}

export interface ReadFile {
  /** All of the file. */
  readonly entries: readonly FileTensor[];
  /** Those that are kept, by name. */
  readonly tensors: ReadonlyMap<string, Tensor>;
}

/** Yields the number of bytes that it needs next. */
export function* readChosen(fileBytes: number | undefined, choice: Choice): Generator<number, ReadFile, Uint8Array> {
  const header = yield* readHeader(fileBytes);
  choice.check(header);
  const tensors = new Map<string, Tensor>();
  for (const entry of header.tensors) {
    const bytes = yield entry.end - entry.begin;
    if (!choice.keeps(entry)) continue;
    const dtype = choice.dtype?.(entry);
    const elements = elementsFromFile(entry, bytes, dtype);
    const storage = new ArrayStorage(dtypeInMemory(entry, dtype), entry.shape, elements);
    tensors.set(entry.name, new Tensor(storage));
  }
  return { entries: header.tensors, tensors };
}

/** The same for what a tree wants; without it, all of the file. Returns tensors by name. */
export function* readTensors(
  fileBytes: number | undefined,
  wanted: Wanted | null,
): Generator<number, ReadonlyMap<string, Tensor>, Uint8Array> {
  const types = wanted && new Map(wanted.tensors.map(({ name, dtype }) => [name, dtype]));
  const file = yield* readChosen(fileBytes, {
    check: (header) => wanted && requireMatch(header, wanted),
    keeps: ({ name }) => types?.has(name) !== false,
    dtype: ({ name }) => types?.get(name),
  });
  return file.tensors;
}

export function* readHeader(fileBytes: number | undefined): Generator<number, FileHeader, Uint8Array> {
  const length = headerBytes(yield Math.min(PREFIX_BYTES, fileBytes ?? PREFIX_BYTES), fileBytes);
  const dataBytes = fileBytes === undefined ? undefined : fileBytes - PREFIX_BYTES - length;
  return parseHeader(yield length, dataBytes);
}

/** Names in a message; beyond that their number is enough. */
const SHOWN = 8;

function listed(names: readonly string[]): string {
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : "";
  return `${names.slice(0, SHOWN).join(", ")}${more}`;
}

/** Throws one error with everything that does not fit. @internal */
export function requireMatch({ tensors }: Pick<FileHeader, "tensors">, { tensors: wanted, ignoreExtra }: Wanted): void {
  const byName = new Map(tensors.map((entry) => [entry.name, entry]));
  const names = new Set(wanted.map(({ name }) => name));
  const missing = wanted.filter(({ name }) => !byName.has(name));
  const extra = ignoreExtra ? [] : tensors.filter(({ name }) => !names.has(name));
  const problems = [
    ...(missing.length > 0 ? [`the file lacks ${listed(missing.map(nameText))}`] : []),
    ...(extra.length > 0 ? [`the tree has no place for ${listed(extra.map(({ name }) => name))}`] : []),
    ...wanted.flatMap((one) => differences(one, byName.get(one.name))),
  ];
  if (problems.length === 0) return;
  const help =
    missing.length + extra.length > 0
      ? 'give { rename } where the names differ, { extra: "ignore" } for tensors that are not wanted, or load the file without a tree'
      : "load the file without a tree, and reshape, transpose or cast what comes back";
  throw new TidemarkError("InvalidFile", problems.join("; "), { where: sourceLocation(), help });
}

const nameText = ({ path, name }: WantedTensor): string => (path === name ? path : `${name} (for ${path})`);

function differences(wanted: WantedTensor, entry: FileTensor | undefined): readonly string[] {
  if (!entry) return [];
  const dtype = dtypeInMemory(entry, wanted.dtype);
  if (shapeText(entry.shape) === shapeText(wanted.shape) && dtype === wanted.dtype) return [];
  return [`${nameText(wanted)} is ${entry.type}${shapeText(entry.shape)}, the tree has ${typeText(wanted)}`];
}

/** What a file has, without reading its tensors. Types are those of the file. */
export interface FileInfo {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: readonly { readonly name: string; readonly type: string; readonly shape: readonly number[] }[];
}

/**
 * Names, types and shapes of a safetensors file, and the texts that travel with it. The first bytes are enough, as long as the
 * whole header is among them.
 *
 * @throws InvalidFile where the header is cut off or damaged
 *
 * @memory That of names, types and shapes: no elements are read.
 *
 * @example
 * import { fileInfo, save, tensor } from "tidemark";
 *
 * const info = fileInfo(save({ w: tensor([1, 2]) }, { metadata: { epoch: "3" } }));
 * console.log(info.metadata.epoch, info.tensors[0]); // "3" { name: "w", type: "F32", shape: [2] }
 */
export function fileInfo(file: Uint8Array): FileInfo {
  const steps = readHeader(undefined);
  let next = 0;
  let step = steps.next();
  while (!step.done) {
    const count = step.value;
    if (next + count > file.length && next > 0) headerBytes(file, file.length);
    step = steps.next(file.subarray(next, next + count));
    next += count;
  }
  const { metadata, tensors } = step.value;
  return { metadata, tensors: tensors.map(({ name, type, shape }) => ({ name, type, shape })) };
}
