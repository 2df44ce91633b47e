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
const SLACKS = [0, 1 / 4096, 1 / 64];
/** Orders that are improved in each round. */
const STARTS = 3;
/** Programs of more steps are compared by the account alone where it is exact. */
const COMPARED = 5000;

/** The program with its steps in an order that needs no more memory at once than the given one. */
export function orderSteps(program: Program): Program {
  if (program.steps.length < 2) return program;
  const model = modelOf(program);
  const candidates = orderings(model).filter(({ order }) => !isGiven(order));
  const inOrder = ({ order }: Ordering): Program => ({
    ...program,
    steps: Array.from(order, (step) => at(program.steps, step)),
  });
  const [first] = candidates;
  if (!first) return program;
  if (model.exact && model.steps > COMPARED) return inOrder(first);
  // The account may be above the bound (memory.ts), for some orders more than for others: the bound decides.
  let best = program;
  let bytes = maxLive(program);
  for (const candidate of candidates) {
    const next = inOrder(candidate);
    const height = maxLive(next);
    // With equal peaks any of these orders is better than the program's: less is live on average.
    if (height < bytes || (height === bytes && best === program)) [best, bytes] = [next, height];
    if (model.exact) break;
  }
  return best;
}

/**
 * Orders with the lowest peak first, equal ones as they are listed here: those with a lower peak than the given order, and
 * those that run steps early at the same peak.
 */
export function orderings(model: Model): readonly Ordering[] {
  const lists = new ListScheduler(model);
  const improver = new Improver(model, lists);
  const given = improver.measure(Int32Array.from({ length: model.steps }, (_, i) => i));
  const slacks = SLACKS.map((share) => Math.floor(given.peak.bytes * share));
  const found = [...slacks.map((slack) => improver.measure(lists.order(given.order, slack))), given];
  let best = improver.split(lowest(found));
  found.push(best);
  for (let base = given; !best.optimal; base = best) {
    const back = backwardOrder(model, base.order, 0);
    const trees = base === given ? treeOrder(model) : base.order;
    const orders = [back, lists.order(back, 0), trees, lists.order(trees, 0)];
    found.push(...orders.map((order) => improver.measure(order)));
    const starts = found.slice(-orders.length).sort(byPeak).slice(0, STARTS);
    found.push(...starts.map((start) => improver.split(start)));
    const next = lowest(found);
    if (next === best || !isBetter(next, best)) break;
    best = next;
  }
  if (!best.optimal) found.push(improver.search(best));
  return found.filter(({ peak }, k) => peak.bytes < given.peak.bytes + (k < slacks.length ? 1 : 0)).sort(byPeak);
}

/** Array.prototype.sort is stable: the first of equals stays first. */
const byPeak = (a: Ordering, b: Ordering): number => a.peak.bytes - b.peak.bytes;

function lowest(orderings: readonly Ordering[]): Ordering {
  return orderings.reduce((a, b) => (isBetter(b, a) || (b.optimal && b.peak.bytes === a.peak.bytes) ? b : a));
}

function isGiven(order: ArrayLike<number>): boolean {
  return Array.prototype.every.call(order, (step, k) => step === k);
}

function maxLive(program: Program): number {
  return boundOf(assignBuffers(program).problem).bytes;
}
