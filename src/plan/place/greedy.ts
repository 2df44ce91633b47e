/**
 * @file Greedy placement: one buffer after the other into the first (or the tightest) gap that its contemporaries leave.
 *
 *     bytes
 *       │ ┌──┐    ┌────┐          placing x, live at [2, 5): b1 and b3 are contemporaries, b2 is not
 *       │ │b2│    │ b3 │          by offset: a gap below b1, a gap between b1 and b3, all above b3
 *       │ └──┘    └────┘          first fit: the lowest gap that is large enough
 *       │   ┌─────────┐           best fit:  the smallest gap that is large enough
 *       │   │   b1    │           neither:   on top
 *       │   └─────────┘
 *       └─────────────────
 *         0 1 2 3 4 5 6 7
 *
 * Contemporaries come in order of offset from lists for windows of time (shelves.ts), so what is long past is not looked
 * at: about O(n log n + overlaps) together.
 *
 * Buffers of no bytes take no part. Fixed buffers that live all the time and lie at the bottom without gaps (persistent
 * storage) are one floor under everything and are not looked at again.
 */
import { alignUp, type Buffer, type Problem } from "../problem.ts";
import { cover } from "./sections.ts";
import { Shelves } from "./shelves.ts";

export type Fit = "first" | "best";

/** After so many buffers the clock is looked at. */
const LOOK = 256;

export interface GreedyPlacer {
  /** Places the buffers in a given order; their offsets, or null as soon as one would not end below `limit`, or if late. */
  readonly place: (order: readonly number[], fit: Fit, limit?: number, late?: () => boolean) => number[] | null;
  /** Pairs of buffers looked at so far, a measure of time that is the same on every machine. */
  readonly work: () => number;
}

/** Prepares a problem once for placing in many orders. */
export function greedyPlacer(problem: Problem): GreedyPlacer {
  const { buffers } = problem;
  const shelves = shelvesFor(buffers);
  const { floor, fixed } = splitFixed(problem);
  const place: GreedyPlacer["place"] = (order, fit, limit = Number.POSITIVE_INFINITY, late) => {
    shelves.clear();
    const offsets = new Float64Array(buffers.length);
    for (const buffer of buffers) if (buffer.fixedAt !== undefined) offsets[buffer.id] = buffer.fixedAt;
    for (const buffer of fixed) shelves.put(buffer.id, buffer.fixedAt ?? 0);
    for (const [index, id] of order.entries()) {
      if (index % LOOK === LOOK - 1 && late?.()) return null;
      const buffer = buffers[id];
      if (!buffer || buffer.fixedAt !== undefined || buffer.bytes === 0) continue;
      const offset = gapFor(buffer, shelves, floor, fit);
      if (offset + buffer.bytes >= limit) return null;
      offsets[id] = offset;
      shelves.put(id, offset);
    }
    return [...offsets];
  };
  return { place, work: () => shelves.work };
}

/** The top of persistent storage, and fixed buffers that are not part of it. */
function splitFixed({ buffers, alignment }: Problem): { floor: number; fixed: readonly Buffer[] } {
  const first = buffers.reduce((step, b) => Math.min(step, b.lifespan.start), Number.POSITIVE_INFINITY);
  const last = buffers.reduce((step, b) => Math.max(step, b.lifespan.end), 0);
  let floor = 0;
  const fixed: Buffer[] = [];
  const candidates = buffers.filter((b) => b.fixedAt !== undefined && b.bytes > 0);
  for (const buffer of candidates.sort((a, b) => (a.fixedAt ?? 0) - (b.fixedAt ?? 0))) {
    const { start, end } = buffer.lifespan;
    const isFloor = buffer.fixedAt === floor && start === first && end === last;
    if (isFloor) floor = alignUp(floor + buffer.bytes, alignment);
    else fixed.push(buffer);
  }
  return { floor, fixed };
}

/** Empty shelves for buffers, by id. */
function shelvesFor(buffers: readonly Buffer[]): Shelves {
  const n = buffers.length;
  const byStart = [...buffers].sort((a, b) => a.lifespan.start - b.lifespan.start || a.id - b.id);
  const covered = cover(byStart);
  const [lo, hi] = [new Int32Array(n), new Int32Array(n)];
  byStart.forEach(({ id }, i) => {
    lo[id] = covered.lo[i] as number;
    hi[id] = covered.hi[i] as number;
  });
  return new Shelves({ n, count: covered.count, lo, hi, size: Float64Array.from(buffers, (b) => b.bytes) }, false);
}

/** The offset for a buffer among what is placed. */
function gapFor({ id, bytes, align }: Buffer, shelves: Shelves, bottom: number, fit: Fit): number {
  const { offset, top, byOffset } = shelves;
  const count = shelves.around(id);
  let floor = bottom;
  let best = -1;
  let bestRoom = Number.POSITIVE_INFINITY;
  for (let p = 0; p < count; p++) {
    const other = byOffset[p] as number;
    const ceiling = offset[other] as number;
    if (ceiling - floor >= bytes) {
      const from = alignUp(floor, align);
      const room = ceiling - from;
      if (room >= bytes && room < bestRoom) {
        if (fit === "first") return from;
        best = from;
        bestRoom = room;
      }
    }
    if ((top[other] as number) > floor) floor = top[other] as number;
  }
  return best >= 0 ? best : alignUp(floor, align);
}
