/** @file What a run of the fuzz suite found, as text and as data. */
import { type Counts, type Finding, noCounts, type Outcome } from "./findings.ts";
import type { Job } from "./jobs.ts";

/** A finding with the one command that shows it again. */
export interface Reported extends Finding {
  readonly seed: number;
  readonly about: string;
  readonly command: string;
}

export interface Report {
  readonly programs: number;
  readonly counts: Readonly<Counts>;
  readonly cpuSeconds: number;
  readonly byKind: Readonly<Record<string, number>>;
  readonly byTarget: Readonly<Record<string, number>>;
  readonly findings: readonly Reported[];
  /** The programs that took longest, in processor seconds. */
  readonly slowest: readonly { readonly seed: number; readonly cpuSeconds: number }[];
}

export function commandOf({ seed, target, size, mode, dtype, cast, mostSteps, without }: Job): string {
  const options = [
    `--seeds ${seed}:${seed + 1}`,
    ...(target ? [`--target ${target}`] : []),
    ...(size ? [`--size ${size}`] : []),
    ...(mode ? [`--mode ${mode}`] : []),
    ...(dtype ? [`--dtype ${dtype}`] : []),
    ...(cast ? [`--cast ${cast}`] : []),
    ...(mostSteps === undefined ? [] : [`--steps ${mostSteps}`]),
    ...(without && without.length > 0 ? [`--without ${without.join(",")}`] : []),
  ];
  return `npm run test:fuzz -- ${options.join(" ")}`;
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** What came of one job, each finding with its command. */
export function reported(job: Job, { seed, about, target, findings }: Outcome): readonly Reported[] {
  const command = commandOf(target === "drawn" ? job : { ...job, target: target as Job["target"] });
  return findings.map((finding) => ({ ...finding, seed, about, command }));
}

export function reportOf(outcomes: readonly Outcome[], findings: readonly Reported[]): Report {
  const counts = noCounts();
  for (const outcome of outcomes) {
    for (const key of Object.keys(counts) as (keyof Counts)[]) counts[key] += outcome.counts[key];
  }
  const slowest = [...outcomes].sort((a, b) => b.cpuSeconds - a.cpuSeconds).slice(0, 5);
  return {
    programs: outcomes.length,
    counts,
    cpuSeconds: Math.round(outcomes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)),
    byKind: tally(findings.map(({ kind }) => kind)),
    byTarget: tally(outcomes.map(({ target }) => target)),
    findings,
    slowest: slowest.map(({ seed, cpuSeconds }) => ({ seed, cpuSeconds })),
  };
}

const listed = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");

export function findingText({ kind, what, seed, about, command }: Reported): string {
  return `${kind}, seed ${seed} (${about}): ${what}\n  ${command}`;
}

export function reportText(report: Report): string {
  const { programs, counts, cpuSeconds, byKind, byTarget, findings, slowest } = report;
  const { plans, runs, refusals, references } = counts;
  return [
    `${programs} programs (${listed(byTarget)}): ${plans} plans, ${runs} runs, ${references} references, ${refusals} refusals`,
    `${cpuSeconds} s of processor time; longest: ${slowest.map((s) => `seed ${s.seed} ${s.cpuSeconds.toFixed(1)} s`).join(", ")}`,
    findings.length === 0 ? "no findings" : `${findings.length} findings: ${listed(byKind)}`,
  ].join("\n");
}
