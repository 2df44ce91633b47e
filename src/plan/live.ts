/**
 * @file What is live at a step, and why: the table under every statement about a peak. A buffer is written here, read
 * here, workspace of this step, an end of a copy in flight, or waiting: for a later reader, for the caller, or for the next run.
 */
import type { Value } from "../ir/graph.ts";
import type { NameOf } from "./names.ts";
import { alignUp, type BufferId, type BufferKind, type Plan, problemIn, type Step } from "./problem.ts";
import type { SpaceId } from "./space.ts";

/** A buffer at a step. */
export interface LiveBuffer {
  readonly buffer: BufferId;
  /** The value in it at that step; undefined for workspace and for output-only storage that has no content yet. */
  readonly value: Value | undefined;
  /** Rounded up to the alignment. */
  readonly bytes: number;
  readonly kind: BufferKind;
  readonly why: "written here" | "read here" | "workspace" | "in flight" | "persistent" | "result" | "held for later";
  /** The next step that reads it, for `held for later`; that waits for the copy, for `in flight`. */
  readonly nextReader?: Step;
}

/**
 * Buffers of a memory space that are live at a step, the largest first.
 *
 * @example
 * import { compile, grad, sum, type Tensor, zeros } from "tidemark";
 * import { liveAt } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(liveAt(plan, plan.bound.step).reduce((sum, { bytes }) => sum + bytes, 0) > 0); // → true
 */
export function liveAt(plan: Plan, step: Step, space: SpaceId = 0): readonly LiveBuffer[] {
  const { buffers, alignment } = problemIn(plan.problem, space);
  const { content, nextReader } = contentsAround(plan, step);
  const copied = flightsAt(plan, step);
  const now = plan.program.steps[step];
  const written = new Set(now?.writes.map((v) => plan.bufferOf.get(v)));
  const read = new Map(now?.reads.map((v) => [plan.bufferOf.get(v), v]));
  return buffers
    .filter(({ lifespan, bytes }) => lifespan.start <= step && step < lifespan.end && bytes > 0)
    .map(({ id, bytes, kind, values }): LiveBuffer => {
      const base = { buffer: id, value: content.get(id), bytes: alignUp(bytes, alignment), kind };
      const next = nextReader.get(id);
      if (written.has(id)) return { ...base, why: "written here" };
      if (read.has(id)) return { ...base, value: read.get(id), why: "read here" };
      if (values.length === 0) return { ...base, why: "workspace" };
      const wait = copied.get(id);
      if (wait !== undefined) return { ...base, why: "in flight", nextReader: wait };
      if (kind === "persistent") return { ...base, why: "persistent" };
      if (next !== undefined) return { ...base, why: "held for later", nextReader: next };
      return { ...base, why: "result" };
    })
    .sort((a, b) => b.bytes - a.bytes || a.buffer - b.buffer);
}

/** Per buffer, the last value written at or before a step, and the first later step that reads it. */
function contentsAround(plan: Plan, step: Step): { content: Map<BufferId, Value>; nextReader: Map<BufferId, Step> } {
  const content = new Map<BufferId, Value>();
  const nextReader = new Map<BufferId, Step>();
  const home = (value: Value): BufferId => plan.bufferOf.get(value) ?? -1;
  for (const param of plan.program.params) content.set(home(param), param);
  plan.program.steps.forEach(({ reads, writes }, i) => {
    if (i <= step) for (const value of writes) content.set(home(value), value);
    else for (const value of reads) if (!nextReader.has(home(value))) nextReader.set(home(value), i);
  });
  return { content, nextReader };
}

/** Buffers that are an end of a copy in flight at a step, and the step that waits for it. */
function flightsAt(plan: Plan, step: Step): ReadonlyMap<BufferId, Step> {
  const copied = new Map<BufferId, Step>();
  const started = new Set(
    plan.program.steps.slice(0, step).flatMap(({ copy }) => (copy?.kind === "start" ? [copy.to] : [])),
  );
  if (started.size === 0) return copied;
  plan.program.steps.forEach(({ copy }, wait) => {
    if (wait <= step || copy?.kind !== "wait" || !started.has(copy.to)) return;
    for (const value of [copy.from, copy.to]) copied.set(plan.bufferOf.get(value) ?? -1, wait);
  });
  return copied;
}

/** Bytes live at a step that the step does not touch and that are not persistent. */
export function waitingBytes(live: readonly LiveBuffer[]): number {
  const waiting = live.filter(({ why }) => why === "held for later" || why === "in flight" || why === "result");
  return waiting.reduce((sum, b) => sum + b.bytes, 0);
}

/** `held for step 21` and the like. */
export function whyText({ why, nextReader }: LiveBuffer): string {
  if (why === "in flight") return `in flight until step ${nextReader}`;
  return nextReader === undefined ? why : `held for step ${nextReader}`;
}

/** The name of a live buffer. */
export function liveName({ value, why }: LiveBuffer, nameOf: NameOf): string {
  return value ? nameOf(value) : `(${why})`;
}
