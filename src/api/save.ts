/**
 * @file Weights as bytes, and bytes as weights: any tree of tensors as a safetensors file. A tensor's name in the file is its
 * path in the tree (tree.ts); numbers and booleans of a tree are scalars of the file. What is read goes into the places of a
 * tree of the same structure, or into a flat object by name.
 *
 *   save      a tree  ──→  the whole file in one array
 *   saveTo    a tree  ──→  a stream or file handle, one tensor at a time
 *   load      a file in an array                           ──→  tensors
 *   loadFrom  a Blob, a response, a stream, a file handle   ──→  tensors, one at a time
 */
import { bytesInFile, canWriteAs, FILE_TYPE_OF, typesFor } from "../formats/elements.ts";
import { type FileType, isReserved, layOut, type Unplaced } from "../formats/safetensors.ts";
import type { DType } from "../kernel/dtype.ts";
import { fail, requireOptions } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, type TreeDef, unflatten } from "../trace/tree.ts";
import { ByteReader, type ByteSink, type ByteSource, sinkOf } from "./byte-streams.ts";
import { readTensors, type Wanted } from "./read-tensors.ts";
import { visitLeaves } from "./tree.ts";

/** Options of {@link save}, with element types. */
export interface SaveOptions {
  /** Texts that travel with the tensors: where they came from, what they are for. */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Types of the file by path, for tensors that are to be written in another than their own: floats as F16 or BF16, rounded to the
   * nearest, whole numbers as I8, U8, I16, U16, U32, I64 or U64. Those of a file that was read are in its `fileInfo`.
   */
  readonly types?: Readonly<Record<string, string>>;
}

/** Options of {@link load}. */
export interface LoadOptions {
  /** The name in the file of the tensor at a path of the tree; default: the path itself. */
  readonly rename?: (path: string) => string;
  /** What becomes of tensors in the file that the tree has no place for; default: "error". */
  readonly extra?: "error" | "ignore";
}

/** A tensor, number or boolean of a tree, by its path. */
interface Leaf {
  readonly path: string;
  readonly value: Tensor | number | boolean;
}

/** All of a tree that goes into a file, in the order of the tree. */
function leavesOf(tree: Tree): { readonly leaves: readonly Leaf[]; readonly def: TreeDef } {
  const { leaves: tensors, def, numbers } = flatten(tree, "tree", "argument", () => true);
  const leaves: Leaf[] = [];
  let [nextTensor, nextNumber] = [0, 0];
  visitLeaves(def, (leaf, path) => {
    const name = path === "" ? "value" : path;
    if (leaf.kind === "tensor") leaves.push({ path: name, value: tensors[nextTensor++] as Tensor });
    else if (leaf.kind === "number") leaves.push({ path: name, value: numbers[nextNumber++]?.value as number });
    else if (leaf.kind === "static" && leaf.value !== undefined) leaves.push({ path: name, value: leaf.value });
  });
  return { leaves, def };
}

/** A number as f64 and a boolean as bool: both come back as they were. */
const tensorOf = ({ value }: Leaf): Tensor => {
  if (value instanceof Tensor) return value;
  return typeof value === "number" ? tensor(value, { dtype: "f64" }) : tensor(value);
};

/** A tensor with its name and type in the file. */
export interface NamedTensor {
  readonly name: string;
  readonly type: FileType;
  readonly tensor: Tensor;
}

interface FilePlan {
  readonly head: Uint8Array;
  /** In the order of their bytes. */
  readonly tensors: readonly NamedTensor[];
  readonly bytes: number;
}

/** The type of a file that a tensor is written in. */
function fileTypeOf(what: string, path: string, dtype: DType, types: Readonly<Record<string, string>>): FileType {
  const asked = Object.hasOwn(types, path) ? types[path] : undefined;
  if (asked === undefined) return FILE_TYPE_OF[dtype];
  if (canWriteAs(dtype, asked)) return asked;
  return fail(
    "InvalidArgument",
    `${what}: ${path} is of type ${dtype} and cannot be written as ${asked}`,
    `types for it: ${typesFor(dtype).join(", ")}; convert the tensor for others`,
  );
}

/** Everything of a tree that goes into files, in the order of the tree. @internal */
export function namedTensors(what: string, tree: Tree, { types = {} }: SaveOptions): readonly NamedTensor[] {
  const byName = new Map<string, Tensor>();
  for (const leaf of leavesOf(tree).leaves) {
    const { path } = leaf;
    if (byName.has(path)) {
      fail(
        "InvalidTree",
        `${what}: two tensors have the path ${path}`,
        "a key with a dot in it reads like two keys; rename it",
      );
    }
    if (isReserved(path)) fail("InvalidTree", `${what}: ${path} cannot be the name of a tensor`, "rename that key");
    byName.set(path, tensorOf(leaf));
  }
  return [...byName].map(([name, made]) => {
    return { name, type: fileTypeOf(what, name, made.dtype, types), tensor: made };
  });
}

function planFile(what: string, named: readonly NamedTensor[], { metadata = {} }: SaveOptions): FilePlan {
  for (const [key, value] of Object.entries(metadata)) {
    if (typeof value !== "string")
      fail("InvalidArgument", `${what}: metadata.${key} is not a text`, "use String(value)");
  }
  const byName = new Map(named.map((one) => [one.name, one]));
  const unplaced: Unplaced[] = named.map(({ name, type, tensor: { shape } }) => ({ name, type, shape }));
  const { head, tensors } = layOut(unplaced, metadata);
  const bytes = head.length + (tensors.at(-1)?.end ?? 0);
  return { head, tensors: tensors.map(({ name }) => byName.get(name) as NamedTensor), bytes };
}

const SAVE = { metadata: "anything", types: "anything" } as const;
export const LOAD = { rename: "a function", extra: "a text" } as const;

/**
 * A tree of tensors as the bytes of a safetensors file: parameters, the state of an optimizer, anything that functions take
 * and return. The same tree always gives the same bytes.
 *
 * @memory The file is made whole, beside the tensors.
 *
 * @example
 * import { load, save, tensor } from "tidemark";
 *
 * const params = { w: tensor([[1, 2], [3, 4]]), layers: [{ b: tensor([5]) }] };
 * const bytes = save(params, { metadata: { epoch: "3" } });
 * console.log(load(bytes, params).layers[0]?.b.toArray()); // [5]
 */
export function save(tree: Tree, options: SaveOptions = {}): Uint8Array {
  requireOptions("save", options, SAVE);
  const { head, tensors, bytes } = planFile("save", namedTensors("save", tree, options), options);
  const file = new Uint8Array(bytes);
  file.set(head);
  let next = head.length;
  for (const { name, type, tensor: leaf } of tensors) {
    const part = bytesInFile(name, type, leaf.data());
    file.set(part, next);
    next += part.length;
  }
  return file;
}

/** The parts of a file with these tensors, one at a time, each when it is asked for. @internal */
export async function* partsOf(named: readonly NamedTensor[], options: SaveOptions): AsyncGenerator<Uint8Array> {
  const { head, tensors } = planFile("save", named, options);
  yield head;
  for (const { name, type, tensor: leaf } of tensors) yield bytesInFile(name, type, await leaf.dataAsync());
}

/** The parts of a file with all tensors of a tree. @internal */
export function fileParts(tree: Tree, options: SaveOptions = {}): AsyncGenerator<Uint8Array> {
  requireOptions("save", options, SAVE);
  return partsOf(namedTensors("save", tree, options), options);
}

/**
 * Writes a tree of tensors as a safetensors file, one tensor at a time: to a `FileSystemFileHandle` (a file that the user
 * chose, or one of the page's own from `navigator.storage.getDirectory()`), which has the new contents when all of it is
 * written and not before, or to a `WritableStream`.
 *
 * @throws InvalidArgument for what cannot be written to; InvalidTree for what is no tree of tensors
 *
 * @memory The bytes of one tensor as the file has them, at a time.
 *
 * @example
 * import { saveTo, tensor } from "tidemark";
 *
 * let bytes = 0;
 * const sink = new WritableStream<Uint8Array>({ write: (part) => void (bytes += part.length) });
 * await saveTo(sink, { w: tensor([1, 2]) });
 * console.log(bytes); // 80
 */
export async function saveTo(sink: ByteSink, tree: Tree, options: SaveOptions = {}): Promise<void> {
  requireOptions("saveTo", options, SAVE);
  const writer = await sinkOf(sink);
  try {
    for await (const part of fileParts(tree, options)) await writer.write(part);
  } catch (error) {
    await writer.abort(error);
    throw error;
  }
  await writer.close();
}

/**
 * The tensors of a safetensors file: into the places of a tree that has the structure and the types of what was saved (its own
 * tensors are not read; `spec`s will do), or without one an object of tensors by name. Narrower floats (F16, BF16) become f32
 * and other whole numbers i32. Missing and further names, other shapes and types are errors that list all of them.
 *
 * @memory The tensors, beside the file.
 *
 * @example
 * import { load, save, tensor } from "tidemark";
 *
 * const theirs = save({ "fc.weight": tensor([[1, 2]]), "fc.bias": tensor([0]) });
 * console.log(Object.keys(load(theirs))); // ["fc.bias", "fc.weight"]
 * const like = { w: tensor([[0, 0]]) };
 * console.log(load(theirs, like, { rename: () => "fc.weight", extra: "ignore" }).w.toArray()); // [[1, 2]]
 */
export function load(file: Uint8Array | ArrayBuffer): Record<string, Tensor>;
export function load<T extends Tree>(file: Uint8Array | ArrayBuffer, like: T, options?: LoadOptions): T;
export function load(file: Uint8Array | ArrayBuffer, like?: Tree, options: LoadOptions = {}): unknown {
  requireOptions("load", options, LOAD);
  const bytes = file instanceof ArrayBuffer ? new Uint8Array(file) : file;
  if (!(bytes instanceof Uint8Array)) {
    fail(
      "InvalidArgument",
      "load: the file must be a Uint8Array or an ArrayBuffer",
      "use loadFrom for blobs, responses and streams",
    );
  }
  const steps = readTensors(bytes.length, wantedBy(like, options));
  let next = 0;
  let step = steps.next();
  while (!step.done) {
    const count = step.value;
    step = steps.next(bytes.subarray(next, next + count));
    next += count;
  }
  return treeFrom(step.value, like, options);
}

/**
 * The same from a `Blob` or `File`, a `Response` of `fetch`, a `FileSystemFileHandle` or a `ReadableStream`, read one tensor at a
 * time: the file is never in memory as a whole.
 *
 * @throws InvalidFile where the file is cut off, damaged or has other tensors; InvalidArgument for what
 * cannot be read from
 *
 * @memory The tensors, and the bytes of one of them as the file has them.
 *
 * @example
 * import { loadFrom, save, tensor } from "tidemark";
 *
 * const blob = new Blob([save({ w: tensor([1, 2]) }) as Uint8Array<ArrayBuffer>]);
 * console.log((await loadFrom(blob, { w: tensor([0, 0]) })).w.toArray()); // [1, 2]
 */
export async function loadFrom(source: ByteSource): Promise<Record<string, Tensor>>;
export async function loadFrom<T extends Tree>(source: ByteSource, like: T, options?: LoadOptions): Promise<T>;
export async function loadFrom(source: ByteSource, like?: Tree, options: LoadOptions = {}): Promise<unknown> {
  requireOptions("loadFrom", options, LOAD);
  const reader = await ByteReader.of(source);
  try {
    const steps = readTensors(reader.bytes, wantedBy(like, options));
    let step = steps.next();
    while (!step.done) step = steps.next(await reader.take(step.value));
    await reader.requireEnd();
    return treeFrom(step.value, like, options);
  } finally {
    await reader.close();
  }
}

/** What a tree wants of a file: null for everything. @internal */
export function wantedBy(
  like: Tree | undefined,
  { rename = (path) => path, extra = "error" }: LoadOptions,
): Wanted | null {
  if (like === undefined) return null;
  if (extra !== "error" && extra !== "ignore")
    fail("InvalidArgument", `load: extra is ${extra}`, 'give "error" or "ignore"');
  const tensors = leavesOf(like).leaves.map((leaf) => {
    const { dtype, shape } = tensorOf(leaf);
    return { path: leaf.path, name: rename(leaf.path), dtype, shape };
  });
  return { tensors, ignoreExtra: extra === "ignore" };
}

/** Tensors by the names of the file as a tree. @internal */
export function treeFrom(
  byName: ReadonlyMap<string, Tensor>,
  like: Tree | undefined,
  { rename = (p) => p }: LoadOptions,
): unknown {
  if (like === undefined) return Object.fromEntries(byName);
  const { leaves, def } = leavesOf(like);
  const read = leaves.map(({ path, value }) => ({ value, tensor: byName.get(rename(path)) as Tensor }));
  const tensors = read.filter(({ value }) => value instanceof Tensor).map((leaf) => leaf.tensor);
  const scalars = read.filter(({ value }) => !(value instanceof Tensor));
  return unflatten(withScalars(def, scalars), tensors);
}

/** A structure whose numbers and booleans are those that were read, in order. */
function withScalars(def: TreeDef, scalars: readonly { readonly value: unknown; readonly tensor: Tensor }[]): TreeDef {
  let next = 0;
  const filled = (node: TreeDef): TreeDef => {
    if (node.kind === "array") return { ...node, items: node.items.map(filled) };
    if (node.kind === "object")
      return { ...node, entries: node.entries.map(([key, item]) => [key, filled(item)] as const) };
    if (node.kind === "tensor" || (node.kind === "static" && node.value === undefined)) return node;
    const scalar = scalars[next++];
    const number = scalar?.tensor.item() ?? 0;
    return { kind: "static", value: typeof scalar?.value === "boolean" ? number !== 0 : number, path: node.path };
  };
  return filled(def);
}
