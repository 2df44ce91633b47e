/**
 * @file A plan as a Chrome trace (the Trace Event Format of chrome://tracing, read by Perfetto too): kernels as slices
 * with their times, live bytes by kind as a stacked counter.
 *
 *     kernels   │ matmul ││ add │   matmul    │        ph "X": ts, dur in microseconds
 *     memory    ▂▂▂▂▂▂▂▂▅▅▅▅▅▅▅███████████████▂        ph "C": one sample where a step begins
 *
 * Every queue is a thread, every memory space a counter. Times are predicted or measured by a profile; the file says
 * which.
 */
import { at } from "../base/invariant.ts";
import { type NodeCosts, planMs, queuedMs } from "./cost/model.ts";
import { CopyClock, isStart, isWait } from "./cost/queues.ts";
import { kernelName } from "./json.ts";
import { liveByKind } from "./memory-chart.ts";
import { nameValues } from "./names.ts";
import { BUFFER_KINDS, type BufferKind, type Plan, type Step } from "./problem.ts";
import { stepText } from "./statement.ts";

/** An event of Chrome's trace format. */
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

/** A file in Chrome's trace format. */
export interface TraceFile {
  readonly displayTimeUnit: "ms";
  readonly otherData: Readonly<Record<string, string | number>>;
  readonly traceEvents: readonly TraceEvent[];
}

/**
 * The plan over time, for viewers of Chrome's trace format.
 *
 * @param msOfStep milliseconds of a step, predicted or measured, as `time` says
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { planTrace } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(planTrace(plan, () => 1).traceEvents.length > 0); // → true
 */
export function planTrace(
  plan: Plan,
  msOfStep: (step: Step) => number,
  time: "predicted" | "measured" = "predicted",
): TraceFile {
  const { program, height, bound } = plan;
  const nameOf = nameValues(program);
  const counters = countersOf(plan);
  const events: TraceEvent[] = [named("process_name", program.name, 0), named("thread_name", "kernels", 0)];
  const queues = new Set(program.steps.flatMap(({ queue }) => (queue ? [queue] : [])));
  for (const queue of [...queues].sort((a, b) => a - b)) events.push(named("thread_name", `queue ${queue}`, queue));
  const clock = new CopyClock();
  let ts = 0;
  for (let i = 0; i <= program.steps.length; i++) {
    for (const { name, used } of counters) {
      const args = Object.fromEntries(used.map(([kind, bytes]) => [kind, at(bytes, i)]));
      events.push({ name, ph: "C", ts, ...threadOf(0), args });
    }
    const step = program.steps[i];
    if (!step || step.alias) continue;
    if (isWait(step)) {
      ts = clock.wait(step, ts);
      continue;
    }
    const dur = msOfStep(i) * 1000;
    const begin = isStart(step) ? clock.start(step, ts, dur) : ts;
    const { op, phase, where, replay } = step.node;
    const text = stepText(step, nameOf, (v) => plan.bufferOf.has(v));
    const args = { step: i, text, ...(where ? { where } : {}), ...(replay > 0 ? { replay } : {}) };
    const thread = threadOf(step.queue ?? 0);
    events.push({ name: kernelName(step) ?? op.name, cat: phase, ph: "X", ts: begin, dur, ...thread, args });
    if (!isStart(step)) ts += dur;
  }
  const otherData = { program: program.name, arenaBytes: height, boundBytes: bound.bytes, time };
  return { displayTimeUnit: "ms", otherData, traceEvents: events };
}

const threadOf = (queue: number) => ({ pid: 1, tid: queue + 1 }) as const;

function named(what: string, name: string, queue: number): TraceEvent {
  return { name: what, ph: "M", ts: 0, ...threadOf(queue), args: { name } };
}

interface Counter {
  readonly name: string;
  /** The kinds of buffers in use, with their live bytes at each step. */
  readonly used: readonly (readonly [BufferKind, Float64Array])[];
}

/** Live bytes of every memory space. */
function countersOf(plan: Plan): readonly Counter[] {
  return plan.problem.spaces.map(({ name }, space) => {
    const live = liveByKind(plan, plan.program.steps.length + 1, space);
    const used = BUFFER_KINDS.map((kind, k) => [kind, at(live, k)] as const);
    const some = used.filter(([, bytes]) => bytes.some((b) => b > 0));
    return { name: plan.problem.spaces.length === 1 ? "memory" : name, used: some };
  });
}

/**
 * The predicted time of a step, as a program of that step alone; of a copy, its time on its queue.
 *
 * @example
 * import { plan } from "tidemark";
 * import { type Plan, predictedStepMs } from "tidemark/plan";
 *
 * // The costs of a target's kernels: those of calibration, or of another machine.
 * const ms = (plan: Plan, costs: Parameters<typeof predictedStepMs>[2]) => predictedStepMs(plan, 0, costs);
 * console.log(typeof ms); // → function
 */
export function predictedStepMs(plan: Plan, step: Step, costs: NodeCosts): number {
  const one = at(plan.program.steps, step);
  if (one.copy || one.exchange) return isStart(one) ? queuedMs(one, costs) : 0;
  const program = { ...plan.program, params: [], steps: [at(plan.program.steps, step)] };
  return planMs({ ...plan, program, copies: [] }, costs);
}
