/**
 * @file Memory that gradients take. A gradient is a value that the backward pass makes and an update reads. An update that is computed as
 * soon as its gradient is there, in the same kernel or the next, leaves little of them live at a time; one that reads something of all
 * gradients, such as their common norm, holds all of them, or computes some a second time under a budget:
 *
 *   update by update   ▁█▁█▁█▁█        clipped by a common norm   ▂▄▆███
 */
import type { Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { liveness } from "./liveness.ts";
import type { Plan } from "./problem.ts";

/** Values that operations of an update read; of a kernel, those that its operations of an update read, and not its others. */
function readByUpdates({ phase, inputs, regions }: Node): readonly Value[] {
  if (phase !== "update") return [];
  const [body] = regions;
  if (!body) return inputs;
  const read = new Set(body.nodes.filter((node) => node.phase === "update").flatMap((node) => node.inputs));
  return inputs.filter((_, i) => {
    const param = body.params[i];
    return param === undefined || read.has(param);
  });
}

/**
 * The most bytes of gradients that are live at one step. Those that a kernel uses up at once are none.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { gradientBytes } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(gradientBytes(plan)); // → 0
 */
export function gradientBytes({ program }: Pick<Plan, "program">): number {
  const made = new Set<Value>();
  const gradients = new Set<Value>();
  for (const { node, writes } of program.steps) {
    for (const value of readByUpdates(node)) if (made.has(value)) gradients.add(value);
    if (node.phase === "backward") for (const value of writes) made.add(value);
  }
  const spans = liveness(program);
  const change = new Float64Array(program.steps.length + 2);
  for (const value of gradients) {
    const span = spans.get(value);
    if (!span) continue;
    const bytes = byteLength(value.type);
    change[span.start] = (change[span.start] ?? 0) + bytes;
    change[span.end] = (change[span.end] ?? 0) - bytes;
  }
  let [live, most] = [0, 0];
  for (const bytes of change) {
    live += bytes;
    most = Math.max(most, live);
  }
  return most;
}
