/**
 * @file CUDA text to machine code of a device: by NVRTC, the compiler as a library, or by nvcc where that is what there is.
 * Code is kept in the cache of compiled programs, sealed, by everything it depends on.
 *
 * Flags: nothing that changes a rounding. Multiplications are fused with additions by the text alone (`--fmad=false`);
 * division and root are IEEE's and nothing is flushed to zero, which are the defaults.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { TidemarkError } from "../../base/errors.ts";
import { prune, temporaryName } from "../cache-files.ts";
import { LARGEST_CACHE, persistentFolder, transientFolder } from "../native/cache.ts";
import { digest } from "../native/compiler.ts";
import { foreignFunctions, type Koffi } from "../native/library.ts";
import type { SealedFolder } from "../sealed-folder.ts";

const FLAGS = ["--fmad=false", "--std=c++17"];
const NVRTC_LIBRARIES = ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"];
const NVCC_FOLDERS = ["/usr/local/cuda/bin"];
/** Lines of what a compiler says that an error repeats. */
const LINES = 8;

export interface CudaCompiler {
  /** For reports: `NVRTC 13.0`. */
  readonly name: string;
  /** Machine code for an architecture, `sm_90a`. */
  compile(text: string, architecture: string): Uint8Array;
}

/** The architecture whose code a device runs; Hopper's own instructions need the letter. */
export const architectureOf = (capability: number): string => `sm_${capability}${capability === 90 ? "a" : ""}`;

function refused(name: string, said: string): TidemarkError {
  const lines = said.trim().split("\n").slice(0, LINES).join("\n  ");
  return new TidemarkError("TargetUnsupported", `${name} refused the program:\n  ${lines}`, {
    help: "use a toolkit of the driver's CUDA version, or the target native",
  });
}

// ---- NVRTC --------------------------------------------------------------------------------------------------------

type Call = (...args: unknown[]) => number;

class Nvrtc implements CudaCompiler {
  readonly name: string;
  readonly #koffi: Koffi;
  readonly #function: (name: string, args: readonly string[]) => Call;

  constructor(koffi: Koffi, path: string) {
    this.#koffi = koffi;
    const library = koffi.load(path);
    this.#function = (name, args) => library.func(name, "int", args) as Call;
    const [major, minor] = [new Int32Array(1), new Int32Array(1)];
    this.#function("nvrtcVersion", ["void *", "void *"])(major, minor);
    this.name = `NVRTC ${major[0]}.${minor[0]}`;
  }

  compile(text: string, architecture: string): Uint8Array {
    const handle = new BigUint64Array(1);
    const create = this.#function("nvrtcCreateProgram", ["void *", "str", "str", "int", "void *", "void *"]);
    if (create(handle, text, "tidemark.cu", 0, null, null) !== 0) throw refused(this.name, "no program can be created");
    const [program] = handle;
    try {
      const options = [`--gpu-architecture=${architecture}`, ...FLAGS].map((flag) => Buffer.from(`${flag}\0`));
      const pointers = BigUint64Array.from(options, (option) => this.#koffi.address(option));
      const status = this.#function("nvrtcCompileProgram", ["void *", "int", "void *"])(
        program,
        options.length,
        pointers,
      );
      if (status !== 0) throw refused(this.name, this.#bytesOf("ProgramLog", program).toString("utf8"));
      return this.#bytesOf("CUBIN", program);
    } finally {
      this.#function("nvrtcDestroyProgram", ["void *"])(handle);
    }
  }

  #bytesOf(what: "ProgramLog" | "CUBIN", program: unknown): Buffer {
    const size = new BigUint64Array(1);
    this.#function(`nvrtcGet${what}Size`, ["void *", "void *"])(program, size);
    const bytes = Buffer.alloc(Number(size[0]));
    this.#function(`nvrtcGet${what}`, ["void *", "void *"])(program, bytes);
    return bytes;
  }
}

function nvrtc(libraries: readonly string[]): CudaCompiler | null {
  const koffi = foreignFunctions();
  if (typeof koffi === "string") return null;
  for (const path of libraries) {
    try {
      return new Nvrtc(koffi, path);
    } catch {
      // not this one
    }
  }
  return null;
}

// ---- nvcc ---------------------------------------------------------------------------------------------------------

/** nvcc at a path; what it reads and writes lies in a folder of this thread's own. */
function nvccAt(command: string): CudaCompiler | null {
  const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  const version = /release ([\d.]+)/.exec(stdout ?? "")?.[1];
  if (status !== 0 || version === undefined) return null;
  const name = `nvcc ${version}`;
  return { name, compile: (text, architecture) => runNvcc(name, command, text, architecture) };
}

function runNvcc(name: string, command: string, text: string, architecture: string): Uint8Array {
  const folder = transientFolder();
  if (typeof folder === "string") throw refused(name, folder);
  const base = temporaryName(folder.pathOf("cuda"));
  const [source, made] = [`${base}.cu`, `${base}.cubin`];
  const code = `arch=${architecture.replace("sm", "compute")},code=${architecture}`;
  try {
    writeFileSync(source, text);
    const args = ["-cubin", "-gencode", code, "-O3", "-w", ...FLAGS, source, "-o", made];
    const env = { ...process.env, TMPDIR: folder.path };
    const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8", env });
    if (status === 0 && existsSync(made)) return readFileSync(made);
    throw refused(name, stderr || error?.message || `status ${status}`);
  } finally {
    rmSync(source, { force: true });
    rmSync(made, { force: true });
  }
}

function nvcc(folders: readonly string[]): CudaCompiler | null {
  for (const folder of folders) {
    const path = join(folder, "nvcc");
    const compiler = existsSync(path) ? nvccAt(path) : null;
    if (compiler) return compiler;
  }
  return null;
}

// ---- which, and what it made before -------------------------------------------------------------------------------

/** Where compilers are looked for. */
export interface CompilerPlaces {
  readonly nvrtc?: readonly string[];
  readonly nvcc?: readonly string[];
}

/** A compiler for CUDA, or one line that says why there is none. */
export function cudaCompiler(places: CompilerPlaces = {}): CudaCompiler | string {
  const folders = places.nvcc ?? [...(process.env.PATH ?? "").split(delimiter), ...NVCC_FOLDERS];
  const libraries = places.nvrtc ?? NVRTC_LIBRARIES;
  const found = nvrtc(libraries) ?? nvcc(folders);
  return (
    found ?? `no CUDA compiler: looked for ${libraries.join(", ")}, and for nvcc in PATH: install the CUDA toolkit`
  );
}

/** Code for a text, from the cache or compiled. */
export function machineCode(compiler: CudaCompiler, text: string, architecture: string): Uint8Array {
  const name = `${digest(compiler.name, FLAGS.join(" "), architecture, text)}.cubin`;
  const folder = persistentFolder();
  const known = typeof folder === "string" ? null : folder.read(name);
  if (known) return known;
  const made = compiler.compile(text, architecture);
  if (typeof folder !== "string") keep(folder, name, made);
  return made;
}

function keep(folder: SealedFolder, name: string, code: Uint8Array): void {
  if (folder.write(name, code)) prune(folder.path, LARGEST_CACHE);
}
