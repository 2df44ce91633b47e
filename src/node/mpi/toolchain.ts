/**
 * @file MPI as it is installed here: the flags that programs which call it are compiled with, asked of `mpicc`. OpenMPI answers to
 * `--showme`, MPICH to `-compile_info` and `-link_info`. What is compiled depends on the header and the library, so both are in its key.
 */
import { realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Compiler, commandPath, digest, run } from "../native/compiler.ts";

/** How MPI is installed, in every message that says it is not there. */
export const INSTALL_MPI = "install MPI (Debian: apt-get install openmpi-bin libopenmpi-dev)";

export interface MpiToolchain {
  /** The path of `mpicc`. */
  readonly command: string;
  readonly flags: readonly string[];
  readonly libraries: readonly string[];
  /** Equal for the same header and library. */
  readonly identity: string;
}

const QUESTIONS = [
  [["--showme:compile"], ["--showme:link"]],
  [["-compile_info"], ["-link_info"]],
] as const;

/** Of what `mpicc` would run, the words that say where MPI is. */
const wordsOf = (said: string, forms: RegExp): readonly string[] =>
  said
    .trim()
    .split(/\s+/)
    .filter((word) => forms.test(word));

const COMPILES = /^-[ID]./;
const LINKS = /^(-[Ll].|-Wl,|-pthread$)/;

/** Name, size and time of a file that may be there. */
function fileKey(path: string): string {
  try {
    const real = realpathSync(path);
    const { size, mtimeMs } = statSync(real);
    return `${real} ${size} ${mtimeMs}`;
  } catch {
    return "";
  }
}

const LIBRARY_NAMES = ["libmpi.so", "libmpich.so", "libmpi.dylib"];

function identityOf(command: string, flags: readonly string[], libraries: readonly string[]): string {
  const folders = (words: readonly string[], option: string): readonly string[] =>
    words.filter((word) => word.startsWith(option)).map((word) => word.slice(option.length));
  const headers = folders(flags, "-I").map((folder) => fileKey(join(folder, "mpi.h")));
  const objects = folders(libraries, "-L").flatMap((folder) =>
    LIBRARY_NAMES.map((name) => fileKey(join(folder, name))),
  );
  return digest(command, ...flags, ...libraries, ...headers, ...objects);
}

/** MPI's compiler of this machine, or one line that says why there is none. TIDEMARK_MPICC names another one. */
export function mpiToolchain({ PATH = "", TIDEMARK_MPICC }: NodeJS.ProcessEnv = process.env): MpiToolchain | string {
  const wanted = TIDEMARK_MPICC || "mpicc";
  const command = commandPath(wanted, PATH);
  if (command === null) return `no MPI: looked for ${wanted} in PATH`;
  for (const [compile, link] of QUESTIONS) {
    const [compiles, links] = [run(command, compile), run(command, link)];
    if (compiles === null || links === null) continue;
    const [flags, libraries] = [wordsOf(compiles, COMPILES), wordsOf(links, LINKS)];
    return { command, flags, libraries, identity: identityOf(command, flags, libraries) };
  }
  return `${command} does not say which flags it compiles with`;
}

/** A compiler with MPI's header and library. */
export const withMpi = (compiler: Compiler, { flags, libraries, identity }: MpiToolchain): Compiler => ({
  ...compiler,
  flags: [...compiler.flags, ...flags],
  libraries,
  identity: digest(compiler.identity, identity),
});
