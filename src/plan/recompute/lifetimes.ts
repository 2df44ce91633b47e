/**
 * @file A sequence as buffers: what each step writes lives until its last reader before it is written again.
 *
 * ```
 *   step      0  1  2  3  4  5
 *   value v   w──r     w─────r         two buffers: [0, 2) and [3, 6)
 *   pinned    ▂▂▂▂▂▂▄▄▄▄▄▄▄▄▄▄▄▄      constants that appear later are buffers from there to the end
 * ```
 *
 * Invariant: the buffers live at a step add up to what `simulate` counts there.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { Buffer } from "../problem.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";

export interface Lifetimes {
  readonly buffers: readonly Buffer[];
  /** The value in each buffer; -1 for scratch and constants. */
  readonly valueIn: readonly number[];
  /** `outputs[step][i]`: the buffer of the step's i-th output. */
  readonly outputs: readonly (readonly number[])[];
  /** The buffers of constants. */
  readonly pinned: readonly number[];
  /** `stageOf[step]`: operations that have begun for the first time before this step. */
  readonly stageOf: readonly number[];
}

interface BufferList {
  readonly buffers: Buffer[];
  readonly valueIn: number[];
}

function add({ buffers, valueIn }: BufferList, lifespan: Buffer["lifespan"], bytes: number, value: number): number {
  const id = buffers.length;
  const kind = value < 0 ? "scratch" : "activation";
  buffers.push({ id, values: [], lifespan, bytes, align: 1, kind });
  valueIn.push(value);
  return id;
}

/** Constants: each rise of `pinnedBytes` is a buffer from there on, each fall ends the latest of them. */
function addPinned(list: BufferList, problem: RecomputeProblem, stageOf: readonly number[]): number[] {
  const open: { start: number; bytes: number }[] = [];
  const ids: number[] = [];
  let held = 0;
  const steps = stageOf.length;
  stageOf.forEach((stage, step) => {
    const wanted = at(problem.pinnedBytes, stage);
    while (held > wanted) {
      const last = open.pop();
      invariant(last !== undefined, () => `constants of stage ${stage} take ${wanted} bytes`);
      const kept = Math.max(0, wanted - (held - last.bytes));
      if (step > last.start && last.bytes > kept)
        ids.push(add(list, { start: last.start, end: step }, last.bytes - kept, -1));
      held -= last.bytes - kept;
      if (kept > 0) open.push({ start: last.start, bytes: kept });
      if (kept > 0) break;
    }
    if (wanted > held) open.push({ start: step, bytes: wanted - held });
    held = Math.max(held, wanted);
  });
  for (const { start, bytes } of open) ids.push(add(list, { start, end: steps }, bytes, -1));
  return ids;
}

/** The buffers of a valid sequence. */
export function lifetimesOf(problem: RecomputeProblem, sequence: Sequence): Lifetimes {
  const steps = sequence.length;
  const end = new Map<number, number>(problem.results.map((value) => [value, steps]));
  const ends: number[][] = new Array(steps);
  for (let step = steps - 1; step >= 0; step--) {
    const { inputs, outputs } = at(problem.ops, at(sequence, step));
    ends[step] = outputs.map((value) => end.get(value) ?? step + 1);
    for (const value of outputs) end.delete(value);
    for (const value of inputs) if (!end.has(value)) end.set(value, step + 1);
  }
  const list: BufferList = { buffers: [], valueIn: [] };
  const stageOf: number[] = [];
  const outputs: number[][] = [];
  let started = 0;
  sequence.forEach((index, step) => {
    const op = at(problem.ops, index);
    stageOf.push(started);
    if (index === started) started++;
    const until = at(ends, step);
    outputs.push(op.outputs.map((v, i) => add(list, { start: step, end: at(until, i) }, at(problem.bytes, v), v)));
    if (op.scratchBytes) add(list, { start: step, end: step + 1 }, op.scratchBytes, -1);
  });
  const pinned = addPinned(list, problem, stageOf);
  return { ...list, outputs, pinned, stageOf };
}
