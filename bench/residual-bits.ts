/**
 * @file `npm run bench:lossy`: a small byte-level GPT trained with residuals in fewer and fewer bits: loss on text that it was not
 * trained on, beside the spread of whole residuals over seeds, and what is kept for the backward pass. Of 0 steps: what the planner
 * chooses for a network of wide products, by budget.
 */
import "../src/node/index.ts";
import { gelu, plan, spec, type Tensor, valueAndGrad } from "../src/api/index.ts";
import type { LossyOptions } from "../src/api/lossy-options.ts";
import type { PlanningOptions } from "../src/api/request.ts";
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
  ["8 / 8", { linear: 8, rest: 8 }, [1]],
  ["4 / 8", { linear: 4, rest: 8 }, [1, 2, 3]],
  ["2 / 8", { linear: 2, rest: 8 }, [1]],
];

function plannedChoices(): void {
  const loss = (ws: readonly Tensor[], x: Tensor) =>
    ws
      .reduce((h, w) => gelu(h.matmul(w)), x)
      .square()
      .mean();
  const specs = [Array.from({ length: 8 }, () => spec([512, 512])), spec([1024, 512])] as const;
  const figures = (options: PlanningOptions) => plan(valueAndGrad(loss), options)(...specs);
  const { arenaBytes } = figures({});
  console.log("| budget | lossless | lossy | values rounded | steps recomputed |\n| --- | --- | --- | --- | --- |");
  for (const share of [0.8, 0.6, 0.5]) {
    const memory = Math.floor(share * arenaBytes);
    const [exact, lossy] = [figures({ memory }), figures({ memory, lossy: { residuals: "auto" } })];
    const again = lossy.graph.nodes.filter(({ replay }) => replay > 0).length;
    console.log(
      `| ${share} | ${exact.predictedMs.toFixed(0)} ms | ${lossy.predictedMs.toFixed(0)} ms | ${lossy.lossy.length} | ${again} |`,
    );
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
