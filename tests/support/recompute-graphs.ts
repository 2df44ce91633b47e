/**
 * @file Graphs to plan recomputation for, made here: random ones from a seed, and small training steps. And the exact
 * answer for tiny graphs by a search over all states, which shares nothing with the planners.
 */
import { integers } from "../../bench/layered-graphs.ts";
import type { RecomputeOp, RecomputeProblem } from "../../src/plan/recompute/problem.ts";

/** A graph with several outputs per operation, results and constants, each drawn from the seed. */
export function randomProblem(seed: number, count: number): RecomputeProblem {
  const draw = integers(seed);
  const bytes: number[] = [];
  const ops: RecomputeOp[] = [];
  const pinnedBytes = [draw(0, 5)];
  for (let index = 0; index < count; index++) {
    const inputs = new Set<number>();
    for (let k = draw(0, 3); k > 0 && bytes.length > 0; k--) {
      inputs.add(draw(0, 1) ? draw(0, bytes.length - 1) : draw(Math.max(0, bytes.length - 4), bytes.length - 1));
    }
    const outputs = Array.from({ length: draw(0, 5) === 0 ? 2 : 1 }, () => bytes.push(draw(1, 20)) - 1);
    ops.push({
      id: index,
      name: `op${index}`,
      cost: draw(1, 30),
      inputs: [...inputs],
      outputs,
      scratchBytes: draw(0, 3),
    });
    pinnedBytes.push((pinnedBytes.at(-1) ?? 0) + (draw(0, 6) === 0 ? draw(1, 4) : 0));
  }
  const results = bytes.map((_, value) => value).filter(() => draw(0, 7) === 0);
  return { name: `random ${seed}`, ops, bytes, results, pinnedBytes };
}

/** A network of `layers` layers: forward a chain, backward reads each layer's value and the gradient that comes back. */
export function trainingChain(
  layers: number,
  bytes: (layer: number) => number,
  cost: (layer: number) => number,
): RecomputeProblem {
  const sizes: number[] = [];
  const ops: RecomputeOp[] = [];
  for (let layer = 0; layer < layers; layer++) {
    sizes.push(bytes(layer));
    const inputs = layer === 0 ? [] : [layer - 1];
    ops.push({ id: layer, name: `f${layer}`, cost: cost(layer), inputs, outputs: [layer] });
  }
  for (let layer = layers - 1; layer >= 0; layer--) {
    const value = sizes.push(bytes(layer)) - 1;
    const back = layer === layers - 1 ? [] : [value - 1];
    ops.push({
      id: value,
      name: `b${layer}`,
      cost: 2 * cost(layer),
      inputs: [layer, ...back],
      outputs: [value],
      backward: true,
    });
  }
  return {
    name: "chain",
    ops,
    bytes: sizes,
    results: [sizes.length - 1],
    pinnedBytes: new Array<number>(ops.length + 1).fill(0),
  };
}

/** The least cost within `budget` by Dijkstra's algorithm over (operations begun, values present); for tiny graphs. */
export function leastCost(problem: RecomputeProblem, budget: number): number {
  const bits = (values: readonly number[]): number => values.reduce((set, v) => set | (1 << v), 0);
  const weigh = (set: number): number => problem.bytes.reduce((sum, size, v) => sum + ((set >> v) & 1) * size, 0);
  const count = problem.ops.length;
  const least = new Map<number, number>([[0, 0]]);
  const done = new Set<number>();
  const key = (begun: number, set: number): number => begun * 2 ** problem.bytes.length + set;
  for (;;) {
    let [best, cost] = [-1, Number.POSITIVE_INFINITY];
    for (const [state, c] of least) if (!done.has(state) && c < cost) [best, cost] = [state, c];
    if (best < 0) return Number.POSITIVE_INFINITY;
    done.add(best);
    const begun = Math.floor(best / 2 ** problem.bytes.length);
    const set = best % 2 ** problem.bytes.length;
    if (begun === count && problem.results.every((v) => (set >> v) & 1)) return cost;
    const reach = (state: number, c: number): void => {
      if (c < (least.get(state) ?? Number.POSITIVE_INFINITY)) least.set(state, c);
    };
    problem.bytes.forEach((_, v) => {
      if ((set >> v) & 1) reach(key(begun, set & ~(1 << v)), cost);
    });
    for (let op = 0; op <= Math.min(begun, count - 1); op++) {
      const { inputs, outputs, scratchBytes = 0, cost: price, once } = problem.ops[op]!;
      if ((once && op < begun) || !inputs.every((v) => (set >> v) & 1)) continue;
      const after = set | bits(outputs);
      if (weigh(after) + scratchBytes + problem.pinnedBytes[begun]! > budget) continue;
      reach(key(Math.max(begun, op + 1), after), cost + price);
    }
  }
}

export { integers };
