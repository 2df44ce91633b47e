/**
 * @file The text of one step without its address: `d_w2: f32[128,16] = matmul(h, d_e) {ta}` in parts, so that callers
 * can align columns. Every text of a step in plan/ is made here.
 */
import type { Value } from "../ir/graph.ts";
import { applicationText } from "../ir/print.ts";
import { typeText } from "../ir/type.ts";
import type { NameOf } from "./names.ts";
import type { PlanStep } from "./program.ts";

/** A step as text: results, and the call. */
export interface Statement {
  readonly names: string;
  readonly types: string;
  /** `matmul(h, d_e) {ta}`. */
  readonly call: string;
}

/** How a step is written as text. */
export type StatementFormat = (step: PlanStep, nameOf: NameOf, isStored: (value: Value) => boolean) => Statement;

/**
 * The node's operands if all of them are stored; otherwise the values that the step reads (a kernel may compute some
 * operands itself).
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { formatStatement, printPlan } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(printPlan(plan, formatStatement).split("\n").length > 5); // → true
 */
export const formatStatement: StatementFormat = (step, nameOf, isStored) => {
  const inputs = step.node.inputs.every(isStored) ? step.node.inputs : step.reads;
  return {
    names: step.writes.map(nameOf).join(", "),
    types: step.writes.map((v) => typeText(v.type)).join(", "),
    call: applicationText({ ...step.node, inputs }, nameOf),
  };
};

/** `d_w1 = matmul(x, d_z)`, for reports. */
export function stepText(step: PlanStep, nameOf: NameOf, isStored: (value: Value) => boolean): string {
  const { names, call } = formatStatement(step, nameOf, isStored);
  return names ? `${names} = ${call}` : call;
}
