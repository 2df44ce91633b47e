/** @file `tidemark plan`: what a program needs, where its values are, and whether it fits a budget. */
import { formatBytes } from "../../base/bytes.ts";
import { counted } from "../../base/errors.ts";
import { printCsv } from "../../plan/csv.ts";
import { explainText } from "../../plan/explain.ts";
import { planJson } from "../../plan/json.ts";
import { memoryChart } from "../../plan/memory-chart.ts";
import { memoryMap } from "../../plan/memory-map.ts";
import { printPlan } from "../../plan/print.ts";
import type { Plan } from "../../plan/problem.ts";
import { reportText } from "../../plan/report.ts";
import { roundedText } from "../../plan/rounded.ts";
import { planTrace, predictedStepMs } from "../../plan/trace-events.ts";
import { type Arguments, type Command, type Io, paintFor, usageError, writeJson } from "../command.ts";
import { CONTRACT } from "../contract.ts";
import { writeText } from "../files.ts";
import { type Loaded, loadProgram } from "../load.ts";
import { type ModelProgram, SIZE_OPTION, sizesOf } from "../model-program.ts";
import { PLAN_OPTIONS, type PlanFigures, type PlanOutcome, planLoaded, planSettings } from "../plan-figures.ts";
import { withAutocast } from "../products-option.ts";
import { PROGRESS_OPTION } from "../progress.ts";
import { planShapes, SHAPES_OPTION } from "../shapes.ts";

function persistentText(f: PlanFigures): string {
  const parts = [
    [f.parameterBytes, "parameters"],
    [f.optimizerBytes, "optimizer state"],
    [f.constantBytes, "constants"],
  ] as const;
  const inFile = f.spillPersistentBytes === 0 ? "" : `; ${formatBytes(f.spillPersistentBytes)} of it in the file`;
  return `kept between runs: ${parts.map(([bytes, what]) => `${formatBytes(bytes)} of ${what}`).join(", ")}${inFile}`;
}

const gradientText = ({ gradientBytes }: PlanFigures): readonly string[] =>
  gradientBytes === 0 ? [] : [`gradients that wait for an update take up to ${formatBytes(gradientBytes)} at a time`];

/** The cost and savings of recomputation; empty if there is none. */
function recomputationText(f: PlanFigures): string {
  const { minimumBudgetBytes: least } = f;
  const smallest =
    least === null
      ? "--minimum finds the smallest budget\n"
      : `the smallest budget with a plan is ${formatBytes(least)}\n`;
  if (f.recomputedNodes === 0) return `nothing is recomputed; ${smallest}`;
  const [arena, time] = [f.arenaBytes / f.storeAllArenaBytes, f.predictedMs / f.storeAllPredictedMs];
  const saved = `${arena.toFixed(3)} × the arena of storing everything at ${time.toFixed(3)} × its predicted time`;
  return `${counted(f.recomputedNodes, "kernel")} ${f.recomputedNodes === 1 ? "recomputes" : "recompute"} something (${f.strategy}): ${saved}; ${smallest}`;
}

function planText(plan: Plan, f: PlanFigures, io: Io): string {
  const times = `${f.predictedMs.toFixed(1)} ms by ${f.costModel} rates, and at least ${f.lowerBoundMs.toFixed(1)} ms`;
  const predicted = `a step is predicted to take ${times} with any plan`;
  const lines = [
    reportText(plan),
    memoryChart(plan, paintFor(io)),
    persistentText(f),
    ...gradientText(f),
    ...roundedText(f.lossy),
  ];
  const planned = `${f.planCached ? "read from the cache" : "planned"} in ${f.planMs.toFixed(0)} ms`;
  return `${lines.join("\n")}\n${recomputationText(f)}${planned}, ${predicted}\n`;
}

/** Writes the plan in the requested file formats. */
function writeFiles(args: Arguments, { planned }: PlanOutcome): void {
  const { plan: made } = planned;
  const [json, trace, csv] = ["plan-json", "chrome-trace", "csv"].map((name) => args.value(name));
  if (json !== undefined) writeText(json, `${JSON.stringify(planJson(made, { stories: true }))}\n`);
  if (trace !== undefined) {
    const events = planTrace(made, (step) => predictedStepMs(made, step, planned.costs));
    writeText(trace, `${JSON.stringify(events)}\n`);
  }
  if (csv !== undefined) writeText(csv, printCsv(made.problem, made.offsets));
}

/** Operations of a model that are not known. */
const standInsIn = (loaded: Loaded): readonly string[] =>
  loaded.kind === "training" ? ((loaded.program as Partial<ModelProgram>).standIns ?? []) : [];

export const plan: Command = {
  name: "plan",
  positionals: ["PROGRAM"],
  summary: "plan a program's memory and show the plan",
  details: `Prints a report and a chart of live bytes. Exit code 1 if the program does not fit the budget.\n\n${CONTRACT}`,
  options: {
    ...PLAN_OPTIONS,
    ...SHAPES_OPTION,
    ...SIZE_OPTION,
    explain: {
      value: "VALUE",
      help: "explain one value (h, state.params.w0) or buffer (b12): address, lifespan, reasons",
    },
    minimum: { help: "also search for the smallest budget with a plan, which may take seconds" },
    map: { help: "draw the arena: time horizontally, addresses vertically" },
    text: { help: "print the program with the address of every value" },
    json: { help: "print one line of JSON instead of the report" },
    "plan-json": { value: "FILE", help: "write the whole plan, for `tidemark view` and for other programs" },
    "chrome-trace": {
      value: "FILE",
      help: "write kernels and memory over predicted time, for chrome://tracing and Perfetto",
    },
    csv: { value: "FILE", help: "write the placed buffers in MiniMalloc's format" },
    ...PROGRESS_OPTION,
  },
  async run(args, io) {
    const loaded = withAutocast(await loadProgram(args.positionals[0] as string, sizesOf(args)), args);
    const standIns = standInsIn(loaded);
    if (standIns.length > 0) io.err(`not known, planned as what they read and write: ${standIns.join(", ")}\n`);
    const settings = await planSettings(args, io, loaded);
    const shapes = args.value("shapes");
    if (shapes !== undefined) {
      const other = ["explain", "map", "text", "plan-json", "chrome-trace", "csv"].find((name) => args.has(name));
      if (other)
        throw usageError(`--shapes with --${other}`, "give one of them: --shapes prints figures of several plans");
      const family = planShapes(loaded, settings, shapes);
      if (args.has("json")) writeJson(io, { program: loaded.name, ...family });
      else io.out(String(family));
      return;
    }
    const outcome = planLoaded(loaded, settings);
    const { planned, figures, refusal } = outcome;
    const asked = args.value("explain");
    if (refusal === null && asked !== undefined) io.out(explainText(planned.plan, asked));
    else if (refusal === null) {
      if (args.has("text")) io.out(`${printPlan(planned.plan)}\n`);
      if (args.has("map")) io.out(`${memoryMap(planned.plan, paintFor(io))}\n`);
      if (!args.has("json")) io.out(planText(planned.plan, figures(args.has("minimum") ? "all programs" : "none"), io));
    }
    if (refusal === null) writeFiles(args, outcome);
    if (args.has("json")) writeJson(io, figures(args.has("minimum") ? "all programs" : "small programs"));
    if (refusal) throw refusal;
  },
};
