/**
 * @file `build`: a function compiled ahead of time, as files, and the folder that they are written to. The runtime among them is
 * bundled with the package; when run from the sources, it is that of the last build.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type BuildOptions, type BuiltProgram, buildFiles, parseBuild } from "../api/ahead.ts";
import { sourceOfFunction } from "../api/ahead-source.ts";
import { currentHost } from "../api/host.ts";
import { checksum } from "../base/checksum.ts";
import { TidemarkError } from "../base/errors.ts";
import { FILES, type FileSum, type ProgramFile, parseProgram, sumOf } from "../runtime/ahead/format.ts";
import { requireFunction } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { NODE_FILES } from "./files.ts";

export type { BuildOptions, BuiltProgram };

const PLACES = ["../ahead/runtime.bundle.js", "../../dist/ahead/runtime.bundle.js"] as const;

/** The text of `runtime.js`. @internal */
export function aheadRuntime(): Uint8Array {
  const place = PLACES.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (place) return new Uint8Array(readFileSync(place));
  throw new TidemarkError("UsageError", "build: the runtime is not built", { help: "npm run build" });
}

/**
 * Compiles a function ahead of time: the result takes arguments like those of its calls and gives the files of a program that runs
 * without the compiler, in a page and in Node. `writeProgram` writes them to a folder.
 *
 * @throws InvalidArgument for options that are none; PlanInfeasible where no plan fits `memory`
 *
 * @memory The program is planned as by `compile`, and does not run: arguments may be specs.
 *
 * @example
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { pathToFileURL } from "node:url";
 * import { spec, type Tensor, tensor } from "tidemark";
 * import { build, writeProgram } from "tidemark/node";
 *
 * const layer = (params: { w: Tensor }, x: Tensor) => x.matmul(params.w).relu();
 * const built = build(layer, { resident: [0] })({ w: tensor([[1], [2]]) }, spec([1, 2]));
 * const folder = mkdtempSync(join(tmpdir(), "layer-"));
 * await writeProgram(folder, built);
 * const { load } = await import(pathToFileURL(join(folder, "index.js")).href);
 * console.log((await load())([[3, 4]])); // Float32Array(1) [ 11 ]
 */
export function build<A extends readonly (Tree | undefined)[] = [Tensor], R = unknown>(
  fn: (...args: A) => R,
  options: BuildOptions = {},
): (...args: A) => BuiltProgram {
  requireFunction("build", "its first argument", fn);
  const request = parseBuild(options);
  return (...args) => {
    const source = sourceOfFunction(fn as AnyFunction, args, request, request.resident);
    return buildFiles(source, request, aheadRuntime(), currentHost());
  };
}

/** Options of {@link writeProgram}. */
export interface WriteOptions {
  /** Whether files that an earlier build did not write are replaced; default: false. */
  readonly force?: boolean;
}

function storageError(path: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof TidemarkError || code === undefined) return error;
  return new TidemarkError("StorageError", `${path} cannot be written: ${message}`, {
    help: "check the path, its permissions and the space on the disk",
  });
}

/** `program.json` of an earlier build; null where there is none. */
function earlierProgram(folder: string): ProgramFile | null {
  try {
    return parseProgram(readFileSync(join(folder, FILES.program), "utf8"));
  } catch {
    return null;
  }
}

const sameSum = (a: FileSum | undefined, b: FileSum): boolean => a?.bytes === b.bytes && a.checksum === b.checksum;

/** Whether a file of a folder is as a build left it. */
function isOwn(folder: string, name: string, earlier: ProgramFile | null): boolean {
  if (!earlier) return false;
  if (name === FILES.program) return true;
  const bytes = readFileSync(join(folder, name));
  if (name !== FILES.code) return sameSum(earlier.files[name], sumOf(bytes));
  return checksum(bytes.subarray(0, earlier.code.bytes)) === earlier.code.checksum;
}

function requireOwn(folder: string, names: readonly string[], earlier: ProgramFile | null): void {
  const foreign = names.filter((name) => existsSync(join(folder, name)) && !isOwn(folder, name, earlier));
  if (foreign.length === 0) return;
  const summary = `${folder} has files that no build has written, or that have changed since: ${foreign.join(", ")}`;
  throw new TidemarkError("StorageError", summary, { help: "give another folder, or replace them with force" });
}

/**
 * Writes the files of a program to a folder, which is created if it does not exist. Files that were not written by an earlier
 * build, or have changed since, are not replaced unless `force` is given. The folder has the new files when all of them are on the
 * disk, `program.json` last.
 *
 * @throws StorageError where files cannot be written, or are there and from elsewhere
 *
 * @example
 * import { mkdtempSync, readdirSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { spec, type Tensor } from "tidemark";
 * import { build, writeProgram } from "tidemark/node";
 *
 * const folder = mkdtempSync(join(tmpdir(), "program-"));
 * await writeProgram(folder, build((x: Tensor) => x.mul(2))(spec([3])));
 * console.log(readdirSync(folder).includes("index.js")); // → true
 */
export async function writeProgram(folder: string, { files }: BuiltProgram, options: WriteOptions = {}): Promise<void> {
  const earlier = earlierProgram(folder);
  const names = [...files.keys()].sort((a, b) => Number(a === FILES.program) - Number(b === FILES.program));
  if (!options.force) requireOwn(folder, names, earlier);
  const temporary = (name: string): string => join(folder, `${name}.${process.pid}.tmp`);
  const left = Object.keys(earlier?.files ?? {}).filter((name) => !files.has(name) && existsSync(join(folder, name)));
  const stale = left.filter((name) => Object.values<string>(FILES).includes(name) && isOwn(folder, name, earlier));
  try {
    await NODE_FILES.makeFolder(folder);
    for (const name of names) await NODE_FILES.write(temporary(name), files.get(name) as Uint8Array);
    for (const name of names) await NODE_FILES.rename(temporary(name), join(folder, name));
    for (const name of stale) await NODE_FILES.remove(join(folder, name));
    await NODE_FILES.syncFolder(folder);
  } catch (error) {
    for (const name of names) await NODE_FILES.remove(temporary(name)).catch(() => undefined);
    throw storageError(folder, error);
  }
}
