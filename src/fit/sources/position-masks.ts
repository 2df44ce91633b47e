/**
 * @file Attention masks that depend on positions alone. Exporting makes models of transformers write such masks down as tensors, since their
 * code cannot look at values then; run eagerly, the same code sees that a mask is the causal one, or that everything is seen, and gives attention a
 * flag in its place. The modelled program does as the eager one.
 */
import { type Pt2Node, type Pt2Program, tensorName } from "../../formats/pt2-program.ts";
import { outputNames } from "../torch/call.ts";
import { namesIn } from "../torch/lifetimes.ts";

const readsOf = (node: Pt2Node): readonly string[] => node.inputs.flatMap(({ arg }) => namesIn(arg));

export function withoutPositionMasks(program: Pt2Program): Pt2Program {
  const fromData = new Set(
    program.inputs.filter(({ kind }) => kind === "user_input" || kind === "parameter").map(({ value }) => value),
  );
  for (const node of program.nodes) {
    if (!readsOf(node).some((name) => fromData.has(name))) continue;
    for (const name of outputNames(node.outputs)) if (name !== null) fromData.add(name);
  }
  let isChanged = false;
  const nodes = program.nodes.map((node) => {
    if (!node.target.includes("scaled_dot_product_attention")) return node;
    const inputs = node.inputs.filter(({ name, arg }) => {
      const mask = name === "attn_mask" ? tensorName(arg) : null;
      return mask === null || fromData.has(mask);
    });
    if (inputs.length === node.inputs.length) return node;
    isChanged = true;
    return { ...node, inputs };
  });
  return isChanged ? { ...program, nodes: needed(nodes, program) } : program;
}

/** Nodes that results depend on. */
function needed(nodes: readonly Pt2Node[], { outputs }: Pt2Program): readonly Pt2Node[] {
  const read = new Set(outputs.flatMap(({ argument }) => namesIn(argument)));
  const kept: Pt2Node[] = [];
  for (const node of [...nodes].reverse()) {
    const names = outputNames(node.outputs);
    const isRead = names.some((name) => name !== null && read.has(name));
    const changes = /[^_]_\.\w+$/.test(node.target);
    if (!isRead && !changes && names.length > 0) continue;
    kept.push(node);
    for (const name of readsOf(node)) read.add(name);
  }
  return kept.reverse();
}
