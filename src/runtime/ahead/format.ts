/**
 * @file `program.json`: what a host needs to know of a program that was compiled ahead of time. docs/ahead-of-time.md describes it.
 *
 *   program.wasm   code ── custom section: checksum of program.json
 *   program.json   checksum of the code, addresses, trees
 *
 * Each of the two files has the checksum of the other, so a file that is damaged or from another build is found before a run.
 */
import { checksum } from "../../base/checksum.ts";
import { TidemarkError } from "../../base/errors.ts";
import type { TensorType } from "../../ir/type.ts";

export const FORMAT = "tidemark-program";
/** Increases when a field changes its meaning. */
export const FORMAT_VERSION = 1;

/** Names of the files of a program. */
export const FILES = {
  code: "program.wasm",
  program: "program.json",
  plan: "plan.json",
  weights: "weights.safetensors",
  runtime: "runtime.js",
  index: "index.js",
  types: "index.d.ts",
} as const;

/** An argument or result: nested lists and objects, with numbers of parameters or results in the places of tensors. */
export type ProgramTree =
  | { readonly tensor: number }
  /** A plain number that may differ between calls: a parameter for each element type that it is used with. */
  | { readonly number: readonly number[] }
  /** A number or boolean that the program was built for, as text. */
  | { readonly constant: string }
  | { readonly list: readonly ProgramTree[] }
  | { readonly object: Readonly<Record<string, ProgramTree>> };

/** Whether a value is given for each call, replaced by each call, or only read. */
export type ParamKind = "input" | "state" | "constant";

/** A tensor and the byte of the memory at which it starts. */
export interface PlacedTensor extends TensorType {
  /** Path in the arguments, joined by dots: `state.params.layers.0.w`. */
  readonly name: string;
  readonly address: number;
}

export interface ProgramParam extends PlacedTensor {
  readonly kind: ParamKind;
}

export interface ProgramResult extends PlacedTensor {
  /** The parameter whose value in the next run it is; null: it is handed out. */
  readonly state: number | null;
}

/** Size and checksum of a file. */
export interface FileSum {
  readonly bytes: number;
  readonly checksum: string;
}

export interface ProgramFile {
  readonly format: typeof FORMAT;
  readonly version: number;
  readonly name: string;
  readonly target: "wasm";
  readonly threads: 1;
  /** Modules in base64 that show whether multiply-add is fused (codegen/wasm/fused-probe.ts); null: it is not used. */
  readonly fused: { readonly f32: string; readonly f64: string } | null;
  /** From the start of the memory. */
  readonly arenaBytes: number;
  /** Of the memory, in pages of 64 KiB. */
  readonly pages: number;
  /** Of `program.wasm` without its last section. */
  readonly code: FileSum;
  readonly params: readonly ProgramParam[];
  readonly results: readonly ProgramResult[];
  readonly arguments: readonly { readonly name: string; readonly tree: ProgramTree }[];
  readonly result: ProgramTree;
  /** Figures of the plan; all of it is in `plan.json`. */
  readonly plan: {
    readonly strategy: string;
    readonly budgetBytes: number | null;
    readonly lowerBoundBytes: number;
    readonly persistentBytes: number;
    readonly kernelCalls: number;
  };
  /** The other files that were written with it. */
  readonly files: Readonly<Record<string, FileSum>>;
}

/** The name of the custom section. */
export const SECTION = "tidemark";
const CHECKSUM_DIGITS = 32;
/** Identifier, length, the name with its length, the digits. */
const SECTION_BYTES = 3 + SECTION.length + CHECKSUM_DIGITS;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export const sumOf = (bytes: Uint8Array): FileSum => ({ bytes: bytes.length, checksum: checksum(bytes) });

/** Of the data, not of its text: a tool may format the file or inline it. */
export const programSum = (program: object): string => checksum(encode(JSON.stringify(program)));

/** Code with the section that names its `program.json`. */
export function withSection(code: Uint8Array, program: ProgramFile): Uint8Array {
  const bytes = new Uint8Array(code.length + SECTION_BYTES);
  bytes.set(code);
  bytes.set([0, SECTION_BYTES - 2, SECTION.length, ...encode(SECTION + programSum(program))], code.length);
  return bytes;
}

/** A file of a program is not usable. */
export function badProgram(
  summary: string,
  help = "build the program again, and copy all of its files",
): TidemarkError {
  return new TidemarkError("InvalidFile", summary, { help });
}

/** Throws unless bytes are the code that `program.json` belongs to. */
export function requireCode({ code }: ProgramFile, bytes: Uint8Array): void {
  const missing = code.bytes + SECTION_BYTES - bytes.length;
  if (missing > 0) throw badProgram(`${FILES.code} was cut off: ${missing} of its bytes are missing`);
  if (checksum(bytes.subarray(0, code.bytes)) === code.checksum) return;
  throw badProgram(`${FILES.code} is damaged, or ${FILES.program} belongs to another build`);
}

/** The contents of `program.json`, as far as can be told before its checksum is known. */
export function parseProgram(text: string): ProgramFile {
  try {
    return requireFormat(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badProgram(`${FILES.program} is cut off or not JSON: ${error.message}`);
  }
}

export function requireFormat(json: unknown): ProgramFile {
  const program = (typeof json === "object" && json !== null ? json : {}) as Partial<ProgramFile>;
  if (program.format !== FORMAT) throw badProgram(`${FILES.program} is not a program of tidemark build`);
  if (program.version === FORMAT_VERSION) return program as ProgramFile;
  const versions = `${FILES.program} has version ${program.version} of the format, this runtime reads ${FORMAT_VERSION}`;
  throw badProgram(versions, `use the ${FILES.runtime} that was written with it`);
}
