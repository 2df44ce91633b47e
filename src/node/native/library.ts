/**
 * @file Shared objects in this process: compiled if they are not in the cache, and loaded through koffi, which calls C
 * without a compiled addon in this package. koffi is an optional package, loaded only here, together with the first
 * program.
 *
 * A file in the cache ends with a seal over its content, which linkers ignore. A truncated, changed or foreign file is
 * not loaded, since it could do anything, but compiled again and replaced.
 */
import { appendFileSync, chmodSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { TidemarkError } from "../../base/errors.ts";
import { prune, temporaryName } from "../cache-files.ts";
import { cacheFolder } from "../cache-folder.ts";
import type { SealedFolder } from "../sealed-folder.ts";
import { LARGEST_CACHE, persistentFolder, transientFolder } from "./cache.ts";
import { type Compiler, compileLater, compileTo, digest } from "./compiler.ts";
import { compileLinked, compileLinkedLater } from "./linked-library.ts";

/** The parts of koffi that are used. */
export interface Koffi {
  load(path: string): { func(name: string, result: string, args: readonly unknown[]): (...args: unknown[]) => unknown };
  address(of: ArrayBufferView): bigint;
  /** Memory of the process at an address. */
  view(address: bigint, bytes: number): ArrayBuffer;
  /** Types of what is passed by its value. */
  struct(fields: Readonly<Record<string, unknown>>): unknown;
  array(of: string, length: number): unknown;
  /** The text whose address is in an array. */
  decode(pointer: BigUint64Array, type: "str"): string;
}

/** Loaded once per Node thread. */
let loaded: Koffi | string | undefined;

/** koffi, or one line that says why it is unavailable. */
export function foreignFunctions(): Koffi | string {
  loaded ??= loadKoffi();
  return loaded;
}

function loadKoffi(): Koffi | string {
  try {
    return createRequire(import.meta.url)("koffi") as Koffi;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "MODULE_NOT_FOUND" ? "is not installed" : `cannot be loaded (${message.split("\n")[0]})`;
    return `the package koffi ${why}: npm install koffi`;
  }
}

/** The functions of a compiled program (codegen/native/program.ts). */
export interface Library {
  /** Of the file. */
  readonly bytes: number;
  readonly open: () => bigint | null;
  readonly run: (team: unknown, arena: bigint) => void;
  readonly step: ((team: unknown, arena: bigint, step: number) => void) | null;
  readonly close: (team: unknown) => void;
  readonly arena: (address: bigint, bytes: number) => void;
  /** For programs with copies to a file. */
  readonly spill: SpillLibrary | null;
  /** For programs with collectives: takes the functions that exchange, and the numbers of the program's groups. */
  readonly exchanges: ((functions: bigint, numbers: Int32Array) => void) | null;
}

/** Each gives an error number of the system, or 0 (codegen/native/spill.ts). */
export interface SpillLibrary {
  readonly open: (team: unknown, file: number, bytesPerSecond: number) => number;
  readonly error: (team: unknown) => number;
  readonly close: (team: unknown) => void;
  readonly reserve: (file: number, bytes: number) => number;
}

export type Functions = ReturnType<Koffi["load"]>;

const spillLibrary = (file: Functions): SpillLibrary => ({
  open: file.func("tidemark_spill_open", "int", ["void *", "int", "double"]) as SpillLibrary["open"],
  error: file.func("tidemark_spill_error", "int", ["void *"]) as SpillLibrary["error"],
  close: file.func("tidemark_spill_close", "void", ["void *"]) as SpillLibrary["close"],
  reserve: file.func("tidemark_spill_reserve", "int", ["int", "uint64_t"]) as SpillLibrary["reserve"],
});

/** The functions of a program's file; throws where it lacks one. */
const programLibrary =
  ({ stepwise, hasFile = false, hasExchanges = false }: Omit<LibraryRequest, "text" | "compiler" | "koffi">) =>
  (file: Functions, path: string): Library => ({
    bytes: statSync(path).size,
    open: file.func("tidemark_open", "void *", []) as Library["open"],
    run: file.func("tidemark_run", "void", ["void *", "void *"]) as Library["run"],
    step: stepwise ? (file.func("tidemark_step", "void", ["void *", "void *", "int"]) as Library["step"]) : null,
    close: file.func("tidemark_close", "void", ["void *"]) as Library["close"],
    arena: file.func("tidemark_arena", "void", ["void *", "size_t"]) as Library["arena"],
    spill: hasFile ? spillLibrary(file) : null,
    exchanges: hasExchanges
      ? (file.func("tidemark_mpi_open", "void", ["void *", "void *"]) as Library["exchanges"])
      : null,
  });

function tryLoad<T>(path: string, { koffi, bind }: ObjectRequest<T>): T | null {
  try {
    return bind(koffi.load(path), path);
  } catch {
    return null;
  }
}

/** The path of a complete file with a valid seal, or null. */
function sealedPath(folder: SealedFolder, name: string): string | null {
  // Loaded by its path after its bytes were checked: no other user can write to the folder.
  return folder.read(name) === null ? null : folder.pathOf(name);
}

/** Seals a file that was compiled aside, and gives it its name. */
function adopt(folder: SealedFolder, name: string, aside: string): void {
  appendFileSync(aside, folder.seal(name, readFileSync(aside)));
  chmodSync(aside, 0o600);
  renameSync(aside, folder.pathOf(name));
}

const adoptIn =
  (folder: SealedFolder) =>
  (name: string, aside: string): void =>
    adopt(folder, name, aside);

const nameOf = ({ compiler, text }: Pick<LibraryRequest, "compiler" | "text">): string =>
  `${digest(compiler.identity, text)}.so`;

/**
 * Compiles a text into the cache while this thread goes on, where it is not there yet. What goes wrong is found, and said, when the
 * library is asked for.
 */
export async function prepareLibrary(request: Pick<LibraryRequest, "compiler" | "text">): Promise<void> {
  const name = nameOf(request);
  const folder = [persistentFolder, transientFolder].map((folderOf) => folderOf()).find((f) => typeof f !== "string");
  if (folder === undefined || typeof folder === "string" || sealedPath(folder, name) !== null) return;
  const aside = temporaryName(folder.pathOf(name));
  try {
    const linked = { ...request, folder, path: aside, adopt: adoptIn(folder) };
    const made = (await compileLinkedLater(linked)) || (await compileLater(request.compiler, request.text, aside));
    if (made) adopt(folder, name, aside);
    prune(folder.path, LARGEST_CACHE);
  } catch {
    // the folder cannot be used
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Compiles a text into a folder; the path of the file. */
function compileInto(folder: SealedFolder, name: string, compiler: Compiler, text: string): string {
  const path = folder.pathOf(name);
  const aside = temporaryName(path);
  try {
    if (!compileLinked({ folder, compiler, text, path: aside, adopt: adoptIn(folder) }))
      compileTo(compiler, text, aside);
    adopt(folder, name, aside);
    prune(folder.path, LARGEST_CACHE);
    return path;
  } finally {
    rmSync(aside, { force: true });
  }
}

/** A library compiled into a folder, or why the folder cannot be used. Throws if the fault is not the folder's. */
function compiledIn<T>(folder: SealedFolder, name: string, request: ObjectRequest<T>): T | string {
  try {
    const path = compileInto(folder, name, request.compiler, request.text);
    return tryLoad(path, request) ?? `${folder.path}: nothing can be loaded from it (mounted noexec?)`;
  } catch (error) {
    const problem = folder.writeProblem();
    if (problem === null) throw error;
    return problem;
  }
}

/** A text to compile and load, and what is made of the file. */
interface ObjectRequest<T> {
  readonly koffi: Koffi;
  readonly compiler: Compiler;
  readonly text: string;
  /** Throws where the file cannot be used. */
  readonly bind: (file: Functions, path: string) => T;
}

/** A program to compile and load. */
export interface LibraryRequest extends Omit<ObjectRequest<Library>, "bind"> {
  /** Whether its steps can be run one by one. */
  readonly stepwise: boolean;
  /** Whether it has copies to a file; default: none. */
  readonly hasFile?: boolean;
  /** Whether it has collectives; default: none. */
  readonly hasExchanges?: boolean;
}

/** The library of a program, from the cache or compiled. */
export const libraryFor = (request: LibraryRequest): Library =>
  objectFor({ ...request, bind: programLibrary(request) });

/** What is made of the shared object of a text, from the cache or compiled. */
export function objectFor<T>(request: ObjectRequest<T>): T {
  const name = nameOf(request);
  const problems: string[] = [];
  for (const folderOf of [persistentFolder, transientFolder]) {
    const folder = folderOf();
    if (typeof folder === "string") {
      problems.push(folder);
      continue;
    }
    const path = sealedPath(folder, name);
    const object = (path === null ? null : tryLoad(path, request)) ?? compiledIn(folder, name, request);
    if (typeof object !== "string") return object;
    problems.push(object);
  }
  throw new TidemarkError("TargetUnsupported", `there is no folder for compiled programs: ${problems.join("; ")}`, {
    help: "set TIDEMARK_CACHE to a private writable folder, or use the target wasm",
  });
}

/** An empty program with the same system requirements as any other. */
const TRIAL_TEXT = `#include <math.h>
#include <pthread.h>
#include <stddef.h>
void *tidemark_open(void) { return 0; }
void tidemark_run(void *team, void *arena) { *(float *)arena = floorf(*(float *)arena); }
void tidemark_close(void *team) {}
void tidemark_arena(void *arena, size_t bytes) {}
`;

/** Outcomes of the trial below, by folder and compiler. */
const tried = new Map<string, string | null>();

/** Why programs cannot be compiled and loaded, in one line, or null; determined by a trial, once per Node thread. */
export function loadProblem(koffi: Koffi, compiler: Compiler): string | null {
  const key = `${cacheFolder()} ${compiler.identity}`;
  const cached = tried.get(key);
  if (cached !== undefined) return cached;
  let problem: string | null = null;
  try {
    libraryFor({ koffi, compiler, text: TRIAL_TEXT, stepwise: false });
  } catch (error) {
    if (!(error instanceof TidemarkError)) throw error;
    problem = error.summary.split("\n", 2).join(" ");
  }
  tried.set(key, problem);
  return problem;
}
