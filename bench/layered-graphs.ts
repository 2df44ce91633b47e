/** @file Random layered graphs as they are published, drawn from a seed, for the planner of recomputation. */
import type { RecomputeProblem } from "../src/plan/recompute/problem.ts";

/** Uniform integers in [low, high], from a seed: a linear congruential generator's upper bits. */
export function integers(seed: number): (low: number, high: number) => number {
  let state = BigInt(seed) * 2n + 1n;
  return (low, high) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return low + Number((state >> 33n) % BigInt(high - low + 1));
  };
}

/**
 * `count` operations in layers of about count^0.43, as random layered graphs are published: one source and one result, each
 * reads a fifth of the layer before, and a seventh of the reads skip layers, the fewer the more layers they skip.
 */
export function skippingGraph(seed: number, count: number): RecomputeProblem {
  const draw = integers(seed);
  const width = Math.max(3, Math.round(count ** 0.43));
  const layers: number[][] = [[0]];
  for (let made = 1; made < count - 1; ) {
    const size = Math.min(count - 1 - made, draw(Math.ceil(width / 4), Math.floor(1.75 * width)));
    layers.push(Array.from({ length: size }, () => made++));
  }
  layers.push([count - 1]);
  const pick = (layer: readonly number[]): number => layer[draw(0, layer.length - 1)]!;
  const inputs = Array.from({ length: count }, () => new Set<number>());
  layers.slice(1).forEach((layer, above) => {
    const before = layers[above]!;
    for (const op of layer) {
      for (const value of before) if (draw(0, 99) < 20) inputs[op]!.add(value);
      if (inputs[op]!.size === 0) inputs[op]!.add(pick(before));
    }
    const unread = before.filter((value) => !layer.some((op) => inputs[op]!.has(value)));
    for (const value of unread) inputs[pick(layer)]!.add(value);
  });
  const reads = inputs.reduce((sum, own) => sum + own.size, 0);
  const spans = layers.slice(2).map((_, i) => i + 2);
  const total = spans.reduce((sum, span) => sum + 1 / span, 0);
  for (let left = Math.round((reads * 0.14) / 0.86); left > 0; ) {
    const drawn = (draw(0, 999_999) / 1e6) * total;
    const span = spans.find((_, k) => spans.slice(0, k + 1).reduce((sum, s) => sum + 1 / s, 0) > drawn) ?? 2;
    const to = draw(0, layers.length - 1);
    if (to < span) continue;
    inputs[pick(layers[to]!)]!.add(pick(layers[to - span]!));
    left--;
  }
  const bytes = inputs.map(() => draw(1, 60) * (draw(0, 2) === 0 ? 80 : 25));
  const ops = inputs.map((values, id) => {
    return { id, name: `op${id}`, cost: draw(0, 1000), inputs: [...values].sort((a, b) => a - b), outputs: [id] };
  });
  const pinnedBytes = new Array<number>(count + 1).fill(0);
  return { name: `skipping ${seed}`, ops, bytes, results: [count - 1], pinnedBytes };
}
