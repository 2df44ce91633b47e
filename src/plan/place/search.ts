/**
 * @file Search for a low placement, by two methods in turns:
 *
 *     exact   branch and bound (branch.ts) in short runs with different orders. Decides whether a height is possible
 *             where that can be decided at all, and is quickest when the height that it aims at is tight.
 *     repair  ejection (repair.ts): long walks that come down a little at a time (walk.ts). For problems that are too
 *             large for the exact method, or too loose.
 *
 *     bytes  best ┤──────  a walk aims a little below the lowest that it has been, exact at the bound and at several
 *                 │        heights in between; what is found lowers the best, a height that is shown to be impossible
 *           bound ┤──────  lifts the bound. They meet: proven.
 *
 * Of thousands, the largest are placed in this way first, and the others around them (coarse.ts).
 *
 * More room is never a disadvantage. A capacity says when to stop and nothing else: what is tried, and in which order, is
 * a function of the problem and the seed, and the best only gets lower; so with more room the search ends at the same
 * attempt or an earlier one. Attempts end after a number of steps, so what is found does not depend on the clock; the
 * clock only says when to stop.
 */
import { at } from "../../base/invariant.ts";
import { boundOf } from "../bound.ts";
import { heightOf, type Problem } from "../problem.ts";
import { Branch } from "./branch.ts";
import { MANY, placeCoarsely, triesFor } from "./coarse.ts";
import { type Placement, placeGreedily } from "./grid.ts";
import { type Keys, keysOf } from "./keys.ts";
import { walkersOf } from "./parts.ts";
import { type Random, randomFrom } from "./random.ts";
import { fixedTop, offsetsOf, type Sections, sectionsOf, settle } from "./sections.ts";
import { Walk } from "./walk.ts";

export interface SearchOptions {
  /** A lower bound of the height. */
  readonly targetBytes: number;
  /** Stop at a placement that is not higher than this; without it, at the bound. */
  readonly capacityBytes?: number;
  readonly timeoutMs?: number;
  /** A limit that is the same on every machine: about 2 · 10⁸ a second. */
  readonly workLimit?: number;
  readonly seed?: number;
  /** Ends the search from outside, as a time limit does. */
  readonly enough?: () => boolean;
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

/** Whether more search is of no use: nothing is lower, the capacity is met, or it cannot be. */
export function isDecided({ height, proven, boundBytes }: SearchResult, capacityBytes?: number): boolean {
  return proven || (capacityBytes !== undefined && (height <= capacityBytes || boundBytes > capacityBytes));
}

/** Lists of all sections' items of more than this would take too much memory for the exact method. */
const EXACT_ENTRIES = 1 << 24;
const MEMORY = 1 << 18;
/** Greedy placements of tens of thousands of buffers: about two seconds. */
const GREEDY_WORK = 3e8;
/** What the largest of many get in each try, before everything else: so much per buffer of all, and no more than that. */
const TRY_WORK = 3e4;
const MOST_TRY_WORK = 3e8;
const LEAST_NODES = 1500;
/** What is learned about sections fades, what is tried gets longer. */
const FADE = 0.97;
const GROWTH = 1.02;
const NOISE = 0.1;
/** Where the second line of the exact method aims, from the bound (0) to the best (1). Their number has no common factor
 *  with the number of orders, so every aim meets every order. */
const AIMS = [0.5, 0.9, 0.75] as const;
/** Up to so many items the exact method gets twelve times the work of repair, beyond as much. */
const FEW = 600;
/** Of more items, the exact method finds a placement in few runs or not at all: after these, it gets a tenth. */
const HOPEFUL = 12;

/** Of the walks, the last has one turn in so many, the others share the rest. */
const RARE = 5;

/** Where search begins, which may be enough. */
export function startOf(
  problem: Problem,
  options: Pick<SearchOptions, "targetBytes" | "capacityBytes">,
  late: () => boolean,
): Placement {
  return placeGreedily(problem, goalOf(options), GREEDY_WORK, late);
}

/** A placement that is not higher ends the search. */
export function goalOf({ targetBytes, capacityBytes }: Pick<SearchOptions, "targetBytes" | "capacityBytes">): number {
  return Math.max(targetBytes, capacityBytes ?? targetBytes);
}

/** The lowest placement that can be found within the limits. */
export function searchPlacement(problem: Problem, options: SearchOptions): SearchResult {
  const deadline = performance.now() + (options.timeoutMs ?? Number.POSITIVE_INFINITY);
  const left = (): number => (deadline < Number.POSITIVE_INFINITY ? deadline - performance.now() : deadline);
  const late = (): boolean => left() <= 0 || options.enough?.() === true;
  const { targetBytes: boundBytes, workLimit = Number.POSITIVE_INFINITY } = options;
  const unsearched = (placement: Placement): SearchResult => ({
    ...placement,
    proven: placement.height <= boundBytes,
    boundBytes,
    nodes: 0,
  });
  const goal = goalOf(options);
  const greedy = options.start ?? startOf(problem, options, late);
  const hopeless = (options.capacityBytes ?? goal) < boundBytes;
  if (greedy.height <= goal || hopeless) return unsearched(greedy);
  const { length } = problem.buffers;
  const tryWork = Math.min(MOST_TRY_WORK, TRY_WORK * length);
  const tries = length >= MANY ? triesFor(length) : [];
  const many = workLimit >= 2 * tries.length * tryWork;
  const start = many ? startOfMany(problem, greedy, tries, { ...options, workLimit: tryWork }, left, late) : greedy;
  if (late()) return unsearched(start);
  const search = new Search(problem, start, options, late);
  const limit = many ? workLimit - tries.length * tryWork : workLimit;
  while (!search.done && search.work < limit && !late()) search.step();
  return search.result();
}

/** Tries with the largest placed by a search of their own; half of the time that is left, so that the others follow. */
function startOfMany(
  problem: Problem,
  greedy: Placement,
  tries: readonly number[],
  options: SearchOptions,
  left: () => number,
  late: () => boolean,
): Placement {
  const { workLimit = MOST_TRY_WORK, seed = 1, enough = () => false } = options;
  let best = greedy;
  for (const large of tries) {
    if (best.height <= goalOf(options) || late()) break;
    const solve = (part: Problem): readonly number[] => {
      const targetBytes = boundOf(part).bytes;
      return searchPlacement(part, { targetBytes, workLimit, timeoutMs: left() / 2, seed, enough }).offsets;
    };
    const next = placeCoarsely(problem, large, solve, late);
    if (next.height < best.height) best = next;
  }
  return best;
}

/** Runs of the exact method that learn from each other. */
interface Line {
  readonly branch: Branch;
  readonly random: Random;
  runs: number;
  nodeLimit: number;
}

class Search {
  readonly #problem: Problem;
  readonly #sections: Sections;
  readonly #seed: number;
  readonly #keys: Keys;
  /** They take turns. */
  readonly #walks: readonly Walk[];
  #strides = 0;
  /** Aiming at the bound, and above; made when needed. Not at all when there are too many items. */
  readonly #lines: Line[] = [];
  readonly #exact: boolean;
  #turn = 0;
  /** In units above ground: no placement is below `bound`, one of height `best` is known, `goal` is low enough. */
  #bound: number;
  #best: number;
  readonly #goal: number;
  readonly #hasCapacity: boolean;
  readonly #late: () => boolean;
  readonly #offset: Float64Array;
  #strategy: string;
  #exactWork = 0;
  /** Runs of the exact method since it last found something. */
  #vain = 0;

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
    this.#seed = seed;
    const random = randomFrom(seed);
    this.#walks = walkersOf(problem, sections).map((walker) => new Walk(walker, random, late));
    this.#keys = keysOf(sections);
    let entries = 0;
    for (let i = 0; i < sections.n; i++) entries += (sections.hi[i] as number) - (sections.lo[i] as number);
    this.#exact = entries <= EXACT_ENTRIES;
    const units = (bytes: number): number => (bytes - sections.ground) / sections.unit;
    const target = Math.ceil(units(targetBytes));
    this.#bound = Math.max(target, fixedTop(sections));
    this.#hasCapacity = capacityBytes !== undefined;
    this.#goal = Math.max(target, Math.floor(units(capacityBytes ?? targetBytes)));
    this.#offset = Float64Array.from(sections.ids, (id) => units(start.offsets[id] ?? 0));
    this.#best = Math.ceil(units(start.height));
    this.#strategy = start.strategy;
    // what is live all the time may lie elsewhere in the start
    if (sections.grounded.size > 0) this.#best = settle(sections, this.#offset);
  }

  get done(): boolean {
    return this.#best <= Math.max(this.#bound, this.#goal) || (this.#hasCapacity && this.#bound > this.#goal);
  }

  get work(): number {
    return this.#exactWork + this.#repairWork;
  }

  get #repairWork(): number {
    return this.#walks.reduce((sum, walk) => sum + walk.work, 0);
  }

  /** One run of the method that has had less work than is due to it. */
  step(): void {
    const { n, count } = this.#sections;
    const hopeful = this.#vain < HOPEFUL ? 1 : 0.1;
    const share = n <= FEW ? 12 : hopeful;
    const next = 2 * n * (n + count);
    if (this.#exact && this.#exactWork + next <= share * this.#repairWork + 2e6) this.#runExact();
    else this.#runRepair();
  }

  result(): SearchResult {
    const { unit, ground } = this.#sections;
    const offsets = this.#offsets();
    const steps = this.#walks.reduce((sum, walk) => sum + walk.steps, 0);
    const nodes = this.#lines.reduce((sum, { branch }) => sum + branch.nodes, steps);
    const height = heightOf(this.#problem, offsets);
    const boundBytes = this.#bound * unit + ground;
    return { offsets, height, strategy: this.#strategy, proven: this.#best <= this.#bound, boundBytes, nodes };
  }

  /** The best placement, in bytes by buffer. */
  #offsets(): number[] {
    return offsetsOf(this.#problem, this.#sections, this.#offset);
  }

  #runExact(): void {
    const { n, count } = this.#sections;
    const number = this.#best > this.#bound + 1 ? this.#turn++ % 2 : 0;
    const line = this.#line(number);
    const { branch, random, runs } = line;
    const aim = number === 0 ? 0 : (AIMS[runs % AIMS.length] as number);
    const capacity = Math.min(this.#best - 1, Math.floor(this.#bound + aim * (this.#best - this.#bound)));
    const key = at(this.#keys, runs % this.#keys.length);
    const noise = runs < this.#keys.length ? 0 : NOISE;
    key.of.forEach((value, i) => {
      branch.priority[i] = value + noise * (random() + random() - 1);
    });
    const before = branch.nodes;
    const outcome = branch.run(capacity, line.nodeLimit, this.#late);
    this.#exactWork += (branch.nodes - before) * (n + count) + 4 * n;
    this.#vain = outcome === "limit" ? this.#vain + 1 : 0;
    if (outcome === "found") this.#accept(branch.stock.offset, `exact/${key.name}`);
    if (outcome === "none") this.#bound = Math.max(this.#bound, capacity + 1);
    line.runs += 1;
    if (line.runs % this.#keys.length === 0) line.nodeLimit = Math.floor(line.nodeLimit * GROWTH);
    for (let s = 0; s < count; s++) branch.stock.blame[s] = (branch.stock.blame[s] as number) * FADE;
  }

  #line(number: number): Line {
    const known = this.#lines[number];
    if (known) return known;
    const { n } = this.#sections;
    const line: Line = {
      branch: new Branch(this.#sections, MEMORY),
      random: randomFrom(this.#seed),
      runs: 0,
      nodeLimit: Math.max(LEAST_NODES, n + Math.min(n, 2000)),
    };
    this.#lines[number] = line;
    return line;
  }

  /** A stride of the walk whose turn it is. */
  #runRepair(): void {
    const { ids, unit, ground } = this.#sections;
    const walk = this.#nextWalk();
    const bytes = (units: number): number => units * unit + ground;
    const known = { bestBytes: bytes(this.#best), boundBytes: bytes(this.#bound), offsets: () => this.#offsets() };
    const found = walk.stride(known);
    if (!found) return;
    const offset = Float64Array.from(ids, (id) => (at(found.offsets, id) - ground) / unit);
    if (this.#walks.length > 1) settle(this.#sections, offset);
    this.#accept(offset, found.strategy);
  }

  /** The last walk has a turn in so many; a walk in rows, which comes down within a second or hardly, half of the others. */
  #nextWalk(): Walk {
    const turn = this.#strides++;
    const last = this.#walks.length - 1;
    if (last === 0 || turn % RARE === RARE - 1) return at(this.#walks, last);
    const [first] = this.#walks;
    if (!first?.isInRows || last === 1) return at(this.#walks, turn % last);
    return turn % 2 === 0 ? first : at(this.#walks, 1 + ((turn >> 1) % (last - 1)));
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
