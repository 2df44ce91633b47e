/**
 * @file Programs that are decided as they run: `npm run bench:tape [-- NAME…]`.
 *
 *   tree      a TreeLSTM over random trees of 50 nodes, width 256: milliseconds for loss and gradients, share of compiled operations, peak of the pool
 *   streams   the pool over what is live, one operation at a time
 *   same      32 trees of one shape at a time, beside the same trees as one planned batch
 *   gpt       a training step of the built-in program
 *   small     small operations by themselves, per second
 *   steps     10,000 training steps, each a tape of its own: what the pool and the heap take after 1,000 and after all
 */
import {
  add,
  compile,
  concat,
  matmul,
  mul,
  plan,
  random,
  sigmoid,
  slice,
  sum,
  type Tensor,
  tanh,
  tensor,
  valueAndGrad,
} from "../src/api/index.ts";
import { gpt } from "../src/cli/programs/gpt.ts";
import { maskedSelect, type PoolStats, type Tape, tape, tapeCounts } from "../src/tape/index.ts";

const WIDTH = 256;

type Shape = null | readonly [Shape, Shape];

function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A tree with so many leaves. */
function randomTree(leaves: number, next: () => number): Shape {
  if (leaves === 1) return null;
  const left = 1 + Math.floor(next() * (leaves - 1));
  return [randomTree(left, next), randomTree(leaves - left, next)];
}

const weights = (seed: number, shape: readonly number[], scale: number): Tensor =>
  tensor(
    random
      .normal(random.key(seed), [...shape])
      .mul(scale)
      .data() as Float32Array,
    { shape: [...shape] },
  );

const params = {
  leaf: weights(1, [WIDTH, 3 * WIDTH], 0.05),
  leafBias: weights(2, [3 * WIDTH], 0.05),
  inner: weights(3, [2 * WIDTH, 5 * WIDTH], 0.05),
  innerBias: weights(4, [5 * WIDTH], 0.05),
};
type Params = typeof params;

const part = (x: Tensor, i: number): Tensor => slice(x, [null, [i * WIDTH, (i + 1) * WIDTH]]);

interface State {
  readonly h: Tensor;
  readonly c: Tensor;
}

function leafCell(p: Params, x: Tensor): State {
  const gates = add(matmul(x, p.leaf), p.leafBias);
  const c = mul(sigmoid(part(gates, 0)), tanh(part(gates, 2)));
  return { c, h: mul(sigmoid(part(gates, 1)), tanh(c)) };
}

function innerCell(p: Params, left: State, right: State): State {
  const gates = add(matmul(concat([left.h, right.h], 1), p.inner), p.innerBias);
  const kept = add(mul(sigmoid(part(gates, 1)), left.c), mul(sigmoid(part(gates, 2)), right.c));
  const c = add(mul(sigmoid(part(gates, 0)), tanh(part(gates, 4))), kept);
  return { c, h: mul(sigmoid(part(gates, 3)), tanh(c)) };
}

/** The state at the root; leaves take the rows in order. */
function treeState(p: Params, tree: Shape, leaves: () => Tensor): State {
  if (tree === null) return leafCell(p, leaves());
  const left = treeState(p, tree[0], leaves);
  return innerCell(p, left, treeState(p, tree[1], leaves));
}

function treeLoss(p: Params, tree: Shape, words: readonly Tensor[]): Tensor {
  let next = 0;
  const { h } = treeState(p, tree, () => words[next++] as Tensor);
  return sum(mul(h, h));
}

const wordsFor = (seed: number, batch: number, leaves: number): readonly Tensor[] =>
  Array.from({ length: leaves }, (_, i) => weights(seed + i, [batch, WIDTH], 1));

const ms = (body: () => void): number => {
  const start = performance.now();
  body();
  return performance.now() - start;
};

const median = (list: readonly number[]): number =>
  [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] as number;

function tree(): void {
  const next = randomNumbers(5);
  const words = wordsFor(100, 1, 25);
  const times: number[] = [];
  const peaks: number[] = [];
  let before = tapeCounts();
  for (let i = 0; i < 60; i++) {
    const shape = randomTree(25, next);
    if (i === 40) before = tapeCounts();
    const spent = ms(() => {
      let memory = (): PoolStats | null => null;
      tape((t) => {
        memory = t.memory;
        return t.gradient(treeLoss(params, shape, words), params);
      });
      peaks.push(memory()?.peak.reserved ?? 0);
    });
    times.push(spent);
    if (i < 59) continue;
    // a tape keeps its arguments, so the plan does too
    const step = (p: Params, w: readonly Tensor[]) => [valueAndGrad((q: Params) => treeLoss(q, shape, w))(p), p];
    const { arenaBytes } = plan(step)(params, words);
    console.log(
      `      pool ${peaks[i]} bytes, the same tree planned ${arenaBytes}: ${((peaks[i] as number) / arenaBytes).toFixed(3)}`,
    );
  }
  const after = tapeCounts();
  const inRuns = after.inRuns - before.inRuns;
  const share = (100 * inRuns) / (inRuns + after.single - before.single);
  const [early, late] = [median(times.slice(1, 10)), median(times.slice(40))];
  console.log(
    `tree: first ${times[0]?.toFixed(0)} ms, then ${early.toFixed(1)}, at last ${late.toFixed(1)} ms; ${share.toFixed(1)}% in compiled runs, ${after.programs} programs`,
  );
}

/** The pool over what is live, one operation at a time: trees, and rows that go to experts by data. */
function streams(): void {
  const ratio = (body: (t: Tape) => unknown): string => {
    let memory = (): PoolStats | null => null;
    tape(
      (t) => {
        memory = t.memory;
        return body(t);
      },
      { compileRuns: false },
    );
    const { peak } = memory() as PoolStats;
    return (peak.reserved / peak.allocated).toFixed(4);
  };
  const next = randomNumbers(5);
  const words = wordsFor(100, 1, 25);
  const trees = Array.from({ length: 5 }, () => {
    const shape = randomTree(25, next);
    return ratio((t) => t.gradient(treeLoss(params, shape, words), params));
  });
  const tokens = weights(9, [512, WIDTH], 1);
  const router = weights(10, [WIDTH, 4], 0.1);
  const experts = Array.from({ length: 4 }, (_, i) => weights(20 + i, [WIDTH, WIDTH], 0.05));
  const routed = ratio((t) => {
    const chosen = tokens.matmul(router).argmax(1);
    const parts = experts.map((expert, i) => tanh(matmul(maskedSelect(tokens, chosen.equal(i)), expert)));
    const loss = parts.map((own) => sum(mul(own, own))).reduce((a, b) => add(a, b));
    return t.gradient(loss, experts);
  });
  console.log(`streams: pool over live: trees ${trees.join(", ")}; experts ${routed}`);
}

function same(): void {
  const shape = randomTree(25, randomNumbers(5));
  const words = wordsFor(100, 32, 25);
  const batched = compile(valueAndGrad((p: Params, w: readonly Tensor[]) => treeLoss(p, shape, w)));
  const taped = () =>
    tape((t) => {
      const loss = treeLoss(params, shape, words);
      return [loss, t.gradient(loss, params)] as const;
    });
  for (let i = 0; i < 3; i++) taped();
  batched(params, words);
  const times = { taped: [] as number[], batched: [] as number[] };
  for (let i = 0; i < 7; i++) {
    times.taped.push(ms(taped));
    times.batched.push(ms(() => batched(params, words)));
  }
  console.log(`same: taped ${median(times.taped).toFixed(1)} ms, planned batch ${median(times.batched).toFixed(1)} ms`);
}

/** Milliseconds of processor time: others may be busy too. */
function processorMs(body: () => void): number {
  const before = process.cpuUsage();
  body();
  return process.cpuUsage(before).user / 1000;
}

function small(): void {
  const x = tensor([1, 2, 3, 4]);
  const chain = (compileRuns: boolean) => (): void => {
    tape(
      () => {
        let y = x.mul(1);
        for (let i = 0; i < 2000; i++) y = y.mul(x).add(1);
        return y;
      },
      { compileRuns },
    );
  };
  const reading = (): void => {
    tape(() => {
      let y = x.sum();
      for (let i = 0; i < 4000; i++) {
        y = y.add(1);
        y.item();
      }
    });
  };
  const best = (body: () => void): string => {
    for (let i = 0; i < 3; i++) body();
    return (Math.min(...Array.from({ length: 5 }, () => processorMs(body))) / 4).toFixed(2);
  };
  console.log(
    `small: ${best(chain(true))} µs an operation in compiled runs, ${best(chain(false))} alone, ${best(reading)} with a read after each`,
  );
}

/** A training step of the built-in program on a tape, and compiled. */
function gptStep(): void {
  const state = gpt.init();
  const batch = gpt.batch();
  let memory = (): PoolStats | null => null;
  for (let i = 0; i < 3; i++) {
    tape((t) => {
      memory = t.memory;
      return gpt.step(state, ...batch);
    });
  }
  const { arenaBytes } = plan((s: typeof state, x: Tensor, y: Tensor) => gpt.step(s, x, y), { donate: [0] })(
    state,
    batch[0] as Tensor,
    batch[1] as Tensor,
  );
  const { reserved } = (memory() as PoolStats).peak;
  console.log(
    `gpt: pool ${(reserved / 2 ** 20).toFixed(1)} MiB on a tape, ${(arenaBytes / 2 ** 20).toFixed(1)} compiled with its state donated`,
  );
}

/** Steps that read their loss and stop early where it is low. */
function steps(): void {
  let w = tensor([0.5, -0.25, 1]);
  const taken: string[] = [];
  for (let step = 1; step <= 10_000; step++) {
    w = tape((t) => {
      const loss = w
        .mul(tensor([1, 2, 3]))
        .sin()
        .square()
        .sum();
      return loss.item() < 1e-3 ? w.mul(2) : w.sub(t.gradient(loss, w).mul(0.01));
    });
    if (step !== 1000 && step !== 10_000) continue;
    const { reserved, allocations } = tape((t) => t.memory());
    const heap = (process.memoryUsage().heapUsed / 2 ** 20).toFixed(0);
    taken.push(
      `${reserved} bytes of pool, ${tapeCounts().programs} programs, heap ${heap} MB (${allocations} allocations)`,
    );
  }
  console.log(`steps: after 1,000: ${taken[0]}; after 10,000: ${taken[1]}`);
}

const parts = { tree, streams, same, small, steps, gpt: gptStep };
const asked = process.argv.slice(2);
for (const [name, run] of Object.entries(parts)) if (asked.length === 0 || asked.includes(name)) run();
