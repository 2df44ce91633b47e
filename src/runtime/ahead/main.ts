/**
 * @file The runtime of programs that were compiled ahead of time, `runtime.js` of a build: reads the files of a program, checks that
 * they belong together, and instantiates the code. The package's build bundles this file and all that it imports into one;
 * neither the compiler nor the planner is in it.
 */
import { TidemarkError } from "../../base/errors.ts";
import { roundsOnce } from "../../codegen/wasm/fused-probe.ts";
import { badProgram, FILES, type ProgramFile, programSum, requireCode, SECTION } from "./format.ts";
import { type AheadProgram, aheadProgram, memoryFor } from "./program.ts";
import {
  type CodeSource,
  type FileSource,
  type ProgramSources,
  readCode,
  readFile,
  readProgram,
  type UrlLike,
  urlOf,
} from "./sources.ts";

export type { AheadProgram, FileSource, ProgramSources };

declare function atob(text: string): string;

function requireEngine({ fused }: ProgramFile): void {
  if (!fused) return;
  const decoded = (text: string) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (roundsOnce({ f32: decoded(fused.f32), f64: decoded(fused.f64) })) return;
  throw new TidemarkError(
    "TargetUnsupported",
    "this engine has no fused multiply-add, which the program was built for",
    {
      help: "build it without --fma: it then runs on every engine with 128-bit vectors",
    },
  );
}

/** What the engine says against a module. */
function refusal(error: unknown): unknown {
  const { CompileError, LinkError } = WebAssembly;
  if (!(error instanceof CompileError || error instanceof LinkError || error instanceof RangeError)) return error;
  return new TidemarkError("TargetUnsupported", `the engine refused the code of the program: ${error.message}`, {
    help: "programs need WebAssembly with 128-bit vectors",
  });
}

/** Throws unless a module is from the build that wrote `program.json`. */
function requireSection(program: ProgramFile, module: WebAssembly.Module): void {
  const [section] = WebAssembly.Module.customSections(module, SECTION);
  const digits = section ? String.fromCharCode(...new Uint8Array(section)) : null;
  if (digits === programSum(program)) return;
  throw badProgram(`${FILES.program} is damaged, or ${FILES.code} belongs to another build`);
}

async function instantiated(program: ProgramFile, code: CodeSource) {
  if (code.bytes) requireCode(program, code.bytes);
  requireEngine(program);
  try {
    const module = await code.module();
    requireSection(program, module);
    const memory = memoryFor(program);
    const { exports } = await WebAssembly.instantiate(module, { env: { memory, check() {} } });
    return { memory, run: exports.run as () => void };
  } catch (error) {
    throw refusal(error);
  }
}

/** The files in a folder. */
async function fromFolder({ href }: UrlLike): Promise<AheadProgram> {
  const folder = href.endsWith("/") ? href : `${href}/`;
  const at = (name: string): UrlLike => urlOf(name, folder);
  const [program, code] = await Promise.all([readProgram(at(FILES.program)), readCode(at(FILES.code))]);
  const weights = FILES.weights in program.files ? await readFile(FILES.weights, at(FILES.weights)) : null;
  return aheadProgram(program, await instantiated(program, code), weights);
}

/**
 * Loads a program: from the folder that `tidemark build` wrote, by its URL, or from its files, each by its URL, as a response
 * or as bytes.
 */
export async function load(from: string | UrlLike | ProgramSources): Promise<AheadProgram> {
  if (typeof from === "string") return fromFolder(urlOf(from));
  if ("href" in from) return fromFolder(from);
  if (typeof from !== "object" || !("program" in from) || !("wasm" in from)) {
    throw new TidemarkError("InvalidArgument", "load: no program", {
      help: "give the URL of a folder, or { program, wasm, weights }",
    });
  }
  const { weights } = from;
  const [program, code, bytes] = await Promise.all([
    readProgram(from.program),
    readCode(from.wasm),
    weights === undefined ? null : readFile(FILES.weights, weights),
  ]);
  return aheadProgram(program, await instantiated(program, code), bytes);
}
