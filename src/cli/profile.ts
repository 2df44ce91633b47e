/**
 * @file A profile of a step: the program runs kernel by kernel, and the fastest of several runs of each is reported
 * with the kernel's work. Other processes only make times longer, so the fastest run is the kernel's own time. Kernels
 * run alone, on one thread; a loop is one kernel. Alternating with that, the program also runs as a whole: the sum over
 * kernels and the time of the step must agree, or the profile does not represent the step.
 */

import { currentHost } from "../api/host.ts";
import { plansOf } from "../api/plan.ts";
import { numberTensors } from "../api/traced-program.ts";
import { formatBytes } from "../base/bytes.ts";
import { at } from "../base/invariant.ts";
import { kernelTraffic, runningNests } from "../codegen/cpu/traffic.ts";
import type { TargetCosts } from "../compiler/node-costs.ts";
import { kernelName } from "../plan/json.ts";
import type { Plan } from "../plan/problem.ts";
import { table } from "../plan/table.ts";
import { chooseTarget } from "../runtime/choose-target.ts";
import { Executable } from "../runtime/executable.ts";
import type { AnyFunction } from "../trace/function.ts";
import { storageOf } from "../trace/tensor.ts";
import { compileOptions, type PlanSettings } from "./plan-figures.ts";
import type { AnyProgram } from "./programs/built-in.ts";

/** One step of the schedule. */
export interface ProfiledStep {
  readonly step: number;
  readonly name: string;
  readonly phase: string;
  readonly ms: number;
  readonly flops: number;
  /** Each operand once, and as often as loops go over it (codegen/cpu/traffic.ts). */
  readonly bytes: number;
  readonly movedBytes: number;
}

export interface Profile {
  readonly plan: Plan;
  /** In the order of the schedule; steps that only rename are left out. */
  readonly steps: readonly ProfiledStep[];
  /** All kernels. */
  readonly ms: number;
  readonly flops: number;
  readonly bytes: number;
  readonly movedBytes: number;
  /** The fastest run of the whole step; equals the sum of `ms` except for clock and cache effects. */
  readonly wholeMs: number;
}

const LEAST_RUNS = 3;

interface Times {
  readonly kernels: readonly number[];
  readonly whole: number;
}

/**
 * Alternates between single kernels and the whole step. A busy machine leaves a kernel uninterrupted, but not a step:
 * for the step, processor time counts if it is less.
 */
function fastest(stepwise: Executable, complete: Executable, restore: () => void, seconds: number): Times {
  const kernels = stepwise.placed.kernels.map(() => Number.POSITIVE_INFINITY);
  let best = Number.POSITIVE_INFINITY;
  const end = performance.now() + seconds * 1000;
  for (let run = 0; run < LEAST_RUNS || performance.now() < end; run++) {
    restore();
    let started = performance.now();
    stepwise.runStepwise((kernel) => {
      kernels[kernel] = Math.min(at(kernels, kernel), performance.now() - started);
      started = performance.now();
    });
    started = performance.now();
    const used = process.cpuUsage();
    complete.run();
    const { user, system } = process.cpuUsage(used);
    best = Math.min(best, performance.now() - started, (user + system) / 1000);
  }
  return { kernels, whole: best };
}

/** Runs a program kernel by kernel for some seconds. */
export function profile(program: AnyProgram, settings: PlanSettings, seconds: number): Profile {
  const { target } = chooseTarget(currentHost(), settings.target, { products: settings.products });
  const args = [program.init(), ...program.batch()];
  const options = { donate: [0], name: program.name, ...compileOptions({ ...settings, threads: 1 }) };
  const { plans, source } = plansOf(program.step as AnyFunction, args, options, target);
  const placed = plans.placed(plans.choose(settings.memory), 0);
  const [stepwise, whole] = [new Executable(placed, target, { stepwise: true }), new Executable(placed, target)];
  const { flat, traced } = source;
  const captured = traced.captures.map((capture) => capture.tensor);
  const inputs = [...flat.tensors, ...numberTensors(traced, flat), ...captured];
  const restore = (): void => {
    placed.graph.params.forEach(({ type }, i) => {
      const data = storageOf(at(inputs, i)).read();
      for (const executable of [stepwise, whole]) executable.write(type, at(placed.params, i), data);
    });
  };
  const times = fastest(stepwise, whole, restore, seconds);
  const { steps: planned } = placed.plan.program;
  const indexOf = new Map(planned.map((step, i) => [step.node, i]));
  const steps = placed.kernelNodes.map((node, kernel): ProfiledStep => {
    const step = indexOf.get(node) ?? 0;
    const name = kernelName(at(planned, step)) ?? node.op.name;
    const done = workOf(placed.plan, step, plans.costs);
    return { step, name, phase: node.phase, ms: at(times.kernels, kernel), ...done };
  });
  return { plan: placed.plan, steps, ...totals(steps), wholeMs: times.whole };
}

type Amounts = Pick<ProfiledStep, "ms" | "flops" | "bytes" | "movedBytes">;

function totals(steps: readonly Amounts[]): Amounts {
  const sum = (of: (step: Amounts) => number): number => steps.reduce((total, step) => total + of(step), 0);
  return {
    ms: sum(({ ms }) => ms),
    flops: sum(({ flops }) => flops),
    bytes: sum(({ bytes }) => bytes),
    movedBytes: sum(({ movedBytes }) => movedBytes),
  };
}

function workOf(plan: Plan, step: number, costs: TargetCosts): Omit<Amounts, "ms"> {
  const { node, writes } = at(plan.program.steps, step);
  const [first] = writes;
  const inPlace = first !== undefined && plan.inPlace.has(first);
  const { productFlops, arithmetic, bytes } = costs.workOf(node, inPlace);
  const kernel = costs.kernelOf(node);
  const movedBytes = kernel ? kernelTraffic(kernel, runningNests(kernel, inPlace)).moved : bytes;
  return { flops: productFlops + arithmetic, bytes, movedBytes };
}

/** Kernels grouped by name, the most time first; then the slowest single kernels; then the sum and the step. */
export function profileText({ steps, wholeMs }: Profile, most = 12): string {
  const named = new Map<string, ProfiledStep[]>();
  for (const step of steps) named.set(step.name, [...(named.get(step.name) ?? []), step]);
  const groups = [...named].map(([name, all]) => ({ name: `${name} × ${all.length}`, ...totals(all) }));
  const sum = totals(steps);
  const row = (name: string, m: Amounts): string[] => [
    name,
    `${m.ms.toFixed(3)} ms`,
    `${((100 * m.ms) / sum.ms).toFixed(1)} %`,
    `${(m.flops / m.ms / 1e6).toFixed(1)} G/s`,
    formatBytes(m.bytes),
    `${(m.bytes / m.ms / 1e6).toFixed(1)} GB/s`,
    `moved ${(m.movedBytes / Math.max(1, m.bytes)).toFixed(2)} ×`,
  ];
  const slowest = <T extends { readonly ms: number }>(all: readonly T[]): readonly T[] =>
    [...all].sort((a, b) => b.ms - a.ms).slice(0, most);
  const rows = [
    ...slowest(groups).map((group) => row(group.name, group)),
    row(steps.length === 1 ? "the only kernel" : `all ${steps.length} kernels`, sum),
    ...slowest(steps).map((step) => row(`step ${step.step}: ${step.name}, ${step.phase}`, step)),
  ];
  const align = ["left", "right", "right", "right", "right", "right", "right"] as const;
  const compared = `${(sum.ms / wholeMs).toFixed(2)} × the fastest step as a whole, ${wholeMs.toFixed(3)} ms`;
  return `${table(rows, align)
    .map((line) => `  ${line}\n`)
    .join("")}  kernels one by one take ${sum.ms.toFixed(3)} ms, ${compared}\n`;
}
