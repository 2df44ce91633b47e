/**
 * @file How long work takes on a target, without running it. A roofline (Williams, Waterman, Patterson 2009) with two
 * kinds of computation, because products run on full registers at a multiple of the speed of everything else:
 *
 *   seconds = max(productFlops / productRate + arithmetic / arithmeticRate, memory) + calls · callSeconds
 *   memory  = bytes / cachedByteRate for the first `cacheBytes`, the rest / byteRate
 *
 * Pure functions of work and a model; no clock. Time is never negative, is zero for no work alone, and never falls when
 * work grows. Rates are measured once for a machine (cli/calibration.ts) or those of DEFAULT_MODELS, which were measured
 * on one core of a server (AMD EPYC, Node 20): elsewhere they are as far off as that machine is, but the ratio of two
 * plans still means something.
 */
import { at } from "../../base/invariant.ts";
import type { Node } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import type { Lowered } from "../../lower/lower.ts";
import type { Plan } from "../problem.ts";
import type { ProductTile } from "./nests.ts";
import { controlRuns, DEFAULT_TILE, kernelWork, NO_WORK, type Work, workOfNode } from "./work.ts";

/** The speed of a target on a machine. */
export interface CostModel {
  /** For reports: `wasm`, `wasm, calibrated`. */
  readonly name: string;
  /** Of matrix products and convolutions once their sides are packed, flops a second. */
  readonly productRate: number;
  /** Element operations a second, in vectors. */
  readonly arithmeticRate: number;
  /** Bytes a second of streams larger than the caches. */
  readonly byteRate: number;
  /** Of operands that fit the caches; default: `byteRate`. */
  readonly cachedByteRate?: number;
  /** How many bytes of a kernel's operands count as cached; default: none. */
  readonly cacheBytes?: number;
  /** Launching a kernel. */
  readonly callSeconds: number;
  /** How products are blocked; default: 4 × 8, blocks of 192 KiB. */
  readonly tile?: ProductTile;
}

/** Before a machine is calibrated: WebAssembly without and with fused multiply-add, and native; on one thread. */
export const DEFAULT_MODELS: Readonly<Record<"wasm" | "wasm-relaxed" | "native", CostModel>> = {
  wasm: {
    name: "wasm",
    productRate: 39e9,
    arithmeticRate: 34e9,
    byteRate: 45e9,
    cachedByteRate: 70e9,
    cacheBytes: 4 * 2 ** 20,
    callSeconds: 4e-9,
    tile: DEFAULT_TILE,
  },
  "wasm-relaxed": {
    name: "wasm-relaxed",
    productRate: 50e9,
    arithmeticRate: 34e9,
    byteRate: 45e9,
    cachedByteRate: 70e9,
    cacheBytes: 4 * 2 ** 20,
    callSeconds: 4e-9,
    tile: { ...DEFAULT_TILE, rows: 6 },
  },
  native: {
    name: "native",
    productRate: 127e9,
    arithmeticRate: 100e9,
    byteRate: 44e9,
    cachedByteRate: 160e9,
    cacheBytes: 4 * 2 ** 20,
    callSeconds: 7e-9,
    tile: { ...DEFAULT_TILE, even: false, rows: 14, winogradLanes: 16 },
  },
};

/** Milliseconds of one kernel; of several in a row when work was added up, with the caches counted once. */
export function msOf(work: Work, model: CostModel): number {
  const compute = work.productFlops / model.productRate + work.arithmetic / model.arithmeticRate;
  return 1000 * (Math.max(compute, memorySeconds(work.bytes, model)) + work.calls * model.callSeconds);
}

function memorySeconds(bytes: number, { byteRate, cachedByteRate = byteRate, cacheBytes = 0 }: CostModel): number {
  return Math.min(bytes, cacheBytes) / cachedByteRate + Math.max(0, bytes - cacheBytes) / byteRate;
}

/**
 * Milliseconds of one run of a plan: arguments written into the arena, every step, the copies at the end.
 * @param lowered the kernels of its nodes where they are known: without them they are lowered again
 */
export function planMs(plan: Plan, model: CostModel, lowered?: ReadonlyMap<Node, Lowered>): number {
  const { steps, params, persistent } = plan.program;
  const moved = (bytes: number): number => msOf({ ...NO_WORK, bytes: 2 * bytes, calls: 1 }, model);
  let ms = 0;
  for (const param of params) if (!persistent.has(param)) ms += moved(byteLength(param.type));
  for (const { node, alias, writes, bodies } of steps) {
    if (alias) continue;
    const control = bodies && controlRuns(node);
    if (control) {
      // A turn at a time: what a body works on may fit the caches, what a loop works on in all its turns does not.
      bodies.forEach((body, n) => {
        ms += at(control.runs, n) * planMs(body, model);
      });
      ms += moved(control.copied);
      continue;
    }
    const [first] = writes;
    const inPlace = first !== undefined && plan.inPlace.has(first);
    const options = { inPlace, ...(model.tile ? { tile: model.tile } : {}) };
    const kernel = lowered?.get(node)?.kernel;
    ms += msOf(kernel ? kernelWork(kernel, options) : workOfNode(node, options), model);
  }
  for (const { to } of plan.copies) ms += moved(at(plan.problem.buffers, to).bytes);
  return ms;
}
