/** @file `npm run bench:optimizers [-- STEPS NAME]`: losses of optimizers with less state beside AdamW's, on two models, with the spread over seeds. */
import "../src/node/index.ts";
import { bytesOf } from "../src/kernel/dtype.ts";
import * as optim from "../src/optim/index.ts";
import { Tensor } from "../src/trace/tensor.ts";
import { byteGpt, spirals } from "./byte-gpt.ts";
import { trained } from "./training.ts";

const steps = Number(process.argv[2] ?? 300);
const wanted = process.argv[3] ?? "";
const SEEDS = [1, 2, 3];

const optimizersFor = (half: number): readonly (readonly [string, optim.Optimizer])[] => [
  ["adamw", optim.adamw({ lr: 3e-3 })],
  ["adamw8bit", optim.adamw8bit({ lr: 3e-3 })],
  ["adamMini", optim.adamMini({ lr: 3e-3, weightDecay: 0.01 })],
  ["sgd", optim.sgd({ lr: 0.1, momentum: 0.9 })],
  ["sgd, bf16 momentum", optim.sgd({ lr: 0.1, momentum: 0.9, momentumType: "bf16" })],
  ["galore, rank of half the width", optim.galore({ lr: 6e-3, rank: half, every: 50, scale: 1, weightDecay: 0.01 })],
];

console.log(
  `| ${steps} steps | loss after them, seeds ${SEEDS.join(", ")} | mean | state bytes |\n| --- | --- | --- | --- |`,
);
for (const [model, half] of [
  [byteGpt(), 32],
  [spirals(), 64],
] as const) {
  for (const [name, optimizer] of optimizersFor(half)) {
    if (!name.startsWith(wanted)) continue;
    const runs = SEEDS.map((seed) => trained({ model, optimizer, steps, seed }));
    const losses = runs.map(({ loss }) => loss);
    const mean = losses.reduce((a, b) => a + b) / losses.length;
    const state = optimizer.init(model.init(1) as never);
    const bytes = JSON.stringify(
      Object.values(state.slots)
        .flatMap((slot) => leavesOf(slot))
        .reduce((sum, n) => sum + n, 0),
    );
    console.log(
      `| ${model.name}, ${name} | ${losses.map((l) => l.toFixed(3)).join(", ")} | ${mean.toFixed(3)} | ${bytes} |`,
    );
  }
}

/** Bytes of every tensor of a tree. */
function leavesOf(tree: unknown): readonly number[] {
  if (tree instanceof Tensor) return [tree.elements * bytesOf(tree.dtype)];
  return tree !== null && typeof tree === "object" ? Object.values(tree).flatMap(leavesOf) : [];
}
