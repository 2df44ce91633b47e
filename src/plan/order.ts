/**
 * @file When does each step run? The order decides how much is live at once: an optimizer's update can run as soon as its
 * gradient is whole or wait for all others, a branch can be finished before the next one begins or not. Finding the best
 * order is NP-hard; this is a portfolio on one account of memory (order/memory.ts), each part for what it is good at:
 *
 *     list.ts       steps that free memory run as soon as they are ready
 *     backward.ts   the same from the end: steps that need memory run as late as possible
 *     trees.ts      branches by hills and valleys; optimal for trees
 *     improve.ts    takes the lowest of these and makes the peak lower: minimum cuts, then exact search around it
 *
 * Never worse than program order: in the end, orders are compared by their bounds after buffers were assigned.
 * Deterministic: ties are broken by position, and work is counted in steps. Small programs are solved exactly; large
 * ones take O((n + edges) log n) and a constant amount of improvement.
 */
import { at } from "../base/invariant.ts";
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { backwardOrder } from "./order/backward.ts";
import { Improver, isBetter, type Ordering } from "./order/improve.ts";
import { ListScheduler } from "./order/list.ts";
import { type Model, modelOf } from "./order/model.ts";
import { treeOrder } from "./order/trees.ts";
import type { Program } from "./program.ts";

/**
 * Shares of the peak that a step may add and still run early. Something small is often all that a large update waits for
 * (a learning rate, a norm), and to have it early costs next to nothing.
 */
export const SLACKS: readonly number[] = [0, 1 / 4096, 1 / 64];
/** Orders that are improved in each round. */
const STARTS = 3;
/** Of programs of more steps, only the best order is compared with the given one, and not even that if the account is exact. */
const COMPARED = 5000;

export interface Orderings {
  /**
   * The lowest peak first, equal ones as they were found: orders with a lower peak than the given one, and those that run
   * steps early at the same peak.
   */
  readonly better: readonly Ordering[];
  /** The lowest peak, which may be the given order's, and whether no order has a lower one. */
  readonly bytes: number;
  readonly optimal: boolean;
}

/** The program with its steps in an order that needs no more memory at once than the given one. */
export function orderSteps(program: Program): Program {
  if (program.steps.length < 2) return program;
  const model = modelOf(program);
  const large = model.steps > COMPARED;
  const found = findOrders(model).better.filter(({ order }) => !isGiven(order));
  const inOrder = ({ order }: Ordering): Program => ({
    ...program,
    steps: Array.from(order, (step) => at(program.steps, step)),
  });
  // The account may be above the bound (memory.ts), for some orders more than for others: the bound decides.
  const candidates = (model.exact || large ? found.slice(0, 1) : found).map(inOrder);
  if (model.exact && large) return candidates[0] ?? program;
  let best = program;
  let bytes = maxLive(program);
  for (const candidate of candidates) {
    const height = maxLive(candidate);
    // With equal peaks the first of these is better than the program's order: less is live on average.
    if (height < bytes || (height === bytes && best === program)) [best, bytes] = [candidate, height];
  }
  return best;
}

/** Everything that was tried and is worth looking at. */
export function findOrders(model: Model): Orderings {
  const lists = new ListScheduler(model);
  const improver = new Improver(model, lists);
  const given = improver.measure(Int32Array.from({ length: model.steps }, (_, i) => i));
  const slacks = SLACKS.map((share) => Math.floor(given.peak.bytes * share));
  const found = [...slacks.map((slack) => improver.measure(lists.order(given.order, slack))), given];
  let best = improver.split(lowest(found));
  found.push(best);
  for (let base = given; !best.optimal; base = best) {
    const back = backwardOrder(model, base.order);
    const trees = base === given ? treeOrder(model) : base.order;
    const orders = [back, lists.order(back, 0), trees, lists.order(trees, 0)];
    const starts = orders.map((order) => improver.measure(order)).sort(byPeak);
    found.push(...starts, ...starts.slice(0, STARTS).map((start) => improver.split(start)));
    const next = lowest(found);
    if (!isBetter(next, best)) break;
    best = next;
  }
  if (!best.optimal) best = improver.search(best);
  found.push(best);
  const isBetterThanGiven = ({ peak }: Ordering, k: number): boolean =>
    peak.bytes < given.peak.bytes || (k < slacks.length && peak.bytes === given.peak.bytes);
  const better = found.filter(isBetterThanGiven).sort(byPeak);
  return { better, bytes: best.peak.bytes, optimal: best.optimal };
}

/** Array.prototype.sort is stable: the first of equals stays first. */
const byPeak = (a: Ordering, b: Ordering): number => a.peak.bytes - b.peak.bytes;

function lowest(orderings: readonly Ordering[]): Ordering {
  return orderings.reduce((a, b) => {
    if (a.optimal) return a;
    return isBetter(b, a) || (b.optimal && b.peak.bytes === a.peak.bytes) ? b : a;
  });
}

function isGiven(order: ArrayLike<number>): boolean {
  return Array.prototype.every.call(order, (step, k) => step === k);
}

function maxLive(program: Program): number {
  return boundOf(assignBuffers(program).problem).bytes;
}
