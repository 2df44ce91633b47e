/**
 * @file A plan as a Chrome trace (the Trace Event Format of chrome://tracing, read by Perfetto too): kernels as slices
 * with their times, live bytes by kind as a stacked counter.
 *
 *     kernels   │ matmul ││ add │   matmul    │        ph "X": ts, dur in microseconds
 *     memory    ▂▂▂▂▂▂▂▂▅▅▅▅▅▅▅███████████████▂        ph "C": one sample where a step begins
 *
 * Time is what the plan expects, or what a profile measured; the file says which.
 */
import { at } from "../base/invariant.ts";
import { type NodeCosts, planMs } from "./cost/model.ts";
import { kernelName } from "./json.ts";
import { liveByKind } from "./memory-chart.ts";
import { nameValues } from "./names.ts";
import { BUFFER_KINDS, type Plan, type Step } from "./problem.ts";
import { stepText } from "./statement.ts";

export interface TraceEvent {
  readonly name: string;
  /** `X` a slice, `C` a counter, `M` a name. */
  readonly ph: "X" | "C" | "M";
  readonly cat?: string;
  /** Microseconds. */
  readonly ts: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid: number;
  readonly args: Readonly<Record<string, string | number>>;
}

export interface TraceFile {
  readonly displayTimeUnit: "ms";
  readonly otherData: Readonly<Record<string, string | number>>;
  readonly traceEvents: readonly TraceEvent[];
}

/** @param msOfStep milliseconds of a step, predicted or measured, as `time` says */
export function planTrace(
  plan: Plan,
  msOfStep: (step: Step) => number,
  time: "predicted" | "measured" = "predicted",
): TraceFile {
  const { program, height, bound } = plan;
  const nameOf = nameValues(program);
  const live = liveByKind(plan, program.steps.length + 1, 0);
  const used = BUFFER_KINDS.map((kind, k) => [kind, at(live, k)] as const).filter(([, bytes]) =>
    bytes.some((b) => b > 0),
  );
  const process = { pid: 1, tid: 1 } as const;
  const named = (what: string, name: string): TraceEvent => ({
    name: what,
    ph: "M",
    ts: 0,
    ...process,
    args: { name },
  });
  const events: TraceEvent[] = [named("process_name", program.name), named("thread_name", "kernels")];
  let ts = 0;
  for (let i = 0; i <= program.steps.length; i++) {
    const bytes = Object.fromEntries(used.map(([kind, mine]) => [kind, at(mine, i)]));
    events.push({ name: "memory", ph: "C", ts, ...process, args: bytes });
    const step = program.steps[i];
    if (!step || step.alias) continue;
    const dur = msOfStep(i) * 1000;
    const { op, phase, where, replay } = step.node;
    const text = stepText(step, nameOf, (v) => plan.bufferOf.has(v));
    const args = { step: i, text, ...(where ? { where } : {}), ...(replay > 0 ? { replay } : {}) };
    events.push({ name: kernelName(step) ?? op.name, cat: phase, ph: "X", ts, dur, ...process, args });
    ts += dur;
  }
  const otherData = { program: program.name, arenaBytes: height, boundBytes: bound.bytes, time };
  return { displayTimeUnit: "ms", otherData, traceEvents: events };
}

/** What a step is predicted to take: a program of that step alone. */
export function predictedStepMs(plan: Plan, step: Step, costs: NodeCosts): number {
  const program = { ...plan.program, params: [], steps: [at(plan.program.steps, step)] };
  return planMs({ ...plan, program, copies: [] }, costs);
}
