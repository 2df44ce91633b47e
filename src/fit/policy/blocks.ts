/**
 * @file The repeated blocks of a model (`transformer.h.0`, `layer1.2`): modules of a list, each a run of consecutive nodes. They are what
 * policies put under checkpointing, and within them operations are known by name and occurrence.
 */
import { type Pt2Node, type Pt2Program, tensorName } from "../../formats/pt2-program.ts";
import type { EagerProgram } from "../torch/step.ts";

/** An operation of a block whose result is worth keeping: a product, a convolution, attention. */
export interface KeptOperation {
  /** Its position in the program. */
  readonly at: number;
  /** What a policy sees: `aten.addmm.default`. */
  readonly operation: string;
  /** How many of the same operation come before it in the block. */
  readonly occurrence: number;
  /** The module that it is in, with the number of the block left out. */
  readonly place: string;
}

export interface Block {
  /** Of the module, as `get_submodule` takes it. */
  readonly module: string;
  readonly start: number;
  readonly end: number;
  readonly kept: readonly KeptOperation[];
}

/** Modules around a node, from the outermost on. */
export function modulesOf({ metadata }: Pt2Node): readonly string[] {
  const stack = metadata?.nn_module_stack ?? "";
  if (stack.includes(",")) {
    const paths = stack.split(";").map((entry) => (entry.split(",")[1] ?? "").replace(/@\d+$/, ""));
    return paths.filter((path) => path !== "");
  }
  const parts = stack.split(".");
  return stack === "" ? [] : parts.map((_, i) => parts.slice(0, i + 1).join("."));
}

const blockOf = (node: Pt2Node): string | null => modulesOf(node).find((path) => /(^|\.)\d+$/.test(path)) ?? null;

/** What decides which kernels PyTorch runs: whether floats have two bytes, and shapes of values. */
export interface BlockSettings {
  readonly isHalf: boolean;
  readonly type: EagerProgram["type"];
}

/** Blocks whose nodes are consecutive, in order. */
export function blocksOf(program: Pt2Program, settings: BlockSettings): readonly Block[] {
  const blocks: Block[] = [];
  let start = 0;
  program.nodes.forEach((node, i) => {
    const module = blockOf(node);
    if (module === null) return;
    const before = i > 0 ? blockOf(program.nodes[i - 1] as Pt2Node) : null;
    if (before !== module) start = i;
    const after = program.nodes[i + 1];
    if (after && blockOf(after) === module) return;
    blocks.push({ module, start, end: i + 1, kept: keptIn(program.nodes, { start, end: i + 1 }, settings) });
  });
  const counts = new Map<string, number>();
  for (const { module } of blocks) counts.set(module, (counts.get(module) ?? 0) + 1);
  return blocks.filter(({ module, start: from, end }) => counts.get(module) === 1 && end - from > 1);
}

/** Products of batches of matrices. */
const PRODUCT = "aten.bmm.default";

const nameOf = (target: string): string => target.replace(/^torch\.ops\.aten\./, "").split(".")[0] ?? "";

/** The operation that a policy is asked about for a node; null where its result is cheap. */
function dispatched(node: Pt2Node, { isHalf, type }: BlockSettings): string | null {
  const name = nameOf(node.target);
  const has = (argument: string): boolean =>
    node.inputs.some((input) => input.name === argument && input.arg.as_tensor !== undefined);
  if (name === "linear") return has("bias") ? "aten.addmm.default" : "aten.mm.default";
  if (name === "addmm" || name === "mm" || name === "bmm" || name === "baddbmm") return `aten.${name}.default`;
  if (name === "matmul") {
    const value = tensorName(node.inputs[1]?.arg);
    return value !== null && type(value)?.shape.length === 2 ? "aten.mm.default" : PRODUCT;
  }
  if (/^conv(olution|(_transpose)?\dd)$/.test(name)) return "aten.convolution.default";
  if (name !== "scaled_dot_product_attention") return null;
  const kind = isHalf && !has("attn_mask") ? "flash" : "efficient";
  return `aten._scaled_dot_product_${kind}_attention.default`;
}

/** Attention of heads that share keys is products of matrices there, unless floats have two bytes: see `sharedHeads` of its rule. */
function isInSteps({ target, inputs }: Pt2Node, { isHalf, type }: BlockSettings): boolean {
  if (isHalf || nameOf(target) !== "scaled_dot_product_attention") return false;
  const [query, key] = ["query", "key"].map((name) => {
    const value = tensorName(inputs.find((input) => input.name === name)?.arg);
    return value === null ? undefined : type(value)?.shape.at(-3);
  });
  return query !== key;
}

/** Scores, and their products with values. */
const STEPS = 2;

function keptIn(
  nodes: Pt2Program["nodes"],
  { start, end }: Pick<Block, "start" | "end">,
  settings: BlockSettings,
): readonly KeptOperation[] {
  const counts = new Map<string, number>();
  const kept: KeptOperation[] = [];
  for (let at = start; at < end; at++) {
    const node = nodes[at] as Pt2Node;
    if (isInSteps(node, settings)) {
      counts.set(PRODUCT, (counts.get(PRODUCT) ?? 0) + STEPS);
      continue;
    }
    const operation = dispatched(node, settings);
    if (operation === null) continue;
    const occurrence = counts.get(operation) ?? 0;
    counts.set(operation, occurrence + 1);
    const place = (modulesOf(node).at(-1) ?? "").replace(/\.\d+(?=\.|$)/g, "");
    kept.push({ at, operation, occurrence, place });
  }
  return kept;
}
