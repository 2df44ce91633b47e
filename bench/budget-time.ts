/**
 * @file Processor time of planning under a budget, on small networks and built-in programs: one request a process, as on a
 * user's first call, from the traced graph to the chosen plan. Budgets are shares of the arena of storing everything.
 *
 *   npm run bench:budgets                                all programs and budgets, with little and with all effort
 *   npm run bench:budgets -- transformer gpt 0.7 quick     some
 *
 * `plan` is a digest of the plan's text: equal where nothing has changed.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import "../src/api/index.ts";
import { plansOf } from "../src/api/plan.ts";
import { ALL_PROGRAMS } from "../src/cli/programs/built-in.ts";
import type { MemoryRequest } from "../src/compiler/request.ts";
import { printPlan } from "../src/plan/print.ts";
import { specsOfModel } from "../src/playground/model.ts";
import { MODELS } from "../src/playground/models.ts";
import type { AnyFunction } from "../src/trace/function.ts";

const NAMES = ["transformer", "lstm", "gpt", "chain64", "unet"];
const BUDGETS = ["0.85", "0.7", "0.55", "min"];
const [QUICK, FULL] = ["quick", "full"];
const CHILD = "--one";

interface Row {
  readonly ms: number;
  readonly plans: number;
  readonly arenaBytes: number;
  readonly slowdown: number;
  readonly digest: string;
}

function program(name: string): readonly [AnyFunction, readonly unknown[]] {
  const model = MODELS.find((one) => one.name === name);
  if (model) return [model.step as AnyFunction, specsOfModel(model)];
  const known = ALL_PROGRAMS.find((one) => one.name === name);
  if (!known) throw new Error(`there is no program ${name}`);
  return [known.step as AnyFunction, known.specs?.() ?? [known.init(), ...known.batch()]];
}

function requestOf(budget: string, quick: boolean): MemoryRequest {
  if (budget === "all") return {};
  return budget === "min" ? { least: true } : { budgetBytes: Number(budget), quick };
}

/** One request, in this process. */
function measure(name: string, budget: string, quick: boolean): Row {
  const [step, args] = program(name);
  let plans = 0;
  const { plans: all } = plansOf(step, args, { donate: [0], name, cache: false, progress: () => plans++ });
  const before = process.cpuUsage();
  const chosen = all.choose(requestOf(budget, quick));
  const { user, system } = process.cpuUsage(before);
  const digest = createHash("sha256").update(printPlan(chosen.result.plan)).digest("hex").slice(0, 8);
  const slowdown = chosen.predictedMs / all.storeAllFigures.predictedMs;
  return { ms: (user + system) / 1000, plans, arenaBytes: chosen.arenaBytes, slowdown, digest };
}

/** The same in a separate process; the last line of what it says where it fails. */
function inOwnProcess(name: string, budget: string, effort: string): Row | string {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), CHILD, name, budget, effort];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return status === 0 ? (JSON.parse(stdout) as Row) : (/PlanInfeasible[^\n]*/.exec(stderr)?.[0] ?? stderr.trim());
}

function report(name: string, budgets: readonly string[], efforts: readonly string[]): void {
  const all = inOwnProcess(name, "all", FULL);
  const cells = (row: Row | string): string =>
    typeof row === "string"
      ? row
      : `${row.ms.toFixed(0).padStart(7)} ms ${String(row.plans).padStart(4)} plans ${String(row.arenaBytes).padStart(11)} ` +
        `bytes ${row.slowdown.toFixed(4)} × plan ${row.digest}`;
  const line = (budget: string, effort: string, row: Row | string): void =>
    console.log(name.padEnd(12), budget.padEnd(5), effort.padEnd(6), cells(row));
  line("all", "", all);
  if (typeof all === "string") return;
  for (const budget of budgets) {
    const share = Number(budget);
    const asked = Number.isNaN(share) ? budget : String(Math.floor(share * all.arenaBytes));
    // the least is looked for with all effort
    for (const effort of budget === "min" ? [FULL] : efforts) line(budget, effort, inOwnProcess(name, asked, effort));
  }
}

const words = process.argv.slice(2);
if (words[0] === CHILD)
  console.log(JSON.stringify(measure(words[1] as string, words[2] as string, words[3] === QUICK)));
else {
  const isBudget = (word: string): boolean => word === "min" || !Number.isNaN(Number(word));
  const isEffort = (word: string): boolean => word === QUICK || word === FULL;
  const some = (asked: readonly string[], all: readonly string[]): readonly string[] =>
    asked.length > 0 ? asked : all;
  const names = words.filter((word) => !isBudget(word) && !isEffort(word));
  const [budgets, efforts] = [words.filter(isBudget), words.filter(isEffort)];
  for (const name of some(names, NAMES)) report(name, some(budgets, BUDGETS), some(efforts, [QUICK, FULL]));
}
