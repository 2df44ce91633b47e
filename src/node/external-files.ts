/**
 * @file Weights of a model in files beside it, read in the parts that tensors are: such files may be larger than memory. They are found only in the
 * model's folder: links that lead out of it are refused like paths that do, and what is no file is not opened.
 */
import { closeSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { TidemarkError } from "../base/errors.ts";
import type { ExternalFile, ReadExternal } from "../formats/onnx-tensor.ts";

/** A path that cannot be read, with the reason that the system gives. */
export function unreadable(path: string, reason: unknown): TidemarkError {
  const help = "check the path and its permissions";
  const why = reason instanceof Error ? reason.message : String(reason);
  return new TidemarkError("StorageError", `${path} cannot be read: ${why}`, { help });
}

/** Files beside a model, each looked at once. */
export function externalFiles(model: string): ReadExternal {
  const files = new Map<string, ExternalFile>();
  return (location) => {
    const file = files.get(location) ?? externalFile(model, location);
    files.set(location, file);
    return file;
  };
}

function externalFile(model: string, location: string): ExternalFile {
  const path = pathBeside(model, location);
  const status = statSync(path);
  if (!status.isFile()) {
    throw new TidemarkError("InvalidFile", `${location} is no file`, { help: "external data are bytes in a file" });
  }
  return { byteLength: status.size, read: (offset, length) => partOf(path, offset, length) };
}

/** With links resolved. */
function pathBeside(model: string, location: string): string {
  const folder = realpathSync(dirname(model));
  const wanted = join(folder, location);
  let real: string;
  try {
    real = realpathSync(wanted);
  } catch (error) {
    throw unreadable(wanted, error);
  }
  const [first] = relative(folder, real).split(/[/\\]/);
  if (first !== ".." && first !== "") return real;
  const help = "external data must lie beside the model; copy the file there";
  throw new TidemarkError("InvalidFile", `${location} leads out of the folder of ${model}`, { help });
}

function partOf(path: string, offset: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    throw unreadable(path, error);
  }
  try {
    for (let done = 0; done < length; ) {
      const read = readSync(file, bytes, done, length - done, offset + done);
      if (read === 0) throw unreadable(path, "it became shorter while it was read");
      done += read;
    }
  } finally {
    closeSync(file);
  }
  return bytes;
}
