/**
 * @file Predicted time of a plan: the sum of its steps, with copies between memory spaces in parallel (queues.ts). The
 * cost of a node is an input (`NodeCosts`, made by the compiler from a target's description): the planner knows no
 * kernels.
 */
import { at } from "../../base/invariant.ts";
import type { Node } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { type CostModel, msOf, NO_WORK, networkMs, type Work } from "../../target/work.ts";
import type { Plan } from "../problem.ts";
import type { PlanStep } from "../program.ts";
import { CopyClock, copyMs, isStart, isWait } from "./queues.ts";
import { type TurnCosts, waitingMs } from "./turns.ts";

/** Costs of nodes on a target. */
export interface NodeCosts {
  readonly rates: CostModel;
  /** Whether nothing else happens during a copy between memory spaces; default: queue 0 goes on. */
  readonly copiesBlock?: boolean | undefined;
  /** Equal keys mean equal costs. */
  readonly key: string;
  /**
   * The work of one kernel for an operation or fusion group, of all regions for calls, loops and branches; zero for a
   * view.
   * @param inPlace the first result overwrites an input
   */
  workOf(node: Node, inPlace?: boolean): Work;
}

/** Milliseconds of a node on its own. */
export const nodeMs = (node: Node, costs: NodeCosts): number => msOf(costs.workOf(node), costs.rates);

/** How often a node's regions run, if it declares that, and the bytes that the node itself copies. */
export function controlRuns({
  op,
  inputs,
  attrs,
}: Node): { readonly runs: readonly number[]; readonly copied: number } | null {
  const { lower } = op;
  const runs = lower.kind === "control" ? lower.runs?.(attrs) : undefined;
  if (!runs || lower.kind !== "control") return null;
  const types = inputs.map((value) => value.type);
  return { runs, copied: lower.copied?.(attrs, types) ?? 0 };
}

/** Milliseconds of so many bytes read and written once. */
const movedMs = (bytes: number, { rates }: NodeCosts): number =>
  msOf({ ...NO_WORK, bytes: 2 * bytes, calls: 1 }, rates);

/** Milliseconds of what a step starts on another queue. */
export function queuedMs({ node, copy }: PlanStep, costs: NodeCosts): number {
  return copy ? copyMs(copy, costs.rates) : networkMs(costs.workOf(node), costs.rates);
}

const turnCosts = (costs: NodeCosts): TurnCosts => ({
  msOf: (body) => planMs(body, costs),
  meets: ({ node, exchange }) => (exchange ? exchange.kind === "wait" : (costs.workOf(node).messages ?? 0) > 0),
  coresPerDevice: costs.rates.coresPerDevice ?? 1,
});

/** Milliseconds of a step on queue 0; none for renamings, copies between spaces and collectives in flight. */
export function stepMs(plan: Plan, step: PlanStep, costs: NodeCosts): number {
  const { node, alias, writes, bodies, copy, exchange } = step;
  if (alias || copy || exchange) return 0;
  const control = bodies && controlRuns(node);
  if (control) {
    // Counted per iteration: the data of one iteration may fit the caches when that of all iterations does not.
    const runs = bodies.reduce((ms, body, n) => {
      const often = at(control.runs, n);
      return ms + often * planMs(body, costs) + waitingMs(body, often, turnCosts(costs));
    }, 0);
    return runs + movedMs(control.copied, costs);
  }
  const [first] = writes;
  const inPlace = first !== undefined && plan.inPlace.has(first);
  return msOf(costs.workOf(node, inPlace), costs.rates);
}

/** Whether nothing else happens while a copy or a collective is in flight: cores that devices share carry messages too, where they are needed. */
function isDoneAtOnce(step: PlanStep, { copiesBlock = false, rates }: NodeCosts): boolean {
  if (!isStart(step)) return false;
  return step.copy ? copiesBlock : (rates.coresPerDevice ?? 1) < 1;
}

/** Milliseconds of one run of a plan: arguments written into the arena, every step, the copies at the end. */
export function planMs(plan: Plan, costs: NodeCosts): number {
  const { steps, params, persistent } = plan.program;
  let ms = 0;
  for (const param of params) if (!persistent.has(param)) ms += movedMs(byteLength(param.type), costs);
  const clock = new CopyClock();
  for (const step of steps) {
    if (isWait(step)) ms = clock.wait(step, ms);
    else if (isDoneAtOnce(step, costs)) ms += queuedMs(step, costs);
    else if (isStart(step)) clock.start(step, ms, queuedMs(step, costs));
    else ms += stepMs(plan, step, costs);
  }
  for (const { to } of plan.copies) ms += movedMs(at(plan.problem.buffers, to).bytes, costs);
  return ms;
}
