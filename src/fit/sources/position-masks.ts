/**
 * @file Attention masks that depend on positions alone. Exporting makes models of transformers write such masks down as tensors, since their
 * code cannot look at values then; run eagerly, the same code sees that a mask is the causal one, or that everything is seen, and gives attention a
 * flag in its place. Without a mask, heads that share keys and values are not repeated either: attention is told that they are fewer. The
 * modelled program does as the eager one.
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
  const producers = new Map(
    program.nodes.flatMap((node) => outputNames(node.outputs).map((name) => [name, node] as const)),
  );
  const nodes = program.nodes.map((node) => {
    if (!node.target.includes("scaled_dot_product_attention")) return node;
    const inputs = node.inputs.filter(({ name, arg }) => {
      const mask = name === "attn_mask" ? tensorName(arg) : null;
      return mask === null || fromData.has(mask);
    });
    if (inputs.length === node.inputs.length) return node;
    isChanged = true;
    return { ...node, inputs: inputs.map((input) => withoutRepeats(input, producers)) };
  });
  return isChanged ? { ...program, nodes: needed(nodes, program) } : program;
}

type Producers = ReadonlyMap<string | null, Pt2Node>;
type NodeInput = Pt2Node["inputs"][number];

/** Keys or values before they were repeated for several heads: reshape(expand(x[:, :, None])). */
function withoutRepeats(input: NodeInput, producers: Producers): NodeInput {
  if (input.name !== "key" && input.name !== "value") return input;
  const chain = ["reshape", "expand"].reduce<NodeInput["arg"] | null>((arg, name) => {
    const node = arg && producers.get(tensorName(arg));
    return node?.target.startsWith(`torch.ops.aten.${name}.`) ? (node.inputs[0]?.arg ?? null) : null;
  }, input.arg);
  const whole = chain && unsliced(chain, producers);
  return whole ? { ...input, arg: whole } : input;
}

/** What an axis was added to, past slices of everything. */
function unsliced(arg: NodeInput["arg"], producers: Producers): NodeInput["arg"] | null {
  const node = producers.get(tensorName(arg));
  const [first] = node?.inputs ?? [];
  if (!node || !first) return null;
  if (node.target.startsWith("torch.ops.aten.unsqueeze.")) return first.arg;
  return node.target.startsWith("torch.ops.aten.slice.") ? unsliced(first.arg, producers) : null;
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
