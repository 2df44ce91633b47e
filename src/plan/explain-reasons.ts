/**
 * @file Explains why a value is not written over an operand, or not over the parameter that it replaces: the first rule
 * that forbids it, with the step or the numbers that make it apply.
 */
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import type { PlanFacts } from "./explain-facts.ts";
import type { Step } from "./problem.ts";
import type { PlanStep } from "./program.ts";
import { stepText } from "./statement.ts";

/** `step 8, w1_1 = sgd(w1, d_w1)`. */
export function stepName({ plan, nameOf }: Pick<PlanFacts, "plan" | "nameOf">, step: Step): string {
  return `step ${step}, ${stepText(at(plan.program.steps, step), nameOf, (v) => plan.bufferOf.has(v))}`;
}

/** Why the replacement of a donated parameter was not written over it. */
export function noSlotReason(facts: PlanFacts, param: Value, result: Value): string {
  const { plan, nameOf, rootOf, writers } = facts;
  const root = rootOf(result);
  const writer = writers.get(root);
  if (writer === undefined) return `${nameOf(result)} is a parameter's storage itself`;
  const late = facts.laterReader(param, writer);
  if (late >= 0)
    return `${nameOf(param)} is still read at step ${late}, after ${nameOf(root)} is written at step ${writer}`;
  if (facts.resultRoots.has(param)) return `${nameOf(param)} is a result as well`;
  const taken = facts.paramsIn(plan.bufferOf.get(result)).find((p) => p !== param);
  if (taken) return `${nameOf(result)} is already in the storage of ${nameOf(taken)}`;
  return `${stepName(facts, writer)}, reads other elements of ${nameOf(param)} than it writes`;
}

/** Why a step did not write a value over one that it reads. */
export function notInPlaceReason(facts: PlanFacts, index: Step, read: Value, value: Value): string {
  const { plan, nameOf, rootOf } = facts;
  const { program } = plan;
  const step = at(program.steps, index);
  const barred = kernelReason(facts, step, read, value);
  if (barred) return barred;
  const root = rootOf(read);
  const later = facts.laterReader(root, index);
  if (later >= 0) {
    const what = root === read ? "it is" : `${nameOf(root)}, the same storage, is`;
    return `${what} read again at ${stepName(facts, later)}`;
  }
  if (facts.resultRoots.has(root)) return "it is a result";
  if (program.persistent.has(root) && !program.donated.has(root)) return "it is persistent and not donated";
  const other = step.writes.find((w) => w !== value && plan.bufferOf.get(w) === plan.bufferOf.get(read));
  if (other) return `${nameOf(other)}, of the same step, took it`;
  return slotReason(facts, read, value);
}

/** The kernel's reason: sizes, element types, which elements it reads. */
function kernelReason({ rootOf, nameOf }: PlanFacts, step: PlanStep, read: Value, value: Value): string | null {
  const { reads, inPlace } = step;
  const [from, to] = [byteLength(read.type), byteLength(value.type)];
  if (from !== to) return `it has ${grouped(from)} bytes, not ${grouped(to)}`;
  if (read.type.dtype !== value.type.dtype) return `its elements are ${read.type.dtype}, not ${value.type.dtype}`;
  const twice = reads.find((v) => v !== read && rootOf(v) === rootOf(read));
  if (twice) return `the step reads the same storage as ${nameOf(twice)} too`;
  const allowed = inPlace.some(([r, w]) => r === read && w === value);
  return allowed ? null : "the step reads other elements of it than the one it writes";
}

/** The two values could share, but their buffers cannot: one of them belongs to a parameter. */
function slotReason({ plan, nameOf, paramsIn }: PlanFacts, read: Value, value: Value): string {
  const [param] = paramsIn(plan.bufferOf.get(value));
  if (param) return `it goes into the storage of ${nameOf(param)}, which is in use while ${nameOf(read)} lives`;
  const [other] = paramsIn(plan.bufferOf.get(read));
  if (other) return `${nameOf(read)} is in the storage of ${nameOf(other)}, which is needed for something else later`;
  return "their buffers are in use at the same time";
}
