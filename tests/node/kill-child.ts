/**
 * @file A process to be killed: does one run in the folder it is given, says on stdout where it is, and prints the hash of
 * everything it computed when it gets to the end.
 *
 *   node kill-child.mjs KIND FOLDER
 */
import { createHash } from "node:crypto";
import { type Tensor, tensor, valueAndGrad } from "../../src/api/index.ts";
import { longRun, simulate, train } from "../../src/node/index.ts";
import { waveLoss, waveStart, waveStep } from "./wave.ts";

const [, , kind = "", directory = ""] = process.argv;

const POINTS = 3000;
const STEPS = 1200;

const hashOf = (tensors: readonly Tensor[]): string => {
  const hash = createHash("sha256");
  for (const one of tensors) hash.update(new Uint8Array(one.data().buffer as ArrayBuffer));
  return hash.digest("hex");
};

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

async function simulation(): Promise<readonly Tensor[]> {
  const { state, speed } = waveStart(POINTS);
  const {
    value,
    state: last,
    gradients,
  } = await longRun({
    step: waveStep,
    state,
    constants: [speed],
    loss: waveLoss,
    steps: STEPS,
    // so little for `disk` that files are worth writing
    memory: kind === "memory" ? "1500KB" : "1050KB",
    directory,
    every: 60,
    ...(kind === "memory" ? {} : { disk: { costs: { writeCost: 2, readCost: 1 } } }),
    onProgress: ({ phase }) => say(phase),
  });
  return [value, last.now, last.before, gradients.state.now, gradients.state.before, ...gradients.constants];
}

async function forwardOnly(): Promise<readonly Tensor[]> {
  const { state, speed } = waveStart(POINTS);
  const { state: last } = await simulate({
    step: waveStep,
    state,
    constants: [speed],
    steps: 20 * STEPS,
    directory,
    every: 200,
    onProgress: () => say("simulating"),
  });
  return [last.now, last.before];
}

async function training(): Promise<readonly Tensor[]> {
  const inputs = tensor(
    Array.from({ length: 256 }, (_, i) => Array.from({ length: 64 }, (_, j) => Math.sin(i * j + 1))),
  );
  const { state, loss } = await train({
    step(w: Tensor, x: Tensor, shift: Tensor) {
      const [value, dw] = valueAndGrad((v: Tensor) => x.matmul(v).tanh().sub(shift).square().mean())(w);
      return [w.sub(dw.mul(0.1)), value];
    },
    state: tensor(Array.from({ length: 64 }, (_, i) => Array.from({ length: 256 }, (_, j) => Math.cos(i + j) / 8))),
    steps: 250,
    batch: (i) => [inputs, tensor(Math.sin(i))] as const,
    directory,
    every: 5,
    onStep: () => say("training"),
  });
  return [state, ...(loss ? [loss] : [])];
}

try {
  say("ready");
  const runs: Readonly<Record<string, () => Promise<readonly Tensor[]>>> = { train: training, simulate: forwardOnly };
  const results = await (runs[kind] ?? simulation)();
  say(`done ${hashOf(results)}`);
} catch (error) {
  say(`failed ${(error as Error).message.replaceAll("\n", " ")}`);
  process.exitCode = 1;
}
