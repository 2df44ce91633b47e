/**
 * @file Search over states for small graphs: (operations begun, values present). Where the budget is so tight that few
 * values fit at a time, states are few as well, and this finds plans that annealing, which has to cross sequences above
 * the budget, does not. Where nothing had to be left out for lack of room or time, its answer is optimal.
 *
 * ```
 *   begun   0      1      2      3        within a stage the state with the least cost + bound is expanded first; the
 *   states  {} ──▶ {a} ─▶ {ab}─▶ …        `width` best that have run the stage's operation go on to the next stage,
 *                    └──▶ {b} ─▶ …        less those that hold no more than another one that costs no more
 * ```
 *
 * Values are dropped only when room is needed (holding more is never worse), and then no more of them than is needed.
 * Bounds: `state-bounds.ts`. States that cannot become cheaper than a known plan are left out.
 */
import type { FlatGraph } from "../plan/recompute/flat-graph.ts";
import { isSpent, type Meter } from "../plan/recompute/meter.ts";
import { bits, StateBounds } from "./state-bounds.ts";

/** What to search: from a stage with some values present to another with at least some; everything unless told. */
export interface StateWindow {
  readonly from: number;
  readonly to: number;
  readonly enter: Iterable<number>;
  readonly leave: Iterable<number>;
}

export interface StateOptions {
  /** States that go on to the next stage. */
  readonly width: number;
  /** Only plans whose repetitions cost less. */
  readonly cutoff: number;
  readonly meter: Meter;
}

export interface StateAnswer {
  readonly sequence: number[] | null;
  /** Nothing was left out: there is no plan below the cutoff other than this, or none at all. */
  readonly complete: boolean;
}

interface State {
  readonly lo: number;
  readonly hi: number;
  /** Of repetitions so far. */
  readonly cost: number;
  /** `cost` and the bound. */
  readonly rank: number;
  /** The operation that led here. */
  readonly op: number;
  readonly from: State | null;
}

/** A set of values, in two halves. */
type Bits = readonly [lo: number, hi: number];

/** States to expand in a stage for each that goes on. */
const EXPANSIONS = 60;
/** From this width on, operations that need not run again may. */
const THOROUGH = 500;
/** Ways to make room for one operation, for each state that goes on, and at least. */
const WAYS = 0.5;
const FEWEST_WAYS = 12;

/** A set as one number; as a long one where it has more bits than a double is exact to. */
function keyOf(lo: number, hi: number): number | bigint {
  if (hi >>> 21 === 0) return hi * 2 ** 32 + (lo >>> 0);
  return (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0);
}

/** A heap by rank; of equals the one that came last, which is nearest to the end of the stage. */
class Queue {
  readonly #items: State[] = [];

  get length(): number {
    return this.#items.length;
  }

  push(state: State): void {
    const items = this.#items;
    let k = items.push(state) - 1;
    for (let up = (k - 1) >> 1; k > 0 && state.rank <= (items[up] as State).rank; up = (k - 1) >> 1) {
      items[k] = items[up] as State;
      k = up;
    }
    items[k] = state;
  }

  pop(): State | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let k = 0;
    for (;;) {
      let child = 2 * k + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && (items[child + 1] as State).rank < (items[child] as State).rank) child++;
      if ((items[child] as State).rank >= last.rank) break;
      items[k] = items[child] as State;
      k = child;
    }
    items[k] = last;
    return first;
  }
}

class StateSearch {
  readonly #bounds: StateBounds;
  readonly #options: StateOptions;
  readonly #scratch: Float64Array;
  /** Nothing was left out so far. */
  complete = true;

  constructor(graph: FlatGraph, budget: number, window: StateWindow, options: StateOptions) {
    this.#bounds = new StateBounds(graph, budget, window.to, window.leave);
    this.#options = options;
    this.#scratch = Float64Array.from({ length: graph.ops }, (_, op) => {
      const written = this.#bounds.bytesOf(this.#bounds.outLo[op] as number, this.#bounds.outHi[op] as number);
      return (graph.madeBytes[op] as number) - written;
    });
  }

  #spent(): boolean {
    const { meter } = this.#options;
    meter.left -= this.#bounds.work;
    this.#bounds.work = 0;
    return isSpent(meter);
  }

  /** Runs `op` from a state in a stage, all ways to make room for it; `into` gets those that can lead to a cheaper plan. */
  #run(state: State, op: number, stage: number, into: (next: State) => void): void {
    const bounds = this.#bounds;
    const { graph } = bounds;
    const operandsLo = (bounds.inLo[op] as number) | (bounds.outLo[op] as number);
    const operandsHi = (bounds.inHi[op] as number) | (bounds.outHi[op] as number);
    const [allLo, allHi] = [state.lo | operandsLo, state.hi | operandsHi];
    const fixed = (this.#scratch[op] as number) + (graph.pinnedBytes[stage] as number);
    const excess = bounds.bytesOf(allLo, allHi) + fixed - bounds.budget;
    const first = op === stage;
    const cost = first ? state.cost : state.cost + (graph.cost[op] as number);
    const { cutoff } = this.#options;
    const reach = (lo: number, hi: number): void => {
      const rank = cost + bounds.assess(first ? stage + 1 : stage, lo, hi, cutoff - cost);
      if (rank < cutoff) into({ lo, hi, cost, rank, op, from: state });
    };
    if (excess <= 0) {
      reach(allLo, allHi);
      return;
    }
    this.#makeRoom(stage, [allLo & ~operandsLo, allHi & ~operandsHi], excess, (lo, hi) =>
      reach(allLo & ~lo, allHi & ~hi),
    );
  }

  /** The least sets of `loose` values that free `excess` bytes, those that are cheap to recompute first. */
  #makeRoom(stage: number, [looseLo, looseHi]: Bits, excess: number, found: (lo: number, hi: number) => void): void {
    const bounds = this.#bounds;
    const { bytes, producer, cost } = bounds.graph;
    // values that have to be recomputed anyway, or are not needed, cost nothing to drop
    const [readLo, readHi] = [bounds.readLo[stage] as number, bounds.readHi[stage] as number];
    const values: { readonly v: number; readonly price: number }[] = [];
    for (let v = 0; v < bounds.graph.values; v++) {
      if ((((v < 32 ? looseLo : looseHi) >>> (v & 31)) & 1) === 0 || bytes[v] === 0) continue;
      const read = ((v < 32 ? readLo : readHi) >>> (v & 31)) & 1;
      values.push({ v, price: ((read ? 1 : 0.1) * (cost[producer[v] as number] as number)) / (bytes[v] as number) });
    }
    values.sort((p, q) => p.price - q.price || p.v - q.v);
    // all that the last of them could still free: where that is too little there is no way to make room
    const rest = new Float64Array(values.length + 1);
    for (let k = values.length - 1; k >= 0; k--)
      rest[k] = (rest[k + 1] as number) + (bytes[(values[k] as { v: number }).v] as number);
    let ways = Math.max(FEWEST_WAYS, WAYS * this.#options.width);
    let looked = 0;
    const choose = (k: number, [lo, hi]: Bits, short: number, smallest: number): void => {
      if (short > (rest[k] as number)) return;
      looked++;
      if (ways <= 0 || looked > 100 * ways) {
        this.complete = false;
        return;
      }
      if (short <= 0) {
        // without the smallest of them it would still be enough
        if (smallest <= -short) return;
        ways--;
        found(lo, hi);
        return;
      }
      const { v } = values[k] as { v: number };
      const size = bytes[v] as number;
      const mask = 1 << (v & 31);
      choose(k + 1, v < 32 ? [lo | mask, hi] : [lo, hi | mask], short - size, Math.min(smallest, size));
      choose(k + 1, [lo, hi], short, smallest);
    };
    choose(0, [0, 0], excess, Number.POSITIVE_INFINITY);
    bounds.work += 4 * looked + 4 * values.length;
  }

  /** Runs the operations that may run again. Those that this stage waits for come last: of equals the last is expanded first. */
  #repeat(state: State, stage: number, into: (next: State) => void): void {
    const bounds = this.#bounds;
    const { graph, inLo, inHi, outLo, outHi } = bounds;
    const { cutoff, width } = this.#options;
    bounds.assess(stage, state.lo, state.hi, 0);
    const { pendingLo, pendingHi } = bounds;
    let wantedLo = (stage < bounds.end ? inLo[stage] : bounds.readLo[stage]) as number;
    let wantedHi = (stage < bounds.end ? inHi[stage] : bounds.readHi[stage]) as number;
    const soon: number[] = [];
    for (let op = stage - 1; op >= 0; op--) {
      const absentLo = (outLo[op] as number) & ~state.lo;
      const absentHi = (outHi[op] as number) & ~state.hi;
      if ((absentLo | absentHi) === 0) continue;
      const wanted = ((absentLo & wantedLo) | (absentHi & wantedHi)) !== 0;
      if (wanted) {
        wantedLo |= inLo[op] as number;
        wantedHi |= inHi[op] as number;
      }
      if (graph.once[op] || ((inLo[op] as number) & ~state.lo) !== 0 || ((inHi[op] as number) & ~state.hi) !== 0)
        continue;
      const pending = ((op < 32 ? pendingLo : pendingHi) >>> (op & 31)) & 1;
      // an operation that is not pending pays only for recomputing values that are yet to be dropped, which is rare
      if (!pending && state.rank + (graph.cost[op] as number) >= cutoff) continue;
      if (!pending && width < THOROUGH) this.complete = false;
      else if (wanted) soon.push(op);
      else this.#run(state, op, stage, into);
    }
    for (const op of soon) this.#run(state, op, stage, into);
  }

  /** The best states after the stage's operation; for the stage after the last, one with all results. */
  advance(stage: number, states: readonly State[]): readonly State[] {
    const bounds = this.#bounds;
    const { inLo, inHi, readLo, readHi } = bounds;
    const { width } = this.#options;
    const last = stage === bounds.end;
    const targetLo = (last ? readLo[stage] : inLo[stage]) as number;
    const targetHi = (last ? readHi[stage] : inHi[stage]) as number;
    const queue = new Queue();
    const seen = new Map<number | bigint, number>();
    const done = new Map<number | bigint, State>();
    const arrive = (next: State): void => {
      const key = keyOf(next.lo, next.hi);
      const other = done.get(key);
      if (!other || next.cost < other.cost) done.set(key, next);
    };
    const wait = (next: State): void => {
      const key = keyOf(next.lo, next.hi);
      if (next.cost >= (seen.get(key) ?? Number.POSITIVE_INFINITY)) return;
      seen.set(key, next.cost);
      queue.push(next);
    };
    for (let k = states.length - 1; k >= 0; k--) wait(states[k] as State);
    for (let count = 0; queue.length > 0; count++) {
      if (count >= EXPANSIONS * width || done.size >= 4 * width || (count % 16 === 0 && this.#spent())) {
        this.complete = false;
        break;
      }
      const state = queue.pop() as State;
      if (state.cost > (seen.get(keyOf(state.lo, state.hi)) as number)) continue;
      if ((targetLo & ~state.lo) === 0 && (targetHi & ~state.hi) === 0) {
        // the first that gets here has the least rank of all
        if (last) return [state];
        this.#run(state, stage, stage, arrive);
      }
      this.#repeat(state, stage, wait);
    }
    return this.#select([...done.values()]);
  }

  /** The best of them, without those that hold no more than a better one. */
  #select(states: State[]): readonly State[] {
    states.sort((p, q) => p.rank - q.rank || p.cost - q.cost);
    const kept: State[] = [];
    for (const state of states) {
      if (kept.length >= this.#options.width) {
        this.complete = false;
        break;
      }
      const dominated = kept.some(
        ({ lo, hi, cost }) => cost <= state.cost && (state.lo & ~lo) === 0 && (state.hi & ~hi) === 0,
      );
      if (!dominated) kept.push(state);
    }
    this.#bounds.work += (states.length * kept.length) >> 3;
    return kept;
  }
}

/** The cheapest sequence within `budget` that is found, or of a window the part of one. */
export function searchStates(
  graph: FlatGraph,
  budget: number,
  options: StateOptions,
  window: StateWindow = { from: 0, to: graph.ops, enter: [], leave: graph.results },
): StateAnswer {
  const search = new StateSearch(graph, budget, window, options);
  const enter = { lo: bits(window.enter, 0), hi: bits(window.enter, 1) };
  let states: readonly State[] = [{ ...enter, cost: 0, rank: 0, op: -1, from: null }];
  for (let stage = window.from; stage <= window.to && states.length > 0; stage++)
    states = search.advance(stage, states);
  const { complete } = search;
  if (states.length === 0) return { sequence: null, complete };
  const sequence: number[] = [];
  for (let state = states[0] ?? null; state && state.op >= 0; state = state.from) sequence.push(state.op);
  return { sequence: sequence.reverse(), complete };
}
