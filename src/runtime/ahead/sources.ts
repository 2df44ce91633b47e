/**
 * @file Where the files of a program come from: a URL, which a page fetches and Node reads from the disk, a response, or bytes.
 * Code that is fetched is compiled while it arrives.
 */
import type { PlainBytes } from "../../base/bytes.ts";
import { TidemarkError } from "../../base/errors.ts";
import { badProgram, FILES, type ProgramFile, parseProgram, requireFormat } from "./format.ts";

/** A `URL` of a page or of Node. */
export interface UrlLike {
  readonly href: string;
}

/** A `Response`. */
export interface ResponseLike {
  readonly ok: boolean;
  readonly status: number;
  readonly url: string;
  readonly headers: { get(name: string): string | null };
  arrayBuffer(): Promise<ArrayBuffer>;
  clone(): ResponseLike;
}

type Bytes = ArrayBuffer | PlainBytes;
/** A file: where it is, or what is in it. */
export type FileSource = string | UrlLike | ResponseLike | Bytes | Promise<ResponseLike>;

export interface ProgramSources {
  /** `program.json`, or the object in it. */
  readonly program: FileSource | ProgramFile;
  /** `program.wasm`, or the module in it. */
  readonly wasm: FileSource | WebAssembly.Module;
  /** `weights.safetensors`, or another file with the same tensors; without one all are to be written before a run. */
  readonly weights?: FileSource | undefined;
}

interface Scope {
  readonly URL: new (text: string, base?: string) => UrlLike & { readonly protocol: string };
  readonly location?: { readonly href: string };
  readonly process?: { getBuiltinModule?(name: "node:fs"): FileSystem | undefined };
  fetch?(url: string): Promise<ResponseLike>;
}

interface FileSystem {
  readFileSync(path: UrlLike): PlainBytes;
}

const scope = (): Scope => globalThis as unknown as Scope;

const isBytes = (source: unknown): source is Bytes => source instanceof ArrayBuffer || source instanceof Uint8Array;
const isResponse = (source: unknown): source is ResponseLike =>
  typeof (source as ResponseLike).arrayBuffer === "function";
const isUrl = (source: unknown): source is UrlLike => typeof (source as UrlLike).href === "string";

function unreadable(what: string, why: string): TidemarkError {
  return new TidemarkError("StorageError", `${what} cannot be read: ${why}`, {
    help: "check the address, and that the server has the files of the build",
  });
}

/** A URL; text is relative to the page. */
export function urlOf(text: string, base?: string): UrlLike & { readonly protocol: string } {
  const { URL, location } = scope();
  try {
    return new URL(text, base ?? location?.href);
  } catch {
    throw new TidemarkError("InvalidArgument", `load: ${JSON.stringify(text)} is not a URL`, {
      help: 'give one that is: new URL("./model/", import.meta.url)',
    });
  }
}

/** Bytes, or a response that has them. */
async function opened(what: string, source: FileSource): Promise<ResponseLike | PlainBytes> {
  const given = await source;
  if (isBytes(given)) return new Uint8Array(given);
  if (typeof given !== "string" && isResponse(given)) return given;
  if (typeof given !== "string" && !isUrl(given)) {
    const help = "give a URL, bytes, or a response";
    throw new TidemarkError("InvalidArgument", `load: ${what} is none of these`, { help });
  }
  const { href, protocol } = urlOf(typeof given === "string" ? given : given.href);
  const files = protocol === "file:" ? scope().process?.getBuiltinModule?.("node:fs") : undefined;
  try {
    if (files) return files.readFileSync(urlOf(href));
    return await (scope().fetch as NonNullable<Scope["fetch"]>)(href);
  } catch (error) {
    throw unreadable(what, error instanceof Error ? error.message : String(error));
  }
}

async function bytesOf(what: string, opened: ResponseLike | PlainBytes): Promise<PlainBytes> {
  if (opened instanceof Uint8Array) return opened;
  if (!opened.ok) throw unreadable(what, `${opened.url} answered with status ${opened.status}`);
  try {
    return new Uint8Array(await opened.arrayBuffer());
  } catch (error) {
    throw unreadable(what, error instanceof Error ? error.message : String(error));
  }
}

/** All bytes of a file. */
export async function readFile(what: string, source: FileSource): Promise<PlainBytes> {
  return bytesOf(what, await opened(what, source));
}

/** `program.json` from its text or as an object. */
export async function readProgram(source: ProgramSources["program"]): Promise<ProgramFile> {
  if (typeof source === "object" && "format" in source) return requireFormat(source);
  const bytes = await readFile(FILES.program, source);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badProgram(`${FILES.program} is damaged: it is not UTF-8`);
  }
  return parseProgram(text);
}

/** Code, and the bytes that it was compiled from where they are known. */
export interface CodeSource {
  readonly bytes: Uint8Array | null;
  /** Waits for the engine; may fail. */
  module(): Promise<WebAssembly.Module>;
}

/** Starts to compile. */
export async function readCode(source: ProgramSources["wasm"]): Promise<CodeSource> {
  if (source instanceof WebAssembly.Module) return { bytes: null, module: async () => source };
  const file = await opened(FILES.code, source);
  if (file instanceof Uint8Array || !file.ok || !isStreamed(file)) {
    const bytes = await bytesOf(FILES.code, file);
    return { bytes, module: () => WebAssembly.compile(bytes) };
  }
  const compiling = WebAssembly.compileStreaming(file.clone());
  // Bytes that are damaged are reported before what the engine says of them.
  compiling.catch(() => undefined);
  return { bytes: await bytesOf(FILES.code, file), module: () => compiling };
}

/** Engines insist on the type. */
const isStreamed = ({ headers }: ResponseLike): boolean =>
  headers.get("content-type") === "application/wasm" && "compileStreaming" in WebAssembly;
