/**
 * @file The fuzz suite: random programs, each checked in a child process.
 *
 *   npm run test:fuzz                                         about ten minutes on two cores
 *   npm run test:fuzz -- --seeds 0:2000 --target wasm         more, on one target
 *   npm run test:fuzz -- --seeds 40:41 --minimise             one program, and the smallest with the same finding
 *
 * Exit code 1 where there are findings; each is printed with the command that shows it again. docs/testing.md has all
 * options.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { TargetName } from "./checks/session.ts";
import { runChild } from "./child.ts";
import { GROUP_NAMES, type Group, type Outcome } from "./findings.ts";
import type { Job } from "./jobs.ts";
import { minimise, programText, recipeOf } from "./minimise.ts";
import { Child, runJobs } from "./pool.ts";
import { CASTS, MODES, type Mode, SIZES, type Size } from "./program.ts";
import { commandOf, findingText, type Reported, reported, reportOf, reportText } from "./report.ts";
import { FLOATS, type FloatType } from "./scene.ts";

/** About ten minutes on two cores. */
const DEFAULT_SEEDS = "0:150";
const PROGRESS = 50;

const { values } = parseArgs({
  options: {
    child: { type: "boolean", default: false },
    seeds: { type: "string", default: DEFAULT_SEEDS },
    target: { type: "string" },
    size: { type: "string" },
    mode: { type: "string" },
    dtype: { type: "string" },
    cast: { type: "string" },
    groups: { type: "string", default: GROUP_NAMES.join(",") },
    steps: { type: "string" },
    without: { type: "string", default: "" },
    children: { type: "string", default: "2" },
    seconds: { type: "string", default: "60" },
    out: { type: "string", default: "node_modules/.cache/fuzz/report.json" },
    minimise: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    print: { type: "boolean", default: false },
  },
});

function wrong(summary: string): never {
  console.error(summary);
  process.exit(2);
}

function oneOf<T extends string>(option: string, given: string | undefined, known: readonly T[]): T | undefined {
  if (given === undefined || (known as readonly string[]).includes(given)) return given as T | undefined;
  return wrong(`--${option} is ${given}; give one of ${known.join(", ")}`);
}

function numberOf(option: string, text: string): number {
  const value = Number(text);
  return Number.isFinite(value) && value >= 0 && text !== "" ? value : wrong(`--${option} is ${text}; give a number`);
}

function jobsOf(): readonly Job[] {
  const [from, to] = values.seeds.split(":").map((text) => numberOf("seeds", text)) as [number, number];
  if (to === undefined || to <= from)
    wrong(`--seeds is ${values.seeds}; give the first and the one after the last: 0:150`);
  const groups = values.groups.split(",").map((group) => oneOf<Group>("groups", group, GROUP_NAMES) as Group);
  const without = values.without === "" ? undefined : values.without.split(",").map((n) => numberOf("without", n));
  const mostSteps = values.steps === undefined ? undefined : numberOf("steps", values.steps);
  const target = oneOf<TargetName>("target", values.target, ["wasm", "native"]);
  const [size, mode] = [oneOf<Size>("size", values.size, SIZES), oneOf<Mode>("mode", values.mode, MODES)];
  const [dtype, cast] = [
    oneOf<FloatType>("dtype", values.dtype, FLOATS),
    oneOf<Job["cast"] & string>("cast", values.cast, CASTS),
  ];
  return Array.from({ length: to - from }, (_, i) => ({
    seed: from + i,
    target,
    groups,
    size,
    mode,
    dtype,
    cast,
    mostSteps,
    without,
  }));
}

async function printSmallest(child: Child, job: Job, outcome: Outcome): Promise<void> {
  for (const kind of new Set(outcome.findings.map((finding) => finding.kind))) {
    const finding = outcome.findings.find((f) => f.kind === kind) as Outcome["findings"][number];
    const smallest = await minimise(child, job, finding);
    console.log(`smallest: ${kind} ${smallest.finding.what}\n  ${commandOf(smallest.job)}\n${smallest.text}`);
  }
}

async function main(): Promise<void> {
  const jobs = jobsOf();
  if (values.print) {
    for (const job of jobs) console.log(programText(recipeOf(job)));
    return;
  }
  const limits = { cpuSeconds: numberOf("seconds", values.seconds), residentBytes: 3 * 2 ** 30 };
  const script = fileURLToPath(import.meta.url);
  const children = Array.from({ length: numberOf("children", values.children) }, () => new Child(script, limits));
  const outcomes: Outcome[] = [];
  const findings: Reported[] = [];
  const broken: (readonly [Job, Outcome])[] = [];
  await runJobs(jobs, children, (outcome, job) => {
    outcomes.push(outcome);
    if (values.verbose) console.log(`seed ${outcome.seed} ${outcome.about}: ${outcome.cpuSeconds.toFixed(2)} s`);
    const found = reported(job, outcome);
    findings.push(...found);
    for (const finding of found) console.log(findingText(finding));
    if (outcome.findings.length > 0) broken.push([job, outcome]);
    if (outcomes.length % PROGRESS === 0) console.log(`${outcomes.length} of ${jobs.length} programs`);
  });
  const report = reportOf(outcomes, findings);
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(values.out, `${JSON.stringify(report, null, 2)}\n`);
  console.log(reportText(report));
  console.log(`as data: ${values.out}`);
  if (values.minimise) {
    const child = new Child(script, limits);
    for (const [job, outcome] of broken) await printSmallest(child, job, outcome);
    child.close();
  }
  process.exitCode = report.findings.length > 0 ? 1 : 0;
}

if (values.child) runChild();
else {
  // Plans and compiled programs of earlier runs are not this one's.
  const cache = mkdtempSync(join(tmpdir(), "tidemark-fuzz-"));
  process.env.XDG_CACHE_HOME = cache;
  try {
    await main();
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
}
