/**
 * @file Measures this machine: a few small programs, compiled and run like any other, give the rates of a cost model
 * (target/work.ts). There is a program for each term of the model, so no equations have to be solved: subtract the
 * known terms, and the rest belongs to one term.
 *
 *   many tiny kernels      → callSeconds
 *   functions and sums     → arithmeticRate          − calls
 *   products               → productRate             − calls, packing
 *   streams in caches      → cachedByteRate
 *   a stream beyond them   → byteRate                − the cached part
 *
 * Since other processes may run at the same time, the fastest repetition counts, and the median rate of several
 * programs for one term.
 */
import { loadGraph } from "../api/load-graph.ts";
import { at, invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { elementsOf, tensorType } from "../ir/type.ts";
import { sum } from "../ops/broadcast.ts";
import { add, div, mul, sqrt } from "../ops/elementwise.ts";
import { erf, exp, sigmoid, tanh } from "../ops/math.ts";
import { matmul } from "../ops/matmul.ts";
import { transpose } from "../ops/movement.ts";
import { fusedPipeline } from "../passes/pipeline.ts";
import type { Target } from "../runtime/device.ts";
import type { Executable } from "../runtime/executable.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import { arenaSpace } from "../target/description.ts";
import { addWork, type CostModel, NO_WORK, type Work } from "../target/work.ts";

export interface CalibrationOptions {
  /** Default: WebAssembly. */
  readonly target?: Target;
  /** Milliseconds for each program; default 150. */
  readonly msEach?: number;
  /** Bytes of the largest stream; default 96 MiB. A stream smaller than the caches measures their speed. */
  readonly streamBytes?: number;
}

/** One measured program. */
export interface CalibrationSample {
  readonly name: string;
  readonly seconds: number;
  readonly work: Work;
}

export interface Calibration {
  readonly model: CostModel;
  readonly samples: readonly CalibrationSample[];
}

/** The term of the model that a program measures. */
export type Family = "calls" | "arithmetic" | "product" | "cached" | "memory";

interface Experiment {
  readonly name: string;
  readonly family: Family;
  readonly graph: Graph;
}

export type Families = ReadonlyMap<Family, readonly CalibrationSample[]>;

/** A graph of one result over f32 parameters. */
function graphOf(shapes: readonly (readonly number[])[], body: (b: Build, x: readonly Value[]) => Value): Graph {
  const b = new Build("calibrate");
  const params = shapes.map((shape) => b.param(tensorType("f32", shape)));
  return b.finish([body(b, params)]);
}

/** Rows, columns and depth of a product, and which sides are transposed. */
type Extents = readonly [m: number, n: number, k: number];
type Flags = { readonly ta: boolean; readonly tb: boolean };

/** Products a second of f32 from which on a device is wide: the small programs that fill a core leave most of it idle. */
const WIDE_RATE = 1e12;
/** Factor on the extents of products on wide devices; other programs grow with its third power, as products do. */
const WIDER = 8;

/** Bytes of all operands of a program of products together: more than the caches of most machines hold. */
const OPERAND_BYTES = 48 * 2 ** 20;

/** Consecutive products, each with operands of its own: as in training a large model, they come from memory. */
function productsOf([m, n, k]: Extents, { ta, tb }: Flags): Experiment {
  const [left, right] = [ta ? [k, m] : [m, k], tb ? [n, k] : [k, n]];
  const count = Math.max(2, Math.floor(OPERAND_BYTES / (4 * (m * n + m * k + k * n))));
  const b = new Build("calibrate");
  const results = Array.from({ length: count }, () => {
    return b.call(matmul, [b.param(tensorType("f32", left)), b.param(tensorType("f32", right))], { ta, tb });
  });
  return { name: `${count} products ${m}x${n}x${k}`, family: "product", graph: b.finish(results) };
}

function streamOf(family: Family, bytes: number): Experiment {
  const elements = Math.floor(bytes / 12);
  const graph = graphOf([[elements], [elements]], (b, [x, y]) => b.call(add, [x as Value, y as Value], {}));
  return { name: `stream of ${Math.round(bytes / 1024)} KiB`, family, graph };
}

const TINY_KERNELS = 400;

function tinyKernels(): Experiment {
  const graph = graphOf([[4]], (b, [x]) => {
    let y = x as Value;
    for (let i = 0; i < TINY_KERNELS; i++) y = b.call(add, [y, x as Value], {});
    return y;
  });
  return { name: `${TINY_KERNELS} tiny kernels`, family: "calls", graph };
}

/** Elementwise chains typical of training, sums, and a transposition: all within the second-level cache. */
function arithmeticPrograms(wider: number): readonly Experiment[] {
  const one = (name: string, [rows, cols]: readonly [number, number], body: (b: Build, x: Value) => Value) => ({
    name,
    family: "arithmetic" as const,
    graph: graphOf([[rows * wider ** 2, cols * wider]], (b, [x]) => body(b, x as Value)),
  });
  return [
    one("tanh and sigmoid", [64, 256], (b, x) => b.call(mul, [b.call(tanh, [x], {}), b.call(sigmoid, [x], {})], {})),
    one("erf and exp", [64, 256], (b, x) => b.call(add, [b.call(erf, [x], {}), b.call(exp, [x], {})], {})),
    one("quotients and roots", [64, 256], (b, x) => {
      const root = b.call(sqrt, [b.call(add, [b.call(mul, [x, x], {}), x], {})], {});
      return b.call(div, [x, b.call(add, [root, x], {})], {});
    }),
    one("sums of rows", [256, 192], (b, x) => b.call(sum, [b.call(mul, [x, x], {})], { axes: [1] })),
    one("sums of columns", [192, 256], (b, x) => b.call(sum, [b.call(mul, [x, x], {})], { axes: [0] })),
    one("transposition", [192, 192], (b, x) => b.call(transpose, [x], { perm: [1, 0] })),
  ];
}

/** Smaller than the second-level and third-level caches of most machines. */
const CACHED_BYTES = [96 * 1024, 768 * 1024] as const;
const STREAM_BYTES = 96 * 2 ** 20;
const MS_EACH = 150;

function experiments(streamBytes: number, { productRate, cacheBytes = 0 }: CostModel): readonly Experiment[] {
  const wider = productRate >= WIDE_RATE ? WIDER : 1;
  const products = ([m, n, k]: Extents, flags: Flags): Experiment =>
    productsOf([m * wider, n * wider, k * wider], flags);
  return [
    tinyKernels(),
    ...arithmeticPrograms(wider),
    products([256, 256, 256], { ta: false, tb: false }),
    products([128, 512, 512], { ta: false, tb: true }),
    products([512, 512, 128], { ta: true, tb: false }),
    products([32, 1024, 256], { ta: false, tb: false }),
    ...CACHED_BYTES.map((bytes) => streamOf("cached", wider === 1 ? bytes : cacheBytes / 2)),
    streamOf("memory", wider === 1 ? streamBytes : Math.max(streamBytes, 32 * cacheBytes)),
  ];
}

const LEAST_REPETITIONS = 4;

/** Numbers around 1: nothing overflows, nothing is denormal. */
function fill(executable: Executable): void {
  const { plan, params } = executable.placed;
  plan.program.params.forEach((param, i) => {
    const data = new Float32Array(elementsOf(param.type.shape));
    for (let e = 0; e < data.length; e++) data[e] = 0.5 + (e % 64) / 64;
    executable.write(param.type, at(params, i), data);
  });
}

/** Waits for what a device was handed: what is read is there when everything before it is done. */
function settle({ target, memory }: Executable): Promise<unknown> | undefined {
  return arenaSpace(target.description).hostVisible ? undefined : memory.read(0, 1);
}

/** Milliseconds between clock readings, at least: those of devices include the way there and back. */
const LEAST_MS = { host: 0.2, device: 5 } as const;

/** Seconds of the fastest run; short programs run several times between clock readings. */
async function fastestRun(executable: Executable, msEach: number): Promise<number> {
  const leastMs = LEAST_MS[arenaSpace(executable.target.description).hostVisible ? "host" : "device"];
  const timed = async (repeats: number): Promise<number> => {
    const started = performance.now();
    for (let n = 0; n < repeats; n++) executable.run();
    await settle(executable);
    return performance.now() - started;
  };
  await timed(1);
  const repeats = Math.max(1, Math.min(1000, Math.floor(leastMs / Math.max(1e-4, await timed(1)))));
  let best = Number.POSITIVE_INFINITY;
  const end = performance.now() + msEach;
  for (let i = 0; i < LEAST_REPETITIONS || performance.now() < end; i++) {
    best = Math.min(best, (await timed(repeats)) / repeats);
  }
  return best / 1000;
}

/** Seconds of all kernels, the fastest run of each: a busy machine leaves a millisecond uninterrupted, but not ten. */
function fastestKernels(executable: Executable, msEach: number): number {
  const best = executable.placed.kernels.map(() => Number.POSITIVE_INFINITY);
  const end = performance.now() + msEach;
  for (let i = 0; i < LEAST_REPETITIONS || performance.now() < end; i++) {
    let started = performance.now();
    executable.runStepwise((kernel) => {
      best[kernel] = Math.min(at(best, kernel), performance.now() - started);
      started = performance.now();
    });
  }
  return best.reduce((sum, ms) => sum + ms, 0) / 1000;
}

async function measure(
  { name, graph, family }: Experiment,
  target: Target,
  msEach: number,
): Promise<CalibrationSample> {
  const stepwise = family === "product" && arenaSpace(target.description).hostVisible;
  const unfused = family === "calls";
  // no passes: every node is a separate kernel
  const executable = loadGraph(graph, { target, passes: unfused ? [] : fusedPipeline, stepwise });
  const work = executable.placed.kernels
    .flatMap(({ kernel }) => (kernel ? [target.description.work(kernel, false)] : []))
    .reduce(addWork, NO_WORK);
  fill(executable);
  const seconds = stepwise ? fastestKernels(executable, msEach) : await fastestRun(executable, msEach);
  executable.close();
  return { name, work, seconds };
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.filter((n) => Number.isFinite(n) && n > 0).sort((a, b) => a - b);
  invariant(sorted.length > 0, () => "no program was slow enough to be timed");
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]];
  return ((low ?? 0) + (high ?? 0)) / 2;
}

/** Rates from measured programs. Pure: the same samples make the same model. */
export function modelFrom(samples: Families, { name, cacheBytes = 0 }: CostModel): CostModel {
  const of = (family: Family): readonly CalibrationSample[] => samples.get(family) ?? [];
  // If the clock is too coarse for a difference, the whole time counts, so that rates stay positive.
  const rest = (seconds: number, knownSeconds: number): number =>
    seconds > knownSeconds ? seconds - knownSeconds : seconds;
  const callSeconds = median(of("calls").map(({ seconds, work }) => seconds / work.calls));
  const arithmeticRate = median(
    of("arithmetic").map(({ seconds, work }) => work.arithmetic / rest(seconds, work.calls * callSeconds)),
  );
  const productRate = median(
    of("product").map(({ seconds, work }) => {
      const otherSeconds = work.arithmetic / arithmeticRate + work.calls * callSeconds;
      return work.productFlops / rest(seconds, otherSeconds);
    }),
  );
  const cachedByteRate = median(of("cached").map(({ seconds, work }) => work.bytes / seconds));
  const byteRate = median(
    of("memory").map(({ seconds, work }) => {
      const cached = Math.min(work.bytes, cacheBytes);
      const beyond = work.bytes > cached ? work.bytes - cached : work.bytes;
      return beyond / rest(seconds, cached / cachedByteRate);
    }),
  );
  return {
    ...{ name, productRate, arithmeticRate, byteRate: Math.min(byteRate, cachedByteRate) },
    ...{ cachedByteRate, cacheBytes, callSeconds },
  };
}

/** Runs the programs and derives a model of a target on this machine. */
export async function calibrate(options: CalibrationOptions = {}): Promise<Calibration> {
  const { msEach = MS_EACH, streamBytes = STREAM_BYTES, target = wasmTarget() } = options;
  const families = new Map<Family, CalibrationSample[]>();
  const samples: CalibrationSample[] = [];
  for (const experiment of experiments(streamBytes, target.description.rates)) {
    const sample = await measure(experiment, target, msEach);
    families.set(experiment.family, [...(families.get(experiment.family) ?? []), sample]);
    samples.push(sample);
  }
  return { model: modelFrom(families, target.description.rates), samples };
}
