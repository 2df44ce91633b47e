/** @file Figures of the page about placement: what sharing and writing in place save, and buffers to place by hand. */
import { boundOf } from "../../../src/plan/bound.ts";
import { type PlanJson, planJson } from "../../../src/plan/json.ts";
import { place } from "../../../src/plan/place.ts";
import { type Buffer, heightOf, type Problem } from "../../../src/plan/problem.ts";
import { attentionTraining, hourglass } from "./models.ts";
import { NETWORKS } from "./networks.ts";
import { type Planned, plansFor } from "./plans.ts";
import { unfusedPlan } from "./tape.ts";

export interface Reuse {
  /** Every value in bytes of its own. */
  readonly apartBytes: number;
  /** Values whose lifetimes do not overlap share bytes. */
  readonly sharedBytes: number;
  /** And a value may be written over one that its own operation reads for the last time. */
  readonly inPlaceBytes: number;
  /** And operations are fused, so that some values are never in memory. */
  readonly fusedBytes: number;
  /** The most bytes live at once, of the unfused program with values in place. */
  readonly boundBytes: number;
}

/** One buffer for each value, instead of one for each chain of values in place. */
function valuesApart({ steps, values, buffers, results, alignment }: PlanJson): Problem {
  const made = values.map(({ buffer }, v): Buffer => {
    const start = Math.max(
      0,
      steps.findIndex(({ writes }) => writes.includes(v)),
    );
    const last = steps.findLastIndex(({ reads }) => reads.includes(v));
    const isResult = results.some(({ value }) => value === v);
    const isParam = !steps.some(({ writes }) => writes.includes(v));
    const end = isResult ? steps.length + 1 : Math.max(start, last) + 1;
    const { bytes = 0, kind = "activation" } = buffers[buffer] ?? {};
    const lifespan = { start: isParam ? 0 : start, end };
    return { id: v, values: [], lifespan, bytes, align: alignment, kind };
  });
  const scratch = buffers.filter((buffer) => buffer.kind === "scratch");
  const workspaces = scratch.map(({ start, end, bytes, kind }, i): Buffer => {
    return { id: made.length + i, values: [], lifespan: { start, end }, bytes, align: alignment, kind };
  });
  return { buffers: [...made, ...workspaces], capacity: Number.POSITIVE_INFINITY, alignment };
}

/** The networks of the figure about reuse. */
const REUSED = {
  attention: () => attentionTraining(128, 16, false),
  convolutions: NETWORKS.convolutions,
  transformer: NETWORKS.transformer,
} as const;

export type ReuseName = keyof typeof REUSED;

/** Bytes of a network's training step, with one idea more at a time. */
export function reuse(name: ReuseName): Reuse {
  const planned: Planned = REUSED[name]();
  const plan = unfusedPlan(planned);
  const apart = valuesApart(plan);
  const bound = boundOf(apart);
  return {
    apartBytes: apart.buffers.reduce((sum, { bytes }) => sum + Math.ceil(bytes / plan.alignment) * plan.alignment, 0),
    sharedBytes: place(apart, bound.bytes).height,
    inPlaceBytes: plan.heightBytes,
    fusedBytes: plansFor(planned).storeAll.arenaBytes,
    boundBytes: plan.boundBytes,
  };
}

export interface PuzzleBuffer {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly bytes: number;
  /** Where the planner puts it. */
  readonly offset: number;
}

export interface Puzzle {
  readonly steps: number;
  readonly alignment: number;
  readonly buffers: readonly PuzzleBuffer[];
  readonly plannedBytes: number;
  readonly boundBytes: number;
  /** Placed in the order in which they are made, each at the lowest free address. */
  readonly inOrderBytes: number;
}

/** Smaller buffers are left out: they would be too thin to take hold of. */
const LEAST_BYTES = 4096;

/** Each buffer at the lowest address that is free for all its steps, in order of their first steps. */
function lowestFirst({ buffers }: Problem): readonly number[] {
  const offsets = new Map<number, number>();
  for (const { id, lifespan, bytes } of [...buffers].sort(
    (a, b) => a.lifespan.start - b.lifespan.start || a.id - b.id,
  )) {
    const others = buffers.filter(
      (other) => offsets.has(other.id) && other.lifespan.start < lifespan.end && lifespan.start < other.lifespan.end,
    );
    const taken = others.map((other) => ({ from: offsets.get(other.id) ?? 0, bytes: other.bytes }));
    let offset = 0;
    for (const { from, bytes: theirs } of taken.sort((a, b) => a.from - b.from)) {
      if (offset + bytes <= from) break;
      offset = Math.max(offset, from + theirs);
    }
    offsets.set(id, offset);
  }
  return buffers.map(({ id }) => offsets.get(id) ?? 0);
}

const [PUZZLE_BATCH, PUZZLE_WIDTHS] = [64, [64, 96, 112, 48]] as const;

/** The large buffers of a training step, to be placed by hand. */
export function puzzle(): Puzzle {
  const plan = planJson(plansFor(hourglass(PUZZLE_BATCH, PUZZLE_WIDTHS)).storeAll.result.plan);

  const kept = plan.buffers.flatMap((buffer) => {
    const isLarge =
      buffer.bytes >= LEAST_BYTES && buffer.kind !== "scratch" && buffer.kind !== "input" && buffer.kind !== "result";
    const name = plan.values[buffer.values[0] ?? -1]?.name ?? buffer.kind;
    return isLarge ? [{ ...buffer, name }] : [];
  });
  const first = Math.min(...kept.map(({ start }) => start));
  const last = Math.max(...kept.map(({ end }) => end));
  const buffers = kept.map(({ start, end, bytes, kind }, id): Buffer => {
    return { id, values: [], lifespan: { start: start - first, end: end - first }, bytes, align: plan.alignment, kind };
  });
  const problem: Problem = { buffers, capacity: Number.POSITIVE_INFINITY, alignment: plan.alignment };
  const bound = boundOf(problem);
  const placed = place(problem, bound.bytes);
  return {
    ...{ steps: last - first, alignment: plan.alignment, plannedBytes: placed.height, boundBytes: bound.bytes },
    buffers: kept.map(({ name, start, end, bytes }, i) => {
      return { name, start: start - first, end: end - first, bytes, offset: placed.offsets[i] ?? 0 };
    }),
    inOrderBytes: heightOf(problem, lowestFirst(problem)),
  };
}
