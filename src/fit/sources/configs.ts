/**
 * @file Models from a `config.json` of Hugging Face, as the program that transformers runs for it: the Llama family, GPT-2, BERT, ViT, and their kind. Weights are
 * known by their shapes; attention has no mask, as transformers leaves masks out that depend on positions alone.
 */
import { TidemarkError } from "../../base/errors.ts";
import type { ExportedModel } from "../../exchange/pt2/read.ts";
import { Config, type Json, type Maker } from "./config.ts";
import { gpt2, llama } from "./decoders.ts";
import { bert, vit } from "./encoders.ts";
import { ProgramBuilder } from "./program-builder.ts";

export interface ConfigSizes {
  readonly batch: number;
  /** Tokens of a sequence; default: what the model can have, at most 2048. */
  readonly tokens?: number | undefined;
  /** Whether dropout is on, as it is while a model trains. */
  readonly dropout?: boolean;
}

const MOST_TOKENS = 2048;

const MAKERS: Readonly<Record<string, Maker>> = {
  ...{ llama, mistral: llama, qwen2: llama, qwen3: llama, gemma: llama },
  ...{ gpt2, bert, roberta: bert, vit },
};

/** The kinds of models that are known. */
export const CONFIG_KINDS: readonly string[] = Object.keys(MAKERS);

/** The model of a parsed `config.json`, with logits as its result. */
export function modelOfConfig(json: unknown, sizes: ConfigSizes): ExportedModel {
  const root = (typeof json === "object" && json !== null ? json : {}) as Json;
  const labels = root.id2label;
  const counted = typeof labels === "object" && labels !== null ? { num_labels: Object.keys(labels).length } : {};
  const config = new Config({ ...counted, ...root });
  const maker = Object.hasOwn(MAKERS, config.kind) ? MAKERS[config.kind] : undefined;
  if (!maker) {
    const kind =
      config.kind === "" ? "the config has no model_type" : `the config is of a model of the kind ${config.kind}`;
    throw new TidemarkError("InvalidFile", kind, {
      help: `known are ${CONFIG_KINDS.join(", ")}; export others as .pt2`,
    });
  }
  // positions of RoBERTa begin behind that of padding
  const most = config.n(["max_position_embeddings", "n_positions"], MOST_TOKENS) - (config.kind === "roberta" ? 2 : 0);
  const tokens = sizes.tokens ?? Math.min(most, MOST_TOKENS);
  if (tokens > most) {
    const summary = `${tokens} tokens, the model has positions for ${most}`;
    throw new TidemarkError("InvalidArgument", summary, { help: `give at most ${most}: --size T=${most}` });
  }
  const builder = new ProgramBuilder();
  const result = maker(builder, { config, batch: sizes.batch, tokens, dropout: sizes.dropout ?? false });
  return builder.finish(result);
}
