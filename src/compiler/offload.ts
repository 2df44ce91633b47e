/**
 * @file Plans within the capacity of a device that has another memory beside its own: values that wait for a later use are
 * copied there and back (plan/move.ts). Which ones is decided by one simple rule: those with the most bytes times idle steps
 * first, as few of them as make the plan fit. Their number is doubled until it does, then halved in on, so that a program
 * is planned a few times and not once for every value. Arithmetic stays what it is: the same kernels on the same numbers.
 */
import type { Value } from "../ir/graph.ts";
import type { LoweredStep } from "../loops/lower/body.ts";
import type { Lowered } from "../lower/lower.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { idleValues, moveValues } from "../plan/move.ts";
import { planUnlimited } from "../plan/plan.ts";
import type { Plan } from "../plan/problem.ts";
import type { PlanStep } from "../plan/program.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";

/** The plan within so many bytes of the device, with values moved to its other memory if need be; null where none is. */
export function fitted(
  candidate: Candidate<PlannedProgram>,
  budgetBytes: number,
  tools: PlanTools,
): Candidate<PlannedProgram> | null {
  if (candidate.arenaBytes <= budgetBytes) return candidate;
  const { result, strategy } = candidate;
  const plan = movedWithin(result.plan, budgetBytes);
  return plan && candidateOf(boundTo(result, plan, tools), `${strategy}, moved`, tools);
}

/** A plan with as few values moved as the rule finds. */
function movedWithin({ program }: Plan, budgetBytes: number): Plan | null {
  const [device, host] = program.spaces;
  if (!host) return null;
  const idle = [...idleValues(program)].sort((a, b) => b.bytes * b.idleSteps - a.bytes * a.idleSteps);
  const withMoved = (count: number): Plan | null => {
    const chosen = idle.slice(0, count).map(({ value }) => value);
    const plan = planUnlimited(moveValues(program, chosen, { device, host }), { keepOrder: true });
    const fits = plan.height <= budgetBytes && (plan.others[0]?.height ?? 0) <= host.capacity;
    return fits ? plan : null;
  };
  let [tooFew, count] = [0, 1];
  let best = idle.length === 0 ? null : withMoved(1);
  while (!best && count < idle.length) {
    [tooFew, count] = [count, Math.min(2 * count, idle.length)];
    best = withMoved(count);
  }
  while (best && count - tooFew > 1) {
    const middle = Math.floor((tooFew + count) / 2);
    const plan = withMoved(middle);
    if (plan) [best, count] = [plan, middle];
    else tooFew = middle;
  }
  return best;
}

/** The kernels and loops of a program, for the steps of a plan in which some of their operands come back under other names. */
export function boundTo(planned: PlannedProgram, plan: Plan, { assembler }: PlanTools): PlannedProgram {
  const before = new Map(planned.plan.program.steps.map((step) => [step.writes[0], step]));
  const lowered = new Map<PlanStep["node"], Lowered>();
  const controls = new Map<PlanStep["node"], LoweredStep>();
  for (const { node, writes } of plan.program.steps) {
    const old = before.get(writes[0])?.node;
    if (!old) continue;
    const unit = planned.controls.get(old);
    if (unit) controls.set(node, renamed(unit, old.inputs, node.inputs));
    else if (planned.lowered.has(old)) lowered.set(node, assembler.lower(node));
  }
  return { ...planned, plan, lowered, controls };
}

function renamed(unit: LoweredStep, from: readonly Value[], to: readonly Value[]): LoweredStep {
  const now = new Map(from.map((value, i) => [value, to[i] ?? value]));
  const { step } = unit;
  return { step, statements: (address, scratch) => unit.statements((v) => address(now.get(v) ?? v), scratch) };
}
