/** @file `tidemark revolve`: how the adjoint of a loop runs backward with few snapshots, counted and drawn. */
import { counted, grouped } from "../../base/errors.ts";
import { invariant } from "../../base/invariant.ts";
import type { Action, LevelSpec, ReversalSchedule } from "../../node/reverse/action.ts";
import { type Checked, checkActions } from "../../node/reverse/check.ts";
import { parseLevels } from "../../node/reverse/level-text.ts";
import { schedulePicture } from "../../node/reverse/picture.ts";
import { SCHEDULE_NAMES, scheduleNamed, summaryOf } from "../../node/reverse/schedule.ts";
import { type Arguments, type Command, integerOption, usageError, writeJson } from "../command.ts";
import { readText } from "../files.ts";

/** Up to this length, actions are listed by default. */
const LISTED_STEPS = 100;
const MOST_LISTED = 1_000_000;
/** Every action is executed, which takes about a second for a million steps. */
const MOST_STEPS = 10_000_000;

/** Costs from a file: a JSON array, or numbers between spaces, commas and line breaks. */
function costsOf(path: string): readonly number[] {
  const text = readText(path, "text");
  const words = text.replace(/^\s*\[|\]\s*$/g, "").split(/[\s,]+/);
  const costs = words.filter((word) => word !== "").map(Number);
  const wrong = costs.findIndex((cost) => !(Number.isFinite(cost) && cost >= 0));
  if (wrong >= 0) throw usageError(`${path}: cost ${wrong + 1} is not a number of 0 or more`, "give one for each step");
  return costs;
}

function stepsOf(args: Arguments, costs: readonly number[] | undefined): number {
  if (!args.has("steps") && !costs) throw usageError("revolve: no steps given", "--steps 100");
  const steps = integerOption(args, "steps", costs?.length ?? 0, { least: 0 });
  if (steps > MOST_STEPS) {
    throw usageError(`--steps ${grouped(steps)}`, `every step is followed; give at most ${grouped(MOST_STEPS)}`);
  }
  if (costs && costs.length !== steps) {
    throw usageError(`${counted(costs.length, "cost")} for ${counted(steps, "step")}`, "give one cost for each step");
  }
  return steps;
}

/** The schedule chosen by the options, by name or by an option that implies it. */
function nameOf(args: Arguments): string {
  const about = [
    ["online", "online"],
    ["levels", "multi-level"],
    ["costs", "variable"],
  ] as const;
  const implied = about.filter(([option]) => args.has(option));
  const name = args.value("schedule") ?? implied[0]?.[1] ?? "binomial";
  // costs apply to any schedule, other options to one
  const clash = implied.find(([option, schedule]) => schedule !== name && option !== "costs");
  if (clash) throw usageError(`revolve: --${clash[0]} with the schedule ${name}`, `--${clash[0]} is for ${clash[1]}`);
  return name;
}

/** The default number of snapshots of each schedule. */
function snapshotsOf(args: Arguments, name: string, steps: number, levels: readonly LevelSpec[] | undefined): number {
  if (args.has("snapshots")) {
    const snapshots = integerOption(args, "snapshots", 0, { least: 0 });
    const total = levels?.reduce((sum, { units }) => sum + units, 0);
    if (levels && snapshots !== total && snapshots !== levels[0]?.units) {
      throw usageError(`--snapshots ${snapshots} with --levels of ${total}`, "leave one out: the levels say how many");
    }
    return snapshots;
  }
  if (levels) return 0;
  if (name === "binary") return Math.ceil(Math.log2(Math.max(2, steps)));
  if (name === "store-all" || name === "square-root" || args.has("every")) return steps;
  throw usageError("revolve: no snapshots given", "--snapshots 5, the state at the start counted; or --levels mem:5");
}

function scheduleOf(args: Arguments): { schedule: ReversalSchedule; costs: readonly number[] | undefined } {
  const file = args.value("costs");
  const costs = file === undefined ? undefined : costsOf(file);
  const steps = stepsOf(args, costs);
  const text = args.value("levels");
  const levels = text === undefined ? undefined : parseLevels(text);
  const name = nameOf(args);
  if (args.has("every") && name !== "periodic") throw usageError("--every", "is for --schedule periodic");
  const every = args.has("every") ? integerOption(args, "every", 1, { least: 1 }) : undefined;
  const snapshots = snapshotsOf(args, name, steps, levels);
  return { schedule: scheduleNamed(name, { steps, snapshots, levels, costs, every }), costs };
}

/** The actions themselves, or their number. */
function listed(args: Arguments, schedule: ReversalSchedule, checked: Checked): readonly Action[] | number {
  if (!args.has("actions") && schedule.steps > LISTED_STEPS) return checked.actions;
  if (checked.actions > MOST_LISTED) {
    throw usageError(`--actions: there are ${grouped(checked.actions)}`, `at most ${grouped(MOST_LISTED)} are listed`);
  }
  return [...schedule.actions()];
}

function actionText(action: Action): string {
  const { kind, ...rest } = action;
  return `${kind.padEnd(8)} ${Object.entries(rest)
    .map(([key, n]) => `${key} ${n}`)
    .join(", ")}`;
}

function reportText(schedule: ReversalSchedule, checked: Checked): string {
  const { forwardSteps, recomputedSteps, peakSnapshots, peakTapes, actions, cost, reads, writes } = checked;
  const ratio = (forwardSteps / Math.max(1, schedule.steps)).toFixed(2);
  const tapes = peakTapes > 0 ? `, ${counted(peakTapes, "tape")}` : "";
  const lines = [
    `${schedule.name}: ${counted(schedule.steps, "step")}, ${counted(peakSnapshots, "snapshot")}${tapes} at most`,
    `${counted(forwardSteps, "evaluation")}, ${ratio} a step, ${grouped(recomputedSteps)} of them recomputed; ${counted(actions, "action")}`,
  ];
  if (schedule.levels.some(({ writeCost, readCost }) => writeCost + readCost > 0)) {
    const parts = schedule.levels.map(({ name }, k) => `${name} ${writes[k]} written, ${reads[k]} read`);
    lines.push(`${parts.join("; ")}; cost ${cost}`);
  }
  return `${lines.join("\n")}\n`;
}

export const revolve: Command = {
  name: "revolve",
  positionals: [],
  summary: "schedule the adjoint of a loop of many steps with few snapshots",
  details: [
    "A snapshot is a stored state of the loop, including the one at the start. forwardSteps counts all evaluations of steps,",
    "recomputedSteps those beyond one each.",
    "",
    "schedules:",
    ...SCHEDULE_NAMES.map((name) => `  ${name.padEnd(12)} ${summaryOf(name)}`),
    "",
    "In the picture time goes down: ▪ stored state, ─ step run, ━ run with its tape, ◀ reversed, · not reversed yet.",
  ].join("\n"),
  options: {
    steps: { value: "L", help: "length of the loop" },
    snapshots: { value: "S", help: "number of snapshots; for mixed, of snapshots and tapes" },
    schedule: { value: "NAME", help: "one of the above; default: binomial, or the one that another option implies" },
    every: { value: "K", help: "periodic: steps between snapshots" },
    levels: { value: "LIST", help: "multi-level, fastest first: mem:4,disk:20:w=2:r=1 (costs in steps), or disk:inf" },
    online: { help: "schedule as if the length were known only at the end" },
    costs: { value: "FILE", help: "cost of each step; implies the schedule variable" },
    actions: { help: `list the actions (always for up to ${LISTED_STEPS} steps)` },
    json: { help: "print one line of JSON" },
  },
  run(args, io) {
    const { schedule, costs } = scheduleOf(args);
    const checked = checkActions(schedule.steps, schedule.levels, schedule.actions(), { costs });
    invariant(checked.problem === null, () => `${schedule.name}: ${checked.problem}`);
    if (args.has("json")) {
      const { actions: actionCount, problem: _, ...counts } = checked;
      const { name, steps } = schedule;
      writeJson(io, { schedule: name, steps, ...counts, actionCount, actions: listed(args, schedule, checked) });
      return;
    }
    io.out(reportText(schedule, checked));
    io.out(schedulePicture(schedule, schedule.steps > LISTED_STEPS ? { columns: 100, lines: 40 } : {}));
    if (!args.has("actions")) return;
    const actions = listed(args, schedule, checked);
    invariant(typeof actions !== "number", () => "asked for actions, counted them");
    for (const action of actions) io.out(`${actionText(action)}\n`);
  },
};
