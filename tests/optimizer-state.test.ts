/**
 * @file Bytes that optimizers keep, from plans of a training step: the tables of docs/optimizers.md are made here (UPDATE=1 writes them).
 * And what clipping by a common norm holds.
 */
import { describe, expect, it } from "vitest";
import { plan, spec, type Tensor, valueAndGrad, zeros } from "../src/api/index.ts";
import * as optim from "../src/optim/index.ts";
import { gradientBytes } from "../src/plan/gradients.ts";
import { checkDocument } from "./support/generated.ts";

const [INPUTS, WIDTH, LAYERS, BATCH] = [256, 256, 4, 64];

const weights = () => Array.from({ length: LAYERS }, () => zeros([INPUTS, WIDTH]));
const PARAMETERS = LAYERS * INPUTS * WIDTH;

function lossOf(params: readonly Tensor[], x: Tensor): Tensor {
  return params
    .reduce((h, w) => h.matmul(w).tanh(), x)
    .square()
    .mean();
}

function stepOf(optimizer: optim.Optimizer) {
  return (state: optim.OptimizerState<readonly Tensor[]>, x: Tensor) => {
    const [loss, grads] = valueAndGrad(lossOf)(state.params, x);
    return [optimizer.update(state, grads), loss] as const;
  };
}

const planned = (optimizer: optim.Optimizer, memory?: number | "min") =>
  plan(stepOf(optimizer), { donate: [0], ...(memory === undefined ? {} : { memory }) })(
    optimizer.init(weights()),
    spec([BATCH, INPUTS]),
  );

/** Bytes of state an element of the parameters: what persists but for parameters, the step and constants. */
function stateBytes(optimizer: optim.Optimizer): number {
  const { persistentBytes, plan: made } = planned(optimizer);
  const { params, persistent, donated } = made.program;
  const constants = params.filter((param) => persistent.has(param) && !donated.has(param));
  const constantBytes = constants.reduce((sum, { type }) => sum + 4 * type.shape.reduce((a, b) => a * b, 1), 0);
  return (persistentBytes - constantBytes - 4 * PARAMETERS - 4) / PARAMETERS;
}

const OPTIMIZERS: readonly (readonly [name: string, optimizer: optim.Optimizer, formula: string, bytes: number])[] = [
  ["sgd()", optim.sgd(), "0", 0],
  ["sgd({ momentum })", optim.sgd({ momentum: 0.9 }), "4", 4],
  ['sgd({ momentum, momentumType: "bf16" })', optim.sgd({ momentum: 0.9, momentumType: "bf16" }), "2", 2],
  ["adam(), adamw(), lamb()", optim.adamw(), "8", 8],
  ["lion()", optim.lion(), "4", 4],
  ["adafactor()", optim.adafactor(), "4·(n + m)/(n·m)", 8 / 256],
  ["adam8bit(), adamw8bit()", optim.adamw8bit(), "2 + 8/2048", 2 + 8 / 2048],
  ["adamMini()", optim.adamMini(), "4 + 4/n", 4 + 4 / 256],
  ["galore({ rank: 32 })", optim.galore({ rank: 32 }), "4·(n·r + 2·m·r)/(n·m)", (4 * 3 * 32) / 256],
];

describe("state of optimizers", () => {
  it.each(OPTIMIZERS)("%s takes what its formula says", (_, optimizer, __, bytes) => {
    expect(stateBytes(optimizer)).toBe(bytes);
  });

  it("is in the documents", () => {
    const rows = OPTIMIZERS.map(
      ([name, , formula, bytes]) => `| \`${name}\` | ${formula} | ${Number(bytes.toFixed(4))} |`,
    );
    const head = "| optimizer | bytes an element | of 256 × 256 |\n| --- | --- | --- |";
    const clipped = optim.adamw({ clip: optim.clipByGlobalNorm(1) });
    const kib = (bytes: number): string => `${Math.round(bytes / 1024)} KiB`;
    const scaled = optim.dynamicLossScale(optim.adamw()) as optim.Optimizer;
    const [plain, all] = [planned(optim.adamw()), planned(clipped)];
    const least = planned(clipped, "min");
    const held = [
      ["`adamw()`", plain],
      ["`adamw({ clip: clipByGlobalNorm(1) })`", all],
      ['the same with `memory: "min"`', least],
      ["`dynamicLossScale(adamw())`", planned(scaled)],
    ] as const;
    const cost = held.map(
      ([name, info]) =>
        `| ${name} | ${kib(gradientBytes(info.plan))} | ${kib(info.arenaBytes - info.persistentBytes)} |`,
    );
    const { found, expected } = checkDocument("docs/optimizers.md", {
      state: [head, ...rows].join("\n"),
      clipping: ["| | gradients at a time | arena over state |\n| --- | --- | --- |", ...cost].join("\n"),
    });
    expect(found).toBe(expected);
    expect(gradientBytes(all.plan)).toBe(4 * PARAMETERS);
    expect(gradientBytes(plain.plan)).toBeLessThan(4 * PARAMETERS);
    expect(least.arenaBytes).toBeLessThan(all.arenaBytes);
  });
});
