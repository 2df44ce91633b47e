/**
 * @file Where a placement is above its target, and what lies around the holes in it.
 *
 * ```
 *   target ┄┄┄┄┄┌────┐┄┄┄      x crosses the line. In the stages where it lives, at its first, its last and its fullest
 *               │ x  │          step, the values that touch a free range below the target are its neighbours.
 * ```
 */
import { at } from "../../base/invariant.ts";
import { liveBytes } from "../bound.ts";
import type { Conflict } from "./arena.ts";
import type { Lifetimes } from "./lifetimes.ts";

/** What lifetimes of any origin have. */
export type PlacedLifetimes = Pick<Lifetimes, "buffers" | "valueIn" | "stageOf">;

/** Values at `step` that lie next to free bytes below `target`. */
function besideHoles(lifetimes: PlacedLifetimes, offsets: readonly number[], step: number, target: number): number[] {
  const live = lifetimes.buffers
    .filter(({ lifespan, bytes }) => lifespan.start <= step && step < lifespan.end && bytes > 0)
    .sort((a, b) => at(offsets, a.id) - at(offsets, b.id));
  const neighbours: number[] = [];
  let top = 0;
  live.forEach((buffer, i) => {
    const offset = at(offsets, buffer.id);
    if (offset > top) neighbours.push(buffer.id, ...(i > 0 ? [at(live, i - 1).id] : []));
    top = Math.max(top, offset + buffer.bytes);
  });
  const last = live.at(-1);
  if (last && top < target) neighbours.push(last.id);
  return neighbours.map((id) => at(lifetimes.valueIn, id)).filter((value) => value >= 0);
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
