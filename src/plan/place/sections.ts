/**
 * @file A placement problem in the form used by the search. Time is divided where the set of live buffers is maximal: a
 * section is a maximal set of buffers that are live together, and two buffers share a step exactly if they share a
 * section. Sizes count in units, the greatest common divisor of all of them.
 *
 *     b2        ┌────┐                   starts and ends in order: b0( b1( b1) b2( b3( b2) b3) b0)
 *     b1   ┌──┐ │ b2 ├─┐                 a section closes where an end follows a start:
 *     b3   │b1│ └─┬──┘3│                   section 0 = {b0, b1}, section 1 = {b0, b2, b3}
 *     b0  ┌┴──┴───┴────┴┐                  b0 covers [0, 2), b1 [0, 1), b2 and b3 [1, 2)
 *
 * Items are numbered by first section, so those of a range of sections that nothing crosses are a range too. Empty
 * buffers are not items. Neither are buffers live for the whole run, if they can be the ground under everything else:
 * they conflict with every buffer, so they can be exchanged with everything below them.
 */
import { alignUp, type Buffer, type Problem } from "../problem.ts";

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
  /** Per item: its fixed offset in units, or -1. */
  readonly fixed: Float64Array;
  /** Per item: its alignment in units; null if that is 1 for all. */
  readonly align: Float64Array | null;
  /** Per section, the sum of its items' sizes: a lower bound of the height. */
  readonly load: Float64Array;
  /** Bytes below everything, and the buffers there. Offsets of items count from there. */
  readonly ground: number;
  readonly grounded: ReadonlyMap<number, number>;
}

/** The greatest common divisor of integers of 0 or more. */
function gcd(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y > 0) [x, y] = [y, x % y];
  return x;
}

/** The items of a problem and the sections they cover. */
export function sectionsOf(problem: Problem): Sections {
  const sizeOf = (b: Buffer): number => alignUp(b.bytes, problem.alignment);
  const { ground, grounded } = groundOf(problem);
  const buffers = problem.buffers.filter((b) => b.bytes > 0 && !grounded.has(b.id));
  const aligned = buffers.some((b) => b.align > problem.alignment);
  let unit = aligned ? problem.alignment : 0;
  for (const b of buffers) unit = gcd(gcd(unit, sizeOf(b)), b.fixedAt === undefined ? 0 : b.fixedAt - ground);
  unit = Math.max(1, unit);
  buffers.sort((a, b) => a.lifespan.start - b.lifespan.start || a.id - b.id);
  const { lo, hi, count } = cover(buffers);
  const size = Float64Array.from(buffers, (b) => sizeOf(b) / unit);
  return {
    n: buffers.length,
    count,
    unit,
    ids: Int32Array.from(buffers, (b) => b.id),
    size,
    lo,
    hi,
    fixed: Float64Array.from(buffers, (b) => (b.fixedAt === undefined ? -1 : (b.fixedAt - ground) / unit)),
    align: aligned ? Float64Array.from(buffers, (b) => Math.max(1, b.align / unit)) : null,
    load: loadOf({ count, lo, hi }, size),
    ground,
    grounded,
  };
}

/** Per section, the sum of these sizes. */
function loadOf({ count, lo, hi }: Pick<Sections, "count" | "lo" | "hi">, size: Float64Array): Float64Array {
  const change = new Float64Array(count + 1);
  size.forEach((units, i) => {
    change[lo[i] as number] = (change[lo[i] as number] as number) + units;
    change[hi[i] as number] = (change[hi[i] as number] as number) - units;
  });
  let live = 0;
  return change.map((delta) => (live += delta)).subarray(0, count);
}

/** The top of the fixed items, in units: no placement is lower. */
export function fixedTop({ n, fixed, size }: Sections): number {
  let top = 0;
  for (let i = 0; i < n; i++) {
    if ((fixed[i] as number) >= 0) top = Math.max(top, (fixed[i] as number) + (size[i] as number));
  }
  return top;
}

/** The height of items at these offsets, in units. */
export function heightOfItems({ size }: Sections, offset: Float64Array): number {
  return offset.reduce((height, from, i) => Math.max(height, from + (size[i] as number)), 0);
}

/** Offsets of all buffers in bytes, from the items' offsets in units. */
export function offsetsOf({ buffers }: Problem, sections: Sections, offset: Float64Array): number[] {
  const { ids, unit, ground, grounded } = sections;
  const offsets = buffers.map((b) => grounded.get(b.id) ?? b.fixedAt ?? 0);
  ids.forEach((id, i) => {
    offsets[id] = (offset[i] as number) * unit + ground;
  });
  return offsets;
}

/**
 * Moves every item down onto those below it, in order of offset, in place; returns the height. Offsets from another
 * source may be relative to another ground, or leave gaps for buffers that are not items here.
 */
export function compactDown({ n, count, size, fixed, align, lo, hi }: Sections, offset: Float64Array): number {
  const order = Int32Array.from({ length: n }, (_, i) => i);
  order.sort((a, b) => (offset[a] as number) - (offset[b] as number) || a - b);
  const tops = new Float64Array(count);
  let height = 0;
  for (const i of order) {
    const covered = tops.subarray(lo[i] as number, hi[i] as number);
    const floor = covered.reduce((most, top) => Math.max(most, top), 0);
    const step = align ? (align[i] as number) : 1;
    if ((fixed[i] as number) < 0) offset[i] = Math.ceil(floor / step) * step;
    const top = (offset[i] as number) + (size[i] as number);
    covered.fill(top);
    height = Math.max(height, top);
  }
  return height;
}

/** Sections [lo, hi) of buffers that are sorted by start. */
export function cover(buffers: readonly Buffer[]): { lo: Int32Array; hi: Int32Array; count: number } {
  const byEnd = buffers.map((_, i) => i);
  const endOf = (i: number | undefined): number => buffers[i ?? -1]?.lifespan.end ?? Number.POSITIVE_INFINITY;
  byEnd.sort((a, b) => endOf(a) - endOf(b) || a - b);
  const lo = new Int32Array(buffers.length);
  const hi = new Int32Array(buffers.length);
  let [count, open, next] = [0, false, 0];
  // ends come before starts at one step: lifespans are half-open
  const closeUntil = (step: number): void => {
    for (; endOf(byEnd[next]) <= step && next < byEnd.length; next++) {
      if (open) count += 1;
      open = false;
      hi[byEnd[next] as number] = count;
    }
  };
  buffers.forEach((b, i) => {
    closeUntil(b.lifespan.start);
    lo[i] = count;
    open = true;
  });
  closeUntil(Number.MAX_VALUE);
  return { lo, hi, count };
}

/** Buffers live for the whole run: fixed ones at the bottom without gaps, then, if all can move, the others. */
function groundOf({ buffers, alignment }: Problem): Pick<Sections, "ground" | "grounded"> {
  const used = buffers.filter((b) => b.bytes > 0);
  const first = used.reduce((step, b) => Math.min(step, b.lifespan.end), Number.POSITIVE_INFINITY);
  const last = used.reduce((step, b) => Math.max(step, b.lifespan.start), 0);
  // it conflicts with all buffers if it starts before any ends and ends after all have started
  const whole = used.filter((b) => b.lifespan.start < first && b.lifespan.end > last);
  const fixed = whole.filter((b) => b.fixedAt !== undefined).sort((a, b) => (a.fixedAt ?? 0) - (b.fixedAt ?? 0));
  const grounded = new Map<number, number>();
  const largest = used.reduce((most, b) => Math.max(most, b.align), alignment);
  let ground = 0;
  if (largest > alignment) return { ground, grounded };
  for (const b of fixed) {
    if (b.fixedAt !== ground) break;
    grounded.set(b.id, ground);
    ground = alignUp(ground + b.bytes, alignment);
  }
  if (used.some((b) => b.fixedAt !== undefined && !grounded.has(b.id))) return { ground, grounded };
  for (const b of whole) {
    if (b.fixedAt !== undefined) continue;
    grounded.set(b.id, ground);
    ground = alignUp(ground + b.bytes, alignment);
  }
  return { ground, grounded };
}
