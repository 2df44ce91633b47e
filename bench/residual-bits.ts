/**
 * @file `npm run bench:lossy`: a small byte-level GPT trained with residuals in fewer and fewer bits: loss on text that it was not
 * trained on, beside the spread of whole residuals over seeds, and what is kept for the backward pass. Of 0 steps: what the planner
 * chooses for a network of wide products, by budget.
 */
import "../src/node/index.ts";
import { gelu, lossyDeviation, plan, random, type Tensor, topK, valueAndGrad, where } from "../src/api/index.ts";
import type { LossyOptions } from "../src/api/lossy-options.ts";
import { at } from "../src/base/invariant.ts";
import { adamw } from "../src/optim/index.ts";
import { byteGpt } from "./byte-gpt.ts";
import { trained } from "./training.ts";

const steps = Number(process.argv[2] ?? 600);
const optimizer = adamw({ lr: 3e-3 });
const model = byteGpt();

const CHOICES: readonly (readonly [
  name: string,
  residuals: LossyOptions["residuals"] | null,
  seeds: readonly number[],
])[] = [
  ["32 / 32", null, [1, 2, 3]],
  ["4 / 32", { linear: 4 }, [1]],
  ["2 / 32", { linear: 2 }, [1]],
  ["1 / 32", { linear: 1 }, [1]],
  ["16 / 16", { linear: "bf16", rest: "bf16" }, [1]],
  ["8 / 8", { linear: 8, rest: 8 }, [1]],
  ["4 / 8", { linear: 4, rest: 8 }, [1, 2, 3]],
  ["2 / 8", { linear: 2, rest: 8 }, [1]],
];

type Loss = (ws: readonly Tensor[], x: Tensor) => Tensor;

interface Choice {
  readonly name: string;
  readonly loss: Loss;
  readonly sizes: readonly (readonly [number, number])[];
  readonly rows: number;
  readonly budgets: readonly number[];
  readonly residuals: LossyOptions["residuals"];
}

const squares = (n: number, width: number) => Array.from({ length: n }, () => [width, width] as const);

/** Of each row the eight largest numbers; all others are zero. */
function winners(h: Tensor): Tensor {
  const least = topK(h, 8).values.slice([
    [0, at(h.shape, 0)],
    [7, 8],
  ]);
  return where(h.greaterEqual(least), h, 0);
}

const wide: Omit<Choice, "residuals" | "budgets"> = {
  name: "gelu, 512",
  loss: (ws, x) =>
    ws
      .reduce((h, w) => gelu(h.matmul(w)), x)
      .square()
      .mean(),
  sizes: squares(8, 512),
  rows: 1024,
};

const CHOICES_BY_BUDGET: readonly Choice[] = [
  { ...wide, budgets: [0.8, 0.6, 0.5], residuals: "auto" },
  {
    ...wide,
    name: "tanh, 512",
    loss: (ws, x) =>
      ws
        .reduce((h, w) => h.matmul(w).tanh(), x)
        .square()
        .mean(),
    budgets: [0.8, 0.7],
    residuals: { linear: "bf16", rest: "bf16" },
  },
  {
    name: "eight of 512 in each row",
    loss: (ws, x) =>
      ws
        .reduce((h, w) => winners(h.matmul(w).relu()), x)
        .square()
        .mean(),
    sizes: squares(8, 512),
    rows: 1024,
    budgets: [0.8, 0.7],
    residuals: { linear: { sparse: 1 / 16 } },
  },
  {
    name: "products of two layers, of two coordinates",
    loss: (ws, x) =>
      ws
        .reduce((h, w, i) => (i % 2 === 0 ? h.matmul(w).mul(h.matmul(at(ws, i + 1))) : h), x)
        .square()
        .mean(),
    sizes: [[2, 512], [2, 512], ...squares(6, 512)],
    rows: 1024,
    budgets: [0.8, 0.6],
    residuals: { linear: { rank: 16 } },
  },
];

function plannedChoices(): void {
  const percent = (x: number): string => `${(100 * x).toPrecision(2)} %`;
  console.log(
    "| network | form | budget | recomputing | with the form | values | their bytes | error of values | of gradients |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
  );
  for (const { name, loss, sizes, rows, budgets, residuals } of CHOICES_BY_BUDGET) {
    const ws = sizes.map((shape, i) => random.normal(random.key(i), shape).mul(1 / Math.sqrt(shape[0])));
    const x = random.uniform(random.key(99), [rows, at(sizes, 0)[0]], { lo: -1, hi: 1 });
    const step = valueAndGrad(loss);
    const { arenaBytes } = plan(step)(ws, x);
    for (const share of budgets) {
      const memory = Math.floor(share * arenaBytes);
      const [exact, lossy] = [plan(step, { memory })(ws, x), plan(step, { memory, lossy: { residuals } })(ws, x)];
      const { values, results } = lossyDeviation(step, { memory, lossy: { residuals } })(ws, x);
      const sum = (of: "bytes" | "wholeBytes"): number => lossy.lossy.reduce((total, one) => total + one[of], 0);
      const worst = (all: readonly number[]): string => (all.length === 0 ? "" : percent(Math.max(...all)));
      const cells = [
        ...[name, JSON.stringify(residuals), share, `${exact.predictedMs.toFixed(0)} ms`],
        ...[`${lossy.predictedMs.toFixed(0)} ms`, values.length],
        ...[values.length === 0 ? "" : `1 / ${(sum("wholeBytes") / sum("bytes")).toFixed(1)}`],
        ...[worst(values.map(({ measured }) => measured)), worst(results.map(({ relative }) => relative))],
      ];
      console.log(`| ${cells.join(" | ")} |`);
    }
  }
}

function trainedChoices(): void {
  console.log(
    `| linear / rest, bits | of what is kept | arena over state, KiB | loss after ${steps} steps | ms a step |\n| --- | --- | --- | --- | --- |`,
  );
  let whole = 0;
  for (const [name, residuals, seeds] of CHOICES) {
    const runs = seeds.map((seed) =>
      trained({ model, optimizer, steps, seed, ...(residuals ? { options: { lossy: { residuals } } } : {}) }),
    );
    const [run] = runs as [(typeof runs)[number], ...typeof runs];
    const sum = (of: "bytes" | "wholeBytes"): number => run.lossy.reduce((total, one) => total + one[of], 0);
    // the choice that rounds everything says how much that is
    if (name === "32 / 32")
      whole = trained({
        model,
        optimizer,
        steps: 0,
        seed: 1,
        options: { lossy: { residuals: { linear: 8, rest: 8 } } },
      }).lossy.reduce((total, one) => total + one.wholeBytes, 0);
    const kept = whole - sum("wholeBytes") + sum("bytes");
    const losses = runs.map(({ loss }) => loss.toFixed(3)).join(", ");
    const arena = Math.round((run.arenaBytes - run.persistentBytes) / 1024);
    console.log(`| ${name} | 1 / ${(whole / kept).toFixed(2)} | ${arena} | ${losses} | ${run.stepMs.toFixed(1)} |`);
  }
}

if (steps === 0) plannedChoices();
else trainedChoices();
