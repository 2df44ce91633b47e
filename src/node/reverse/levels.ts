/**
 * @file Snapshots on several levels, each slower than the one before: Aupy and Herrmann, "H-Revolve", ACM TOMS 46
 * (2020). Level k has cₖ slots; a snapshot there costs wₖ, a restore rₖ, in evaluations of a step. With the first state
 * current,
 *
 * ```
 *   O_k(n, m)   n steps, the state not kept, m slots of level k and all of those below free
 *               = min( O_{k-1}(n, c_{k-1}),  w_k + P_k(n, m) )                                 0 for n = 1
 *   P_k(n, m)   the same, the state kept in one of the m slots
 *               = min( O_{k-1}(n, c_{k-1}),  min over j of  j + O_k(n-j, m-1) + r_k + P_k(j, m) )
 * ```
 *
 * is the least sum of advances, writes and reads. O(n² · slots), and closed for a first level at no cost. Loops too
 * long for the tables are cut first: every p steps on a level without a limit, p the cheapest (the best schedules
 * become periodic: Aupy and Herrmann, "Periodicity in optimal hierarchical checkpointing schemes", 2017); as a binomial
 * schedule with all remaining slots on others. Then fewer levels may be cheaper, so these are tried too.
 */
import { at, invariant } from "../../base/invariant.ts";
import { binomialSplit, leastAdvances } from "../../loops/binomial.ts";
import { type Actions, type LevelSpec, WORK } from "./action.ts";
import type { HeldState } from "./segments.ts";

/** Inner steps of the dynamic program, and cells of its tables, that fit the time limit. */
const WORK_LIMIT = 1e8;
const CELL_LIMIT = 4e6;

/** The optimum on a level, for n steps and m free slots of it. */
interface LevelTable {
  /** Longest loop that is solved. */
  readonly solved: number;
  /** O(n, all slots of the level), for n up to `solved`. */
  readonly full: Float64Array;
  /** O(n, m) and P(n, m); n up to `solved`. */
  open(n: number, m: number): number;
  kept(n: number, m: number): number;
  /** Whether the state is kept on this level rather than on one below. */
  keeps(n: number, m: number): boolean;
  /** How far to advance from a kept state; 0 to free it and use the levels below. */
  split(n: number, m: number): number;
}

export interface LevelsPlan {
  readonly cost: number;
  readonly optimal: boolean;
  /** Tables of the levels in use, the first ones. */
  readonly tables: readonly LevelTable[];
}

/** A first level at no cost: any length, in closed form. */
function freeLevel(solved: number, slots: number): LevelTable {
  const useful = (n: number, m: number): number => Math.min(m, n);
  const open = (n: number, m: number): number => leastAdvances(n, useful(n, m));
  return {
    solved: Number.POSITIVE_INFINITY,
    full: Float64Array.from({ length: solved + 1 }, (_, n) => open(n, slots)),
    open,
    kept: open,
    keeps: (_, m) => m > 0,
    split: (n, m) => (m === 1 ? n - 1 : binomialSplit(n, useful(n, m))),
  };
}

interface Layer {
  readonly open: Float64Array;
  readonly kept: Float64Array;
  readonly split: Int32Array;
}

/** O and P for one number of slots; `fewer` is O with one slot less, or null when there is no limit. */
function solveLayer(spec: LevelSpec, lower: Float64Array, fewer: Float64Array | null): Layer {
  const size = lower.length;
  const [open, keptCost, split] = [new Float64Array(size), new Float64Array(size), new Int32Array(size)];
  const rest = fewer ?? open;
  for (let n = 2; n < size; n++) {
    let best = at(lower, n);
    for (let j = 1; j < n; j++) {
      const total = j + (rest[n - j] as number) + spec.readCost + (keptCost[j] as number);
      if (total < best) {
        best = total;
        split[n] = j;
      }
    }
    keptCost[n] = best;
    open[n] = Math.min(at(lower, n), spec.writeCost + best);
  }
  return { open, kept: keptCost, split };
}

/** Whether the level has enough slots for every step. */
const unlimited = (spec: LevelSpec, steps: number): boolean => spec.units >= steps - 1;

/** The period of kept states with the least cost per step: a write, a read, and two passes over it. */
function periodOf({ writeCost, readCost }: LevelSpec, keptCost: Float64Array): number {
  let [period, least] = [1, Number.POSITIVE_INFINITY];
  for (let j = 1; j < keptCost.length; j++) {
    const each = (writeCost + readCost + j + at(keptCost, j)) / j;
    if (each < least) [period, least] = [j, each];
  }
  return period;
}

/** A level above `lower`; `below` are the slots under it. */
function solveLevel(spec: LevelSpec, lower: Float64Array, below: number, steps: number): LevelTable {
  const solved = lower.length - 1;
  const endless = unlimited(spec, steps);
  const layers: Layer[] = [{ open: lower, kept: lower, split: new Int32Array(lower.length) }];
  const count = endless ? 1 : spec.units;
  for (let m = 1; m <= count; m++) layers.push(solveLayer(spec, lower, endless ? null : at(layers, m - 1).open));
  const layer = (m: number): Layer => at(layers, Math.min(m, count));
  const period = periodOf(spec, layer(count).kept);
  const longSplit = (n: number, slots: number): number => (slots === 1 ? n - 1 : binomialSplit(n, Math.min(slots, n)));
  return {
    solved,
    full: layer(count).open,
    open: (n, m) => at(layer(m).open, n),
    kept: (n, m) => at(layer(m).kept, n),
    keeps: (n, m) => (n > solved ? m > 0 : at(layer(m).open, n) < at(lower, n)),
    split(n, m) {
      if (n <= solved) return at(layer(m).split, n);
      return endless ? period : longSplit(n, m + below);
    },
  };
}

const isFree = (spec: LevelSpec): boolean => spec.writeCost === 0 && spec.readCost === 0;

/** The longest loop that the tables are made for. */
function stepsWithin(steps: number, specs: readonly LevelSpec[]): number {
  const solved = specs.filter((spec, k) => k > 0 || !isFree(spec));
  const layers = solved.reduce((sum, spec) => sum + (unlimited(spec, steps) ? 1 : spec.units), 0);
  if (layers === 0) return steps;
  return Math.max(
    1,
    Math.min(steps, Math.floor(Math.sqrt((2 * WORK_LIMIT) / layers)), Math.floor(CELL_LIMIT / layers)),
  );
}

/** The cost when pieces that are too long are cut as `byLevels` does. */
function costOf(steps: number, specs: readonly LevelSpec[], tables: readonly LevelTable[]): number {
  const top = tables.length - 1;
  let cost = 0;
  const pieces = [{ n: steps, level: top, m: at(specs, top).units, kept: false }];
  for (let piece = pieces.pop(); piece; piece = pieces.pop()) {
    const { n, level, m, kept } = piece;
    if (n <= 1) continue;
    if (level < 0) return Number.POSITIVE_INFINITY;
    const table = at(tables, level);
    const { writeCost, readCost } = at(specs, level);
    if (n <= table.solved) cost += kept ? table.kept(n, m) : table.open(n, m);
    else if (kept) {
      const j = table.split(n, m);
      cost += j + readCost;
      pieces.push({ n: n - j, level, m: m - 1, kept: false }, { n: j, level, m, kept: true });
    } else if (m > 0) {
      cost += writeCost;
      pieces.push({ ...piece, kept: true });
    } else pieces.push({ n, level: level - 1, m: specs[level - 1]?.units ?? 0, kept: false });
  }
  return cost;
}

/** How to use the levels, fastest first, for a loop; infinite cost if no state can be kept. */
export function planLevels(
  steps: number,
  specs: readonly LevelSpec[],
  solved: number = stepsWithin(steps, specs),
): LevelsPlan {
  let lower: Float64Array = Float64Array.from({ length: solved + 1 }, (_, n) =>
    n <= 1 ? 0 : Number.POSITIVE_INFINITY,
  );
  let below = 0;
  const tables: LevelTable[] = [];
  for (const [k, spec] of specs.entries()) {
    const closedForm = k === 0 && isFree(spec);
    const table = closedForm ? freeLevel(solved, spec.units) : solveLevel(spec, lower, below, steps);
    tables.push(table);
    lower = table.full;
    below += spec.units;
  }
  if (solved >= steps) return { cost: costOf(steps, specs, tables), optimal: true, tables };
  let best: LevelsPlan | null = null;
  for (let count = 1; count <= tables.length; count++) {
    const first = tables.slice(0, count);
    const cost = costOf(steps, specs, first);
    if (best === null || cost < best.cost) best = { cost, optimal: false, tables: first };
  }
  invariant(best !== null, () => "no levels");
  return best;
}

/** A kept state, and the slots of its level that were free with its own. */
interface KeptState extends HeldState {
  readonly slots: number;
}

/**
 * Executes the choices of the tables. The last kept state is freed first, so a slot is the number of states already on
 * its level.
 */
export function* byLevels(steps: number, specs: readonly LevelSpec[], { tables }: LevelsPlan): Actions {
  const kept: KeptState[] = [];
  const used = specs.map(() => 0);
  const drop = ({ level, slot }: HeldState) => {
    kept.pop();
    used[level] = at(used, level) - 1;
    return { kind: "free", level, slot } as const;
  };
  let here = 0;
  for (let end = steps; end > 0; end--) {
    let level = tables.length - 1;
    let slots = at(specs, level).units;
    const last = kept.at(-1);
    /** The kept state equal to the current one, if there is one. */
    let from: KeptState | null = null;
    if (last) {
      yield { kind: "restore", step: last.step, level: last.level, slot: last.slot };
      here = last.step;
      if (end - here === 1) yield drop(last);
      else [from, level, slots] = [last, last.level, last.slots];
    }
    while (end - here > 1) {
      const n = end - here;
      if (from === null && at(tables, level).keeps(n, slots)) {
        from = { step: here, level, slot: at(used, level), slots };
        used[level] = from.slot + 1;
        kept.push(from);
        yield { kind: "snapshot", step: here, level, slot: from.slot };
      }
      const far: number = from === null ? 0 : at(tables, level).split(n, slots);
      if (far > 0) {
        yield { kind: "advance", from: here, to: here + far };
        here += far;
        slots--;
      } else {
        if (from) yield drop(from);
        level--;
        invariant(level >= 0, () => `no level keeps x_${here}`);
        slots = at(specs, level).units;
      }
      from = null;
    }
    yield { kind: "tape", step: end - 1, level: WORK, slot: 0 };
    yield { kind: "reverse", step: end - 1, level: WORK, slot: 0 };
  }
}
