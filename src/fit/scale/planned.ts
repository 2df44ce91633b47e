/**
 * @file What this library's planner keeps of a block on one device, beside what published systems keep: the program of one device is
 * traced with its own part of heads and inner elements, with a number of blocks and one more, and both are planned. Products are in bf16.
 */
import { autocast } from "../../api/autocast.ts";
import * as t from "../../api/functions.ts";
import { valueAndGrad } from "../../api/grad.ts";
import { plan } from "../../api/plan.ts";
import { byteLength } from "../../ir/type.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { modelOfConfig } from "../sources/configs.ts";
import type { Layout } from "./layout.ts";
import type { Transformer } from "./transformer.ts";

export interface PlannedBlock {
  /** Of one block, from its forward pass to its backward pass. */
  readonly keptBytes: number;
  /** At the peak of one block's forward and backward pass, beyond that: operands and results of the step at work. */
  readonly workBytes: number;
}

/** With fewer blocks the peak may be elsewhere than between forward and backward pass. */
const LAYERS = [3, 4] as const;

/** The logits are not of interest here. */
const VOCABULARY = 8;

/** Null where the block of a device is no smaller model of the same kind: sequence parallelism, and heads of other models. */
export function plannedBlock(model: Transformer, layout: Layout): PlannedBlock | null {
  const { tensor, context } = layout;
  if (!model.isGated || (layout.isSequence && tensor > 1)) return null;
  const tokens = layout.tokens / context;
  const config = (layers: number) => ({
    ...{ model_type: "llama", num_hidden_layers: layers, hidden_size: model.hidden, head_dim: model.width },
    ...{ num_attention_heads: model.heads / tensor, intermediate_size: model.inner / tensor },
    ...{ num_key_value_heads: Math.max(1, model.sharedHeads / tensor) },
    ...{ vocab_size: VOCABULARY, max_position_embeddings: tokens },
  });
  const [fewer, more] = LAYERS.map((layers) => arenaOf(config(layers), layout.microbatch, tokens)) as [Arena, Arena];
  // parameters and gradients of the further block are in its arena too
  const keptBytes = more.bytes - fewer.bytes - 2 * (more.parameterBytes - fewer.parameterBytes);
  return { keptBytes, workBytes: fewer.bytes - 2 * fewer.parameterBytes - LAYERS[0] * keptBytes };
}

interface Arena {
  readonly bytes: number;
  readonly parameterBytes: number;
}

function arenaOf(config: object, batch: number, tokens: number): Arena {
  const model = modelOfConfig(config, { batch, tokens });
  type Params = Record<string, Tensor>;
  const loss = (params: Params, ids: Tensor): Tensor => {
    const [logits] = Object.values(model.apply(params, [ids]));
    return t.mean(t.square(t.cast(logits as Tensor, "f32")));
  };
  const step = valueAndGrad(autocast(loss, { products: "bf16", stream: "bf16" }));
  const { arenaBytes } = plan(step)(model.params, t.spec([batch, tokens], "i32"));
  const parameterBytes = Object.values(model.params).reduce((sum, value) => sum + byteLength(value), 0);
  return { bytes: arenaBytes, parameterBytes };
}
