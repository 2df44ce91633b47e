/**
 * @file The names under which targets are asked for. WebAssembly is always there; `native` needs a compiler and memory of the
 * process, so it comes with `tidemark/node`, which provides it when it is imported: the core knows neither Node nor C.
 */
import { TidemarkError } from "../base/errors.ts";
import type { Target, TargetProvider, TargetRequest } from "./target.ts";
import { wasmTarget } from "./wasm-target.ts";
import { noWorkers } from "./workers.ts";

export const TARGET_NAMES = ["wasm", "native", "auto"] as const;
export type TargetName = (typeof TARGET_NAMES)[number];

let native: TargetProvider = () => "native needs tidemark/node, which is not imported";

/** Makes the target `native` known. */
export function provideNative(provider: TargetProvider): void {
  native = provider;
}

/** The target that was asked for, and why it is not a faster one or has fewer threads. */
export interface ChosenTarget {
  readonly target: Target;
  readonly note: string | null;
}

/** One thread where there are no workers: a page that may not share memory runs the same program, with the same bits. */
function wasm({ threads = 1 }: TargetRequest): ChosenTarget {
  const missing = threads === 1 ? null : noWorkers();
  if (missing !== null) return { target: wasmTarget(), note: `one thread, not ${threads}: ${missing}` };
  return { target: wasmTarget(undefined, { threads }), note: null };
}

/** `auto`: native where it can be had, else WebAssembly with the reason. Throws `TargetUnsupported` otherwise. */
export function chooseTarget(name: TargetName, request: TargetRequest = {}): ChosenTarget {
  if (name === "wasm") return wasm(request);
  const found = native(request);
  if (typeof found !== "string") return { target: found, note: null };
  if (name === "native") {
    throw new TidemarkError("TargetUnsupported", found, { help: 'the target "auto" falls back to wasm' });
  }
  const { target, note } = wasm(request);
  return { target, note: [`wasm, not native: ${found}`, ...(note === null ? [] : [note])].join("; ") };
}
