/**
 * @file Greedy placement: one buffer after the other into the first (or the tightest) gap between those that conflict
 * with it, in a grid of orders and fits; the lowest arena wins.
 *
 *     bytes
 *       │ ┌──┐    ┌────┐          placing x, live at [2, 5): b1 and b3 conflict with it, b2 does not
 *       │ │b2│    │ b3 │          by offset: a gap below b1, a gap between b1 and b3, all above b3
 *       │ └──┘    └────┘          first fit: the lowest gap that is large enough
 *       │   ┌─────────┐           best fit:  the smallest gap that is large enough
 *       │   │   b1    │           neither:   on top
 *       │   └─────────┘
 *       └─────────────────
 *         0 1 2 3 4 5 6 7
 *
 * Conflicting buffers come in order of offset from an index (windows.ts), so buffers that ended long before are not
 * examined: about O(n log n + overlaps) in total.
 *
 * Empty buffers are skipped. Fixed buffers that live for the whole run and lie at the bottom without gaps (persistent
 * storage) form one floor and are not examined again.
 */
import { alignUp, type Buffer, heightOf, type Problem } from "../problem.ts";
import { PLACEMENT_ORDERS } from "./orders.ts";
import { cover } from "./sections.ts";
import { TimeWindowIndex } from "./windows.ts";

/** Offsets of all buffers, and the arena that they need. */
export interface Placement {
  readonly offsets: readonly number[];
  readonly height: number;
  readonly strategy: string;
}

type Fit = "first" | "best";
const FITS: readonly Fit[] = ["first", "best"];

/** When to abandon a greedy placement. */
export interface GreedyLimits {
  /** Only placements lower than this are useful. */
  readonly below?: number;
  /** Cancels the placement. */
  readonly isOver?: (() => boolean) | undefined;
}

/** An order with a fit, for a problem. */
export interface Strategy {
  readonly name: string;
  /** Offsets by buffer, or null when a limit is met. */
  readonly place: (limits?: GreedyLimits) => readonly number[] | null;
  /** Pairs of buffers examined so far by all strategies of the list, a measure of time. */
  readonly work: () => number;
}

/** Pairs of buffers after which no further strategy is tried: about half a second. */
const WORK_LIMIT = 1e8;
/** Buffers between two checks of the deadline. */
const INTERVAL = 256;

/** The lowest of all greedy placements, the first of equals, or the first that is at most `goal` bytes; always one. */
export function placeGreedily(
  problem: Problem,
  goal: number,
  workLimit: number = WORK_LIMIT,
  isOver?: () => boolean,
): Placement {
  let best: Placement = { offsets: [], height: Number.POSITIVE_INFINITY, strategy: "" };
  for (const strategy of greedyStrategies(problem)) {
    // Heights are multiples of the alignment: a buffer that ends within the last unit does not make a lower one.
    const below = best.height - problem.alignment + 1;
    const offsets = strategy.place({ below, isOver: best.offsets.length === 0 ? undefined : isOver });
    const height = offsets ? heightOf(problem, offsets) : Number.POSITIVE_INFINITY;
    if (offsets && height < best.height) best = { offsets, height, strategy: strategy.name };
    if (best.height <= goal || strategy.work() > workLimit || isOver?.()) break;
  }
  return best;
}

/**
 * All greedy strategies for a problem: every order with every fit.
 *
 * @example
 * import { greedyStrategies, parseCsv } from "tidemark/plan";
 *
 * const text = "id,lower,upper,size\na,0,2,64\nb,1,3,64";
 * const { problem } = parseCsv(text);
 * console.log(greedyStrategies(problem).length > 5); // → true
 */
export function greedyStrategies(problem: Problem): readonly Strategy[] {
  const placer = new GreedyPlacer(problem);
  return PLACEMENT_ORDERS.flatMap((order) => {
    let ids: readonly number[] | undefined;
    return FITS.map((fit) => ({
      name: `${order.name}/${fit}-fit`,
      place: (limits: GreedyLimits = {}) => {
        ids ??= order.of(problem);
        return placer.place(ids, fit, limits);
      },
      work: () => placer.work,
    }));
  });
}

/** A problem, prepared once for placing in many orders. */
class GreedyPlacer {
  readonly #buffers: readonly Buffer[];
  /** The top of persistent storage, and fixed buffers that are not part of it. */
  readonly #floor: number;
  readonly #fixed: readonly Buffer[];
  readonly #size: Float64Array;
  readonly #offset: Float64Array;
  readonly #index: TimeWindowIndex;

  constructor(problem: Problem) {
    const { buffers } = problem;
    const { floor, fixed } = splitFixed(problem);
    this.#buffers = buffers;
    this.#floor = floor;
    this.#fixed = fixed;
    this.#size = Float64Array.from(buffers, (buffer) => buffer.bytes);
    this.#offset = new Float64Array(buffers.length);
    this.#index = indexFor(buffers, this.#offset);
  }

  get work(): number {
    return this.#index.work;
  }

  place(
    order: readonly number[],
    fit: Fit,
    { below = Number.POSITIVE_INFINITY, isOver }: GreedyLimits,
  ): number[] | null {
    const offset = this.#offset;
    this.#index.clear();
    for (const buffer of this.#buffers) offset[buffer.id] = buffer.fixedAt ?? 0;
    for (const buffer of this.#fixed) this.#index.add(buffer.id);
    for (const [number, id] of order.entries()) {
      if (number % INTERVAL === INTERVAL - 1 && isOver?.()) return null;
      const buffer = this.#buffers[id];
      if (!buffer || buffer.fixedAt !== undefined || buffer.bytes === 0) continue;
      const from = this.#gapFor(buffer, fit);
      if (from + buffer.bytes >= below) return null;
      offset[id] = from;
      this.#index.add(id);
    }
    return [...offset];
  }

  /** The offset for a buffer among the placed ones. */
  #gapFor({ id, bytes, align }: Buffer, fit: Fit): number {
    const [offset, size, near] = [this.#offset, this.#size, this.#index.result];
    const count = this.#index.conflicting(id);
    let floor = this.#floor;
    let best = -1;
    let bestRoom = Number.POSITIVE_INFINITY;
    for (let p = 0; p < count; p++) {
      const other = near[p] as number;
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
      const top = ceiling + (size[other] as number);
      if (top > floor) floor = top;
    }
    return best >= 0 ? best : alignUp(floor, align);
  }
}

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

/** An empty index of buffers, by id. */
function indexFor(buffers: readonly Buffer[], offset: Float64Array): TimeWindowIndex {
  const n = buffers.length;
  const byStart = [...buffers].sort((a, b) => a.lifespan.start - b.lifespan.start || a.id - b.id);
  const covered = cover(byStart);
  const [lo, hi] = [new Int32Array(n), new Int32Array(n)];
  byStart.forEach(({ id }, i) => {
    lo[id] = covered.lo[i] as number;
    hi[id] = covered.hi[i] as number;
  });
  return new TimeWindowIndex({ n, count: covered.count, lo, hi }, offset);
}
