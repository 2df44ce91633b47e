/**
 * @file `tidemark curve`: memory against time. Every strategy's plans of one program on the same axes, from storing
 * everything to the smallest plan that the strategy finds, with the lower bound of all plans.
 *
 *   planners that aim at bytes (auto, look-ahead, chain)     the requested number of budgets, at equal ratios
 *   rules (every-k, sqrt, selective, …)                      their Pareto-optimal plans
 *
 * Only `auto` and `binomial` decide about loops; each plan lists what its loops keep.
 */
import { formatBytes } from "../../base/bytes.ts";
import type { ProgramPlans } from "../../compiler/assemble.ts";
import type { PlannedProgram } from "../../compiler/assembler.ts";
import type { Candidate } from "../../plan/budget/budget-levels.ts";
import { STRATEGIES, STRATEGY_NAMES } from "../../plan/recompute/strategies.ts";
import type { StrategyName } from "../../plan/recompute/strategy.ts";
import { table } from "../../plan/table.ts";
import { loopForms } from "../../view/loop-text.ts";
import { type Arguments, type Command, type Io, integerOption, usageError, writeJson } from "../command.ts";
import { loadProgram } from "../load.ts";
import { plansOfLoaded, progressTo, recomputed } from "../plan-figures.ts";
import { PROGRESS_OPTION } from "../progress.ts";
import { TARGET_OPTIONS, targetFor, targetSettings } from "../target-settings.ts";

export interface CurvePoint {
  readonly strategy: string;
  /** Null for plans of rules, which have no budget. */
  readonly budgetBytes: number | null;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  readonly recomputedFlops: number;
  /** For `optimal`: cost over the solver's bound for this budget, minus 1, and whether that is proven optimal. */
  readonly gap: number | null;
  readonly proven: boolean;
  /** What its loops keep for their reverses. */
  readonly loops: readonly string[];
}

/** Strategies that need a solver, and time, are drawn only on request. */
const ON_REQUEST = STRATEGIES.filter(({ solver }) => solver !== "required").map(({ name }) => name);

function strategiesOf(args: Arguments): readonly StrategyName[] {
  const text = args.value("strategies");
  if (text === undefined) return ON_REQUEST;
  return text.split(",").map((name) => {
    const found = STRATEGY_NAMES.find((known) => known === name);
    if (found) return found;
    throw usageError(`--strategies: there is no ${name}`, `strategies are ${STRATEGY_NAMES.join(", ")}`);
  });
}

const pointOf = (
  budgetBytes: number | null,
  { strategy, ...c }: Candidate<PlannedProgram>,
  name: string,
): CurvePoint => ({
  strategy: name === strategy ? strategy : name,
  budgetBytes,
  arenaBytes: c.arenaBytes,
  predictedMs: c.predictedMs,
  recomputedFlops: recomputed(c.result.graph).flops,
  gap: c.proof?.gap ?? null,
  proven: c.proof?.proven ?? false,
  loops: loopForms(c.result.graph),
});

/** A bar whose length is proportional to a number. */
const bar = (share: number): string => "█".repeat(Math.max(1, Math.round(share * 40)));

function curveText(
  points: readonly CurvePoint[],
  storeAll: ProgramPlans["storeAllFigures"],
  floorBytes: number,
): string {
  const rows = points.map((p) => [
    p.strategy,
    formatBytes(p.arenaBytes),
    `${(p.arenaBytes / storeAll.arenaBytes).toFixed(3)} ×`,
    `${p.predictedMs.toFixed(1)} ms`,
    `${(p.predictedMs / storeAll.predictedMs).toFixed(3)} ×`,
    bar(p.arenaBytes / storeAll.arenaBytes).padEnd(40),
    p.loops.join("; "),
  ]);
  const lines = table(rows, ["left", "right", "right", "right", "right", "left", "left"]).map((line) => line.trimEnd());
  return `${lines.join("\n")}\nno plan is below ${formatBytes(floorBytes)}: what one operation and the state need\n`;
}

async function run(args: Arguments, io: Io): Promise<void> {
  const count = integerOption(args, "points", 10, { least: 2 });
  const strategies = strategiesOf(args);
  const loaded = await loadProgram(args.positionals[0] as string);
  const settings = targetSettings(targetFor(args, loaded), args, io);
  let doing = "planning";
  const progress = progressTo(io, () => doing, false);
  const { plans } = plansOfLoaded(loaded, { ...settings, memory: {}, progress });
  const storeAll = plans.storeAllFigures;
  const points: CurvePoint[] = [];
  for (const [i, name] of strategies.entries()) {
    doing = `${name}, ${i + 1} of ${strategies.length} strategies`;
    const began = performance.now();
    for (const { budgetBytes, plan } of plans.curve(name, count)) points.push(pointOf(budgetBytes, plan, name));
    io.err(`${name}: ${((performance.now() - began) / 1000).toFixed(1)} s\n`);
  }
  const floorBytes = plans.floorBytes();
  if (!args.has("json")) return io.out(curveText(points, storeAll, floorBytes));
  writeJson(io, {
    program: loaded.name,
    target: settings.target,
    costModel: settings.machine.costModel,
    storeAllArenaBytes: storeAll.arenaBytes,
    storeAllPredictedMs: storeAll.predictedMs,
    lowerBoundBytes: floorBytes,
    points,
  });
}

export const curve: Command = {
  name: "curve",
  positionals: ["PROGRAM"],
  summary: "memory against predicted time, for every strategy",
  details: "Each line is a plan: its arena, its predicted time, and both relative to storing everything.",
  options: {
    points: { value: "N", help: "number of budgets for strategies that take one; default: 10" },
    strategies: { value: "A,B,…", help: `some of ${STRATEGY_NAMES.join(", ")}; default: all but optimal` },
    ...TARGET_OPTIONS,
    json: { help: "print one line of JSON" },
    ...PROGRESS_OPTION,
  },
  run,
};
