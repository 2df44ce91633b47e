/**
 * @file Trees of tensors in files, one tensor at a time: the file is never in memory as a whole. A file is either whole under
 * its name or was not changed (files.ts).
 */
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isNumpyName, numpyFile, treeFromNumpy } from "../api/numpy-files.ts";
import { fileParts, type LoadOptions, loadFrom, namedTensors, partsOf, type SaveOptions } from "../api/save.ts";
import { loadShards } from "../api/shards.ts";
import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { divide, indexText, isIndexName, shardName } from "../formats/shard-index.ts";
import { bytesOf } from "../kernel/dtype.ts";
import { requirePath } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { NODE_FILES } from "./files.ts";

/** What went wrong with a file, in words. */
function fileError(path: string, what: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof TidemarkError || code === undefined) return error;
  return new TidemarkError("StorageError", `${path} cannot be ${what}: ${(error as Error).message}`, {
    help: "check the path, its permissions and the space on the disk",
  });
}

async function writeParts(file: FileHandle, parts: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const part of parts) {
    // a write may take less than it is given
    for (let done = 0; done < part.length; ) done += (await file.write(part, done)).bytesWritten;
  }
  await file.sync();
}

/** Writes a file under a temporary name, which it keeps until `commit`. */
async function writeBeside(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(temporaryOf(path), "w");
  try {
    await writeParts(file, parts);
  } finally {
    await file.close();
  }
}

const temporaryOf = (path: string): string => `${path}.${process.pid}.tmp`;

/** Files that take their names together, in order, when all are whole. */
async function writeAll(files: readonly (readonly [path: string, parts: AsyncIterable<Uint8Array>])[]): Promise<void> {
  try {
    for (const [path, parts] of files) await writeBeside(path, parts);
    for (const [path] of files) await NODE_FILES.rename(temporaryOf(path), path);
    await NODE_FILES.syncFolder(dirname(files.at(-1)?.[0] ?? "."));
  } catch (error) {
    await Promise.all(files.map(([path]) => NODE_FILES.remove(temporaryOf(path)).catch(() => undefined)));
    throw fileError(files.at(-1)?.[0] ?? "", "written", error);
  }
}

async function* once(make: () => Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield await make();
}

/** Options of {@link saveFile}. */
export interface SaveFileOptions extends SaveOptions {
  /**
   * The most bytes of tensors in one file, `"5GB"` or a number. The tree is then written as `NAME-00001-of-0000N.safetensors` and so on with
   * an index beside them, `NAME.safetensors.index.json`, whose path `loadFile` takes. The index is replaced last.
   */
  readonly shardBytes?: number | string;
}

/**
 * Writes a tree of tensors as a safetensors file, or as an `.npz` file where the path ends so. A file of that name is replaced when the
 * new one is whole and on the disk: a process that is killed on the way leaves the old one.
 *
 * @throws StorageError where the file cannot be written; InvalidTree for what is no tree of tensors
 *
 * @memory The bytes of one tensor as the file has them, at a time; an `.npz` file is made whole.
 *
 * @example
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { tensor } from "tidemark";
 * import { loadFile, saveFile } from "tidemark/node";
 *
 * const path = join(mkdtempSync(join(tmpdir(), "weights-")), "model.safetensors");
 * await saveFile(path, { w: tensor([1, 2]) });
 * console.log((await loadFile(path, { w: tensor([0, 0]) })).w.toArray()); // [1, 2]
 */
export async function saveFile(path: string, tree: Tree, options: SaveFileOptions = {}): Promise<void> {
  requirePath("saveFile", path);
  const { shardBytes, ...rest } = options;
  if (isNumpyName(path)) return writeAll([[path, once(() => numpyFile(path, tree, options))]]);
  if (shardBytes === undefined) return writeAll([[path, fileParts(tree, rest)]]);
  const named = namedTensors("saveFile", tree, rest);
  const sized = named.map((one) => ({ ...one, bytes: one.tensor.elements * bytesOf(one.tensor.dtype) }));
  const shards = divide(sized, typeof shardBytes === "string" ? parseBytes(shardBytes) : shardBytes);
  const names = shards.map((_, i) => shardName(basename(path), i + 1, shards.length));
  const map = new Map(shards.map((shard, i) => [names[i] as string, shard.map(({ name }) => name)]));
  const index = new TextEncoder().encode(
    indexText(
      map,
      sized.reduce((sum, { bytes }) => sum + bytes, 0),
    ),
  );
  const files = shards.map((shard, i) => [join(dirname(path), names[i] as string), partsOf(shard, rest)] as const);
  await writeAll([...files, [`${path}.index.json`, once(async () => index)]]);
}

/** The most that is read at once: a part of a large tensor. */
const CHUNK_BYTES = 1 << 22;

/** A file as a stream that is read when its bytes are asked for. */
function streamOf(file: FileHandle) {
  const read = async () => {
    const { bytesRead, buffer } = await file.read(new Uint8Array(CHUNK_BYTES));
    return { done: bytesRead === 0, value: buffer.subarray(0, bytesRead) };
  };
  return { getReader: () => ({ read, cancel: async () => {} }) };
}

async function withFile<T>(path: string, use: (file: FileHandle) => Promise<T>): Promise<T> {
  try {
    const file = await open(path, "r");
    try {
      return await use(file);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw withPath(path, fileError(path, "read", error));
  }
}

/**
 * The tensors of a safetensors file, as `load` gives them; of a checkpoint in several files by the path of its `.index.json`; or of an
 * `.npy` file (as `value`) or `.npz` file.
 *
 * @throws StorageError where the file cannot be read; InvalidFile where it is cut off, damaged or has other
 * tensors
 *
 * @memory The tensors, and the bytes of one of them as the file has them; of an `.npy` or `.npz` file all of it.
 *
 * @example
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { tensor } from "tidemark";
 * import { loadFile, saveFile } from "tidemark/node";
 *
 * const path = join(mkdtempSync(join(tmpdir(), "tidemark-")), "model.safetensors");
 * await saveFile(path, { w: tensor([1, 2]) });
 * console.log((await loadFile(path)).w?.toArray()); // → [1, 2]
 */
export async function loadFile(path: string): Promise<Record<string, Tensor>>;
export async function loadFile<T extends Tree>(path: string, like: T, options?: LoadOptions): Promise<T>;
export async function loadFile(path: string, like?: Tree, options: LoadOptions = {}): Promise<unknown> {
  requirePath("loadFile", path);
  if (isIndexName(path)) return loadSharded(path, like, options);
  return withFile(path, async (file) => {
    if (isNumpyName(path)) return treeFromNumpy(path, await file.readFile(), like, options);
    const source = { size: (await file.stat()).size, stream: () => streamOf(file) };
    return like === undefined ? loadFrom(source) : loadFrom(source, like, options);
  });
}

async function loadSharded(path: string, like: Tree | undefined, options: LoadOptions): Promise<unknown> {
  const index = await withFile(path, (file) => file.readFile());
  const opened: FileHandle[] = [];
  const shard = async (name: string) => {
    const file = await open(join(dirname(path), name), "r");
    opened.push(file);
    return { size: (await file.stat()).size, stream: () => streamOf(file) };
  };
  try {
    return await (like === undefined ? loadShards(index, shard) : loadShards(index, shard, like, options));
  } catch (error) {
    throw withPath(path, fileError(path, "read", error));
  } finally {
    await Promise.all(opened.map((file) => file.close()));
  }
}

function withPath(path: string, error: unknown): unknown {
  if (!(error instanceof TidemarkError) || error.code !== "InvalidFile") return error;
  return new TidemarkError(error.code, `${path}: ${error.summary}`, { where: error.where, help: error.help });
}
