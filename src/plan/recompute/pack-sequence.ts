/**
 * @file Addresses for a sequence of a problem that knows no tensors: its lifetimes are packed, and where the packing is
 * above the target, the conflicts are read off it.
 *
 * ```
 *   target ┄┄┄┄┄┌────┐┄┄┄      x crosses the line. In the stages where it lives, at its first, its last and its fullest
 *               │ x  │          step, the values that touch a free range below the target are its neighbours.
 * ```
 */
import { at } from "../../base/invariant.ts";
import { boundOf, liveBytes } from "../bound.ts";
import { searchPlacement } from "../place/search.ts";
import type { Conflict, Realised } from "./arena.ts";
import { type Lifetimes, lifetimesOf } from "./lifetimes.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";

/** Where everything of a sequence lies. */
export interface PackedSequence {
  /** `offsets[step][i]`: where the step's i-th output lies. */
  readonly offsets: readonly (readonly number[])[];
  /** Constants: bytes from `fromStep` up to `toStep`. */
  readonly constants: readonly {
    readonly fromStep: number;
    readonly toStep: number;
    readonly bytes: number;
    readonly offset: number;
  }[];
}

export interface PackOptions {
  /** Of the search for a placement, in its own unit: 2 · 10⁸ is about a second. */
  readonly workLimit?: number;
  readonly timeoutMs?: number;
}

const WORK_LIMIT = 4e7;

/** What is known of buffers wherever they come from. */
export type PlacedLifetimes = Pick<Lifetimes, "buffers" | "valueIn" | "stageOf">;

/** Values at `step` that lie next to free bytes below `target`. */
function besideHoles(lifetimes: PlacedLifetimes, offsets: readonly number[], step: number, target: number): number[] {
  const live = lifetimes.buffers
    .filter(({ lifespan, bytes }) => lifespan.start <= step && step < lifespan.end && bytes > 0)
    .sort((a, b) => at(offsets, a.id) - at(offsets, b.id));
  const found: number[] = [];
  let top = 0;
  live.forEach((buffer, i) => {
    const offset = at(offsets, buffer.id);
    if (offset > top) found.push(buffer.id, ...(i > 0 ? [at(live, i - 1).id] : []));
    top = Math.max(top, offset + buffer.bytes);
  });
  const last = live.at(-1);
  if (last && top < target) found.push(last.id);
  return found.map((id) => at(lifetimes.valueIn, id)).filter((value) => value >= 0);
}

/** Everything that crosses the line at `target`. */
export function conflictsOf(
  lifetimes: PlacedLifetimes,
  offsets: readonly number[],
  target: number,
): readonly Conflict[] {
  const { buffers, valueIn, stageOf } = lifetimes;
  const profile = liveBytes({ buffers, capacity: target, alignment: 1 }, stageOf.length);
  const above = buffers.filter(({ id, bytes }) => bytes > 0 && at(offsets, id) + bytes > target);
  return above.map(({ id, bytes, lifespan }) => {
    let fullest = lifespan.start;
    for (let step = lifespan.start; step < lifespan.end; step++) {
      if (at(profile, step) > at(profile, fullest)) fullest = step;
    }
    const steps = [lifespan.start, fullest, lifespan.end - 1];
    const around = steps.flatMap((step) => besideHoles(lifetimes, offsets, step, target));
    const own = at(valueIn, id);
    return {
      fromOp: at(stageOf, lifespan.start),
      toOp: at(stageOf, lifespan.end - 1),
      bytes: Math.min(bytes, at(offsets, id) + bytes - target),
      values: [...new Set(own < 0 ? around : [own, ...around])].sort((a, b) => a - b),
    };
  });
}

/** Packs `sequence`, aiming at `targetBytes`. */
export function packSequence(
  problem: RecomputeProblem,
  sequence: Sequence,
  targetBytes: number,
  { workLimit = WORK_LIMIT, timeoutMs }: PackOptions = {},
): Realised<PackedSequence> {
  const lifetimes = lifetimesOf(problem, sequence);
  const { buffers, outputs, pinned } = lifetimes;
  const packing = { buffers, capacity: targetBytes, alignment: 1 };
  const { offsets, height } = searchPlacement(packing, {
    targetBytes: boundOf(packing).bytes,
    capacityBytes: targetBytes,
    workLimit,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  const constants = pinned.map((id) => {
    const { lifespan, bytes } = at(buffers, id);
    return { fromStep: lifespan.start, toStep: lifespan.end, bytes, offset: at(offsets, id) };
  });
  return {
    arenaBytes: height,
    result: { offsets: outputs.map((ids) => ids.map((id) => at(offsets, id))), constants },
    conflicts: conflictsOf(lifetimes, offsets, targetBytes),
  };
}
