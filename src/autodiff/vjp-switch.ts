/**
 * @file Reverse mode through branches: the reverse of a switch is a switch on the same index. The index alone says
 * which branch was taken, and it is an input of the reverse like any other:
 *
 *   y = switch(k, x)             { f₀, f₁ }
 *   d = switch(k, x, d_y, sums)  { f₀ and its reverse, f₁ and its reverse }
 *
 * A branch recomputes the values that its reverse reads from its operands. Keeping the residuals of all branches instead
 * would need storage for the branches that were not taken too; recomputing costs one more evaluation of a branch, keeps
 * nothing, and is right for loops inside of branches at any depth. Cotangents continue existing sums, so that additions
 * come in the order in which the branch alone would make them.
 */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import { switchOp } from "../ops/branch.ts";
import { full } from "../ops/create.ts";
import { reached } from "./activity.ts";
import type { Cotangents, Joint, ReverseContext, Reversed } from "./joint.ts";

/** Whether something comes before the same thing in a list. */
const isFirst = <T>(items: readonly T[], i: number): boolean => items.indexOf(at(items, i)) === i;

export function pullSwitch(context: ReverseContext, node: Node, active: readonly boolean[]): Reversed {
  const [index, ...operands] = node.inputs;
  const given = active.slice(1);
  const copy = context.append(node);
  const reachedIn = node.regions.map((region) => reached(region, given));
  const activeOutputs = node.outputs.map((_, r) => reachedIn.some((results) => at(results, r)));
  const pullback = (cts: readonly (Value | null)[], all: Cotangents): readonly (Value | null)[] => {
    const sums = operands.map((operand, i) => at(given, i) && isFirst(operands, i) && all.of(operand) !== null);
    const seeds = cts.map((ct) => (ct ? ("param" as const) : ("zero" as const)));
    const joints = node.regions.map((region) => context.joint(region, { active: given, seeds, sums }));
    // Operands whose cotangent some branch adds to.
    const changed = operands.flatMap((_, i) =>
      joints.some((joint) => (joint.cotangents[i] ?? null) !== (joint.sumParams[i] ?? null)) ? [i] : [],
    );
    if (changed.length === 0 || !index) return [];
    const regions = joints.map((joint, n) => branchOf(joint, changed, at(node.regions, n).name));
    const begun = operands.flatMap((operand, i) => (sums[i] ? [all.of(operand) as Value] : []));
    const inputs = [index, ...operands, ...cts.filter((ct) => ct !== null), ...begun];
    const made = context.b.callAll(switchOp, inputs, {}, { regions });
    const contributions: (Value | null)[] = node.inputs.map(() => null);
    for (const [n, i] of changed.entries()) {
      if (sums[i]) all.replace(at(operands, i), at(made, n));
      else contributions[i + 1] = at(made, n);
    }
    return contributions;
  };
  return { outputs: copy.outputs, activeOutputs, pullback };
}

/** One branch with its reverse, from operands, cotangents and sums to the cotangents that some branch changes. */
function branchOf({ b, params, seedParams, sumParams, cotangents }: Joint, changed: readonly number[], name: string) {
  const given = [...params, ...[...seedParams, ...sumParams].filter((value) => value !== null)];
  const results = changed.map((i) => {
    return cotangents[i] ?? b.call(full, [], { ...at(params, i).type, value: 0 });
  });
  return { name: `${name}_vjp`, params: given, nodes: [...b.nodes], results };
}
