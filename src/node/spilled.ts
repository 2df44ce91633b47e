/** @file What the option `spill` asks of Node: its folder is checked and measured, and WebAssembly gets threads that copy. */
import type { CompileRequest } from "../api/request.ts";
import { settleSpill } from "../api/spill.ts";
import type { RuntimeHost } from "../runtime/host.ts";
import { measureFolder } from "./spill-file.ts";
import { wasmWithNodeFile } from "./wasm-file.ts";

export function spilled(request: CompileRequest, host: Pick<RuntimeHost, "workers" | "devices">): CompileRequest {
  const { spill, target, threads = 1 } = request;
  if (!spill) return request;
  const settled = { ...request, ...settleSpill({ ...request, spill }, measureFolder) };
  return target === "wasm" ? { ...settled, target: wasmWithNodeFile({ ...host, threads }) } : settled;
}
