/**
 * @file Shared objects in this process: compiled where they are not in the cache, loaded through koffi, which calls C without
 * a compiled addon of ours. koffi is an optional package and this is the one file that loads it; it is loaded when the first
 * program is, not before.
 *
 * A file of the cache ends with a hash of what comes before, which linkers do not mind; one that was cut short or changed is
 * not loaded, since that could end the process, but compiled again in its place.
 */
import { createHash } from "node:crypto";
import { appendFileSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { TidemarkError } from "../../base/errors.ts";
import { besideName, prune, touch } from "../cache-files.ts";
import { LARGEST_CACHE, nativeFolder } from "./cache.ts";
import { type Compiler, compileTo, digest } from "./compiler.ts";

/** Of the hash at the end of a file. */
const SEAL_BYTES = 32;

/** The parts of koffi that are used. */
interface Koffi {
  load(path: string): { func(name: string, result: string, args: readonly string[]): (...args: unknown[]) => unknown };
  address(of: ArrayBufferView): bigint;
}

let loaded: Koffi | string | undefined;

/** koffi, or one line that says why it is not there. */
export function foreignFunctions(): Koffi | string {
  loaded ??= loadKoffi();
  return loaded;
}

function loadKoffi(): Koffi | string {
  try {
    return createRequire(import.meta.url)("koffi") as Koffi;
  } catch (error) {
    return `the package koffi cannot be loaded (${(error as Error).message.split("\n")[0]}); npm install koffi`;
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
}

function tryLoad(koffi: Koffi, path: string, stepwise: boolean): Library | null {
  try {
    const file = koffi.load(path);
    return {
      bytes: statSync(path).size,
      open: file.func("tidemark_open", "void *", []) as Library["open"],
      run: file.func("tidemark_run", "void", ["void *", "void *"]) as Library["run"],
      step: stepwise ? (file.func("tidemark_step", "void", ["void *", "void *", "int"]) as Library["step"]) : null,
      close: file.func("tidemark_close", "void", ["void *"]) as Library["close"],
      arena: file.func("tidemark_arena", "void", ["void *", "size_t"]) as Library["arena"],
    };
  } catch {
    return null;
  }
}

const hashOf = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest();

/** Whether a file is there and whole. */
function isWhole(path: string): boolean {
  try {
    const bytes = readFileSync(path);
    return bytes.length > SEAL_BYTES && hashOf(bytes.subarray(0, -SEAL_BYTES)).equals(bytes.subarray(-SEAL_BYTES));
  } catch {
    return false;
  }
}

/** The library for a text, from the cache or compiled. */
export function libraryFor(koffi: Koffi, compiler: Compiler, text: string, stepwise: boolean): Library {
  const path = join(nativeFolder(), `${digest(compiler.identity, text)}.so`);
  const known = isWhole(path) ? tryLoad(koffi, path, stepwise) : null;
  if (known) {
    touch(path);
    return known;
  }
  const aside = besideName(path);
  try {
    compileTo(compiler, text, aside);
    appendFileSync(aside, hashOf(readFileSync(aside)));
    renameSync(aside, path);
    prune(dirname(path), LARGEST_CACHE);
  } finally {
    rmSync(aside, { force: true });
  }
  const made = tryLoad(koffi, path, stepwise);
  if (made) return made;
  throw new TidemarkError("TargetUnsupported", `${path} was just compiled and cannot be loaded`, {
    help: "a folder from which nothing may be loaded (mounted noexec)? Set TIDEMARK_CACHE to another, or use the target wasm",
  });
}
