/**
 * @file Graphs drawn from a seed: training steps with branches (a random forward graph and its backward in reverse
 * order), and layered ones without a backward half, in which much is held for long.
 */
import type { RecomputeOp, RecomputeProblem } from "../../src/plan/recompute/problem.ts";
import { integers } from "./recompute-graphs.ts";

/** What the backward operation of a layer reads besides the gradient. */
type Saved = "inputs" | "output" | "nothing";

interface Layer {
  readonly inputs: readonly number[];
  readonly bytes: number;
  readonly cost: number;
  readonly saved: Saved;
}

function layersOf(seed: number, count: number): readonly Layer[] {
  const draw = integers(seed);
  return Array.from({ length: count }, (_, index) => {
    const inputs = new Set(index === 0 ? [] : [index - 1]);
    // a skip connection now and then
    if (index > 2 && draw(0, 3) === 0) inputs.add(draw(0, index - 2));
    const cheap = draw(0, 2) === 0;
    const saved: Saved = cheap ? (["output", "nothing"] as const)[draw(0, 1)]! : "inputs";
    return { inputs: [...inputs], bytes: draw(4, 40), cost: cheap ? draw(1, 5) : draw(10, 60), saved };
  });
}

/** `layers` forward operations and what reverse mode makes of them; gradients that meet are added. */
export function trainingGraph(seed: number, layers: number): RecomputeProblem {
  const forward = layersOf(seed, layers);
  const bytes = forward.map((layer) => layer.bytes);
  const ops: RecomputeOp[] = forward.map(({ inputs, cost }, id) => {
    return { id, name: `f${id}`, cost, inputs, outputs: [id] };
  });
  const write = (name: string, cost: number, inputs: readonly number[], size: number): number => {
    const value = bytes.push(size) - 1;
    ops.push({ id: ops.length, name, cost, inputs: [...new Set(inputs)], outputs: [value], backward: true });
    return value;
  };
  const gradients = new Map<number, number>();
  const results: number[] = [];
  for (let k = layers - 1; k >= 0; k--) {
    const { inputs, cost, saved, bytes: size } = forward[k]!;
    const gradient = gradients.get(k) ?? write(`g${k}`, 1, [k], size);
    const read = { inputs, output: [k], nothing: [] }[saved];
    for (const input of inputs) {
      const made = write(`b${k}`, cost, [gradient, ...read], bytes[input]!);
      const before = gradients.get(input);
      gradients.set(input, before === undefined ? made : write("add", 2, [before, made], bytes[input]!));
    }
    if (saved === "inputs") results.push(write(`w${k}`, cost, [gradient, ...read], 3));
  }
  const pinnedBytes = new Array<number>(ops.length + 1).fill(0);
  return { name: `training ${seed}`, ops, bytes, results, pinnedBytes };
}

/** `count` operations in layers; each reads some of the layer before, now and then one from anywhere before. */
export function layeredGraph(seed: number, count: number): RecomputeProblem {
  const draw = integers(seed);
  const width = Math.max(3, Math.round(count ** 0.43));
  const inputs: Set<number>[] = [];
  const read = new Set<number>();
  for (let [before, from] = [0, 0]; from < count; [before, from] = [from, inputs.length]) {
    const layer = Math.min(count - from, draw(Math.ceil(width / 4), 2 * width));
    for (let k = 0; k < layer; k++) {
      const some = from === 0 ? [] : Array.from({ length: draw(1, 4) }, () => draw(before, from - 1));
      if (from > 0 && draw(0, 4) < 2) some.push(draw(0, from - 1));
      inputs.push(new Set(some));
      for (const value of some) read.add(value);
    }
    // only the last layer has results
    for (let value = before; value < from; value++) {
      if (!read.has(value)) inputs[draw(from, inputs.length - 1)]!.add(value);
      read.add(value);
    }
  }
  const bytes = inputs.map(() => draw(1, 60) * (draw(0, 2) === 0 ? 50 : 10));
  const ops = inputs.map((values, id) => {
    return { id, name: `op${id}`, cost: draw(0, 1000), inputs: [...values], outputs: [id] };
  });
  const results = bytes.map((_, value) => value).filter((value) => !read.has(value));
  return { name: `layered ${seed}`, ops, bytes, results, pinnedBytes: new Array<number>(count + 1).fill(0) };
}
