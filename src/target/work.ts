/**
 * @file How long work takes on a target, without running it. A target says what its own kernels do
 * (`TargetDescription.work`), in the terms of a roofline (Williams, Waterman, Patterson 2009) with two kinds of computation,
 * because products run on full registers at a multiple of the speed of everything else; rates are those of a machine:
 *
 *   seconds = max(productFlops / productRate + arithmetic / arithmeticRate, memory) + calls · callSeconds
 *   memory  = bytes / cachedByteRate for the first `cacheBytes`, the rest / byteRate
 *
 * Exchanges with other devices take the time of their messages beside that: messages · messageSeconds + sentBytes / networkRate. Where
 * devices share cores, the seconds above are divided by what a device has of one.
 *
 * Pure functions of work and rates; no clock. Time is never negative, is zero for no work alone, and never falls when work
 * grows. Rates are measured once for a machine (cli/calibration.ts), or are the defaults of the target, which were measured
 * on one core of a server: elsewhere they are as far off as that machine is, but the ratio of two plans still means something.
 */

export interface Work {
  /** Of matrix products and convolutions, padding included. */
  readonly productFlops: number;
  /** Element operations outside products: an addition is 1, a division 5, a transcendental function what it is made of. */
  readonly arithmetic: number;
  /** Read and written in memory, each element of an operand once. */
  readonly bytes: number;
  /** Kernels launched; none for views. */
  readonly calls: number;
  /** Bytes that a device sends to others, and how many times in a row it waits for a message; none but for collectives. */
  readonly sentBytes?: number;
  readonly messages?: number;
}

export const NO_WORK: Work = { productFlops: 0, arithmetic: 0, bytes: 0, calls: 0 };

export function addWork(a: Work, b: Work): Work {
  return {
    productFlops: a.productFlops + b.productFlops,
    arithmetic: a.arithmetic + b.arithmetic,
    bytes: a.bytes + b.bytes,
    calls: a.calls + b.calls,
    ...exchanged((a.sentBytes ?? 0) + (b.sentBytes ?? 0), (a.messages ?? 0) + (b.messages ?? 0)),
  };
}

export const scaleWork = (work: Work, by: number): Work => ({
  productFlops: work.productFlops * by,
  arithmetic: work.arithmetic * by,
  bytes: work.bytes * by,
  calls: work.calls * by,
  ...exchanged((work.sentBytes ?? 0) * by, (work.messages ?? 0) * by),
});

/** Nothing is said of programs that exchange nothing. */
const exchanged = (sentBytes: number, messages: number): Pick<Work, "sentBytes" | "messages"> =>
  messages > 0 ? { sentBytes, messages } : {};

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
  /** Bytes a second of a copy between memory spaces; default: `byteRate`. */
  readonly linkRate?: number;
  /** Launching a kernel. */
  readonly callSeconds: number;
  /** Bytes a second that a device sends to others; default: `byteRate`. */
  readonly networkRate?: number;
  /** Until a message arrives; default: `callSeconds`. */
  readonly messageSeconds?: number;
  /** Where there are fewer cores than devices, the share of one that a device has while all of them compute; default: 1. */
  readonly coresPerDevice?: number;
}

/** Milliseconds of one kernel; of several in a row when work was added up, with the caches counted once. */
export function msOf(work: Work, model: CostModel): number {
  const compute = work.productFlops / model.productRate + work.arithmetic / model.arithmeticRate;
  const alone = 1000 * (Math.max(compute, memorySeconds(work.bytes, model)) + work.calls * model.callSeconds);
  const here = alone / (model.coresPerDevice ?? 1);
  return work.messages === undefined ? here : here + networkMs(work, model);
}

/** Milliseconds of exchanges with other devices. */
export function networkMs({ sentBytes = 0, messages = 0 }: Work, model: CostModel): number {
  const { networkRate = model.byteRate, messageSeconds = model.callSeconds } = model;
  return 1000 * (sentBytes / networkRate + messages * messageSeconds);
}

function memorySeconds(bytes: number, { byteRate, cachedByteRate = byteRate, cacheBytes = 0 }: CostModel): number {
  return Math.min(bytes, cacheBytes) / cachedByteRate + Math.max(0, bytes - cacheBytes) / byteRate;
}
