/**
 * @file The names under which targets are asked for. WebAssembly is always there; `native` needs a compiler and memory of the
 * process, so it comes with `tidemark/node`, which provides it when it is imported: the core knows neither Node nor C.
 */
import { TidemarkError } from "../base/errors.ts";
import type { Target, TargetAnswer, TargetProvider, TargetRequest } from "./target.ts";
import { wasmTarget } from "./wasm-target.ts";

export const TARGET_NAMES = ["wasm", "native", "auto"] as const;
export type TargetName = (typeof TARGET_NAMES)[number];

let native: TargetProvider = () => "native needs tidemark/node, which is not imported";

/** Makes the target `native` known. */
export function provideNative(provider: TargetProvider): void {
  native = provider;
}

/** The target that was asked for, and for `auto` why it is not a faster one. */
export interface ChosenTarget {
  readonly target: Target;
  readonly note: string | null;
}

function wasm({ threads = 1 }: TargetRequest): TargetAnswer {
  return threads === 1 ? wasmTarget() : `wasm runs on one thread in this version, not ${threads}`;
}

/** `auto`: native where it can be had, else WebAssembly with the reason. Throws `TargetUnsupported` otherwise. */
export function chooseTarget(name: TargetName, request: TargetRequest = {}): ChosenTarget {
  const first = name === "wasm" ? wasm(request) : native(request);
  if (typeof first !== "string") return { target: first, note: null };
  // Threads are wanted where they can be had: falling back falls back to one.
  if (name === "auto") return { target: wasmTarget(), note: `wasm, not native: ${first}` };
  throw new TidemarkError("TargetUnsupported", first, {
    help: name === "native" ? 'the target "auto" falls back to wasm' : "leave the number of threads out, or give 1",
  });
}
