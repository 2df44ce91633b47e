/**
 * @file Trees of tensors in files, one tensor at a time: the file is never in memory as a whole. A file is either whole under
 * its name or was not changed (files.ts).
 */
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { fileParts, type LoadOptions, loadFrom, type SaveOptions } from "../api/save.ts";
import { TidemarkError } from "../base/errors.ts";
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

/**
 * Writes a tree of tensors as a safetensors file. A file of that name is replaced when the new one is whole and on the disk: a
 * process that is killed on the way leaves the old one.
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
export async function saveFile(path: string, tree: Tree, options: SaveOptions = {}): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const file = await open(temporary, "w");
    try {
      await writeParts(file, fileParts(tree, options));
    } finally {
      await file.close();
    }
    await NODE_FILES.rename(temporary, path);
    await NODE_FILES.syncFolder(dirname(path));
  } catch (error) {
    await NODE_FILES.remove(temporary).catch(() => undefined);
    throw fileError(path, "written", error);
  }
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

/** The tensors of a safetensors file, as `load` gives them. */
export async function loadFile(path: string): Promise<Record<string, Tensor>>;
export async function loadFile<T extends Tree>(path: string, like: T, options?: LoadOptions): Promise<T>;
export async function loadFile(path: string, like?: Tree, options: LoadOptions = {}): Promise<unknown> {
  try {
    const file = await open(path, "r");
    try {
      const source = { size: (await file.stat()).size, stream: () => streamOf(file) };
      return await (like === undefined ? loadFrom(source) : loadFrom(source, like, options));
    } finally {
      await file.close();
    }
  } catch (error) {
    throw withPath(path, fileError(path, "read", error));
  }
}

function withPath(path: string, error: unknown): unknown {
  if (!(error instanceof TidemarkError) || error.code !== "InvalidFile") return error;
  return new TidemarkError(error.code, `${path}: ${error.summary}`, { where: error.where, help: error.help });
}
