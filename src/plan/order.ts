/**
 * @file Chooses the order of steps. The order decides how much is live at once: an optimizer's update can run as soon
 * as its gradient is complete or after all gradients, a branch can be finished before the next one begins or not.
 * Finding the best order is NP-hard; this is a portfolio of methods that share one memory model (order/memory.ts):
 *
 *     list.ts       steps that free memory run as soon as they are ready
 *     backward.ts   the same from the end: steps that need memory run as late as possible
 *     trees.ts      branches by hills and valleys; optimal for trees
 *     improve.ts    takes the lowest of these and makes the peak lower: minimum cuts, then exact search around it
 *
 * Never worse than program order: finally, orders are compared by their bounds after buffer assignment. An additional
 * copy at the end of the run (slots.ts) is accepted if it saves four times its bytes. Programs with copies between
 * memory spaces keep their order: move.ts already chose when copies start and are waited for.
 *
 * Deterministic: ties are broken by position, and work is counted in steps. Small programs are solved exactly; large
 * ones take O((n + edges) log n) and a constant amount of improvement.
 */
import { at } from "../base/invariant.ts";
import { Draft } from "./draft.ts";
import { backwardOrder } from "./order/backward.ts";
import { Improver, isBetter, type Ordering, WORK } from "./order/improve.ts";
import { ListScheduler } from "./order/list.ts";
import { Memory, peakOf } from "./order/memory.ts";
import { type Model, modelOf } from "./order/model.ts";
import { sameOrder } from "./order/order-cache.ts";
import { treeOrder } from "./order/trees.ts";
import type { Program } from "./program.ts";

/**
 * Fractions of the peak that a step may add and still run early. A large update often waits only for a small value (a
 * learning rate, a norm), and computing that early costs almost nothing.
 */
export const SLACKS: readonly number[] = [0, 1 / 4096, 1 / 64];
/** How much higher than the lowest peak that of an order with a low average may be. */
const LOW_AREA_PEAK = 1.05;
/** Orders improved in each round. */
const STARTS = 3;
/** Bytes that the peak must fall for each byte copied at the end of every run. */
const COPY_WORTH = 4;
/** Orders whose buffers are assigned, to compare their real bounds. */
const COMPARED = 4;
/** Programs with more steps do not consider orders with additional copies: these save next to nothing there, and take as long as all else. */
const MANY = 600;
/** Programs with more steps compare one order only. */
const LARGE = 5000;

export interface Orderings {
  /**
   * Lowest peak first, stable: orders with a lower peak than the given one, and those that run steps early at the same
   * peak.
   */
  readonly better: readonly Ordering[];
  /** The lowest peak, which may be the given order's, and whether no order has a lower one. */
  readonly bytes: number;
  readonly optimal: boolean;
}

/**
 * The program with its steps in an order that needs no more memory at once than the given one; `work` limits the search.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { orderSteps } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(orderSteps(plan.program).steps.length === plan.program.steps.length); // → true
 */
export function orderSteps(program: Program, work?: number): Program {
  return bestOrder(new Draft(program), work).program;
}

/** The same with what is known of the orders. */
export function bestOrder(given: Draft, work: number = WORK): Draft {
  const { program } = given;
  if (program.steps.length < 2 || program.spaces.length > 1) return given;
  const [careful, large] = [modelOf(program), program.steps.length > LARGE];
  const orders = [...candidates(careful, careful.exact || large ? 1 : COMPARED, work)];
  const inOrder = (order: ArrayLike<number>): Draft =>
    new Draft({ ...program, steps: Array.from(order, (step) => at(program.steps, step)) });
  if (large && careful.exact) return orders[0] ? inOrder(orders[0]) : given;
  if (program.steps.length <= MANY && careful.settled.includes(1))
    orders.push(...candidates(modelOf(program, "allow"), COMPARED, work));
  // The memory model may overestimate the bound (memory.ts), for some orders more than for others: compare bounds.
  let [best, cost] = [given, costOf(given)];
  for (const [k, order] of orders.entries()) {
    // Skip duplicates.
    if (orders.slice(0, k).some((earlier) => sameOrder(earlier, order))) continue;
    const next = inOrder(order);
    const nextCost = costOf(next);
    // On a tie with program order, prefer the first of these: less is live on average.
    const better = nextCost < cost || (nextCost === cost && best === given);
    if (next.bound.bytes <= given.bound.bytes && better) [best, cost] = [next, nextCost];
  }
  return best;
}

/**
 * The program in an order with few bytes live on average (a small area under its profile), at a peak of at most `LOW_AREA_PEAK`
 * times that of `lowest`, the same program with its steps ordered. Recomputation starts from it: that lowers the peak in other
 * ways, but cannot shorten the life of values that wait for their readers away from the peak.
 */
export function lowAreaOrder(program: Program, lowest: Program): Program {
  if (program.spaces.length > 1) return program;
  const model = modelOf(program);
  const [lists, memory, given] = [new ListScheduler(model), new Memory(model), givenOrder(model)];
  const number = new Map(program.steps.map((step, i) => [step, i]));
  const low = Int32Array.from(lowest.steps, (step) => number.get(step) ?? -1);
  const { bytes } = peakOf(memory, low);
  const settled = lists.order(low, 0, bytes);
  const early = SLACKS.map((share) => lists.order(given, Math.floor(bytes * share)));
  const all = [low, settled, given, ...early].map((order) => ({ order, peak: peakOf(memory, order) }));
  const allowed = all.filter(({ peak }) => peak.bytes <= LOW_AREA_PEAK * bytes);
  const { order } = allowed.reduce((a, b) => (b.peak.area < a.peak.area ? b : a));
  return { ...program, steps: Array.from(order, (step) => at(program.steps, step)) };
}

/** The best orders that are not the given one. */
function candidates(model: Model, most: number, work: number): readonly ArrayLike<number>[] {
  const given = givenOrder(model);
  const orders = findOrders(model, work).better.map(({ order }) => order);
  return orders.filter((order) => !sameOrder(order, given)).slice(0, most);
}

const givenOrder = (model: Model): Int32Array => Int32Array.from({ length: model.steps }, (_, i) => i);

/** The bound of an order, with the penalty for final copies. */
function costOf({ assignment: { problem, copies }, bound }: Draft): number {
  const copied = copies.reduce((sum, { from }) => sum + at(problem.buffers, from).bytes, 0);
  return bound.bytes + COPY_WORTH * copied;
}

/** All orders worth comparing. */
export function findOrders(model: Model, work: number = WORK): Orderings {
  const lists = new ListScheduler(model);
  const improver = new Improver(model, lists, work);
  const given = improver.measure(givenOrder(model));
  const slacks = SLACKS.map((share) => Math.floor(given.peak.bytes * share));
  const orderings = [...slacks.map((slack) => improver.measure(lists.order(given.order, slack))), given];
  let best = improver.split(lowest(orderings));
  orderings.push(best);
  for (let base = given; !best.optimal; base = best) {
    const back = backwardOrder(model, base.order);
    const trees = base === given ? treeOrder(model) : base.order;
    const orders = [back, improver.early(back), trees, improver.early(trees)];
    const starts = orders.map((order) => improver.measure(order)).sort(byPeak);
    orderings.push(...starts, ...starts.slice(0, STARTS).map((start) => improver.split(start)));
    const next = lowest(orderings);
    if (!isBetter(next, best)) break;
    best = next;
  }
  if (!best.optimal) best = improver.search(best);
  orderings.push(best);
  const isBetterThanGiven = ({ peak }: Ordering, k: number): boolean =>
    peak.bytes < given.peak.bytes || (k < slacks.length && peak.bytes === given.peak.bytes);
  const better = orderings.filter(isBetterThanGiven).sort(byPeak);
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
