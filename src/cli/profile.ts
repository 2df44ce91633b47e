/**
 * @file Where the time of a step goes: the program run kernel by kernel, the fastest of several runs of each, beside what the
 * kernel does. Other processes make times longer and never shorter, so the fastest is the kernel's own. Kernels run alone,
 * on one thread; a loop is one of them.
 */
import { plansOf } from "../api/plan.ts";
import { formatBytes } from "../base/bytes.ts";
import { at } from "../base/invariant.ts";
import type { CostModel } from "../plan/cost/model.ts";
import { type Work, workOfNode } from "../plan/cost/work.ts";
import { kernelName } from "../plan/json.ts";
import type { Plan } from "../plan/problem.ts";
import { table } from "../plan/table.ts";
import { chooseTarget } from "../runtime/choose-target.ts";
import { Executable } from "../runtime/executable.ts";
import type { AnyFunction } from "../trace/function.ts";
import { storageOf } from "../trace/tensor.ts";
import { flatten } from "../trace/tree.ts";
import { compileOptions, type PlanSettings } from "./plan-figures.ts";
import type { AnyProgram } from "./programs/built-in.ts";

/** One step of the schedule. */
export interface ProfiledStep {
  readonly step: number;
  readonly name: string;
  readonly phase: string;
  readonly ms: number;
  readonly flops: number;
  readonly bytes: number;
}

export interface Profile {
  readonly plan: Plan;
  /** In the order of the schedule; steps that only rename are left out. */
  readonly steps: readonly ProfiledStep[];
  /** All kernels. */
  readonly ms: number;
  readonly bytes: number;
}

const LEAST_RUNS = 3;

function fastest(executable: Executable, restore: () => void, seconds: number): readonly number[] {
  const best = executable.placed.kernels.map(() => Number.POSITIVE_INFINITY);
  const end = performance.now() + seconds * 1000;
  for (let run = 0; run < LEAST_RUNS || performance.now() < end; run++) {
    restore();
    let started = performance.now();
    executable.runStepwise((kernel) => {
      best[kernel] = Math.min(at(best, kernel), performance.now() - started);
      started = performance.now();
    });
  }
  return best;
}

/** Runs a program kernel by kernel for some seconds. */
export function profile(program: AnyProgram, settings: PlanSettings, seconds: number): Profile {
  const { target } = chooseTarget(settings.target);
  const args = [program.init(), ...program.batch()];
  const options = { donate: [0], name: program.name, ...compileOptions({ ...settings, threads: 1 }) };
  const { plans, source } = plansOf(program.step as AnyFunction, args, options, target);
  const placed = plans.placed(plans.choose(settings.memory), 0);
  const executable = new Executable(placed, target, true);
  const given = [...flatten(args, "arguments").leaves, ...source.traced.captures.map((capture) => capture.tensor)];
  const restore = (): void => {
    placed.graph.params.forEach(({ type }, i) => {
      executable.write(type, at(placed.params, i), storageOf(at(given, i)).read());
    });
  };
  const times = fastest(executable, restore, seconds);
  const { steps: planned } = placed.plan.program;
  const indexOf = new Map(planned.map((step, i) => [step.node, i]));
  const steps = placed.kernelNodes.map((node, kernel): ProfiledStep => {
    const step = indexOf.get(node) ?? 0;
    const work = workOf(placed.plan, step, settings.machine.costs);
    const name = kernelName(at(planned, step)) ?? node.op.name;
    const flops = work.productFlops + work.arithmetic;
    return { step, name, phase: node.phase, ms: at(times, kernel), flops, bytes: work.bytes };
  });
  const sum = (of: (step: ProfiledStep) => number): number => steps.reduce((total, step) => total + of(step), 0);
  return { plan: placed.plan, steps, ms: sum(({ ms }) => ms), bytes: sum(({ bytes }) => bytes) };
}

function workOf(plan: Plan, step: number, { tile }: CostModel): Work {
  const { node, writes } = at(plan.program.steps, step);
  const [first] = writes;
  const inPlace = first !== undefined && plan.inPlace.has(first);
  return workOfNode(node, { inPlace, ...(tile ? { tile } : {}) });
}

/** Kernels of one name together, the most time first; then the single kernels that take most. */
export function profileText({ steps, ms, bytes }: Profile, most = 12): string {
  const named = new Map<string, ProfiledStep[]>();
  for (const step of steps) named.set(step.name, [...(named.get(step.name) ?? []), step]);
  const groups = [...named].map(([name, members]) => ({
    name: `${name} × ${members.length}`,
    ms: members.reduce((sum, m) => sum + m.ms, 0),
    flops: members.reduce((sum, m) => sum + m.flops, 0),
    bytes: members.reduce((sum, m) => sum + m.bytes, 0),
  }));
  const row = (name: string, m: { readonly ms: number; readonly flops: number; readonly bytes: number }): string[] => [
    name,
    `${m.ms.toFixed(3)} ms`,
    `${((100 * m.ms) / ms).toFixed(1)} %`,
    `${(m.flops / m.ms / 1e6).toFixed(1)} G/s`,
    formatBytes(m.bytes),
    `${(m.bytes / m.ms / 1e6).toFixed(1)} GB/s`,
  ];
  const slowest = <T extends { readonly ms: number }>(all: readonly T[]): readonly T[] =>
    [...all].sort((a, b) => b.ms - a.ms).slice(0, most);
  const rows = [
    ...slowest(groups).map((group) => row(group.name, group)),
    row(`all ${steps.length} kernels`, { ms, bytes, flops: steps.reduce((sum, m) => sum + m.flops, 0) }),
    ...slowest(steps).map((step) => row(`step ${step.step}: ${step.name}, ${step.phase}`, step)),
  ];
  const align = ["left", "right", "right", "right", "right", "right"] as const;
  return table(rows, align)
    .map((line) => `  ${line}\n`)
    .join("");
}
