/**
 * @file `tidemark curve`: memory against time. Every strategy's plans of one program on the same axes, from storing
 * everything to the smallest plan that the strategy finds, with the lower bound of all plans.
 *
 *   planners that aim at bytes (auto, look-ahead, chain)     the requested number of budgets, at equal ratios
 *   rules (every-k, sqrt, selective, …)                      their Pareto-optimal plans
 *
 * With --lossy also plans in which residuals are kept in few bits: all of them, and fewer than all; with --spill plans that move
 * values to a file; and with both, plans that do whatever is faster for each value.
 *
 * Only `auto` and `binomial` decide about loops; each plan lists what its loops keep.
 */
import { lossyRequest } from "../../api/lossy-options.ts";
import { formatBytes } from "../../base/bytes.ts";
import type { ProgramPlans } from "../../compiler/assemble.ts";
import type { PlannedProgram } from "../../compiler/assembler.ts";
import type { Candidate } from "../../plan/budget/budget-levels.ts";
import { STRATEGIES } from "../../plan/recompute/strategies.ts";
import { STRATEGY_NAMES } from "../../plan/recompute/strategy.ts";
import { stripReports, stripText } from "../../plan/strips.ts";
import { table } from "../../plan/table.ts";
import { secondMemoryOf } from "../../runtime/device.ts";
import { answersOf } from "../../view/answers.ts";
import { type MergedPlan, mergedPlans } from "../../view/frontier.ts";
import { loopForms } from "../../view/loop-text.ts";
import { type Arguments, type Command, type Io, integerOption, writeJson } from "../command.ts";
import { loadProgram } from "../load.ts";
import { LOSSY_OPTION, lossyOf, plansOfLoaded, progressTo, recomputed } from "../plan-figures.ts";
import { PRODUCTS_OPTIONS, withAutocast } from "../products-option.ts";
import { PROGRESS_OPTION } from "../progress.ts";
import { SPILL_OPTION, spillOf, withLink } from "../spill.ts";
import { strategiesOption } from "../strategies-option.ts";
import { TARGET_OPTIONS, targetFor, targetSettings } from "../target-settings.ts";

export interface CurvePoint {
  readonly strategy: string;
  /** Null for plans of rules, which have no budget. */
  readonly budgetBytes: number | null;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  readonly recomputedFlops: number;
  /** Of the file that values are moved to (--spill). */
  readonly spillBytes: number;
  /** For `optimal`: cost over the solver's bound for this budget, minus 1, and whether that is proven optimal. */
  readonly gap: number | null;
  readonly proven: boolean;
  /** What its loops keep for their reverses. */
  readonly loops: readonly string[];
}

/** Strategies that need a solver, and time, are drawn only on request. */
const ON_REQUEST = STRATEGIES.filter(({ solver }) => solver !== "required").map(({ name }) => name);

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
  spillBytes: c.result.plan.others[0]?.height ?? 0,
  gap: c.proof?.gap ?? null,
  proven: c.proof?.proven ?? false,
  loops: [...loopForms(c.result.graph), ...stripReports(c.result.plan).map(stripText)],
});

/** A bar whose length is proportional to a number. */
const bar = (share: number): string => "█".repeat(Math.max(1, Math.round(share * 30)));

const fileText = (bytes: number): string => (bytes === 0 ? "" : `file ${formatBytes(bytes)}`);

/** One line a plan, from the largest on; `*` marks those that no other beats. Plans with the same figures share a line. */
function curveText(
  plans: readonly MergedPlan<CurvePoint>[],
  storeAll: ProgramPlans["storeAllFigures"],
  floorBytes: number | null,
): string {
  const isSpilled = plans.some(({ plans: alike }) => alike[0].spillBytes > 0);
  const lines = new Map<string, { readonly row: string[]; readonly names: Set<string>; isBest: boolean }>();
  for (const { arenaBytes, predictedMs, strategies, isBest, plans: alike } of plans) {
    const row = [
      formatBytes(arenaBytes),
      `${(arenaBytes / storeAll.arenaBytes).toFixed(3)} ×`,
      `${predictedMs.toFixed(1)} ms`,
      `${(predictedMs / storeAll.predictedMs).toFixed(3)} ×`,
      bar(arenaBytes / storeAll.arenaBytes).padEnd(30),
      ...(isSpilled ? [fileText(alike[0].spillBytes)] : []),
      alike[0].loops.join("; "),
    ];
    const line = lines.get(row.join()) ?? { row, names: new Set(), isBest: false };
    lines.set(row.join(), line);
    for (const name of strategies) line.names.add(name);
    line.isBest ||= isBest;
  }
  const rows = [...lines.values()].map(({ row, names, isBest }) => {
    return [isBest ? "*" : " ", ...row.slice(0, -1), [...names].join(", "), row.at(-1) ?? ""];
  });
  const file = isSpilled ? (["right"] as const) : [];
  const sides = ["left", "right", "right", "right", "right", "left", ...file, "left", "left"] as const;
  const printed = table(rows, [...sides]).map((line) => line.trimEnd());
  const best = rows.filter(([mark]) => mark === "*").length;
  const key = `* ${best} of ${rows.length} plans that no other beats: none is smaller and as fast`;
  // state in a file is not in the arena
  const floor =
    floorBytes === null ? [] : [`no plan is below ${formatBytes(floorBytes)}: what one operation and the state need`];
  return `${[...printed, key, ...floor].join("\n")}\n`;
}

async function run(args: Arguments, io: Io): Promise<void> {
  const count = integerOption(args, "points", 10, { least: 2 });
  const strategies = strategiesOption(args, ON_REQUEST);
  const loaded = withAutocast(await loadProgram(args.positionals[0] as string), args);
  const spill = spillOf(args);
  const own = targetSettings(
    await targetFor(args, loaded, { second: spill && secondMemoryOf(spill.options) }),
    args,
    io,
  );
  const settings = { ...own, machine: { ...own.machine, costs: withLink(own.machine.costs, spill) } };
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
  const lossy = lossyRequest("--lossy", lossyOf(args));
  for (const { name, plans: plansOf } of answersOf(plans, { spill, lossy })) {
    doing = name;
    const began = performance.now();
    for (const { budgetBytes, plan } of plansOf(count)) points.push(pointOf(budgetBytes, plan, name));
    io.err(`${name}: ${((performance.now() - began) / 1000).toFixed(1)} s\n`);
  }
  const floorBytes = spill ? null : plans.floorBytes();
  const merged = mergedPlans(points);
  if (!args.has("json")) return io.out(curveText(merged, storeAll, floorBytes));
  const best = new Set(merged.flatMap((plan) => (plan.isBest ? plan.plans : [])));
  writeJson(io, {
    program: loaded.name,
    target: settings.target,
    costModel: settings.machine.costModel,
    storeAllArenaBytes: storeAll.arenaBytes,
    storeAllPredictedMs: storeAll.predictedMs,
    lowerBoundBytes: Math.min(plans.floorBytes(), ...points.map(({ arenaBytes }) => arenaBytes)),
    points: points.map((point) => ({ ...point, isBest: best.has(point) })),
  });
}

export const curve: Command = {
  name: "curve",
  positionals: ["PROGRAM"],
  summary: "memory against predicted time, for every strategy",
  details:
    "Each line is a plan: its arena, its predicted time, both relative to storing everything, and the strategies that find it.\n" +
    "* marks plans that no other beats in bytes and time.",
  options: {
    points: { value: "N", help: "number of budgets for strategies that take one; default: 10" },
    strategies: { value: "A,B,…", help: `some of ${STRATEGY_NAMES.join(", ")}; default: all but optimal` },
    ...SPILL_OPTION,
    lossy: LOSSY_OPTION,
    ...TARGET_OPTIONS,
    ...PRODUCTS_OPTIONS,
    json: { help: "print one line of JSON" },
    ...PROGRESS_OPTION,
  },
  run,
};
