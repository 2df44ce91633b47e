/**
 * @file Search for a low placement with two alternating methods, each with switches (params.ts):
 *
 *     exact   branch and bound (branch.ts) in short runs with different orders. Decides whether a height is possible
 *             where that can be decided at all, and is quickest when the height that it aims at is tight.
 *     repair  local search by ejection (repair.ts). For problems that are too large for the exact method, or too loose.
 *
 *     bytes  best ┤──────  repair starts close to the bound, exact aims at the bound and at several heights in between;
 *                 │        a solution lowers the best, a height that is shown to be infeasible lifts the bound.
 *           bound ┤──────  They meet: proven.
 *
 * Monotone in the capacity: it only says when to stop. The attempts and their order are a function of the problem, the
 * switches and the seed, and the best height only falls; so with more capacity the search ends at the same attempt or
 * an earlier one. Attempts end after a number of iterations, so a result does not depend on the clock; a deadline only
 * says when to stop.
 */
import { at } from "../../base/invariant.ts";
import { heightOf, type Problem } from "../problem.ts";
import { Branch } from "./branch.ts";
import { type Placement, placeGreedily } from "./greedy.ts";
import { DEFAULT_PARAMS, type SearchParams } from "./params.ts";
import { type Priorities, prioritiesOf } from "./priorities.ts";
import { type Random, randomFrom } from "./random.ts";
import { Repair } from "./repair.ts";
import { compactDown, fixedTop, heightOfItems, offsetsOf, type Sections, sectionsOf } from "./sections.ts";

/** Options of {@link searchPlacement}. */
export interface SearchOptions {
  /** A lower bound of the height. */
  readonly targetBytes: number;
  /** Stop at a placement that is not higher than this; without it, at the bound. */
  readonly capacityBytes?: number;
  readonly timeoutMs?: number;
  /** A limit that is the same on every machine: about 2 · 10⁸ a second. */
  readonly workLimit?: number;
  readonly seed?: number;
  /** Cancels the search, for example at a deadline. */
  readonly isOver?: () => boolean;
  /** A placement to improve; by default the best greedy one. */
  readonly start?: Placement;
  /** Switches that differ from the defaults. */
  readonly params?: Partial<SearchParams>;
}

/** The placement that {@link searchPlacement} found. */
export interface SearchResult extends Placement {
  /** No placement is lower. */
  readonly proven: boolean;
  /** No placement is below this: `targetBytes`, or more where the search could rule heights out. */
  readonly boundBytes: number;
  /** Nodes of branch and bound and iterations of local search. */
  readonly nodes: number;
}

/** The most entries in all sections' item lists for the exact method; more would take too much memory. */
const EXACT_ENTRIES = 1 << 24;
/** Greedy placements of tens of thousands of buffers: about a second. */
const GREEDY_WORK = 1e8;
/** Growth of the node limit, once per round of orders. */
const GROWTH = 1.02;
/** Where relaxed runs of the exact method aim, from the bound (0) to the best (1). Their number has no common factor with
 *  the number of orders, so every height meets every order. */
const HEIGHTS = [0.5, 0.9, 0.75] as const;
/** Up to this many items the exact method gets twelve times the work of repair, beyond it the same. */
const FEW = 600;
const EXACT_SHARE = 12;
/**
 * With more than FEW items, the exact method succeeds in a few runs or not at all: after this many runs it gets a
 * tenth.
 */
const FIRST_RUNS = 12;

/**
 * The lowest placement within the limits.
 *
 * @example
 * import { boundOf, parseCsv, searchPlacement } from "tidemark/plan";
 *
 * const text = "id,lower,upper,size\na,0,2,64\nb,1,3,64";
 * const { problem } = parseCsv(text);
 * console.log(searchPlacement(problem, { targetBytes: boundOf(problem).bytes }).height); // → 128
 */
export function searchPlacement(problem: Problem, options: SearchOptions): SearchResult {
  const deadline = performance.now() + (options.timeoutMs ?? Number.POSITIVE_INFINITY);
  const isLimited = deadline < Number.POSITIVE_INFINITY;
  const isOver = (): boolean => (isLimited && performance.now() >= deadline) || options.isOver?.() === true;
  const { targetBytes, capacityBytes = targetBytes, workLimit = Number.POSITIVE_INFINITY } = options;
  const goal = Math.max(targetBytes, capacityBytes);
  const start = options.start ?? placeGreedily(problem, goal, GREEDY_WORK, isOver);
  if (start.height <= goal || capacityBytes < targetBytes || isOver()) {
    return { ...start, proven: start.height <= targetBytes, boundBytes: targetBytes, nodes: 0 };
  }
  const search = new PlacementSearch(problem, start, options, isOver);
  while (!search.isDone && search.work < workLimit && !isOver()) search.step();
  return search.result();
}

/** Runs of the exact method that learn from each other. */
interface Series {
  readonly branch: Branch;
  readonly random: Random;
  runs: number;
  nodeLimit: number;
}

class PlacementSearch {
  readonly #problem: Problem;
  readonly #params: SearchParams;
  readonly #sections: Sections;
  readonly #seed: number;
  readonly #priorities: Priorities;
  readonly #repair: Repair;
  /** Aiming at the bound, and above; created when needed. */
  readonly #series: Series[] = [];
  /** Whether the exact method takes part: not with too many items. */
  readonly #isExact: boolean;
  readonly #isOver: () => boolean;
  /** In units above ground: no placement is below `bound`, one of height `best` is known, `goal` is low enough. */
  #bound: number;
  #best: number;
  readonly #goal: number;
  readonly #hasCapacity: boolean;
  readonly #offset: Float64Array;
  #strategy: string;
  #runs = 0;
  #exactWork = 0;
  /** Runs of the exact method since its last decision. */
  #unsuccessful = 0;

  constructor(problem: Problem, start: Placement, options: SearchOptions, isOver: () => boolean) {
    const { targetBytes, capacityBytes, seed = 1, params } = options;
    const sections = sectionsOf(problem);
    this.#problem = problem;
    this.#params = { ...DEFAULT_PARAMS, ...params };
    this.#isOver = isOver;
    this.#sections = sections;
    this.#seed = seed;
    this.#repair = new Repair(sections, this.#params, randomFrom(seed), isOver);
    this.#priorities = prioritiesOf(sections);
    const entries = sections.hi.reduce((sum, hi, i) => sum + hi - (sections.lo[i] as number), 0);
    this.#isExact = this.#params.exact && entries <= EXACT_ENTRIES;
    const units = (bytes: number): number => (bytes - sections.ground) / sections.unit;
    const target = Math.ceil(units(targetBytes));
    this.#bound = Math.max(target, fixedTop(sections));
    this.#hasCapacity = capacityBytes !== undefined;
    this.#goal = Math.max(target, Math.floor(units(capacityBytes ?? targetBytes)));
    this.#offset = Float64Array.from(sections.ids, (id) => units(start.offsets[id] ?? 0));
    this.#best = Math.ceil(units(start.height));
    this.#strategy = start.strategy;
    // grounded buffers may have other offsets in the start placement
    if (sections.grounded.size > 0) this.#best = compactDown(sections, this.#offset);
  }

  get isDone(): boolean {
    const hasMethod = this.#isExact || this.#params.repair;
    const isInfeasible = this.#hasCapacity && this.#bound > this.#goal;
    return !hasMethod || this.#best <= Math.max(this.#bound, this.#goal) || isInfeasible;
  }

  get work(): number {
    return this.#exactWork + this.#repair.work;
  }

  /** One run of the method that is furthest below its share of the work. */
  step(): void {
    const { n, count } = this.#sections;
    const many = this.#unsuccessful < FIRST_RUNS ? 1 : 0.1;
    const share = n <= FEW ? EXACT_SHARE : many;
    const next = 2 * n * (n + count);
    const isDue = this.#exactWork + next <= share * this.#repair.work + 2e6;
    if (this.#isExact && (isDue || !this.#params.repair)) this.#runExact();
    else this.#runRepair();
  }

  result(): SearchResult {
    const { unit, ground } = this.#sections;
    const offsets = offsetsOf(this.#problem, this.#sections, this.#offset);
    const nodes = this.#series.reduce((sum, { branch }) => sum + branch.nodes, this.#repair.iterations);
    const height = heightOf(this.#problem, offsets);
    const boundBytes = this.#bound * unit + ground;
    return { offsets, height, strategy: this.#strategy, proven: this.#best <= this.#bound, boundBytes, nodes };
  }

  #runExact(): void {
    const { n, count } = this.#sections;
    const { relax, perturb, noise, failureDecay } = this.#params;
    const isRelaxed = relax && this.#best > this.#bound + 1 && this.#runs++ % 2 === 1;
    const series = this.#seriesFor(isRelaxed ? 1 : 0);
    const { branch, random, runs } = series;
    const height = isRelaxed ? at(HEIGHTS, runs % HEIGHTS.length) : 0;
    const capacity = Math.min(this.#best - 1, Math.floor(this.#bound + height * (this.#best - this.#bound)));
    const order = at(this.#priorities, runs % this.#priorities.length);
    const amount = perturb && runs >= this.#priorities.length ? noise : 0;
    order.of.forEach((value, i) => {
      branch.priority[i] = value + amount * (random() + random() - 1);
    });
    const before = branch.nodes;
    const outcome = branch.run(capacity, series.nodeLimit, this.#isOver);
    this.#exactWork += (branch.nodes - before) * (n + count) + 4 * n;
    this.#unsuccessful = outcome === "limit" ? this.#unsuccessful + 1 : 0;
    if (outcome === "solution") this.#accept(branch.state.offset, `exact/${order.name}`);
    if (outcome === "infeasible") this.#bound = Math.max(this.#bound, capacity + 1);
    series.runs += 1;
    if (series.runs % this.#priorities.length === 0) series.nodeLimit = Math.floor(series.nodeLimit * GROWTH);
    const { failures } = branch.state;
    for (let s = 0; s < count; s++) failures[s] = (failures[s] as number) * failureDecay;
  }

  #seriesFor(number: number): Series {
    const { n } = this.#sections;
    this.#series[number] ??= {
      branch: new Branch(this.#sections, this.#params),
      random: randomFrom(this.#seed),
      runs: 0,
      nodeLimit: Math.max(this.#params.nodeLimit, n + Math.min(n, 2000)),
    };
    return this.#series[number];
  }

  #runRepair(): void {
    const incumbent = { offset: this.#offset, best: this.#best, bound: this.#bound };
    if (this.#repair.round(incumbent)) this.#accept(this.#repair.offset, "repair");
  }

  #accept(offset: Float64Array, strategy: string): void {
    const height = heightOfItems(this.#sections, offset);
    if (height >= this.#best) return;
    this.#best = height;
    this.#strategy = strategy;
    this.#offset.set(offset);
  }
}
