/**
 * @file Reductions: the partial sums that a nest prescribes (ReduceNest) are threads.
 *
 *   interleaved   a team of sixteen threads (eight for f64) a row, thread l has partial sum l; then one thread joins them
 *   sequential    a thread for each kept element, which goes down its column
 *
 * The runs of a long reduction (`blockElements`) are independent of each other until they are flushed into block sums, in
 * order; so are block sums until they are flushed into totals. Where there are too few rows to keep the device busy, each run
 * is a team's, then each block sum, and a last launch adds them up:
 *
 *   row 0    run 0  run 1  …  run 255 │ run 256  …  run 299     launch 1: a team each, partial sums to the workspace
 *            └──── block sum 0 ─────┘ └──── block sum 1 ──┘     launch 2: a team each, where there are several
 *            └──────────────── total ─────────────────────┘     launch 3: a team a row: total, join, stores
 *
 * The same is done with greatest, least and sums of integers, which have no order.
 */
import { bytesOf, isFloatScalar, laneBytes } from "../../kernel/dtype.ts";
import { type Bound, call, type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  linearIndex,
  modIndex,
  offsetIndex,
  scaleIndex,
  varIndex,
  ZERO,
} from "../../kernel/index-math.ts";
import {
  BLOCK_TERMS,
  blockElements,
  identityOf,
  type Operand,
  type ReduceNest,
  usesBlockSums,
} from "../../kernel/loops.ts";
import { live, product } from "../units.ts";
import {
  below,
  counter,
  countersAt,
  equals,
  isEmpty,
  Memories,
  Replacement,
  type Row,
  rowOf,
  threadsFor,
} from "./counters.ts";
import { type DeviceClass, type Launch, loop, phase, type Statement, storing, where } from "./program.ts";

/** The most elements of partial sums, and the fewest terms of one that make it worth a team. */
const MOST_WORKSPACE = 2 ** 22;
const FEWEST_TERMS = 8;
/** Terms whose loads are under way at once, at least and at most, and the nodes of an expression up to which it is written out so often. */
const TERMS_AHEAD = { least: 8, most: 32 } as const;
const MOST_NODES = 32;
/**
 * Bytes of loads that keep the memory of a multiprocessor busy: its share of the rate times the time until a load arrives. Few threads
 * (the columns of a matrix) have more terms on their way each.
 */
const BYTES_AHEAD = 32 * 1024;

interface Plan {
  readonly rows: number;
  /** Threads of a row. */
  readonly team: number;
  /** Counters around the innermost one, and how often they run. */
  readonly outer: readonly LoopVar[];
  readonly passes: number;
  readonly inner: LoopVar | null;
  readonly extent: number;
  /** Elements of the innermost counter between flushes; how many runs there are in a pass, a last short one too. */
  readonly run: number;
  readonly runs: number;
  readonly blocked: boolean;
  /** Flushes of a pass: a flush ends it also where a run has just ended. */
  readonly flushes: number;
}

function planReduce(nest: ReduceNest): Plan {
  const across = nest.order === "interleaved";
  const inner = (across ? nest.reduce.at(-1) : nest.reduce.findLast((v) => v.extent !== 1)) ?? null;
  const outer = live(nest.reduce.filter((v) => v !== inner));
  const [extent, run] = [inner?.extent ?? 1, blockElements(nest)];
  const [runs, blocked] = [Math.ceil(extent / run), usesBlockSums(nest)];
  return {
    rows: product(nest.loops),
    team: across ? 64 / laneBytes(nest.dtype) : 1,
    ...{ outer, passes: product(outer), inner, extent, run, runs, blocked },
    flushes: blocked ? Math.floor(extent / run) + 1 : runs,
  };
}

/** Partial results of a row: how many, and where in the workspace those of all rows start. */
interface Level {
  readonly count: number;
  readonly start: number;
}

/** Runs, and block sums where there is more than one. */
function levelsOf({ rows, team, passes, runs, flushes }: Plan): readonly [runs: Level, sums: Level | null] {
  const count = passes * runs;
  const sums = Math.ceil((passes * flushes) / BLOCK_TERMS);
  return [{ count, start: 0 }, sums > 1 ? { count: sums, start: rows * count * team } : null];
}

/** Whether combining in another order gives the same: of numbers that are not rounded. */
const isExact = ({ combine, dtype }: ReduceNest): boolean =>
  !isFloatScalar(dtype) || (combine !== "add" && combine !== "mul");

/** Elements of workspace: partial results of every run of every pass, or none where rows are enough. */
export function reduceWorkspace(nest: ReduceNest, { threads, multiprocessors }: DeviceClass): number {
  const plan = planReduce(nest);
  const { rows, team, extent, blocked } = plan;
  const [runs, sums] = levelsOf(plan);
  const elements = rows * team * (runs.count + (sums?.count ?? 0));
  const busy = rows * team >= threads * multiprocessors;
  const worth = runs.count > 1 && extent >= FEWEST_TERMS * team && elements <= MOST_WORKSPACE;
  return !busy && worth && (blocked || isExact(nest)) ? elements : 0;
}

/** How many of so many terms to load at once: what is left is loaded one by one, so the fewest loads in a row. */
function widthOf(terms: number, most: number): number {
  const rounds = (width: number): number => Math.floor(terms / width) + (terms % width);
  let best = most;
  for (let width = most / 2; width >= TERMS_AHEAD.least; width /= 2) if (rounds(width) < rounds(best)) best = width;
  return best;
}

/** Where a team's threads are. */
interface Team {
  readonly row: Index;
  /** Number of a thread in it. */
  readonly lane: Index;
}

class ReduceSchedule {
  readonly nest: ReduceNest;
  readonly plan: Plan;
  readonly operands: readonly Operand[];
  readonly device: DeviceClass;
  memories: Memories;
  /** The accumulator of a thread, and for long sums its block sum and total. */
  acc = 0;
  blockSum = 0;
  total = 0;
  /** Terms that may be loaded before they are combined. */
  loadsAhead = 1;

  constructor(nest: ReduceNest, operands: readonly Operand[], device: DeviceClass) {
    this.nest = nest;
    this.plan = planReduce(nest);
    this.operands = operands;
    this.device = device;
    this.memories = new Memories(operands);
  }

  /** A launch of so many threads, with memories of its own. */
  #launch(threads: number, build: () => Pick<Launch, "grid" | "thread" | "body">): Launch {
    this.memories = new Memories(this.operands);
    [this.acc, this.blockSum, this.total] = [this.#local(), this.#local(), this.#local()];
    this.loadsAhead = this.#aheadOf(threads);
    const made = build();
    return { ...made, memories: this.memories.list };
  }

  #local(): number {
    return this.memories.add({ scope: "local", dtype: this.nest.dtype, elements: 1 });
  }

  read(memory: number): Expr {
    return this.memories.read(memory, ZERO);
  }

  #set(memory: number, value: Expr): Statement {
    return storing({ operand: memory, index: ZERO, value });
  }

  get #identity(): Expr {
    const { combine, dtype } = this.nest;
    return { kind: "const", dtype, value: identityOf(combine, dtype) };
  }

  #both(a: Expr, b: Expr): Expr {
    return call(this.nest.combine, [a, b], this.nest.dtype);
  }

  #into(memory: number, value: Expr): Statement {
    return this.#set(memory, this.#both(this.read(memory), value));
  }

  /** The body at an element of the innermost counter. */
  #term(team: Team, counters: ReadonlyMap<LoopVar, Index>, r: Index): Expr {
    const all = new Map([...countersAt(this.nest.loops, team.row), ...counters]);
    if (this.plan.inner) all.set(this.plan.inner, r);
    return new Replacement(all).expr(this.nest.body);
  }

  #take(team: Team, counters: ReadonlyMap<LoopVar, Index>, r: Index): Statement {
    return this.#into(this.acc, this.#term(team, counters, r));
  }

  /** The elements of a run that are a thread's. */
  #run(team: Team, counters: ReadonlyMap<LoopVar, Index>, run: Index): readonly Statement[] {
    const { extent, run: length, runs, team: wide } = this.plan;
    if (this.nest.order === "sequential") {
      return this.#terms(run, { end: extent, each: length }, (r) => this.#term(team, counters, r));
    }
    const rounds = { end: Math.floor(extent / wide), each: length / wide };
    const whole = this.#terms(run, rounds, (round) =>
      this.#term(team, counters, addIndex(scaleIndex(round, wide), team.lane)),
    );
    if (extent % wide === 0) return whole;
    return [...whole, ...where(runs === 1 ? [] : [equals(run, runs - 1)], this.#rest(team, counters))];
  }

  /**
   * Combines terms [run · each, run · each + each) as far as they are below `end`: some are computed, then combined in order,
   * so that their loads do not wait for each other.
   */
  #terms(
    run: Index,
    { end, each }: { readonly end: number; readonly each: number },
    term: (i: Index) => Expr,
  ): readonly Statement[] {
    if (end === 0) return [];
    const { runs } = this.plan;
    const [first, last] = [scaleIndex(run, each), end - (runs - 1) * each];
    const width = widthOf(Math.min(each, end), this.#ahead);
    const chunk = counter("chunk", Math.floor(Math.min(each, end) / width));
    const start = addIndex(first, scaleIndex(varIndex(chunk), width));
    const limit = divIndex(addIndex(constIndex(end), scaleIndex(first, -1)), width);
    const isShort = runs > 1 && last < each;
    const body = this.#chunk(start, width, term);
    const chunks: readonly Statement[] = isShort
      ? [{ kind: "for", counter: chunk, limit, unroll: false, body }]
      : loop(chunk, body);
    const rest = counter("rest", last % width);
    const left = loop(rest, [this.#into(this.acc, term(offsetIndex(varIndex(rest), end - (last % width))))]);
    return [
      ...(chunk.extent === 0 ? [] : chunks),
      ...(rest.extent === 0 ? [] : where(runs === 1 ? [] : [equals(run, runs - 1)], left)),
    ];
  }

  /** Terms that are loaded at once where so many threads run: a power of two. */
  #aheadOf(threads: number): number {
    const { least, most } = TERMS_AHEAD;
    const wanted = (BYTES_AHEAD * this.device.multiprocessors) / (threads * bytesOf(this.nest.dtype));
    return Math.max(least, Math.min(most, 2 ** Math.ceil(Math.log2(wanted))));
  }

  /** Terms of the body that are computed before they are combined: several, where they are little code. */
  get #ahead(): number {
    let nodes = 0;
    walkExpr(this.nest.body, () => (nodes += 1));
    return nodes <= MOST_NODES ? this.loadsAhead : 1;
  }

  #chunk(start: Index, width: number, term: (i: Index) => Expr): readonly Statement[] {
    if (width === 1) return [this.#into(this.acc, term(start))];
    const terms = this.memories.add({ scope: "local", dtype: this.nest.dtype, elements: width });
    const [ahead, next] = [counter("ahead", width), counter("next_term", width)];
    const index = varIndex(ahead);
    const compute = storing({ operand: terms, index, value: term(addIndex(start, index)) });
    const combine = this.#into(this.acc, this.memories.read(terms, varIndex(next)));
    return [...loop(ahead, [compute], true), ...loop(next, [combine], true)];
  }

  /** What fills no round of a team: by groups of four (two) into the first accumulators, then one by one into the first. */
  #rest(team: Team, counters: ReadonlyMap<LoopVar, Index>): readonly Statement[] {
    const { extent, team: wide } = this.plan;
    const group = wide / 4;
    const whole = extent - (extent % wide);
    const [groups, ones] = [Math.floor((extent - whole) / group), extent % group];
    const [g, o] = [counter("group", groups), counter("one", ones)];
    const grouped = addIndex(scaleIndex(varIndex(g), group), team.lane, constIndex(whole));
    const single = offsetIndex(varIndex(o), extent - ones);
    return [
      ...(groups === 0
        ? []
        : where([{ index: team.lane, lo: 0, hi: group }], loop(g, [this.#take(team, counters, grouped)]))),
      ...(ones === 0 ? [] : where([equals(team.lane, 0)], loop(o, [this.#take(team, counters, single)]))),
    ];
  }

  // ---- block sums --------------------------------------------------------------------------------------------------------

  /** Every BLOCK_TERMS flushes the block sums go into the totals; `flush` counts from 1. */
  #toTotal(flush: Index): readonly Statement[] {
    const { passes, flushes } = this.plan;
    if (passes * flushes < BLOCK_TERMS) return [];
    const body = [this.#into(this.total, this.read(this.blockSum)), this.#set(this.blockSum, this.#identity)];
    return where([equals(modIndex(flush, BLOCK_TERMS), 0)], body);
  }

  /** All runs of all passes. */
  #allRuns(team: Team): readonly Statement[] {
    const { outer, runs, blocked, flushes } = this.plan;
    const pass = linearIndex(
      outer.map(varIndex),
      outer.map((v) => v.extent),
    );
    const run = counter("run", runs);
    const first = scaleIndex(pass, flushes);
    const flush = [
      this.#into(this.blockSum, this.read(this.acc)),
      this.#set(this.acc, this.#identity),
      ...this.#toTotal(addIndex(first, varIndex(run), constIndex(1))),
    ];
    const body = [...this.#run(team, new Map(), varIndex(run)), ...(blocked ? flush : [])];
    const last = blocked && flushes > runs ? this.#toTotal(offsetIndex(first, flushes)) : [];
    return outer.reduceRight<readonly Statement[]>((inside, v) => loop(v, inside), [...loop(run, body), ...last]);
  }

  /** All runs, block sums and totals; what is left is in the accumulator. */
  #allOf(team: Team): readonly Statement[] {
    if (isEmpty(this.nest.reduce)) return [this.#set(this.acc, this.#identity)];
    const { blocked } = this.plan;
    const used = blocked ? [this.acc, this.blockSum, this.total] : [this.acc];
    const start = used.map((operand) => ({ operand, index: ZERO, value: this.#identity }));
    const finish = [this.#into(this.total, this.read(this.blockSum)), this.#set(this.acc, this.read(this.total))];
    return [storing(...start), ...this.#allRuns(team), ...(blocked ? finish : [])];
  }

  // ---- launches -----------------------------------------------------------------------------------------------------

  /** Teams for a number of items, of which one is a thread's where a team is one. */
  #teams(items: number): { readonly row: Row; readonly teams: number; readonly item: Index; readonly lane: Index } {
    const { team } = this.plan;
    const row = rowOf(items * team, this.device, 1);
    return {
      row,
      teams: threadsFor(items * team, this.device) / team,
      item: divIndex(row.element, team),
      lane: modIndex(row.element, team),
    };
  }

  /** A team for each row, whose accumulators `sums` sets; they are joined, and the row is stored. */
  #rows(sums: (team: Team) => readonly Statement[]): Launch {
    return this.#launch(this.plan.rows * this.plan.team, () => {
      const { row, teams, item, lane } = this.#teams(this.plan.rows);
      const acc = sums({ row: item, lane });
      const { grid, thread } = row;
      const stores = (at: Index, value: Expr): Statement =>
        storing(...new Replacement(countersAt(this.nest.loops, at), value).stores(this.nest.stores));
      if (this.plan.team === 1) {
        return { grid, thread, body: [phase(...row.each([...acc, stores(item, this.read(this.acc))]))] };
      }
      // one more element a team, so that the threads that join read from different banks
      const pitch = this.plan.team + 1;
      const shared = this.memories.add({ scope: "shared", dtype: this.nest.dtype, elements: teams * pitch });
      const own = addIndex(scaleIndex(divIndex(varIndex(thread), this.plan.team), pitch), lane);
      const put = storing({ operand: shared, index: own, value: this.read(this.acc) });
      const at = addIndex(...grid.map((v) => scaleIndex(varIndex(v), teams)), varIndex(thread));
      const joined = this.#joined((l) =>
        this.memories.read(shared, offsetIndex(scaleIndex(varIndex(thread), pitch), l)),
      );
      const bounds: readonly Bound[] = [...below(varIndex(thread), teams), ...below(at, this.plan.rows)];
      const body = [phase(...row.each([...acc, put])), phase(...where(bounds, [stores(at, joined)]))];
      return { grid, thread, body };
    });
  }

  /** ((q0 ⊕ q1) ⊕ (q2 ⊕ q3)) lane by lane, then lanes (0 ⊕ 2) ⊕ (1 ⊕ 3), or 0 ⊕ 1 where there are two. */
  #joined(acc: (lane: number) => Expr): Expr {
    const group = this.plan.team / 4;
    const quarter = (i: number, q: number): Expr => acc(q * group + i);
    const lane = (i: number): Expr =>
      this.#both(this.#both(quarter(i, 0), quarter(i, 1)), this.#both(quarter(i, 2), quarter(i, 3)));
    if (group === 2) return this.#both(lane(0), lane(1));
    return this.#both(this.#both(lane(0), lane(2)), this.#both(lane(1), lane(3)));
  }

  direct(): readonly Launch[] {
    return [this.#rows((team) => this.#allOf(team))];
  }

  // ---- in parts -----------------------------------------------------------------------------------------------------

  /** Where a partial result is: neighbouring threads have neighbouring lanes of a row, or neighbouring rows. */
  #place({ row, lane }: Team, part: Index, { count, start }: Level): Index {
    const { rows, team } = this.plan;
    const index =
      team === 1
        ? addIndex(scaleIndex(part, rows), row)
        : addIndex(scaleIndex(addIndex(scaleIndex(row, count), part), team), lane);
    return offsetIndex(index, start);
  }

  /** A partial result. */
  #partOf(team: Team, part: Index, { scratch, level }: { readonly scratch: number; readonly level: Level }): Expr {
    return this.memories.read(scratch, this.#place(team, part, level));
  }

  /** Combines partial results in order, some of them loaded at once. */
  #parts(count: number, part: (i: Index) => Expr): readonly Statement[] {
    const width = widthOf(count, this.loadsAhead);
    const [chunk, rest] = [counter("chunk", Math.floor(count / width)), counter("rest", count % width)];
    const body = this.#chunk(scaleIndex(varIndex(chunk), width), width, part);
    const one = this.#into(this.acc, part(offsetIndex(varIndex(rest), count - rest.extent)));
    return [...(chunk.extent === 0 ? [] : loop(chunk, body)), ...(rest.extent === 0 ? [] : loop(rest, [one]))];
  }

  /** A team for each partial result of each row. */
  #partial(scratch: number, level: Level, sums: (team: Team, part: Index) => readonly Statement[]): Launch {
    const { rows, team } = this.plan;
    return this.#launch(rows * level.count * team, () => {
      const { row, item, lane } = this.#teams(rows * level.count);
      const [at, part] =
        team === 1
          ? [modIndex(item, rows), divIndex(item, rows)]
          : [divIndex(item, level.count), modIndex(item, level.count)];
      const own: Team = { row: at, lane };
      const put = storing({ operand: scratch, index: this.#place(own, part, level), value: this.read(this.acc) });
      const body = [this.#set(this.acc, this.#identity), ...sums(own, part), put];
      return { grid: row.grid, thread: row.thread, body: [phase(...row.each(body))] };
    });
  }

  /** The runs that are flushed into one block sum; the flush after a whole last run of a pass adds nothing. */
  #blockSumOf(team: Team, sum: Index, from: { readonly scratch: number; readonly level: Level }): readonly Statement[] {
    const { passes, runs, flushes } = this.plan;
    const nth = counter("nth", Math.min(BLOCK_TERMS, passes * flushes));
    const flush = addIndex(scaleIndex(sum, BLOCK_TERMS), varIndex(nth));
    const [pass, run] = [divIndex(flush, flushes), modIndex(flush, flushes)];
    const part = this.#partOf(team, addIndex(scaleIndex(pass, runs), run), from);
    return loop(nth, where([...below(flush, passes * flushes), ...below(run, runs)], [this.#into(this.acc, part)]));
  }

  inParts(scratch: number): readonly Launch[] {
    const { outer, runs } = this.plan;
    const [level, sums] = levelsOf(this.plan);
    const partial = this.#partial(scratch, level, (own, part) =>
      this.#run(own, countersAt(outer, divIndex(part, runs)), modIndex(part, runs)),
    );
    const blocks = sums
      ? [this.#partial(scratch, sums, (own, part) => this.#blockSumOf(own, part, { scratch, level }))]
      : [];
    const last = { scratch, level: sums ?? level };
    const total = this.#rows((own) => [
      this.#set(this.acc, this.#identity),
      ...this.#parts(last.level.count, (part) => this.#partOf(own, part, last)),
    ]);
    return [partial, ...blocks, total];
  }
}

export function scheduleReduce(nest: ReduceNest, operands: readonly Operand[], device: DeviceClass): readonly Launch[] {
  if (isEmpty(nest.loops)) return [];
  const schedule = new ReduceSchedule(nest, operands, device);
  const needed = isEmpty(nest.reduce) ? 0 : reduceWorkspace(nest, device);
  const { scratch } = nest;
  const given = scratch === undefined ? 0 : (operands[scratch]?.elements ?? 0);
  return needed > 0 && given >= needed && scratch !== undefined ? schedule.inParts(scratch) : schedule.direct();
}
