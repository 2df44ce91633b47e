/**
 * @file Time of training steps whose values wait in a file, against storing everything and against recomputation alone: native, one
 * thread, a disk that is held to 1 GB/s each way, a quarter of the bytes that do not persist. The three take turns; figures are the
 * best of the rounds. The losses must be equal to the last bit, and the file must have the planned size. Rates of the cost model are
 * scaled first, so that storing everything is predicted to take what it takes on this machine.
 *
 *   npm run bench:spill                      chain64, gpt, a U-Net of 64 x 64 pixels; and mlp-wide, whose state is in the file:
 *                                            Adam, in three fifths of what persists, which recomputation cannot do
 *   npm run bench:spill -- chain64 12 /tmp     one program, rounds, the folder of the file
 */
import { tmpdir } from "node:os";
import "../src/node/index.ts";
import { compile } from "../src/api/compile.ts";
import { conv2d, convTranspose2d } from "../src/api/conv.ts";
import { concat } from "../src/api/join.ts";
import { matmul } from "../src/api/linear.ts";
import { mse } from "../src/api/loss.ts";
import { relu } from "../src/api/math.ts";
import { plan } from "../src/api/plan.ts";
import { maxPool2d } from "../src/api/pool.ts";
import type { CompileOptions } from "../src/api/request.ts";
import { chain } from "../src/cli/programs/chain.ts";
import { he, INPUT_STREAM, TARGET_STREAM } from "../src/cli/programs/data.ts";
import { gpt } from "../src/cli/programs/gpt.ts";
import { training } from "../src/cli/programs/training.ts";
import { NATIVE_RATES } from "../src/codegen/native/description.ts";
import { adam } from "../src/optim/adam.ts";
import { sgd } from "../src/optim/sgd.ts";
import type { CostModel } from "../src/target/work.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import type { Tensor } from "../src/trace/tensor.ts";
import type { Tree } from "../src/trace/tree.ts";

const RATE = "1GB/s";
const SHARE = 0.25;

const WIDTHS = [16, 32, 64, 128] as const;
const [BATCH, PIXELS, CONVOLUTIONS] = [8, 64, 6];

interface UnetParams {
  readonly down: readonly Tensor[][];
  readonly up: readonly Tensor[][];
  readonly head: Tensor;
}

const unet = training<UnetParams>({
  name: "unet",
  title: "U-Net, 64x64, 4 levels of 6 convolutions from 16 channels, batch 8, SGD",
  optimizer: sgd({ lr: 1e-3 }),
  params(p) {
    const weights = (from: number, to: number, side = 3): Tensor =>
      p.draw([to, from, side, side], he(from * side ** 2));
    const more = (to: number): Tensor[] => Array.from({ length: CONVOLUTIONS - 1 }, () => weights(to, to));
    return {
      down: WIDTHS.map((to, i) => [weights(WIDTHS[i - 1] ?? 3, to), ...more(to)]),
      up: [2, 1, 0].map((i) => {
        const to = WIDTHS[i] as number;
        return [p.draw([2 * to, to, 2, 2], he(2 * to)), weights(2 * to, to), ...more(to)];
      }),
      head: weights(WIDTHS[0], 2, 1),
    };
  },
  batch: (n) => [n.data([BATCH, 3, PIXELS, PIXELS], INPUT_STREAM), n.data([BATCH, 2, PIXELS, PIXELS], TARGET_STREAM)],
  loss({ down, up, head }, x, y) {
    const conv = (h: Tensor, w: Tensor): Tensor => relu(conv2d(h, w, { padding: "same" }));
    const skips: Tensor[] = [];
    const low = down.reduce((h, pair, i) => {
      const level = pair.reduce(conv, i === 0 ? h : maxPool2d(h, 2));
      skips.push(level);
      return level;
    }, x);
    skips.pop();
    const high = up.reduce((h, [widen, ...pair]) => {
      const wide = convTranspose2d(h, widen as Tensor, { stride: 2 });
      return pair.reduce(conv, concat([skips.pop() as Tensor, wide], 1));
    }, low);
    return mse(conv2d(high, head, { padding: "same" }), y);
  },
});

/** Whose state is most of its memory. */
const wide = training<readonly Tensor[]>({
  name: "mlp-wide",
  title: "MLP, 8 layers of 1024, batch 256, Adam",
  optimizer: adam({ lr: 1e-3 }),
  params: (p) => Array.from({ length: 8 }, () => p.draw([1024, 1024], he(1024))),
  batch: (n) => [n.data([256, 1024], INPUT_STREAM), n.data([256, 1024], TARGET_STREAM)],
  loss: (weights, x, y) =>
    mse(
      weights.reduce((h, w) => relu(matmul(h, w)), x),
      y,
    ),
});

const PROGRAMS = [chain(64), gpt, unet, wide];
/** Of what persists, for the program whose state does not fit. */
const STATE_SHARE = 0.6;

type Step = (...args: Tree[]) => readonly [Tree, Tensor];

interface Runner {
  readonly name: string;
  readonly step: Step;
  state: Tree;
  best: number;
  readonly losses: number[];
}

/** Rates at which a program is predicted to take as long as it does, with everything stored. */
function calibrated(step: AnyFunction, args: readonly Tree[], options: CompileOptions): CostModel {
  const compiled = compile<Tree[], readonly [Tree, Tensor]>(step as unknown as Step, options);
  const { predictedMs } = compiled.program(...args);
  const [first, ...batch] = args;
  let [state, best] = [first as Tree, Number.POSITIVE_INFINITY];
  for (let i = 0; i < 20; i++) {
    const started = performance.now();
    [state] = compiled(state, ...batch);
    best = Math.min(best, performance.now() - started);
  }
  const by = predictedMs / best;
  const { productRate, arithmeticRate, byteRate, cachedByteRate = byteRate, callSeconds } = NATIVE_RATES;
  const scaled = { productRate: productRate * by, arithmeticRate: arithmeticRate * by, byteRate: byteRate * by };
  return {
    ...NATIVE_RATES,
    name: "scaled",
    ...scaled,
    cachedByteRate: cachedByteRate * by,
    callSeconds: callSeconds / by,
  };
}

function measure(program: (typeof PROGRAMS)[number], rounds: number, folder: string): void {
  const step = program.step as AnyFunction;
  const batch = program.batch();
  const plain: CompileOptions = { donate: [0], target: "native", effort: "full" };
  const base: CompileOptions = { ...plain, costs: calibrated(step, [program.init() as Tree, ...batch], plain) };
  const stored = plan<Tree[]>(step as unknown as Step, base)(program.init() as Tree, ...batch);
  const { persistentBytes, arenaBytes: storedBytes } = stored;
  const hasState = (program as object) === wide;
  const memory = Math.floor(
    hasState ? STATE_SHARE * persistentBytes : persistentBytes + SHARE * (storedBytes - persistentBytes),
  );
  const kinds: Readonly<Record<string, CompileOptions>> = {
    "store everything": base,
    ...(hasState ? {} : { recompute: { ...base, memory } }),
    file: { ...base, memory, spill: { to: folder, bandwidth: RATE, limit: RATE } },
  };
  const runners = Object.entries(kinds).map(([name, options]): Runner => {
    const compiled = compile<Tree[], readonly [Tree, Tensor]>(step as unknown as Step, options);
    const state = program.init() as Tree;
    const info = compiled.program(state, ...batch);
    const { arenaBytes, spillBytes, slowdown, strategy, planMs } = info;
    const isPlanned = compiled.stats().spillBytes === spillBytes;
    const file = spillBytes === 0 ? "" : `, file ${spillBytes} ${isPlanned ? "as planned" : "NOT AS PLANNED"}`;
    console.log(
      `${program.name}, ${name}: arena ${arenaBytes}${file}, predicted ${slowdown.toFixed(3)}, ${strategy}, planned in ${planMs.toFixed(0)} ms`,
    );
    return { name, step: compiled, state, best: Number.POSITIVE_INFINITY, losses: [] };
  });
  for (let round = 0; round < rounds; round++) {
    for (const runner of runners) {
      const started = performance.now();
      const [state, loss] = runner.step(runner.state, ...batch);
      runner.best = Math.min(runner.best, performance.now() - started);
      runner.state = state;
      runner.losses.push(loss.item());
    }
  }
  const [all] = runners;
  for (const { name, best, losses } of runners) {
    const isEqual = losses.join() === all?.losses.join();
    console.log(
      `${program.name}, ${name}: ${best.toFixed(1)} ms, ${(best / (all?.best ?? 1)).toFixed(3)} x, ${isEqual ? "same bits" : "OTHER BITS"}`,
    );
  }
}

const [name, rounds = "10", folder = tmpdir()] = process.argv.slice(2);
for (const program of PROGRAMS)
  if (name === undefined || program.name === name) measure(program, Number(rounds), folder);
