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
 * Contemporaries are found in one of two ways. If they are few, by a segment tree over start times that holds the latest
 * end of what was placed, and sorted by offset. If they are a good part of all that was placed, by going through all of
 * it in order of offset, in flat arrays. Together about O(n log n + overlaps).
 *
 * Buffers of no bytes take no part. Fixed buffers that live all the time and lie at the bottom without gaps (persistent
 * storage) are one floor under everything and are not looked at again.
 */
import { alignUp, type Buffer, type Problem } from "../problem.ts";

export type Fit = "first" | "best";

export interface GreedyPlacer {
  /** Places the buffers in a given order; their offsets, or null as soon as one would not end below `limit`. */
  readonly place: (order: readonly number[], fit: Fit, limit?: number) => number[] | null;
  /** Pairs of buffers looked at so far, a measure of time that is the same on every machine. */
  readonly work: () => number;
}

/** Prepares a problem once for placing in many orders. */
export function greedyPlacer(problem: Problem): GreedyPlacer {
  const { buffers } = problem;
  const index = indexOf(buffers);
  const { floor, fixed } = splitFixed(problem);
  let work = 0;
  const place: GreedyPlacer["place"] = (order, fit, limit = Number.POSITIVE_INFINITY) => {
    const placed = new Placed(index);
    const offsets = new Float64Array(buffers.length);
    for (const buffer of buffers) if (buffer.fixedAt !== undefined) offsets[buffer.id] = buffer.fixedAt;
    for (const buffer of fixed) placed.add(buffer.id, buffer.fixedAt ?? 0);
    for (const id of order) {
      const buffer = buffers[id];
      if (!buffer || buffer.fixedAt !== undefined || buffer.bytes === 0) continue;
      const offset = placed.gapFor(buffer, floor, fit);
      work += placed.looked;
      if (offset + buffer.bytes >= limit) return null;
      offsets[id] = offset;
      placed.add(id, offset);
    }
    return [...offsets];
  };
  return { place, work: () => work };
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

/** What does not change from order to order. */
interface Index {
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly bytes: Float64Array;
  /** Ids by start, and each id's position there. */
  readonly byStart: Int32Array;
  readonly rank: Int32Array;
  /** Per id, how many buffers start before it ends. */
  readonly startsBefore: Int32Array;
}

function indexOf(buffers: readonly Buffer[]): Index {
  const start = Float64Array.from(buffers, (b) => b.lifespan.start);
  const end = Float64Array.from(buffers, (b) => b.lifespan.end);
  const byStart = Int32Array.from(buffers, (b) => b.id).sort((a, b) => (start[a] ?? 0) - (start[b] ?? 0) || a - b);
  const rank = new Int32Array(buffers.length);
  byStart.forEach((id, i) => {
    rank[id] = i;
  });
  const startsBefore = new Int32Array(buffers.length);
  let count = 0;
  for (const id of Int32Array.from(byStart).sort((a, b) => (end[a] ?? 0) - (end[b] ?? 0))) {
    while (count < byStart.length && (start[byStart[count] ?? 0] ?? 0) < (end[id] ?? 0)) count += 1;
    startsBefore[id] = count;
  }
  return { start, end, bytes: Float64Array.from(buffers, (b) => b.bytes), byStart, rank, startsBefore };
}

/** Placed buffers as flat arrays, sorted by offset. */
interface Columns {
  readonly from: Float64Array;
  readonly to: Float64Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
}

function columns(n: number): Columns {
  return { from: new Float64Array(n), to: new Float64Array(n), start: new Float64Array(n), end: new Float64Array(n) };
}

/** The offset for a buffer among the first `count` of `others`; those that share no step with it do not matter. */
function gapAmong(buffer: Buffer, others: Columns, count: number, bottom: number, fit: Fit): number {
  const { from, to, start, end } = others;
  const { bytes, align, lifespan } = buffer;
  let floor = bottom;
  let best = -1;
  let bestRoom = Number.POSITIVE_INFINITY;
  for (let i = 0; i < count; i++) {
    if ((start[i] as number) >= lifespan.end || (end[i] as number) <= lifespan.start) continue;
    const ceiling = from[i] as number;
    if (ceiling - floor >= bytes) {
      const offset = alignUp(floor, align);
      const room = ceiling - offset;
      if (room >= bytes && room < bestRoom) {
        if (fit === "first") return offset;
        best = offset;
        bestRoom = room;
      }
    }
    if ((to[i] as number) > floor) floor = to[i] as number;
  }
  return best >= 0 ? best : alignUp(floor, align);
}

/** What has been placed, by time (a segment tree) and by offset. */
class Placed {
  readonly #index: Index;
  readonly #leaves: number;
  /** Over `byStart`: the latest end of placed buffers below. */
  readonly #latest: Float64Array;
  readonly #all: Columns;
  #count = 0;
  /** How many buffers the last search went through. */
  looked = 0;
  readonly #offsets: Float64Array;
  readonly #found: Int32Array;
  readonly #near: Columns;

  constructor(index: Index) {
    const n = index.rank.length;
    this.#index = index;
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(1, n)));
    this.#latest = new Float64Array(2 * this.#leaves).fill(Number.NEGATIVE_INFINITY);
    this.#all = columns(n);
    this.#near = columns(n);
    this.#offsets = new Float64Array(n);
    this.#found = new Int32Array(n);
  }

  add(id: number, offset: number): void {
    const until = this.#index.end[id] as number;
    const leaf = this.#leaves + (this.#index.rank[id] as number);
    for (let i = leaf; i >= 1 && (this.#latest[i] as number) < until; i >>= 1) this.#latest[i] = until;
    const { from, to, start, end } = this.#all;
    let lo = 0;
    let hi = this.#count;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if ((from[mid] as number) > offset) hi = mid;
      else lo = mid + 1;
    }
    for (const column of [from, to, start, end]) column.copyWithin(lo + 1, lo, this.#count);
    this.#offsets[id] = offset;
    this.#write(this.#all, lo, id);
    this.#count += 1;
  }

  gapFor(buffer: Buffer, floor: number, fit: Fit): number {
    // Sorting one found buffer costs about as much as looking at a hundred placed ones.
    const few = Math.max(8, this.#count >> 7);
    const limit = this.#index.startsBefore[buffer.id] as number;
    const found = this.#collect(1, 0, this.#leaves, limit, buffer.lifespan.start, few, 0);
    this.looked = found > few ? this.#count : found;
    if (found > few) return gapAmong(buffer, this.#all, this.#count, floor, fit);
    const offsets = this.#offsets;
    const ids = this.#found.subarray(0, found).sort((a, b) => (offsets[a] as number) - (offsets[b] as number) || a - b);
    for (let i = 0; i < found; i++) this.#write(this.#near, i, ids[i] as number);
    return gapAmong(buffer, this.#near, found, floor, fit);
  }

  #write(to: Columns, position: number, id: number): void {
    const offset = this.#offsets[id] as number;
    to.from[position] = offset;
    to.to[position] = offset + (this.#index.bytes[id] as number);
    to.start[position] = this.#index.start[id] as number;
    to.end[position] = this.#index.end[id] as number;
  }

  /** Leaves of [lo, hi) ∩ [0, limit) that end after `start`, appended to #found; gives up beyond `few`. */
  #collect(node: number, lo: number, hi: number, limit: number, start: number, few: number, found: number): number {
    if (lo >= limit || found > few || (this.#latest[node] as number) <= start) return found;
    if (hi - lo === 1) {
      this.#found[found] = this.#index.byStart[lo] as number;
      return found + 1;
    }
    const mid = (lo + hi) >> 1;
    const left = this.#collect(2 * node, lo, mid, limit, start, few, found);
    return this.#collect(2 * node + 1, mid, hi, limit, start, few, left);
  }
}
