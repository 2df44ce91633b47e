/** @file What the option `spill` asks of Node: its folder is checked and measured, and WebAssembly gets a thread that copies. */
import type { CompileRequest } from "../api/request.ts";
import { settleSpill } from "../api/spill.ts";
import { fail } from "../trace/arguments.ts";
import { measureFolder } from "./spill-file.ts";
import { wasmWithNodeFile } from "./wasm-file.ts";

export function spilled(request: CompileRequest): CompileRequest {
  const { spill, target, threads = 1 } = request;
  if (!spill) return request;
  const settled = { ...request, ...settleSpill({ ...request, spill }, measureFolder) };
  if (target !== "wasm") return settled;
  if (threads > 1) {
    const help = 'give { threads: 1 }, or { target: "native" }, which has both';
    fail("TargetUnsupported", `spill: wasm on ${threads} threads moves no values to files`, help);
  }
  return { ...settled, target: wasmWithNodeFile() };
}
