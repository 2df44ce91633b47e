/**
 * @file The names under which targets are asked for. WebAssembly is always there; `native` and `cuda` need a compiler and memory
 * outside the engine, so they are part of the host of `tidemark/node` (host.ts): the core knows neither Node nor C. `webgpu` is there
 * under its name once it has been waited for (webgpu/targets.ts).
 */
import { TidemarkError } from "../base/errors.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import type { TargetDescription } from "../target/description.ts";
import { HOST, PRODUCTS, secondMemoryProblem, type Target, type TargetRequest } from "./device.ts";
import type { RuntimeHost } from "./host.ts";
import { wasmTarget } from "./wasm-target.ts";

/** Those with a name that can be had at once; the first is the default. */
export const OWN_TARGETS = ["wasm", "native", "cuda"] as const;
/** The one that has to be waited for. */
export const AWAITED_TARGET = "webgpu";
export type OwnTargetName = (typeof OWN_TARGETS)[number] | typeof AWAITED_TARGET;
/** Those that a host may have. */
export type HostTargetName = Exclude<OwnTargetName, "wasm">;
/** `auto`: the fastest of those that are there. */
export const TARGET_NAMES = [...OWN_TARGETS, AWAITED_TARGET, "auto"] as const;
export type TargetName = (typeof TARGET_NAMES)[number];
export const DEFAULT_TARGET: TargetName = OWN_TARGETS[0];

/** What targets need of the host. */
export type TargetHost = Pick<RuntimeHost, "targets" | "workers" | "devices">;

/** Predicted milliseconds of a program on a target. */
export type TimeOn = (description: TargetDescription) => number;

/** The target that was asked for, and why it is not a faster one, has fewer threads or keeps nothing. */
export interface ChosenTarget {
  readonly target: Target;
  readonly note: string | null;
  /** What `auto` takes where a program cannot be loaded for the target after all. */
  readonly instead?: (why: string) => ChosenTarget;
  /** What `auto` takes for a program, where the machine has a processor and a GPU. */
  readonly fastest?: (timeOn: TimeOn) => ChosenTarget;
}

export interface NamedTarget extends ChosenTarget {
  /** Under which it is had again. */
  readonly name: TargetName;
  readonly instead?: (why: string) => NamedTarget;
  readonly fastest?: (timeOn: TimeOn) => NamedTarget;
}

/** One thread where there are no workers: a page that may not share memory runs the same program, with the same bits. */
function wasm({ threads = 1 }: TargetRequest, { workers, devices }: TargetHost): NamedTarget {
  if (!detectFeatures().simd) {
    throw new TidemarkError("TargetUnsupported", "wasm: this engine's WebAssembly has no 128-bit vectors", {
      help: "use a current browser, Node, Deno or Bun",
    });
  }
  const missing = threads === 1 ? null : workers.missing;
  if (missing !== null) {
    const note = `one thread, not ${threads}: ${missing}`;
    return { name: "wasm", target: wasmTarget(undefined, { devices }), note };
  }
  return { name: "wasm", target: wasmTarget(undefined, { threads, workers, devices }), note: null };
}

/** A target of the host, or one line that says why there is none. */
function hosted(name: HostTargetName, request: TargetRequest, host: TargetHost): NamedTarget | string {
  const found = host.targets[name]?.(request) ?? `${name} needs tidemark/node, which is not imported`;
  if (typeof found === "string") return found;
  const problem = request.second ? secondMemoryProblem(request.second, found) : null;
  return problem ? problem[0] : { name, target: found, note: found.note ?? null };
}

/** WebAssembly in place of native, with the reason. */
function notNative(request: TargetRequest, host: TargetHost, why: string): NamedTarget {
  const { note, ...chosen } = wasm(request, host);
  return { ...chosen, note: [`wasm, not native: ${why}`, ...(note === null ? [] : [note])].join("; ") };
}

/** Native where it can be had, else WebAssembly with the reason. */
function onProcessor(request: TargetRequest, host: TargetHost): NamedTarget {
  const native = hosted("native", request, host);
  if (typeof native === "string") return notNative(request, host, native);
  return { ...native, instead: (why) => notNative(request, host, why) };
}

interface TimedTarget {
  readonly chosen: NamedTarget;
  readonly ms: number;
}

/** The fastest of several for a program, with all times; where it cannot load the program, the next one. */
function fastestOf(processor: NamedTarget, gpus: readonly NamedTarget[], timeOn: TimeOn): NamedTarget {
  const timed = [...gpus, processor].map((chosen): TimedTarget => ({ chosen, ms: timeOn(chosen.target.description) }));
  const [first, ...others] = timed.map(({ chosen, ms }) => [ms.toPrecision(3), chosen.name] as const);
  const times = [`${first?.[0]} ms on ${first?.[1]}`, ...others.map(([ms, name]) => `${ms} on ${name}`)];
  // the processor where they are as fast
  const byTime = timed.reverse().sort((a, b) => a.ms - b.ms);
  return inOrder(byTime, processor, `predicted: ${times.join(", ")}`);
}

/** The first of several, and if it cannot load the program those after it; the processor has a successor of its own. */
function inOrder([first, ...rest]: readonly TimedTarget[], processor: NamedTarget, why: string): NamedTarget {
  const { chosen } = first ?? { chosen: processor };
  const note = [why, ...(chosen.note === null ? [] : [chosen.note])].join("; ");
  if (chosen === processor) return { ...chosen, note };
  const instead = (problem: string): NamedTarget => {
    const next = rest[0]?.chosen ?? processor;
    return inOrder(rest, processor, `${next.name}, not ${chosen.name}: ${problem}`);
  };
  return { ...chosen, note, instead };
}

/** GPUs, the first one where two are as fast. */
const GPU_TARGETS = ["cuda", AWAITED_TARGET] as const satisfies readonly HostTargetName[];

/**
 * `auto`: the processor or a GPU that is there, whichever is predicted to be fastest for the program; the processor until that is
 * known. WebGPU is there once it has been waited for: results on it are read by waiting, which only its user can do.
 */
function automatic(request: TargetRequest, host: TargetHost): NamedTarget {
  const processor = onProcessor(request, host);
  const gpus = GPU_TARGETS.flatMap((name) => {
    // threads are the processor's
    const gpu = hosted(name, { ...request, threads: 1, isPlanned: false }, host);
    return typeof gpu === "string" ? [] : [gpu];
  });
  return gpus.length === 0 ? processor : { ...processor, fastest: (timeOn) => fastestOf(processor, gpus, timeOn) };
}

/** The target with a name. Throws `TargetUnsupported` where it cannot be had. */
export function chooseTarget(host: TargetHost, name: TargetName, request: TargetRequest = {}): NamedTarget {
  if (name === "auto") return automatic(request, host);
  requireProducts(name, request);
  if (name === "wasm")
    return request.second === HOST ? withSecondMemory(wasm(request, host), request) : wasm(request, host);
  const found = hosted(name, { ...request, second: undefined }, host);
  if (typeof found !== "string") return withSecondMemory(found, request);
  const first = host.targets[name] ? "" : 'import "tidemark/node" first; ';
  throw new TidemarkError("TargetUnsupported", found, { help: `${first}the target "auto" takes what there is` });
}

/** Throws where it cannot have the memory that values are to be moved to. */
function withSecondMemory(chosen: NamedTarget, { second }: TargetRequest): NamedTarget {
  const [problem, help] = (second && secondMemoryProblem(second, chosen.target)) ?? [];
  if (problem !== undefined) throw new TidemarkError("TargetUnsupported", problem, { help });
  return chosen;
}

const [PLAIN_PRODUCTS] = PRODUCTS;

/** Only tensor cores have another type for products of f32. */
function requireProducts(name: OwnTargetName, { products = PLAIN_PRODUCTS }: TargetRequest): void {
  if (products === PLAIN_PRODUCTS || name === "cuda") return;
  throw new TidemarkError("TargetUnsupported", `${name} multiplies in ${PLAIN_PRODUCTS}, not in ${products}`, {
    help: 'leave products out, or give target: "cuda"',
  });
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
