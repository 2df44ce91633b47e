/**
 * @file Programs in which the order of steps matters: random graphs, branches, trees and training steps of any size. For
 * measuring the scheduler, and for testing it.
 */
import { newValue, type Value } from "../src/ir/graph.ts";
import { byteLength, type Shape, tensorType } from "../src/ir/type.ts";
import { add } from "../src/ops/elementwise.ts";
import type { PlanStep, Program } from "../src/plan/program.ts";
import { memorySpace } from "../src/plan/space.ts";

/** Whole numbers below n, the same ones for the same seed (mulberry32). */
export function numbers(seed: number): (n: number) => number {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}

const floats = (shape: Shape): Value => newValue(tensorType("f32", shape));

/** A step that writes one value of this shape; the operation does not matter to the planner. */
function step(reads: readonly Value[], shape: Shape, scratch: readonly number[] = []): PlanStep & { out: Value } {
  const out = floats(shape);
  const node = { op: add, inputs: reads, attrs: {}, outputs: [out], regions: [], phase: "forward", replay: 0 } as const;
  return { node: { ...node, where: undefined }, reads, writes: [out], scratch, inPlace: [], alias: null, out };
}

/** Allows the step to overwrite these operands, where sizes agree. */
function over<S extends PlanStep & { out: Value }>(made: S, reads: readonly Value[]): S {
  const same = reads.filter((read) => byteLength(read.type) === byteLength(made.out.type));
  return { ...made, inPlace: same.map((read) => [read, made.out] as const) };
}

function finish(
  name: string,
  params: readonly Value[],
  steps: readonly PlanStep[],
  results: readonly Value[],
): Program {
  return { name, params, donated: new Map(), results, steps, persistent: new Set(), spaces: [memorySpace(64)] };
}

const SHAPES: readonly Shape[] = [[16], [64], [64], [256], [256], [1024], [4096]];

/** Every step reads one to three of the latest `reach` values; half of them may write over one of the same size. */
export function layeredProgram(count: number, reach: number, seed: number): Program {
  const random = numbers(seed);
  const params = [0, 1, 2].map(() => floats(SHAPES[random(SHAPES.length)]!));
  const [values, steps] = [[...params], [] as PlanStep[]];
  for (let i = 0; i < count; i++) {
    const pick = (): Value => values[values.length - 1 - random(Math.min(reach, values.length))]!;
    const reads = [...new Set(Array.from({ length: 1 + random(3) }, pick))];
    const made = step(reads, SHAPES[random(SHAPES.length)]!, random(5) === 0 ? [256] : []);
    steps.push(random(2) === 0 ? made : over(made, reads));
    values.push(made.out);
  }
  return finish("layered", params, steps, values.slice(-2));
}

/** Modules one after the other; in each, branches of several steps that begin with one value and are joined at the end. */
export function branchedProgram(modules: number, seed: number): Program {
  const random = numbers(seed);
  const shapes: readonly Shape[] = [[64], [256], [1024], [2048], [4096]];
  const steps: PlanStep[] = [];
  const call = (reads: readonly Value[], shape: Shape): Value => {
    const made = step(reads, shape);
    steps.push(made);
    return made.out;
  };
  const first = floats([1024]);
  let x = first;
  for (let m = 0; m < modules; m++) {
    const ends = Array.from({ length: 2 + random(4) }, () => {
      let y = x;
      for (let k = 1 + random(5); k > 0; k--) y = call([y], shapes[random(5)]!);
      return call([y], shapes[random(3)]!);
    });
    x = call(ends, [1024]);
  }
  return finish("branched", [first], steps, [x]);
}

/** A random tree: every result but the last is read once. */
export function treeProgram(count: number, seed: number): Program {
  const random = numbers(seed);
  const nothing = floats([0]);
  const children: number[][] = Array.from({ length: count }, () => []);
  for (let i = 1; i < count; i++) children[i - 1 - random(Math.min(i, 4))]!.push(i);
  const [made, steps]: [Value[], PlanStep[]] = [[], []];
  for (let i = count - 1; i >= 0; i--) {
    const reads = children[i]!.map((child) => made[child]!);
    const next = step(reads.length > 0 ? reads : [nothing], [16 * (1 + random(60))]);
    made[i] = next.out;
    steps.push(next);
  }
  return finish("tree", [nothing], steps, [made[0]!]);
}

/** Forward, backward and the updates of all weights at the end, five steps a layer. */
export function trainingProgram(layers: number): Program {
  const [weight, batch]: [Shape, Shape] = [[64], [32]];
  const x = floats(batch);
  const weights = Array.from({ length: layers }, () => floats(weight));
  const steps: PlanStep[] = [];
  const call = (made: PlanStep & { out: Value }): Value => {
    steps.push(made);
    return made.out;
  };
  const inputs: Value[] = [];
  let h = x;
  for (const w of weights) {
    inputs.push(h);
    const z = call(step([h, w], batch, [1024]));
    h = call(over(step([z], batch), [z]));
  }
  let cotangent = call(step([h], batch));
  const gradients: Value[] = [];
  for (const [i, w] of [...weights.entries()].reverse()) {
    gradients[i] = call(step([inputs[i]!, cotangent], weight, [1024]));
    cotangent = call(over(step([cotangent, w, inputs[i]!], batch), [inputs[i]!]));
  }
  const updated = weights.map((w, i) => call(over(step([w, gradients[i]!], weight), [w, gradients[i]!])));
  const donated = new Map(weights.map((w, i) => [w, i] as const));
  return { ...finish("training", [x, ...weights], steps, updated), donated, persistent: new Set(weights) };
}
