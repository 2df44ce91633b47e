/**
 * @file Modules from the engine, whose refusals become TidemarkErrors: an engine may take less than the limits that all have in
 * common, and may be out of memory.
 */
import { grouped } from "../base/errors.ts";
import { codeRefused } from "../codegen/wasm/byte-buffer.ts";

/** What the engine says against a module; errors of another kind go on. */
function reasonOf(error: unknown): string {
  const { CompileError, LinkError } = WebAssembly;
  if (error instanceof CompileError || error instanceof LinkError || error instanceof RangeError) return error.message;
  throw error;
}

export function moduleFrom(bytes: Uint8Array<ArrayBuffer>): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    throw codeRefused(`the engine refused the program's code of ${grouped(bytes.length)} bytes: ${reasonOf(error)}`);
  }
}

export function instanceOf(module: WebAssembly.Module, env: WebAssembly.Imports[string]): WebAssembly.Instance {
  try {
    return new WebAssembly.Instance(module, { env });
  } catch (error) {
    throw codeRefused(`the engine refused to load the program's code: ${reasonOf(error)}`);
  }
}
