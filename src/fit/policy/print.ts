/** @file A policy as text to paste: Python for PyTorch and JAX, flags for Megatron. */
import { grouped } from "../../base/errors.ts";
import type { Block } from "./blocks.ts";
import type { Policy } from "./choose.ts";

export const RECEIVERS = ["torch", "jax", "megatron"] as const;
export type Receiver = (typeof RECEIVERS)[number];

const quoted = (names: readonly string[]): string => names.map((name) => JSON.stringify(name)).join(", ");

function heading({ before, after, whole, selective }: Policy): readonly string[] {
  return [
    `# predicted peak: ${grouped(after.peak.bytes)} bytes (torch.cuda.max_memory_allocated), ${grouped(before.peak.bytes)} without the policy`,
    `# ${whole.length} blocks recomputed whole, ${selective.length} but for products, convolutions and attention`,
  ];
}

/** Occurrences of each operation, over blocks that are alike; blocks may differ, so lists are by block. */
function savesOf(block: Block): Readonly<Record<string, readonly number[]>> {
  const names = [...new Set(block.kept.map(({ operation }) => operation))];
  const occurrencesOf = (name: string): readonly number[] =>
    block.kept.filter(({ operation }) => operation === name).map(({ occurrence }) => occurrence);
  return Object.fromEntries(names.map((name) => [name, occurrencesOf(name)]));
}

/** Modules by what they keep. */
function groups(blocks: readonly Block[]): ReadonlyMap<string, readonly string[]> {
  const byText = new Map<string, string[]>();
  for (const block of blocks) {
    const text = JSON.stringify(savesOf(block));
    byText.set(text, [...(byText.get(text) ?? []), block.module]);
  }
  return byText;
}

/** The share of what autograd keeps that the policy leaves: what torch.compile is told in its place. */
function shareOf({ before, after }: Policy): number {
  return Math.min(1, after.savedBytes / Math.max(before.savedBytes, 1));
}

function torchText(policy: Policy): string {
  const selective = [...groups(policy.selective)].map(
    ([saves, modules]) => `    ([${quoted(modules)}], ${saves.replaceAll(",", ", ").replaceAll(":", ": ")}),`,
  );
  return [
    ...heading(policy),
    `# with torch.compile instead: torch._functorch.config.activation_memory_budget = ${shareOf(policy).toFixed(2)}`,
    "from functools import partial",
    "",
    "from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts",
    "",
    "# modules of which only the inputs are kept",
    `WHOLE = [${quoted(policy.whole.map(({ module }) => module))}]`,
    "# modules, and the occurrences of operations in them whose results are kept",
    "SELECTIVE = [",
    ...selective,
    "]",
    "",
    "",
    "def contexts(saves):",
    "    counts = {False: {}, True: {}}  # separately for the forward pass and for the second time",
    "",
    "    def policy(ctx, op, *args, **kwargs):",
    "        seen = counts[ctx.is_recompute]",
    "        name = str(op)",
    "        occurrence = seen[name] = seen.get(name, -1) + 1",
    "        return CheckpointPolicy.MUST_SAVE if occurrence in saves.get(name, ()) else CheckpointPolicy.PREFER_RECOMPUTE",
    "",
    "    return create_selective_checkpoint_contexts(policy)",
    "",
    "",
    "def apply_policy(model):",
    "    for module in model.modules():  # models of transformers: a cache would be filled a second time",
    '        if hasattr(getattr(module, "config", None), "use_cache"):',
    "            module.config.use_cache = False",
    "    for name in WHOLE:",
    "        module = model.get_submodule(name)",
    "        module.forward = partial(checkpoint, module.forward, use_reentrant=False)",
    "    for names, saves in SELECTIVE:",
    "        for name in names:",
    "            module = model.get_submodule(name)",
    "            module.forward = partial(checkpoint, module.forward, use_reentrant=False, context_fn=partial(contexts, saves))",
    "    return model",
    "",
  ].join("\n");
}

function jaxText(policy: Policy): string {
  const names = [...new Set(policy.selective.flatMap(({ kept }) => kept.map(({ place }) => place)))];
  return [
    ...heading(policy),
    "import jax",
    "from jax.ad_checkpoint import checkpoint_name",
    "",
    "# name these results in the block: y = checkpoint_name(y, NAME)",
    `NAMES = [${quoted(names)}]`,
    `WHOLE, SELECTIVE = ${policy.whole.length}, ${policy.selective.length}  # blocks, from the first on`,
    "",
    "",
    "def checkpointed(block, index):",
    "    if index < WHOLE:",
    "        return jax.checkpoint(block, policy=jax.checkpoint_policies.nothing_saveable)",
    "    if index < WHOLE + SELECTIVE:",
    "        return jax.checkpoint(block, policy=jax.checkpoint_policies.save_only_these_names(*NAMES))",
    "    return block",
    "",
  ].join("\n");
}

function megatronText(policy: Policy): string {
  if (policy.whole.length === 0) return [...heading(policy), "# no recomputation is needed", ""].join("\n");
  const flags = `--recompute-granularity full --recompute-method block --recompute-num-layers ${policy.whole.length}`;
  return [...heading(policy), flags, ""].join("\n");
}

const TEXTS: Readonly<Record<Receiver, (policy: Policy) => string>> = {
  torch: torchText,
  jax: jaxText,
  megatron: megatronText,
};

export const policyText = (policy: Policy, receiver: Receiver): string => TEXTS[receiver](policy);
