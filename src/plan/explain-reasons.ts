/**
 * @file Why a value is not where one might expect it: not over an operand, not in the slot of the parameter that it
 * replaces. The answer is the first rule that stands in the way, with the step or the numbers that make it apply.
 */
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import type { NameOf } from "./names.ts";
import type { Plan, Step } from "./problem.ts";
import type { PlanStep } from "./program.ts";
import { stepText } from "./statement.ts";

/** `step 8, w1_1 = sgd(w1, d_w1)`. */
export function stepName(plan: Plan, step: Step, nameOf: NameOf): string {
  return `step ${step}, ${stepText(at(plan.program.steps, step), nameOf, (v) => plan.bufferOf.has(v))}`;
}

/** Follows renamings back to what was written. */
function roots(plan: Plan): (value: Value) => Value {
  const original = new Map<Value, Value>();
  for (const { alias } of plan.program.steps) if (alias) original.set(alias[1], original.get(alias[0]) ?? alias[0]);
  return (value) => original.get(value) ?? value;
}

/** Why the replacement of a donated parameter was not written over it. */
export function noSlotReason(plan: Plan, param: Value, result: Value, nameOf: NameOf): string {
  const { program, bufferOf } = plan;
  const rootOf = roots(plan);
  const root = rootOf(result);
  const writer = program.steps.findIndex((step) => step.writes.includes(root));
  if (writer < 0) return `${nameOf(result)} is a parameter's storage itself`;
  const late = program.steps.findIndex((step, i) => i > writer && step.reads.some((v) => rootOf(v) === param));
  if (late >= 0)
    return `${nameOf(param)} is still read at step ${late}, after ${nameOf(root)} is written at step ${writer}`;
  if (program.results.some((r) => rootOf(r) === param)) return `${nameOf(param)} is a result as well`;
  const taken = program.params.find((p) => p !== param && bufferOf.get(p) === bufferOf.get(result));
  if (taken) return `${nameOf(result)} is already in the storage of ${nameOf(taken)}`;
  return `${stepName(plan, writer, nameOf)}, reads other elements of ${nameOf(param)} than it writes`;
}

/** Why a step did not write a value over one that it reads. */
export function notInPlaceReason(plan: Plan, index: Step, read: Value, value: Value, nameOf: NameOf): string {
  const { program } = plan;
  const step = at(program.steps, index);
  const rootOf = roots(plan);
  const barred = kernelReason(step, read, value, rootOf, nameOf);
  if (barred) return barred;
  const root = rootOf(read);
  const later = program.steps.findIndex((s, i) => i > index && s.reads.some((v) => rootOf(v) === root));
  if (later >= 0) {
    const what = root === read ? "it is" : `${nameOf(root)}, the same storage, is`;
    return `${what} read again at ${stepName(plan, later, nameOf)}`;
  }
  if (program.results.some((r) => rootOf(r) === root)) return "it is a result";
  if (program.persistent.has(root) && !program.donated.has(root)) return "it is persistent and not donated";
  const other = step.writes.find((w) => w !== value && plan.bufferOf.get(w) === plan.bufferOf.get(read));
  if (other) return `${nameOf(other)}, of the same step, took it`;
  return slotReason(plan, read, value, nameOf);
}

/** What the kernel itself has against it: sizes, element types, which elements it reads. */
function kernelReason(
  { reads, inPlace }: PlanStep,
  read: Value,
  value: Value,
  rootOf: (value: Value) => Value,
  nameOf: NameOf,
): string | null {
  const [from, to] = [byteLength(read.type), byteLength(value.type)];
  if (from !== to) return `it has ${grouped(from)} bytes, not ${grouped(to)}`;
  if (read.type.dtype !== value.type.dtype) return `its elements are ${read.type.dtype}, not ${value.type.dtype}`;
  const twice = reads.find((v) => v !== read && rootOf(v) === rootOf(read));
  if (twice) return `the step reads the same storage as ${nameOf(twice)} too`;
  const allowed = inPlace.some(([r, w]) => r === read && w === value);
  return allowed ? null : "the step reads other elements of it than the one it writes";
}

/** Nothing about the two alone forbids it: one of their buffers does, which ends or begins in a slot. */
function slotReason(plan: Plan, read: Value, value: Value, nameOf: NameOf): string {
  const param = plan.program.params.find((p) => plan.bufferOf.get(p) === plan.bufferOf.get(value));
  if (param) return `it goes into the storage of ${nameOf(param)}, which is in use while ${nameOf(read)} lives`;
  const other = plan.program.params.find((p) => plan.bufferOf.get(p) === plan.bufferOf.get(read));
  if (other) return `${nameOf(read)} is in the storage of ${nameOf(other)}, which is needed for something else later`;
  return "their buffers are in use at the same time";
}
