/**
 * @file Orders in which buffers are placed. No order is best for all problems, so the placer tries a small grid of them
 * (place.ts). Each puts buffers first that are hard to place late: large ones, long-lived ones, those live where memory
 * is tight. Ties are broken by buffer id, so an order is a function of the problem alone.
 *
 * `breadth` is the order of TFLite's greedy-by-breadth (Pisarchyk and Lee, 2020): steps by falling live bytes, within a
 * step the largest first. A buffer is placed at the tightest step of its lifespan, found by a sparse table of maxima.
 */
import { alignUp, type Buffer, type Problem } from "../problem.ts";

export interface PlacementOrder {
  readonly name: string;
  /** Ids of all buffers, first to be placed first. */
  readonly of: (problem: Problem) => readonly number[];
}

/** Larger keys first; later keys break ties. */
type Key = (buffer: Buffer) => number;

const length: Key = ({ lifespan }) => lifespan.end - lifespan.start;
const bytes: Key = (buffer) => buffer.bytes;
const area: Key = (buffer) => buffer.bytes * length(buffer);
/** Powers of two: similar sizes count as equal and are ordered by time. */
const sizeClass: Key = (buffer) => Math.floor(Math.log2(Math.max(1, buffer.bytes)));
const earlier: Key = ({ lifespan }) => -lifespan.start;
const later: Key = ({ lifespan }) => lifespan.end;

/**
 * The most successful orders come first: a placement at the bound ends the search, a good one lets the others end
 * early.
 */
export const PLACEMENT_ORDERS: readonly PlacementOrder[] = [
  { name: "bytes", of: (problem) => sorted(problem, [bytes, length, earlier]) },
  { name: "class-start", of: (problem) => sorted(problem, [sizeClass, earlier, bytes, length]) },
  { name: "class-length", of: (problem) => sorted(problem, [sizeClass, length, bytes, earlier]) },
  { name: "breadth", of: byBreadth },
  { name: "area", of: (problem) => sorted(problem, [area, bytes, earlier]) },
  { name: "start", of: (problem) => sorted(problem, [earlier, bytes, length]) },
  { name: "start-length", of: (problem) => sorted(problem, [earlier, length, bytes]) },
  { name: "end", of: (problem) => sorted(problem, [later, bytes, length]) },
  { name: "end-length", of: (problem) => sorted(problem, [later, length, bytes]) },
  { name: "length", of: (problem) => sorted(problem, [length, bytes, earlier]) },
  { name: "class-end", of: (problem) => sorted(problem, [sizeClass, later, bytes, length]) },
];

function sorted(problem: Problem, keys: readonly Key[]): number[] {
  const columns = keys.map((key) => Float64Array.from(problem.buffers, key));
  const order = problem.buffers.map((buffer) => buffer.id);
  return order.sort((a, b) => {
    for (const column of columns) {
      const difference = (column[b] ?? 0) - (column[a] ?? 0);
      if (difference !== 0) return difference;
    }
    return a - b;
  });
}

function byBreadth(problem: Problem): number[] {
  const times = [...new Set(problem.buffers.map((b) => b.lifespan.start))].sort((a, b) => a - b);
  const live = new Float64Array(times.length + 1);
  const spans = problem.buffers.map(({ lifespan, bytes: size }) => {
    const from = lowerBound(times, lifespan.start);
    const to = lowerBound(times, lifespan.end);
    const rounded = alignUp(size, problem.alignment);
    live[from] = (live[from] ?? 0) + rounded;
    live[to] = (live[to] ?? 0) - rounded;
    return [from, Math.max(to, from + 1)] as const;
  });
  for (let i = 1; i < live.length; i++) live[i] = (live[i] ?? 0) + (live[i - 1] ?? 0);
  const tightest = rangeArgMax(live);
  const tightestStep = Float64Array.from(spans, ([from, to]) => tightest(from, to));
  return sorted(problem, [
    ({ id }) => live[tightestStep[id] ?? 0] ?? 0,
    ({ id }) => -(tightestStep[id] ?? 0),
    bytes,
    length,
  ]);
}

/** First index whose time is at least `time`. */
function lowerBound(times: readonly number[], time: number): number {
  let lo = 0;
  let hi = times.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if ((times[mid] ?? 0) < time) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Index of the first largest element of [from, to): a sparse table, rows[k][i] answers for [i, i + 2^k). */
function rangeArgMax(values: Float64Array): (from: number, to: number) => number {
  const better = (a: number, b: number): number => ((values[b] ?? 0) > (values[a] ?? 0) ? b : a);
  const rows: Int32Array[] = [Int32Array.from(values, (_, i) => i)];
  for (let width = 2; width <= values.length; width *= 2) {
    const half = rows[rows.length - 1] ?? new Int32Array(0);
    rows.push(
      Int32Array.from({ length: values.length - width + 1 }, (_, i) => better(half[i] ?? 0, half[i + width / 2] ?? 0)),
    );
  }
  return (from, to) => {
    const k = 31 - Math.clz32(to - from);
    const row = rows[k] ?? new Int32Array(0);
    return better(row[from] ?? from, row[to - 2 ** k] ?? from);
  };
}
