/**
 * @file Programs in which the order of steps matters, for tests and measurements of the scheduler, and the least peak of
 * all orders by a search that knows no rule but the account of memory.
 */
import { newValue, type Value } from "../../src/ir/graph.ts";
import { type Shape, tensorType } from "../../src/ir/type.ts";
import { listOf } from "../../src/plan/order/lists.ts";
import { Memory } from "../../src/plan/order/memory.ts";
import type { Model } from "../../src/plan/order/model.ts";
import type { Program } from "../../src/plan/program.ts";
import { ProgramBuilder } from "./plan-programs.ts";

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

const SHAPES: readonly Shape[] = [[16], [64], [64], [256], [256], [1024], [4096]];

/** Every step reads one to three of the latest `reach` values; half of them may write over one of the same size. */
export function layeredProgram(steps: number, reach: number, seed: number): Program {
  const random = numbers(seed);
  const b = new ProgramBuilder();
  const values: Value[] = [0, 1, 2].map((i) => b.param(`p${i}`, SHAPES[random(SHAPES.length)]!));
  for (let i = 0; i < steps; i++) {
    const count = 1 + random(3);
    const pick = (): Value => values[values.length - 1 - random(Math.min(reach, values.length))]!;
    const reads = [...new Set(Array.from({ length: count }, pick))];
    const shape = SHAPES[random(SHAPES.length)]!;
    const over = random(2) === 0 ? [] : reads.filter((v) => v.type.shape[0] === shape[0]);
    values.push(b.call("op", reads, { shape, over, scratch: random(5) === 0 ? [256] : [] }));
  }
  return b.finish("layered", values.slice(-2));
}

/** Modules one after the other; in each, branches of convolutions that begin with one value and are joined at the end. */
export function branchedProgram(modules: number, seed: number): Program {
  const random = numbers(seed);
  const b = new ProgramBuilder();
  const shapes: readonly Shape[] = [[64], [256], [1024], [2048], [4096]];
  let x = b.param("x", [1024]);
  for (let m = 0; m < modules; m++) {
    const ends = Array.from({ length: 2 + random(4) }, () => {
      let y = x;
      for (let k = 1 + random(5); k > 0; k--) y = b.call("conv", [y], { shape: shapes[random(5)]! });
      return b.call("pool", [y], { shape: shapes[random(3)]! });
    });
    x = b.call("concat", ends, { shape: [1024] });
  }
  return b.finish("branched", [x]);
}

/** A tree of any shape: every outcome is read once, but for the last. */
export function treeProgram(steps: number, seed: number): Program {
  const random = numbers(seed);
  const b = new ProgramBuilder();
  const nothing = b.param("nothing", [0]);
  const children: number[][] = Array.from({ length: steps }, () => []);
  for (let i = 1; i < steps; i++) children[i - 1 - random(Math.min(i, 4))]!.push(i);
  const made: Value[] = [];
  for (let i = steps - 1; i >= 0; i--) {
    const reads = children[i]!.map((child) => made[child]!);
    made[i] = newValue(tensorType("f32", [16 * (1 + random(60))]));
    b.step("op", { reads: reads.length > 0 ? reads : [nothing], writes: [made[i]!] });
  }
  return b.finish("tree", [made[0]!]);
}

/** A valid order, chosen at random. */
export function randomOrder({ steps, predecessors, successors }: Model, random: (n: number) => number): number[] {
  const missing = Array.from({ length: steps }, (_, i) => listOf(predecessors, i).length);
  const ready = missing.flatMap((count, i) => (count === 0 ? [i] : []));
  const order: number[] = [];
  while (ready.length > 0) {
    const [step] = ready.splice(random(ready.length), 1);
    order.push(step!);
    for (const next of listOf(successors, step!)) {
      missing[next]! -= 1;
      if (missing[next] === 0) ready.push(next);
    }
  }
  return order;
}

/** The lowest peak of all orders: tries every step in every state, and remembers states. */
export function leastPeak(model: Model): number {
  const memory = new Memory(model);
  const known = new Map<string, number>();
  const least = (): number => {
    if (memory.ran === model.steps) return 0;
    const state = `${memory.done.join("")} ${memory.home.join()}`;
    const before = known.get(state);
    if (before !== undefined) return before;
    let best = Number.POSITIVE_INFINITY;
    for (let step = 0; step < model.steps; step++) {
      const ready = listOf(model.predecessors, step).every((i) => memory.done[i] === 1);
      if (memory.done[step] || !ready) continue;
      const live = memory.live;
      const during = memory.run(step);
      best = Math.min(best, Math.max(during, least()));
      memory.undo(step, live);
    }
    known.set(state, best);
    return best;
  };
  return least();
}
