/**
 * @file How long a plan takes: the sum of its steps, with copies between memory spaces beside them (queues.ts). What one node takes comes from outside (`NodeCosts`, which the compiler
 * makes of a target's description): the planner knows no kernel.
 */
import { at } from "../../base/invariant.ts";
import type { Node } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { type CostModel, msOf, NO_WORK, type Work } from "../../target/work.ts";
import type { Plan } from "../problem.ts";
import { CopyClock, copyMs } from "./queues.ts";

/** What nodes take on a target. */
export interface NodeCosts {
  readonly rates: CostModel;
  /** Equal for costs that answer alike. */
  readonly key: string;
  /**
   * Of one kernel for an operation or fusion group, of everything inside for calls, loops and branches; nothing for a view.
   * @param inPlace the first result is in the place of an input
   */
  workOf(node: Node, inPlace?: boolean): Work;
}

/** Milliseconds of a node on its own. */
export const nodeMs = (node: Node, costs: NodeCosts): number => msOf(costs.workOf(node), costs.rates);

/** How often regions run, where a node says so, and the bytes that it copies itself. */
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

/** Milliseconds of one run of a plan: arguments written into the arena, every step, the copies at the end. */
export function planMs(plan: Plan, costs: NodeCosts): number {
  const { rates } = costs;
  const { steps, params, persistent } = plan.program;
  const moved = (bytes: number): number => msOf({ ...NO_WORK, bytes: 2 * bytes, calls: 1 }, rates);
  let ms = 0;
  for (const param of params) if (!persistent.has(param)) ms += moved(byteLength(param.type));
  const clock = new CopyClock();
  for (const step of steps) {
    const { node, alias, writes, bodies, copy } = step;
    if (alias) continue;
    if (copy) {
      if (copy.kind === "wait") ms = clock.wait(copy, ms);
      else clock.start(step, ms, copyMs(copy, rates));
      continue;
    }
    const control = bodies && controlRuns(node);
    if (control) {
      // An iteration at a time: what a body works on may fit the caches, what all iterations work on does not.
      bodies.forEach((body, n) => {
        ms += at(control.runs, n) * planMs(body, costs);
      });
      ms += moved(control.copied);
      continue;
    }
    const [first] = writes;
    const inPlace = first !== undefined && plan.inPlace.has(first);
    ms += msOf(costs.workOf(node, inPlace), rates);
  }
  for (const { to } of plan.copies) ms += moved(at(plan.problem.buffers, to).bytes);
  return ms;
}
