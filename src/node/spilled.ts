/**
 * @file What the option `spill` asks of Node: its folder, or the way to the host's memory, is checked and measured, and WebAssembly
 * gets threads that copy.
 */
import type { CompileRequest } from "../api/request.ts";
import { settleSpill } from "../api/spill.ts";
import { HOST } from "../runtime/device.ts";
import type { RuntimeHost } from "../runtime/host.ts";
import { measureLink } from "./cuda/target.ts";
import { measureFolder } from "./spill-file.ts";
import { wasmWithNodeFile } from "./wasm-file.ts";

/** Bytes a second each way, to a folder or to the host's memory. */
export const measureSecond = (to: string): number => (to === HOST ? measureLink() : measureFolder(to));

export function spilled(request: CompileRequest, host: Pick<RuntimeHost, "workers" | "devices">): CompileRequest {
  const { spill, target, threads = 1 } = request;
  if (!spill) return request;
  const settled = { ...request, ...settleSpill({ ...request, spill }, measureSecond) };
  return target === "wasm" && spill.to !== HOST
    ? { ...settled, target: wasmWithNodeFile({ ...host, threads }) }
    : settled;
}
