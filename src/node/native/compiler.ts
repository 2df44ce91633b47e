/**
 * @file The system's C compiler: finding it, probing its target, and compiling text to shared objects. Probed once per
 * process; the result is cached on disk, so that a later start runs no compiler at all.
 *
 * Flags: everything the processor has (`-march=native`), and nothing that changes a rounding. `-ffp-contract=off`
 * because the generated text decides about fused multiply-add; `-fno-math-errno` and `-fno-trapping-math` change only
 * error flags, which programs do not read; never `-ffast-math`.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { cpus } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { TidemarkError } from "../../base/errors.ts";
import { persistentFolder } from "./cache.ts";

const COMPILERS = ["cc", "gcc", "clang"] as const;

/** Compiler flags, the same for every program. */
const FLAGS: readonly string[] = [
  "-std=gnu11",
  "-O3",
  "-fPIC",
  "-shared",
  "-ffp-contract=off",
  "-fno-math-errno",
  "-fno-trapping-math",
  "-fwrapv",
  "-fno-strict-aliasing",
  "-w",
  // Libraries stay loaded when a Node thread ends, since threads of programs may still run in them.
  ...(process.platform === "linux" ? ["-Wl,-z,nodelete"] : []),
];
const LIBRARIES = ["-lm", "-lpthread"];

/** Flags for code tuned to this machine; not every processor supports `-march`. */
const MACHINE_FLAGS = ["-march=native", "-mcpu=native"] as const;

/** Timeout of a probe. */
const LONGEST_ANSWER_MS = 60_000;

export interface Compiler {
  readonly command: string;
  /** First line of `--version`. */
  readonly version: string;
  /** Compiler, its version, flags and processor: everything a compiled file depends on besides its text. */
  readonly identity: string;
  readonly flags: readonly string[];
  /** Linked with, besides those of every program. */
  readonly libraries?: readonly string[];
  /** 32-bit lanes of the widest register. */
  readonly lanes: 4 | 8 | 16;
  readonly fma: boolean;
}

/** The file of a command in PATH. */
export function commandPath(command: string, folders: string): string | null {
  for (const folder of isAbsolute(command) ? ["/"] : folders.split(delimiter).filter(isAbsolute)) {
    const path = join(folder, command);
    try {
      accessSync(path, constants.X_OK);
      // Keep the link's own name: its target may depend on the name it is called by (ccache).
      if (statSync(path).isFile()) return path;
    } catch {
      // not in this folder
    }
  }
  return null;
}

/** What a command prints, or null where it fails. */
export function run(command: string, args: readonly string[], input = ""): string | null {
  const limits = { maxBuffer: 2 ** 24, timeout: LONGEST_ANSWER_MS };
  const { status, stdout } = spawnSync(command, args, { input, encoding: "utf8", ...limits });
  return status === 0 ? stdout : null;
}

function lanesIn(macros: ReadonlySet<string>): Compiler["lanes"] {
  if (["__AVX512F__", "__AVX512DQ__", "__AVX512VL__"].every((macro) => macros.has(macro))) return 16;
  return macros.has("__AVX__") ? 8 : 4;
}

interface Probe {
  readonly version: string;
  readonly machine: readonly string[];
  readonly lanes: number;
  readonly fma: boolean;
}

/** Asks a compiler for its version and for the macros that describe the processor; or why it cannot be used. */
function probe(command: string): Probe | string {
  const version = run(command, ["--version"])?.split("\n")[0];
  if (version === undefined) return `${command} does not report its version`;
  for (const machine of [...MACHINE_FLAGS.map((flag) => [flag]), []]) {
    const text = run(command, [...machine, "-dM", "-E", "-x", "c", "-"]);
    if (text === null) continue;
    const macros = new Set(text.split("\n").map((line) => line.split(" ")[1] ?? ""));
    const fma = macros.has("__FMA__") || macros.has("__ARM_FEATURE_FMA");
    return { version, machine, lanes: lanesIn(macros), fma };
  }
  return `${command} does not preprocess a file`;
}

function isProbe(value: unknown): value is Probe {
  const { version, machine, lanes, fma } = (value ?? {}) as Partial<Probe>;
  const flags = Array.isArray(machine) && machine.every((flag) => MACHINE_FLAGS.includes(flag));
  return typeof version === "string" && flags && [4, 8, 16].includes(lanes ?? 0) && typeof fma === "boolean";
}

/** The cached probe if compiler and processor are unchanged. */
function cachedProbe(path: string): Probe | string {
  const { size, mtimeMs } = statSync(path);
  const name = `compiler-3-${digest(path, `${size}`, `${mtimeMs}`, cpus()[0]?.model ?? "")}.json`;
  const kept = persistentFolder();
  const cached = typeof kept === "string" ? null : kept.read(name);
  if (cached !== null) {
    try {
      const value: unknown = JSON.parse(cached.toString("utf8"));
      if (isProbe(value)) return value;
    } catch {
      // probed again below
    }
  }
  const made = probe(path);
  if (typeof made !== "string" && typeof kept !== "string") kept.write(name, Buffer.from(JSON.stringify(made)));
  return made;
}

/** Hexadecimal digits of a hash over texts. */
export function digest(...texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length}:${text}`);
  return hash.digest("hex").slice(0, 40);
}

/** Outcomes of the search below, by what was searched. */
const found = new Map<string, Compiler | string>();

/** The compiler of this machine, or one line that says why there is none. TIDEMARK_CC names another one. */
export function systemCompiler({ PATH = "", TIDEMARK_CC }: NodeJS.ProcessEnv = process.env): Compiler | string {
  const wanted = TIDEMARK_CC ? [TIDEMARK_CC] : COMPILERS;
  const key = `${wanted.join()} ${PATH}`;
  const known = found.get(key) ?? findCompiler(wanted, PATH);
  found.set(key, known);
  return known;
}

function findCompiler(wanted: readonly string[], folders: string): Compiler | string {
  const reasons: string[] = [];
  for (const command of wanted) {
    const path = commandPath(command, folders);
    if (path === null) continue;
    const probed = cachedProbe(path);
    if (typeof probed === "string") {
      reasons.push(probed);
      continue;
    }
    const flags = [...FLAGS, ...probed.machine];
    const identity = digest(path, probed.version, flags.join(" "), cpus()[0]?.model ?? "");
    const { version, fma } = probed;
    return { command: path, version, identity, flags, lanes: probed.lanes as Compiler["lanes"], fma };
  }
  const [first] = reasons;
  return first ?? `no C compiler: looked for ${wanted.join(", ")} in PATH`;
}

/** The same compiler for a less capable machine: with other machine flags. */
export function compilerFor(compiler: Compiler, machine: string, lanes: Compiler["lanes"]): Compiler {
  const flags = [...FLAGS, machine];
  return { ...compiler, flags, lanes, fma: false, identity: digest(compiler.identity, flags.join(" ")) };
}

type Run = Pick<Compiler, "command" | "flags" | "libraries">;

/** How much time a compiler takes for code: `rare` code hardly takes time when it runs. */
export type Level = "full" | "rare";

/**
 * Flags of a level, after the flags of every program. Rare code has the loops over lanes unrolled, without which it may be many
 * times slower, and fused multiply-adds, which GCC forms with its expensive optimizations: no level changes a rounding.
 */
const LEVEL_FLAGS: Readonly<Record<Level, readonly string[]>> = {
  full: [],
  rare: ["-O1", "-fpeel-loops", "-ftree-vectorize", "-fexpensive-optimizations"],
};

/** A unit to compile: files of its text and of the object. */
export interface UnitFiles {
  readonly level: Level;
  readonly source: string;
  readonly object: string;
}

/** Units to compile, lists of which are compiled side by side, and the shared object that they are linked to with others. */
export interface LinkedBuild {
  readonly lanes: readonly (readonly UnitFiles[])[];
  readonly objects: readonly string[];
  readonly path: string;
}

/** A shell runs several compilers at once for a thread that waits; without one, programs are compiled as a whole. */
const SHELL = "/bin/sh";

export const canBuildLinked = (): boolean => existsSync(SHELL);

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** The commands of a build: every list of units in the background, and the link once all have succeeded. */
function scriptOf({ command, flags }: Run, { lanes, objects, path }: LinkedBuild): string {
  const line = (...words: readonly string[]): string => [command, ...flags, ...words].map(quoted).join(" ");
  const [sections, unused] = process.platform === "linux" ? [["-ffunction-sections"], ["-Wl,--gc-sections"]] : [[], []];
  const compile = ({ level, source, object }: UnitFiles): string =>
    line(...LEVEL_FLAGS[level], ...sections, "-c", "-x", "c", source, "-o", object);
  return [
    ...lanes.map((units, i) => `{ ${units.map(compile).join(" && ")}; } & p${i}=$!`),
    "status=0",
    ...lanes.map((_, i) => `wait $p${i} || status=1`),
    `[ $status = 0 ] && exec ${line(...unused, ...objects, "-o", path, ...LIBRARIES)}`,
    "exit 1",
  ].join("\n");
}

const environment = (path: string): NodeJS.ProcessEnv => ({ ...process.env, TMPDIR: dirname(path) });

/** Compiles units and links them; whether there is a file in the end. */
export function buildLinked(compiler: Run, build: LinkedBuild): boolean {
  const { path } = build;
  const { status } = spawnSync(SHELL, ["-c", scriptOf(compiler, build)], { stdio: "ignore", env: environment(path) });
  return status === 0 && existsSync(path);
}

/** The same while this thread goes on. */
export function buildLinkedLater(compiler: Run, build: LinkedBuild): Promise<boolean> {
  const { path } = build;
  return new Promise((resolve) => {
    const child = spawn(SHELL, ["-c", scriptOf(compiler, build)], { stdio: "ignore", env: environment(path) });
    child.on("error", () => resolve(false));
    child.on("close", (status) => resolve(status === 0 && existsSync(path)));
  });
}

/** How text becomes a shared object at a path; temporary files of the compiler lie next to it. */
const runOf = ({ flags, libraries = [] }: Run, path: string) => ({
  args: [...flags, "-x", "c", "-", "-o", path, ...LIBRARIES, ...libraries],
  env: environment(path),
});

/** The same while this thread goes on; whether there is a file in the end. */
export function compileLater(compiler: Run, text: string, path: string): Promise<boolean> {
  const { args, env } = runOf(compiler, path);
  return new Promise((resolve) => {
    const child = spawn(compiler.command, args, { env, stdio: ["pipe", "ignore", "ignore"] });
    child.on("error", () => resolve(false));
    child.on("close", (status) => resolve(status === 0 && existsSync(path)));
    // a compiler that ends early says so by its status
    child.stdin.on("error", () => undefined);
    child.stdin.end(text);
  });
}

/** Compiles text to a shared object at a path. */
export function compileTo(compiler: Run, text: string, path: string): void {
  const { args, env } = runOf(compiler, path);
  const { status, stderr, error } = spawnSync(compiler.command, args, { input: text, encoding: "utf8", env });
  const made = status === 0 && existsSync(path);
  if (made) return;
  const told = status === 0 ? "it produced no file" : ((stderr?.trim() || error?.message) ?? `status ${status}`);
  const said = told.split("\n").slice(0, 5).join("\n  ");
  throw new TidemarkError("TargetUnsupported", `${compiler.command} failed to compile the program:\n  ${said}`, {
    help: "check that the compiler can build a shared object (headers of the C library, a linker), or use the target wasm",
  });
}
