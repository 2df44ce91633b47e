/**
 * @file Search for a low placement, by two methods in turns on about equal shares of work:
 *
 *     exact   branch and bound (branch.ts) in short runs with different orders. Decides whether a height is possible
 *             where that can be decided at all, and is quickest when the height that it aims at is tight.
 *     repair  ejection (repair.ts): lowers the best placement so far a little at a time. For problems that are too large
 *             for the exact method, or too loose.
 *
 *     bytes  best ┤──────  repair aims just below the best, exact at several heights in between; what is found lowers the
 *                 │        best, a height that is shown to be impossible lifts the bound. They meet: proven.
 *           bound ┤──────  With a capacity, aims are the bound and the capacity, and the search ends below the capacity.
 *
 * Aiming at the bound first makes more room never a disadvantage: the same runs happen, and others that are easier. Runs
 * end after a number of nodes, so what is found does not depend on the clock; the clock only says when to stop.
 */
import { heightOf, type Problem } from "../problem.ts";
import { Branch } from "./branch.ts";
import { Contemporaries } from "./contemporaries.ts";
import { type Placement, placeGreedily } from "./grid.ts";
import { type Keys, keysOf } from "./keys.ts";
import { type Random, randomFrom } from "./random.ts";
import { Repair } from "./repair.ts";
import { type Sections, sectionsOf } from "./sections.ts";

export interface SearchOptions {
  /** A lower bound of the height. */
  readonly targetBytes: number;
  /** Stop at a placement that is not higher than this; without it, at the bound. */
  readonly capacityBytes?: number;
  readonly timeoutMs?: number;
  /** A limit that is the same on every machine: about 2 · 10⁸ a second. */
  readonly workLimit?: number;
  readonly seed?: number;
  /** A placement to improve; by default the best greedy one. */
  readonly start?: Placement;
}

export interface SearchResult extends Placement {
  /** No placement is lower. */
  readonly proven: boolean;
  /** No placement is below this: `targetBytes`, or more where the search could rule heights out. */
  readonly boundBytes: number;
  /** Steps of both methods. */
  readonly nodes: number;
}

/** Lists of all sections' items of more than this would take too much memory for the exact method. */
const EXACT_ENTRIES = 1 << 24;
const MEMORY = 1 << 18;
const LEAST_NODES = 1500;
/** What is learned about sections fades, what is tried gets longer. */
const FADE = 0.97;
const GROWTH = 1.02;
const NOISE = 0.1;
/** Where the exact method aims, from the bound (0) to the best (1) or the capacity. Their number has no common factor with
 *  the number of orders, so every aim meets every order. */
const AIMS_BELOW_BEST = [0, 0.5, 0.9, 0, 0.25, 0.75] as const;
const AIMS_AT_CAPACITY = [0, 1, 0, 0.5] as const;
/** How much of the distance to the bound a repair tries to make up for. */
const CUTS = [0.1, 0.3, 0.1, 1, 0.03, 0.6] as const;

/** Every so many repairs, a placement from nothing. */
const FRESH = 7;

/** The lowest placement that can be found within the limits. */
export function searchPlacement(problem: Problem, options: SearchOptions): SearchResult {
  const began = performance.now();
  const goal = Math.max(options.targetBytes, options.capacityBytes ?? options.targetBytes);
  const start = options.start ?? placeGreedily(problem, goal);
  const hopeless = (options.capacityBytes ?? goal) < options.targetBytes;
  if (start.height <= goal || hopeless) {
    const boundBytes = options.targetBytes;
    return { ...start, proven: start.height <= boundBytes, boundBytes, nodes: 0 };
  }
  const deadline = began + (options.timeoutMs ?? Number.POSITIVE_INFINITY);
  const workLimit = options.workLimit ?? Number.POSITIVE_INFINITY;
  const late = (): boolean => deadline < Number.POSITIVE_INFINITY && performance.now() >= deadline;
  const search = new Search(problem, start, options, late);
  while (!search.done && search.work < workLimit && !late()) search.step();
  return search.result();
}

class Search {
  readonly #problem: Problem;
  readonly #sections: Sections;
  readonly #random: Random;
  readonly #keys: Keys;
  readonly #repair: Repair;
  readonly #branch: Branch | null;
  /** In units above ground: no placement is below `bound`, one of height `best` is known, `goal` is low enough. */
  #bound: number;
  #best: number;
  readonly #goal: number;
  readonly #hasCapacity: boolean;
  readonly #late: () => boolean;
  readonly #offset: Float64Array;
  #strategy: string;
  #runs = 0;
  #nodeLimit: number;
  #exactWork = 0;
  #rounds = 0;
  #stepLimit = 2000;

  constructor(
    problem: Problem,
    start: Placement,
    { targetBytes, capacityBytes, seed = 1 }: SearchOptions,
    late: () => boolean,
  ) {
    this.#problem = problem;
    this.#late = late;
    const sections = sectionsOf(problem);
    this.#sections = sections;
    this.#random = randomFrom(seed);
    const contemporaries = new Contemporaries(sections);
    this.#repair = new Repair(sections, contemporaries, this.#random);
    this.#keys = keysOf(sections);
    let entries = 0;
    for (let i = 0; i < sections.n; i++) entries += (sections.hi[i] as number) - (sections.lo[i] as number);
    this.#branch = entries <= EXACT_ENTRIES ? new Branch(sections, MEMORY) : null;
    const units = (bytes: number): number => (bytes - sections.ground) / sections.unit;
    this.#bound = Math.ceil(units(targetBytes));
    this.#hasCapacity = capacityBytes !== undefined;
    this.#goal = Math.max(this.#bound, Math.floor(units(capacityBytes ?? targetBytes)));
    this.#offset = Float64Array.from(sections.ids, (id) => units(start.offsets[id] ?? 0));
    this.#best = Math.ceil(units(start.height));
    this.#strategy = start.strategy;
    this.#nodeLimit = Math.max(LEAST_NODES, sections.n + Math.min(sections.n, 2000));
    // what is live all the time may lie elsewhere in the start
    if (sections.grounded.size > 0) this.#settle();
  }

  get done(): boolean {
    return this.#best <= Math.max(this.#bound, this.#goal) || (this.#hasCapacity && this.#bound > this.#goal);
  }

  get work(): number {
    return this.#exactWork + 8 * this.#repair.work;
  }

  /** One run of the method that has had less work. */
  step(): void {
    if (this.#branch && this.#exactWork <= 8 * this.#repair.work + 1e6) this.#runExact(this.#branch);
    else this.#runRepair();
  }

  result(): SearchResult {
    const { ids, unit, ground, grounded } = this.#sections;
    const offsets = this.#problem.buffers.map((b) => grounded.get(b.id) ?? b.fixedAt ?? 0);
    ids.forEach((id, i) => {
      offsets[id] = (this.#offset[i] as number) * unit + ground;
    });
    const nodes = this.#repair.steps + (this.#branch?.nodes ?? 0);
    const height = heightOf(this.#problem, offsets);
    const boundBytes = this.#bound * unit + ground;
    return { offsets, height, strategy: this.#strategy, proven: this.#best <= this.#bound, boundBytes, nodes };
  }

  /** Lets everything sink by what lay below it and is on the ground now, in order of offset. */
  #settle(): void {
    const { n, count, size, fixed, lo, hi } = this.#sections;
    const order = Int32Array.from({ length: n }, (_, i) => i);
    const offset = this.#offset;
    order.sort((a, b) => (offset[a] as number) - (offset[b] as number) || a - b);
    const tops = new Float64Array(count);
    for (const i of order) {
      const covered = tops.subarray(lo[i] as number, hi[i] as number);
      if ((fixed[i] as number) < 0) offset[i] = covered.reduce((most, top) => Math.max(most, top), 0);
      covered.fill((offset[i] as number) + (size[i] as number));
    }
    this.#best = this.#heightOf(offset);
  }

  #runExact(branch: Branch): void {
    const { n, count } = this.#sections;
    const aims = this.#hasCapacity ? AIMS_AT_CAPACITY : AIMS_BELOW_BEST;
    const upper = this.#hasCapacity ? this.#goal : this.#best;
    const aim = this.#bound + (aims[this.#runs % aims.length] as number) * (upper - this.#bound);
    const capacity = Math.min(this.#best - 1, Math.floor(aim));
    const key = this.#keys[this.#runs % this.#keys.length] ?? { name: "", of: new Float64Array(n) };
    const noise = this.#runs < this.#keys.length ? 0 : NOISE;
    key.of.forEach((value, i) => {
      branch.priority[i] = value + noise * (this.#random() + this.#random() - 1);
    });
    const before = branch.nodes;
    const outcome = branch.run(capacity, this.#nodeLimit, this.#late);
    this.#exactWork += (branch.nodes - before) * (n + count) + 4 * n;
    if (outcome === "found") this.#accept(branch.stock.offset, `exact/${key.name}`);
    if (outcome === "none") this.#bound = Math.max(this.#bound, capacity + 1);
    this.#runs += 1;
    if (this.#runs % this.#keys.length === 0) this.#nodeLimit = Math.floor(this.#nodeLimit * GROWTH);
    for (let s = 0; s < count; s++) branch.stock.blame[s] = (branch.stock.blame[s] as number) * FADE;
  }

  #runRepair(): void {
    const repair = this.#repair;
    const gap = this.#best - this.#bound;
    const fresh = this.#rounds % FRESH === 0;
    const cut = fresh ? 0.5 : (CUTS[this.#rounds % CUTS.length] as number);
    const limit = this.#hasCapacity ? this.#goal : Math.max(this.#bound, this.#best - Math.max(1, Math.ceil(cut * gap)));
    this.#rounds += 1;
    const fits = fresh
      ? repair.build(limit, 10 * this.#stepLimit)
      : repair.load(this.#offset, limit) && repair.fit(this.#stepLimit);
    if (fits) this.#accept(repair.offset, fresh ? "repair/build" : "repair/lower");
    else this.#stepLimit = Math.ceil(this.#stepLimit * 1.1);
  }

  #accept(offset: Float64Array, strategy: string): void {
    const height = this.#heightOf(offset);
    if (height >= this.#best) return;
    this.#best = height;
    this.#strategy = strategy;
    this.#offset.set(offset);
  }

  #heightOf(offset: Float64Array): number {
    let top = 0;
    offset.forEach((from, i) => {
      top = Math.max(top, from + (this.#sections.size[i] as number));
    });
    return top;
  }
}
