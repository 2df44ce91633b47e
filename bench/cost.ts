/**
 * @file Predicted against measured times of a step on one thread: the built-in programs, whose kernels the weights of the cost model
 * were fitted to, and programs that they were not. The machine is calibrated first, in this process and without storing the rates.
 * Measured times are processor time of the fastest step, so that other processes count little.
 *
 *   npm run bench:cost -- [PROGRAM …] [--target=native|wasm] [--rates=measured|default] [--seconds=2] [--plans] [--json]
 *
 * Steps below a millisecond are listed and not counted. `--plans` compares plans of one program with each other: the predicted
 * ratio of a plan's time to that of the plan that keeps everything, beside the measured one.
 */
import { parseArgs } from "node:util";
import { compile } from "../src/api/compile.ts";
import { currentHost } from "../src/api/host.ts";
import { calibrate } from "../src/cli/calibration.ts";
import { ratesText } from "../src/cli/machine.ts";
import { type AnyProgram, BUILT_IN } from "../src/cli/programs/built-in.ts";
import { TargetCosts } from "../src/compiler/node-costs.ts";
import "../src/node/index.ts";
import { planMs } from "../src/plan/cost/model.ts";
import { chooseTarget } from "../src/runtime/choose-target.ts";
import { OTHERS } from "./cost-programs.ts";

const { values: options, positionals: asked } = parseArgs({
  allowPositionals: true,
  options: {
    target: { type: "string", default: "wasm" },
    rates: { type: "string", default: "measured" },
    seconds: { type: "string", default: "2" },
    plans: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const targetName = options.target === "native" ? "native" : "wasm";
const LEAST_MS = 1;
const WARM_UP = 3;
/** Shares of the memory between the smallest and the largest plan. */
const SHARES = [0.75, 0.5, 0.25];

interface Row {
  readonly name: string;
  readonly predicted: number;
  readonly measured: number;
}

/** Milliseconds of processor time of the fastest step. */
function fastestStep(step: () => void): number {
  const ms: number[] = [];
  const end = performance.now() + 1000 * Number(options.seconds);
  for (let i = 0; i < 2 * WARM_UP || performance.now() < end; i++) {
    const before = process.cpuUsage();
    step();
    const { user, system } = process.cpuUsage(before);
    ms.push((user + system) / 1000);
  }
  return Math.min(...ms.slice(WARM_UP));
}

function timed(program: AnyProgram, name: string, memory?: number): Row & { readonly arenaBytes: number } {
  let state = program.init();
  const batch = program.batch();
  const limit = memory === undefined ? {} : { memory };
  const settings = { donate: [0], name: program.name, target: targetName, threads: 1, costs: nodeCosts.rates } as const;
  const step = compile(program.step, { ...settings, ...limit });
  const { plan } = step.program(state, ...batch);
  const predicted = planMs(plan, nodeCosts);
  const measured = fastestStep(() => {
    const [next, loss] = step(state, ...batch);
    loss.item();
    state = next;
  });
  return { name, predicted, measured, arenaBytes: plan.height };
}

function print({ name, predicted, measured }: Row): void {
  const cells = [predicted, measured, predicted / measured].map((n) => n.toFixed(n < 10 ? 3 : 1).padStart(10));
  if (!options.json) console.log(`${name.padEnd(20)}${cells.join("")}`);
}

/** Of the deviations |predicted / measured - 1| of rows that count. */
function summary(rows: readonly Row[]): { readonly count: number; readonly median: number; readonly worst: number } {
  const deviations = rows.map(({ predicted, measured }) => Math.abs(predicted / measured - 1)).sort((a, b) => a - b);
  const middle = deviations[Math.floor(deviations.length / 2)] ?? 0;
  return { count: rows.length, median: middle, worst: deviations.at(-1) ?? 0 };
}

/** Ratios of plans under budgets to the plan without one. */
function plansOf(program: AnyProgram): readonly Row[] {
  const whole = timed(program, program.name);
  const least = compile(program.step, { donate: [0], target: targetName, threads: 1, memory: "min" });
  const smallest = least.program(program.init(), ...program.batch()).plan.height;
  return SHARES.map((share) => {
    const bytes = Math.ceil(smallest + share * (whole.arenaBytes - smallest));
    const row = timed(program, `${program.name} ${share}`, bytes);
    return { name: row.name, predicted: row.predicted / whole.predicted, measured: row.measured / whole.measured };
  });
}

const { target } = chooseTarget(currentHost(), targetName, {});
const rates = options.rates === "default" ? target.description.rates : (await calibrate({ target })).model;
const nodeCosts = new TargetCosts(target.description, { rates });
if (!options.json) console.log(`${targetName}, ${options.rates} rates: ${ratesText(rates)}\n`);
const wanted = [...BUILT_IN, ...OTHERS].filter(({ name }) => asked.length === 0 || asked.includes(name));
const rows: Row[] = [];
for (const program of wanted) {
  for (const row of options.plans ? plansOf(program) : [timed(program, program.name)]) {
    print(row);
    rows.push(row);
  }
}
const counted = options.plans ? rows : rows.filter(({ measured }) => measured >= LEAST_MS);
const found = summary(counted);
if (options.json) console.log(JSON.stringify({ target: targetName, rates, rows, ...found }));
else {
  const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;
  console.log(
    `\n${found.count} counted: off by ${percent(found.median)} in the median, ${percent(found.worst)} at worst`,
  );
}
