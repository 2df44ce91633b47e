/**
 * @file Bytes that a planned program moves, against the fewest it could:
 *
 *   moved    every nest reads and writes its operands             caches may serve some of it
 *   kernels  every kernel touches each operand once               a lower bound for any loop order within kernels
 *   least    inputs read once, results written once               a lower bound for any fusion
 *
 * moved ≥ kernels (traffic.ts). A persistent value is an input and, if it is replaced, a result. A branch, or a loop
 * with an unknown number of iterations, counts as its operation's cost declares.
 */
import { at } from "../base/invariant.ts";
import { type KernelTraffic, kernelTraffic, runningNests } from "../codegen/cpu/traffic.ts";
import type { TargetCosts } from "../compiler/node-costs.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { controlRuns } from "../plan/cost/model.ts";
import type { Plan } from "../plan/problem.ts";

/** Of one run of a program. */
export interface Traffic {
  readonly movedBytes: number;
  readonly kernelBytes: number;
  readonly leastBytes: number;
}

/** Moved by the steps of a plan, and by its kernels at least. */
function stepTraffic(plan: Plan, costs: TargetCosts): KernelTraffic {
  let [moved, least] = [0, 0];
  const add = (by: KernelTraffic, times = 1): void => {
    moved += times * by.moved;
    least += times * by.least;
  };
  for (const { node, alias, writes, bodies } of plan.program.steps) {
    if (alias) continue;
    const control = bodies && controlRuns(node);
    if (control) {
      bodies.forEach((body, n) => {
        add(stepTraffic(body, costs), at(control.runs, n));
      });
      add({ moved: 2 * control.copied, least: 2 * control.copied });
      continue;
    }
    const kernel = costs.kernelOf(node);
    const [first] = writes;
    const inPlace = first !== undefined && plan.inPlace.has(first);
    const bytes = kernel ? 0 : costs.workOf(node).bytes;
    add(kernel ? kernelTraffic(kernel, runningNests(kernel, inPlace)) : { moved: bytes, least: bytes });
  }
  for (const { to } of plan.copies) {
    const { bytes } = at(plan.problem.buffers, to);
    add({ moved: 2 * bytes, least: 2 * bytes });
  }
  return { moved, least };
}

/**
 * Milliseconds that any plan of a program takes, by the rates of a machine: all products once, at the rate of large ones, or inputs
 * read and results written once, from caches; and nothing else.
 */
export function lowerBoundMs(graph: Graph, leastBytes: number, costs: TargetCosts): number {
  const first = graph.nodes.filter(({ replay }) => replay === 0);
  const { productFlops } = costs.workOfGraph({ ...graph, nodes: first });
  const { productRate, byteRate, cachedByteRate = byteRate } = costs.rates;
  return 1000 * Math.max(productFlops / productRate, leastBytes / cachedByteRate);
}

/** Of one run of a plan. */
export function planTraffic(plan: Plan, costs: TargetCosts): Traffic {
  const { params, results } = plan.program;
  const bytes = (values: readonly Value[]): number => values.reduce((sum, { type }) => sum + byteLength(type), 0);
  const { moved, least } = stepTraffic(plan, costs);
  return { movedBytes: moved, kernelBytes: least, leastBytes: bytes(params) + bytes(results) };
}
