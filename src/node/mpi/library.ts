/** @file The functions of the library that calls MPI (library-text.ts), compiled where it is not in the cache, loaded once. */
import { TidemarkError } from "../../base/errors.ts";
import { systemCompiler } from "../native/compiler.ts";
import { type Functions, foreignFunctions, objectFor } from "../native/library.ts";
import { mpiLibraryText } from "./library-text.ts";
import { INSTALL_MPI, mpiToolchain, withMpi } from "./toolchain.ts";

/** Communicators are numbers; 0 has all processes. */
export interface MpiLibrary {
  /** An error number of MPI, or 0. */
  readonly begin: () => number;
  readonly rank: (of: number) => number;
  readonly size: (of: number) => number;
  /** The first so many processes; only they may call it. */
  readonly first: (count: number) => number;
  readonly split: (of: number, colour: number, key: number) => number;
  /** Those that share this one's memory. */
  readonly near: (of: number) => number;
  readonly meet: (of: number) => void;
  readonly collect: (of: number, mine: Uint8Array, all: Uint8Array, bytes: number) => void;
  readonly version: (text: Uint8Array, room: number) => number;
  /** What is exchanged, or was last. */
  readonly current: (text: Uint8Array, room: number) => number;
  /** A collective of a program that is no C (library-text.ts): its number. */
  readonly prepare: (numbers: Int32Array, elements: number, name: string) => number;
  /** Carries it out in a group. */
  readonly exchange: (what: number, group: number, to: Uint8Array, from: Uint8Array) => void;
  readonly end: () => void;
  readonly abort: (status: number) => void;
  /** The table that programs call. */
  readonly functions: () => bigint;
}

const SIGNATURES: Readonly<Record<keyof MpiLibrary, readonly [result: string, args: readonly string[]]>> = {
  begin: ["int", []],
  rank: ["int", ["int"]],
  size: ["int", ["int"]],
  first: ["int", ["int"]],
  split: ["int", ["int", "int", "int"]],
  near: ["int", ["int"]],
  meet: ["void", ["int"]],
  collect: ["void", ["int", "void *", "void *", "int"]],
  version: ["int", ["void *", "int"]],
  current: ["int", ["void *", "int"]],
  prepare: ["int", ["void *", "int64_t", "str"]],
  exchange: ["void", ["int", "int", "void *", "void *"]],
  end: ["void", []],
  abort: ["void", ["int"]],
  functions: ["void *", []],
};

const bind = (file: Functions): MpiLibrary =>
  Object.fromEntries(
    Object.entries(SIGNATURES).map(([name, [result, args]]) => [name, file.func(`tidemark_mpi_${name}`, result, args)]),
  ) as unknown as MpiLibrary;

/** The library, or one line that says why there is none. */
export function mpiLibrary(): MpiLibrary | string {
  const [mpi, compiler, koffi] = [mpiToolchain(), systemCompiler(), foreignFunctions()];
  for (const part of [mpi, compiler, koffi]) if (typeof part === "string") return part;
  if (typeof mpi === "string" || typeof compiler === "string" || typeof koffi === "string") return "";
  try {
    return objectFor({ koffi, compiler: withMpi(compiler, mpi), text: mpiLibraryText(), bind });
  } catch (error) {
    if (!(error instanceof TidemarkError)) throw error;
    return `${mpi.command} is there, and what calls it does not compile: ${error.summary.split("\n", 2).join(" ")}`;
  }
}

/** The same where it cannot be done without. */
export function requireMpiLibrary(asked: string): MpiLibrary {
  const library = mpiLibrary();
  if (typeof library !== "string") return library;
  throw new TidemarkError("TargetUnsupported", `${asked} needs MPI: ${library}`, { help: INSTALL_MPI });
}
