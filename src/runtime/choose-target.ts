/**
 * @file The names under which targets are asked for. WebAssembly is always there; `native` needs a compiler and memory of the
 * process, so it is part of the host of `tidemark/node` (host.ts): the core knows neither Node nor C.
 */
import { TidemarkError } from "../base/errors.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import type { Target, TargetRequest } from "./device.ts";
import type { RuntimeHost } from "./host.ts";
import { wasmTarget } from "./wasm-target.ts";

/** Those with a name; the first is the default. */
export const OWN_TARGETS = ["wasm", "native"] as const;
/** Those that a host may have. */
export type HostTargetName = Exclude<(typeof OWN_TARGETS)[number], "wasm">;
/** `auto`: the fastest of them that can be had. */
export const TARGET_NAMES = [...OWN_TARGETS, "auto"] as const;
export type TargetName = (typeof TARGET_NAMES)[number];
export const DEFAULT_TARGET: TargetName = OWN_TARGETS[0];

/** What targets need of the host. */
export type TargetHost = Pick<RuntimeHost, "targets" | "workers">;

/** The target that was asked for, and why it is not a faster one, has fewer threads or keeps nothing. */
export interface ChosenTarget {
  readonly target: Target;
  readonly note: string | null;
  /** What `auto` takes where a program cannot be loaded for the target after all. */
  readonly instead?: (why: string) => ChosenTarget;
}

export interface NamedTarget extends ChosenTarget {
  /** Under which it is had again. */
  readonly name: TargetName;
  readonly instead?: (why: string) => NamedTarget;
}

/** One thread where there are no workers: a page that may not share memory runs the same program, with the same bits. */
function wasm({ threads = 1 }: TargetRequest, { workers }: TargetHost): NamedTarget {
  if (!detectFeatures().simd) throw new TidemarkError("TargetUnsupported", "this engine has no 128-bit vectors");
  const missing = threads === 1 ? null : workers.missing;
  if (missing !== null) return { name: "wasm", target: wasmTarget(), note: `one thread, not ${threads}: ${missing}` };
  return { name: "wasm", target: wasmTarget(undefined, { threads, workers }), note: null };
}

/** WebAssembly in place of native, with the reason. */
function notNative(request: TargetRequest, host: TargetHost, why: string): NamedTarget {
  const { note, ...chosen } = wasm(request, host);
  return { ...chosen, note: [`wasm, not native: ${why}`, ...(note === null ? [] : [note])].join("; ") };
}

/** `auto`: native where it can be had, else WebAssembly with the reason. Throws `TargetUnsupported` otherwise. */
export function chooseTarget(host: TargetHost, name: TargetName, request: TargetRequest = {}): NamedTarget {
  if (name === "wasm") return wasm(request, host);
  const found = host.targets.native?.(request) ?? "native needs tidemark/node, which is not imported";
  const isAuto = name === "auto";
  if (typeof found !== "string") {
    const chosen: NamedTarget = { name: "native", target: found, note: found.note ?? null };
    return isAuto ? { ...chosen, instead: (why) => notNative(request, host, why) } : chosen;
  }
  if (isAuto) return notNative(request, host, found);
  throw new TidemarkError("TargetUnsupported", found, { help: 'the target "auto" falls back to wasm' });
}

/**
 * Makes something that loads programs for a target, or for what follows from one. With `auto` a system that could load programs
 * a moment ago and cannot any more (a disk that is full, no threads left) gets them on WebAssembly; nothing has run by then.
 */
export function madeFor<C extends Replaceable<C>, T>(chosen: C, make: (chosen: C) => T): T {
  try {
    return make(chosen);
  } catch (error) {
    return make(insteadOf(chosen, error));
  }
}

/** The same for what takes a while. */
export async function madeLater<C extends Replaceable<C>, T>(chosen: C, make: (chosen: C) => Promise<T>): Promise<T> {
  try {
    return await make(chosen);
  } catch (error) {
    return await make(insteadOf(chosen, error));
  }
}

interface Replaceable<C> {
  readonly instead?: (why: string) => C;
}

/** What follows from a target that a program cannot be loaded for; throws the error where nothing does. */
function insteadOf<C extends Replaceable<C>>({ instead }: C, error: unknown): C {
  if (!instead || !(error instanceof TidemarkError) || error.code !== "TargetUnsupported") throw error;
  return instead(error.summary.split("\n", 2).join(" "));
}
