/**
 * @file How close a program comes to the limits of this machine: a roofline (Williams, Waterman, Patterson 2009) whose
 * roof is measured, kernel by kernel, on the same target.
 *
 *   GFLOP/s
 *      │      ____________ peak: the fastest product of matrices
 *      │     /
 *      │    /  ← peak bandwidth · flops of a byte
 *      └───┴────────────── flops of a byte moved
 *
 * At the roof a kernel takes max(flops of products / peak, bytes / bandwidth), and nothing else takes time: elementwise
 * arithmetic, packing, partial tiles, calls. The roof of a program is the sum over its kernels, and its share is that
 * sum over the measured time. Operands of up to `CACHE_BYTES` count at the bandwidth of caches.
 */
import { loadGraph } from "../api/load-graph.ts";
import { formatBytes } from "../base/bytes.ts";
import { at } from "../base/invariant.ts";
import { cpuWork } from "../codegen/cpu/work.ts";
import { TargetCosts } from "../compiler/node-costs.ts";
import { Build } from "../ir/build.ts";
import type { Graph } from "../ir/graph.ts";
import { elementsOf, tensorType } from "../ir/type.ts";
import { add } from "../ops/elementwise.ts";
import { matmul } from "../ops/matmul.ts";
import { planMs } from "../plan/cost/model.ts";
import { table } from "../plan/table.ts";
import type { Target } from "../runtime/device.ts";
import { PLAIN_LOWERING } from "../target/plain.ts";
import type { CostModel } from "../target/work.ts";
import type { Planned } from "./plan-figures.ts";

/** Peak rates of a target on this machine, per second. */
export interface Peaks {
  readonly flops: number;
  /** Beyond the caches. */
  readonly bytes: number;
  readonly cachedBytes: number;
}

export interface Roofline {
  readonly peaks: Peaks;
  /** Measured time of the step. */
  readonly stepMs: number;
  /** Flops of products, without padding of tiles. */
  readonly productFlops: number;
  /** Every operand of every kernel once. */
  readonly bytes: number;
  /** Time of the step at the roof. */
  readonly roofMs: number;
  /** Shares of the measured time: at the roof, of the products at their peak alone, of the bytes at the bandwidth alone. */
  readonly share: number;
  readonly flopShare: number;
  readonly byteShare: number;
}

const CACHE_BYTES = 4 * 2 ** 20;
const SIDES = [256, 512, 768, 1024];
/** Bytes of a stream within the second-level cache, and of one beyond all caches. */
const [CACHED_STREAM, LONG_STREAM] = [384 * 1024, 96 * 2 ** 20];
const EXACT_TILE = { rows: 1, columns: 1, blockBytes: Number.MAX_SAFE_INTEGER };

const product = (side: number): Graph => {
  const b = new Build("product");
  const [x, y] = [b.param(tensorType("f32", [side, side])), b.param(tensorType("f32", [side, side]))];
  return b.finish([b.call(matmul, [x, y], { ta: false, tb: false })]);
};

const stream = (bytes: number): Graph => {
  const b = new Build("stream");
  const type = tensorType("f32", [Math.floor(bytes / 12)]);
  return b.finish([b.call(add, [b.param(type), b.param(type)], {})]);
};

/** Seconds of the fastest run; other processes only make runs longer. */
function fastest(graph: Graph, target: Target, ms: number): number {
  const executable = loadGraph(graph, { target });
  const { plan, params } = executable.placed;
  plan.program.params.forEach(({ type }, i) => {
    executable.write(type, at(params, i), new Float32Array(elementsOf(type.shape)).fill(0.5));
  });
  executable.run();
  let best = Number.POSITIVE_INFINITY;
  const end = performance.now() + ms;
  do {
    const started = performance.now();
    executable.run();
    best = Math.min(best, performance.now() - started);
  } while (performance.now() < end);
  return best / 1000;
}

/** @param ms for each of six programs */
export function measurePeaks(target: Target, ms = 250): Peaks {
  const flops = Math.max(...SIDES.map((side) => (2 * side ** 3) / fastest(product(side), target, ms)));
  const [cached, long] = [CACHED_STREAM, LONG_STREAM].map((bytes) => bytes / fastest(stream(bytes), target, ms));
  const bytes = long ?? 0;
  return { flops, bytes, cachedBytes: Math.max(bytes, cached ?? 0) };
}

/** The model of a machine on which only products and memory take time. */
function roofModel(peaks: Peaks): CostModel {
  return {
    ...{ name: "roof", productRate: peaks.flops, arithmeticRate: Number.POSITIVE_INFINITY, callSeconds: 0 },
    ...{ byteRate: peaks.bytes, cachedByteRate: peaks.cachedBytes, cacheBytes: CACHE_BYTES },
  };
}

/** Pure: the roofline of a planned program, from peaks and the time of its step. */
export function rooflineOf({ graph, plan }: Pick<Planned, "graph" | "plan">, stepMs: number, peaks: Peaks): Roofline {
  const exact = { ...PLAIN_LOWERING, key: "roof", work: cpuWork(EXACT_TILE) };
  const costs = new TargetCosts(exact, { rates: roofModel(peaks) });
  const { productFlops, bytes } = costs.workOfGraph(graph);
  const roofMs = planMs(plan, costs);
  const [flopShare, byteShare] = [productFlops / peaks.flops, bytes / peaks.bytes].map((s) => (1000 * s) / stepMs);
  return {
    ...{ peaks, stepMs, productFlops, bytes, roofMs, share: roofMs / stepMs },
    ...{ flopShare: flopShare ?? 0, byteShare: byteShare ?? 0 },
  };
}

export function rooflineText(roofline: Roofline): string {
  const { peaks, stepMs, productFlops, bytes, roofMs, share, flopShare, byteShare } = roofline;
  const giga = (rate: number): string => (rate / 1e9).toFixed(1);
  const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;
  const rows = [
    ["peaks", `${giga(peaks.flops)} GFLOP/s`, `memory ${giga(peaks.bytes)} GB/s, caches ${giga(peaks.cachedBytes)}`],
    ["products", percent(flopShare), `of the step at that peak: ${(productFlops / 1e9).toPrecision(3)} GFLOP`],
    ["bytes", percent(byteShare), `of the step at that bandwidth: ${formatBytes(bytes)}, each operand once`],
    ["roof", `${roofMs.toFixed(2)} ms`, `${percent(share)} of ${stepMs.toFixed(2)} ms, the step's undisturbed time`],
  ];
  return table(rows, ["left", "right", "left"])
    .map((line) => `  ${line}\n`)
    .join("");
}
