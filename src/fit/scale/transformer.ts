/**
 * @file The sizes of a transformer from its `config.json`, and its parameters by part. Parameters are those of the program that the
 * config stands for, so counts are exact.
 */
import { TidemarkError } from "../../base/errors.ts";
import { elementsOf } from "../../ir/type.ts";
import { modelOfConfig } from "../sources/configs.ts";

type Json = Readonly<Record<string, unknown>>;

export interface Transformer {
  readonly kind: string;
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  /** Heads of keys and values. */
  readonly sharedHeads: number;
  /** Elements of a head. */
  readonly width: number;
  /** Elements between the two products of the feed-forward part, which has a gate beside them or not. */
  readonly inner: number;
  readonly isGated: boolean;
  readonly vocabulary: number;
  readonly parameters: ParameterCounts;
}

export interface ParameterCounts {
  readonly total: number;
  /** Of one block. */
  readonly block: number;
  /** Of tables before the first block, and of what comes after the last one; a table that is both is in the first. */
  readonly embedding: number;
  readonly head: number;
}

const FAMILIES = ["llama", "mistral", "qwen2", "qwen3", "gpt2"];
const BLOCK = /(?:^|\.)(?:layers|h)\.(\d+)\./;
const TABLE = /(?:embed_tokens|wte|wpe)\./;

export function transformerOf(config: unknown): Transformer {
  const json = (typeof config === "object" && config !== null ? config : {}) as Json;
  const kind = String(json.model_type ?? "");
  if (!FAMILIES.includes(kind)) {
    throw new TidemarkError("InvalidFile", `the config is of a model of the kind ${JSON.stringify(kind)}`, {
      help: `models over several devices are known of ${FAMILIES.join(", ")}`,
    });
  }
  const number = (...names: readonly string[]): number | undefined => {
    const found = names.map((name) => json[name]).find((value) => typeof value === "number" && value > 0);
    return found as number | undefined;
  };
  const required = (...names: readonly string[]): number => {
    const value = number(...names);
    if (value !== undefined) return value;
    throw new TidemarkError("InvalidFile", `the config of a ${kind} model has no ${names.join(" or ")}`, {
      help: "give the config.json of the model itself",
    });
  };
  const hidden = required("hidden_size", "n_embd");
  const heads = required("num_attention_heads", "n_head");
  const isGated = kind !== "gpt2";
  return {
    kind,
    hidden,
    heads,
    isGated,
    layers: required("num_hidden_layers", "n_layer"),
    sharedHeads: number("num_key_value_heads") ?? heads,
    width: number("head_dim") ?? hidden / heads,
    inner: isGated ? required("intermediate_size") : (number("n_inner") ?? 4 * hidden),
    vocabulary: required("vocab_size"),
    parameters: countsOf(json),
  };
}

/** Counts from the model of one block, since all are alike. */
function countsOf(json: Json): ParameterCounts {
  const layers = (json.num_hidden_layers ?? json.n_layer) as number;
  const one = { ...json, num_hidden_layers: 1, n_layer: 1 };
  const counts = { block: 0, embedding: 0, head: 0 };
  for (const [name, { shape }] of Object.entries(modelOfConfig(one, { batch: 1, tokens: 1 }).params)) {
    let part: keyof typeof counts = TABLE.test(name) ? "embedding" : "head";
    if (BLOCK.test(name)) part = "block";
    counts[part] += elementsOf(shape);
  }
  return { ...counts, total: layers * counts.block + counts.embedding + counts.head };
}
