/**
 * @file Modules from the engine, whose refusals become TidemarkErrors: an engine may take less than the limits that all have in
 * common, and may be out of memory.
 */
import type { PlainBytes } from "../base/bytes.ts";
import { grouped, type TidemarkError } from "../base/errors.ts";
import { codeRefused } from "../codegen/wasm/byte-buffer.ts";

/** What the engine says against a module; errors of another kind go on. */
function reasonOf(error: unknown): string {
  const { CompileError, LinkError } = WebAssembly;
  if (error instanceof CompileError || error instanceof LinkError || error instanceof RangeError) return error.message;
  throw error;
}

const refusedModule = (bytes: Uint8Array, error: unknown): TidemarkError =>
  codeRefused(`the engine refused the program's code of ${grouped(bytes.length)} bytes: ${reasonOf(error)}`);

const refusedInstance = (error: unknown): TidemarkError =>
  codeRefused(`the engine refused to load the program's code: ${reasonOf(error)}`);

export function moduleFrom(bytes: PlainBytes): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    throw refusedModule(bytes, error);
  }
}

/** The same on a thread of the engine's. */
export async function moduleLater(bytes: PlainBytes): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    throw refusedModule(bytes, error);
  }
}

export function instanceOf(module: WebAssembly.Module, env: WebAssembly.Imports[string]): WebAssembly.Instance {
  try {
    return new WebAssembly.Instance(module, { env });
  } catch (error) {
    throw refusedInstance(error);
  }
}

export async function instanceLater(
  module: WebAssembly.Module,
  env: WebAssembly.Imports[string],
): Promise<WebAssembly.Instance> {
  try {
    return await WebAssembly.instantiate(module, { env });
  } catch (error) {
    throw refusedInstance(error);
  }
}
