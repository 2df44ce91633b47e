/**
 * @file A placement problem as search sees it. Time is cut where the set of live buffers is largest: a section is a
 * maximal set of buffers that are live together, and two buffers share a step exactly if they share a section. Sizes
 * count in units, the greatest common divisor of all of them.
 *
 *     b2        ┌────┐                   starts and ends in order: b0( b1( b1) b2( b3( b2) b3) b0)
 *     b1   ┌──┐ │ b2 ├─┐                 a section closes where an end follows a start:
 *     b3   │b1│ └─┬──┘3│                   section 0 = {b0, b1}, section 1 = {b0, b2, b3}
 *     b0  ┌┴──┴───┴────┴┐                  b0 covers [0, 2), b1 [0, 1), b2 and b3 [1, 2)
 *
 * Items are numbered by first section, so those of a range of sections that nothing crosses are a range too. Buffers of
 * no bytes are no items.
 */
import { alignUp, type Problem } from "../problem.ts";

export interface Sections {
  /** Items and sections. */
  readonly n: number;
  readonly count: number;
  /** Bytes of a unit. */
  readonly unit: number;
  /** Per item: its buffer, its size in units, its sections [lo, hi). */
  readonly ids: Int32Array;
  readonly size: Float64Array;
  readonly lo: Int32Array;
  readonly hi: Int32Array;
  /** Per item: where it must be, in units, or -1. */
  readonly fixed: Float64Array;
  /** Per item: of what its offset is a multiple, in units; null when that is 1 for all. */
  readonly align: Float64Array | null;
  /** Per section, the most that its items add up to: the least height there. */
  readonly load: Float64Array;
}

function gcd(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y > 0) [x, y] = [y, x % y];
  return x;
}

/** The items of a problem and the sections they cover. */
export function sectionsOf(problem: Problem): Sections {
  const buffers = problem.buffers.filter((b) => b.bytes > 0);
  const rounded = new Map(buffers.map((b) => [b.id, alignUp(b.bytes, problem.alignment)]));
  const sizeOf = (id: number): number => rounded.get(id) ?? 0;
  let unit = 0;
  for (const b of buffers) unit = gcd(gcd(unit, sizeOf(b.id)), b.fixedAt ?? 0);
  if (buffers.some((b) => b.align > problem.alignment)) unit = gcd(unit, problem.alignment);
  unit = Math.max(1, unit);

  // ends before starts at one step: lifespans are half-open
  const starts = [...buffers].sort((a, b) => a.lifespan.start - b.lifespan.start || a.id - b.id);
  const ends = [...buffers].sort((a, b) => a.lifespan.end - b.lifespan.end || a.id - b.id);
  const first = new Map<number, number>();
  const last = new Map<number, number>();
  let [count, open, e] = [0, false, 0];
  const closeUntil = (step: number): void => {
    for (let b = ends[e]; b && b.lifespan.end <= step; b = ends[++e]) {
      if (open) count += 1;
      open = false;
      last.set(b.id, count);
    }
  };
  for (const b of starts) {
    closeUntil(b.lifespan.start);
    first.set(b.id, count);
    open = true;
  }
  closeUntil(Number.POSITIVE_INFINITY);

  const hi = Int32Array.from(starts, (b) => last.get(b.id) ?? 0);
  const lo = Int32Array.from(starts, (b) => first.get(b.id) ?? 0);
  const size = Float64Array.from(starts, (b) => sizeOf(b.id) / unit);
  const change = new Float64Array(count + 1);
  starts.forEach((_, i) => {
    change[lo[i] ?? 0] = (change[lo[i] ?? 0] ?? 0) + (size[i] ?? 0);
    change[hi[i] ?? 0] = (change[hi[i] ?? 0] ?? 0) - (size[i] ?? 0);
  });
  let live = 0;
  const load = change.map((delta) => (live += delta)).subarray(0, count);
  const align = Float64Array.from(starts, (b) => Math.max(1, b.align / unit));
  return {
    n: starts.length,
    count,
    unit,
    ids: Int32Array.from(starts, (b) => b.id),
    size,
    lo,
    hi,
    fixed: Float64Array.from(starts, (b) => (b.fixedAt === undefined ? -1 : b.fixedAt / unit)),
    align: align.some((a) => a > 1) ? align : null,
    load,
  };
}
