/**
 * @file Memory over time as a stacked chart of text: one letter per kind of buffer, persistent storage at the bottom.
 *
 *      57,408 |             R|  peak, bound
 *             |      ggg  RRR|
 *             |aaaaaaaagggggR|
 *      14,352 |PPPPPPPPPPPPPP|
 *        step  0           15
 *
 * A column stands for one or more steps and shows the one with the most live bytes. Rows are filled where at least half
 * of their bytes are live, so the top of the tightest column is the bound; `peak` is higher if the placement is
 * fragmented.
 */
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { buffersIn, forEachSpace, KIND_LETTERS, letterKey, type MapOptions, paintLetters } from "./memory-map.ts";
import { alignUp, BUFFER_KINDS, type Layout, layoutIn, type Plan, problemIn } from "./problem.ts";
import type { SpaceId } from "./space.ts";

/**
 * Live bytes by kind over the schedule, one chart per memory space.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { memoryChart } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(memoryChart(plan).includes("peak, bound")); // → true
 */
export function memoryChart(plan: Plan, options: MapOptions = {}): string {
  return forEachSpace(plan, (space) => chartOf(plan, space, options));
}

function chartOf(plan: Plan, space: SpaceId, { width = 100, height = 16, paint }: MapOptions): string {
  const layout = layoutIn(plan, space);
  const steps = plan.program.steps.length + 1;
  const label = Math.max(grouped(layout.height).length, 4) + 2;
  const columns = Math.max(1, Math.min(width - label - 17, steps));
  const byKind = liveByKind(plan, steps, space);
  const tightest = Array.from({ length: columns }, (_, column) => tightestStep(byKind, column, columns, steps));
  const unit = Math.max(1, layout.height) / height;
  const lines: string[] = [];
  for (let row = height - 1; row >= 0; row--) {
    const level = (row + 0.5) * unit;
    const cells = tightest.map((step) => letterAt(byKind, step, level)).join("");
    const shown = row % 4 === 3 || row === height - 1 ? grouped(Math.round((row + 1) * unit)) : "";
    lines.push(`${shown.padStart(label)} |${paintLetters(cells, paint)}|${marks(layout, row, unit, height)}`);
  }
  const last = `${steps - 1}`;
  lines.push(`${"step".padStart(label)}  0${columns > last.length ? last.padStart(columns - 1) : ""}`.trimEnd());
  lines.push(`${" ".repeat(label)}  ${letterKey(buffersIn(plan, space), paint)}`.trimEnd());
  return `${lines.join("\n")}\n`;
}

/** Per kind, live bytes of a memory space at each of `steps` steps, the return among them. */
export function liveByKind(plan: Plan, steps: number, space: SpaceId): readonly Float64Array[] {
  const { buffers, alignment } = problemIn(plan.problem, space);
  const live = BUFFER_KINDS.map(() => new Float64Array(steps + 1));
  for (const { kind, lifespan, bytes } of buffers) {
    const mine = at(live, BUFFER_KINDS.indexOf(kind));
    const rounded = alignUp(bytes, alignment);
    mine[lifespan.start] = at(mine, lifespan.start) + rounded;
    mine[lifespan.end] = at(mine, lifespan.end) - rounded;
  }
  for (const mine of live)
    for (let step = 1; step < mine.length; step++) mine[step] = at(mine, step) + at(mine, step - 1);
  return live;
}

/** The step with the most live bytes among those that a column stands for. */
function tightestStep(byKind: readonly Float64Array[], column: number, columns: number, steps: number): number {
  const from = Math.floor((column * steps) / columns);
  const to = Math.max(from + 1, Math.floor(((column + 1) * steps) / columns));
  let best = { step: from, bytes: -1 };
  for (let step = from; step < to; step++) {
    const bytes = byKind.reduce((sum, kind) => sum + at(kind, step), 0);
    if (bytes > best.bytes) best = { step, bytes };
  }
  return best.step;
}

/** The kind whose part of the stack is at a level of bytes. */
function letterAt(byKind: readonly Float64Array[], step: number, level: number): string {
  let top = 0;
  for (const [k, kind] of BUFFER_KINDS.entries()) {
    top += at(at(byKind, k), step);
    if (level < top) return KIND_LETTERS[kind];
  }
  return " ";
}

/** `peak` and `bound` next to their rows. */
function marks(layout: Layout, row: number, unit: number, height: number): string {
  const rowOf = (bytes: number) => Math.min(height - 1, Math.max(0, Math.ceil(bytes / unit - 1e-9) - 1));
  const names = [
    ...(rowOf(layout.height) === row ? ["peak"] : []),
    ...(rowOf(layout.bound.bytes) === row ? ["bound"] : []),
  ];
  return names.length > 0 ? ` ${names.join(", ")}` : "";
}
