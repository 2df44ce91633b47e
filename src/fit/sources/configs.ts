/**
 * @file Models from a `config.json` of Hugging Face, as the program that transformers runs for it: the Llama family, GPT-2, BERT, ViT. Weights are
 * known by their shapes; attention has no mask, as transformers leaves masks out that depend on positions alone.
 */
import { TidemarkError } from "../../base/errors.ts";
import type { ExportedModel } from "../../exchange/pt2/read.ts";
import { FLOAT_CODE, INTEGER_CODE, ProgramBuilder, type ValueName } from "./program-builder.ts";

type Json = Readonly<Record<string, unknown>>;

export interface ConfigSizes {
  readonly batch: number;
  /** Tokens of a sequence; default: what the model can have, at most 2048. */
  readonly tokens?: number | undefined;
  /** Whether dropout is on, as it is while a model trains. */
  readonly dropout?: boolean;
}

const MOST_TOKENS = 2048;

class Config {
  readonly #json: Json;
  constructor(json: Json) {
    this.#json = json;
  }
  get kind(): string {
    return String(this.#json.model_type ?? "");
  }
  /** The first of several names that has a whole number. */
  n(names: readonly string[], usual?: number): number {
    for (const name of names) {
      const value = this.#json[name];
      if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
    }
    if (usual !== undefined) return usual;
    throw new TidemarkError("InvalidFile", `the config of a ${this.kind} model has no ${names.join(" or ")}`, {
      help: "give the config.json of the model itself",
    });
  }
  rate(names: readonly string[], usual: number): number {
    for (const name of names) if (typeof this.#json[name] === "number") return this.#json[name];
    return usual;
  }
  flag(name: string, usual: boolean): boolean {
    const value = this.#json[name];
    return typeof value === "boolean" ? value : usual;
  }
}

interface Setting {
  readonly config: Config;
  readonly batch: number;
  readonly tokens: number;
  readonly dropout: boolean;
}

type Maker = (b: ProgramBuilder, setting: Setting) => ValueName;

function dropped(b: ProgramBuilder, x: ValueName, rate: number, { dropout }: Setting): ValueName {
  return dropout && rate > 0 ? b.op("dropout", { input: x, p: rate, train: true }) : x;
}

interface Heads {
  readonly heads: number;
  readonly width: number;
}

const intoHeads = (b: ProgramBuilder, x: ValueName, { batch, tokens }: Setting, { heads, width }: Heads): ValueName => {
  const split = b.op("view", { self: x, size: [batch, tokens, heads, width] });
  return b.op("transpose.int", { self: split, dim0: 1, dim1: 2 });
};

function attended(b: ProgramBuilder, [q, k, v]: readonly ValueName[], setting: Setting, more: Json): ValueName {
  const args = { query: q as ValueName, key: k as ValueName, value: v as ValueName, ...more } as Parameters<
    ProgramBuilder["op"]
  >[1];
  const y = b.op("scaled_dot_product_attention", args);
  const back = b.op("transpose.int", { self: y, dim0: 1, dim1: 2 });
  return b.op("reshape", { self: back, shape: [setting.batch, setting.tokens, -1] });
}

const add = (b: ProgramBuilder, x: ValueName, y: ValueName): ValueName => b.op("add.Tensor", { self: x, other: y });

/** x · rsqrt(mean(x²) + ε) · w, in steps. */
function rmsNorm(b: ProgramBuilder, name: string, x: ValueName, width: number): ValueName {
  return b.within(name, () => {
    const weight = b.parameter("weight", [width]);
    const squares = b.op("pow.Tensor_Scalar", { self: x, exponent: 2 });
    const mean = b.op("mean.dim", { self: squares, dim: [-1], keepdim: true });
    const root = b.op("rsqrt", { self: b.op("add.Tensor", { self: mean, other: 1e-6 }) });
    return b.op("mul.Tensor", { self: weight, other: b.op("mul.Tensor", { self: x, other: root }) });
  });
}

/** x · cos + rotated halves of x · sin. */
function rotated(b: ProgramBuilder, x: ValueName, [cos, sin]: readonly ValueName[], width: number): ValueName {
  const half = width / 2;
  const first = b.op("slice.Tensor", { self: x, dim: 3, start: 0, end: half });
  const second = b.op("slice.Tensor", { self: x, dim: 3, start: half, end: width });
  const turned = b.op("cat", { tensors: [b.op("neg", { self: second }), first], dim: -1 });
  const one = b.op("mul.Tensor", { self: x, other: cos as ValueName });
  return add(b, one, b.op("mul.Tensor", { self: turned, other: sin as ValueName }));
}

const llama: Maker = (b, setting) => {
  const { config, batch, tokens } = setting;
  const hidden = config.n(["hidden_size"]);
  const heads = config.n(["num_attention_heads"]);
  const shared = config.n(["num_key_value_heads"], heads);
  const width = config.n(["head_dim"], hidden / heads);
  const inner = config.n(["intermediate_size"]);
  const vocabulary = config.n(["vocab_size"]);
  const bias = config.flag("attention_bias", config.kind === "qwen2");
  const isNormed = config.kind === "qwen3";
  const ids = b.input("input_ids", [batch, tokens], INTEGER_CODE);
  const table = b.within("model.embed_tokens", () => b.parameter("weight", [vocabulary, hidden]));
  let x = b.op("embedding", { weight: table, indices: ids });
  const turns = ["cos", "sin"].map(() => b.op("full", { size: [1, 1, tokens, width], fill_value: 1.5 }));
  for (let layer = 0; layer < config.n(["num_hidden_layers"]); layer++) {
    x = b.within(`model.layers.${layer}`, () => {
      const normed = rmsNorm(b, "input_layernorm", x, hidden);
      const mixed = b.within("self_attn", () => {
        const own = (name: string, count: number): ValueName => {
          const y = b.linear(name, normed, [count * width, hidden], bias);
          const split = b.op("view", { self: y, size: [batch, tokens, count, width] });
          const scaled = isNormed && name !== "v_proj" ? rmsNorm(b, name.replace("proj", "norm"), split, width) : split;
          return b.op("transpose.int", { self: scaled, dim0: 1, dim1: 2 });
        };
        const [q, k, v] = [own("q_proj", heads), own("k_proj", shared), own("v_proj", shared)];
        const turned = [rotated(b, q, turns, width), rotated(b, k, turns, width), v];
        const y = attended(b, turned, setting, { is_causal: true, enable_gqa: shared !== heads });
        return b.linear("o_proj", y, [hidden, heads * width], config.flag("attention_bias", false));
      });
      const sum = add(b, x, mixed);
      const after = rmsNorm(b, "post_attention_layernorm", sum, hidden);
      const fed = b.within("mlp", () => {
        const gate = b.op("silu", { self: b.linear("gate_proj", after, [inner, hidden], false) });
        const up = b.linear("up_proj", after, [inner, hidden], false);
        return b.linear("down_proj", b.op("mul.Tensor", { self: gate, other: up }), [hidden, inner], false);
      });
      return add(b, sum, fed);
    });
  }
  const last = rmsNorm(b, "model.norm", x, hidden);
  if (config.flag("tie_word_embeddings", false)) return b.op("linear", { input: last, weight: table });
  return b.linear("lm_head", last, [vocabulary, hidden], false);
};

/** 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), in steps. */
function newGelu(b: ProgramBuilder, x: ValueName): ValueName {
  const half = b.op("mul.Tensor", { self: x, other: 0.5 });
  const cube = b.op("mul.Tensor", { self: b.op("pow.Tensor_Scalar", { self: x, exponent: 3 }), other: 0.044715 });
  const inside = b.op("mul.Tensor", { self: add(b, x, cube), other: 0.7978845608 });
  const one = b.op("add.Tensor", { self: b.op("tanh", { self: inside }), other: 1.5 });
  return b.op("mul.Tensor", { self: half, other: one });
}

const gpt2: Maker = (b, setting) => {
  const { config, batch, tokens } = setting;
  const [hidden, heads] = [config.n(["n_embd", "hidden_size"]), config.n(["n_head", "num_attention_heads"])];
  const inner = config.n(["n_inner"], 4 * hidden);
  const rate = config.rate(["resid_pdrop"], 0.1);
  const shape = { heads, width: hidden / heads };
  /** The weight lies as [in, out]. */
  const projected = (name: string, x: ValueName, [rows, columns]: readonly [number, number]): ValueName =>
    b.within(name, () => {
      const [weight, bias] = [b.parameter("weight", [rows, columns]), b.parameter("bias", [columns])];
      const flat = b.op("view", { self: x, size: [batch * tokens, rows] });
      const y = b.op("addmm", { self: bias, mat1: flat, mat2: weight });
      return b.op("view", { self: y, size: [batch, tokens, columns] });
    });
  const ids = b.input("input_ids", [batch, tokens], INTEGER_CODE);
  const table = b.within("transformer.wte", () => b.parameter("weight", [config.n(["vocab_size"]), hidden]));
  const places = b.within("transformer.wpe", () => b.parameter("weight", [config.n(["n_positions"], 1024), hidden]));
  const positions = b.op("unsqueeze", { self: b.op("arange", { end: tokens }, INTEGER_CODE), dim: 0 }, INTEGER_CODE);
  const embedded = add(
    b,
    b.op("embedding", { weight: table, indices: ids }),
    b.op("embedding", { weight: places, indices: positions }),
  );
  let x = dropped(b, embedded, config.rate(["embd_pdrop"], 0.1), setting);
  for (let layer = 0; layer < config.n(["n_layer", "num_hidden_layers"]); layer++) {
    x = b.within(`transformer.h.${layer}`, () => {
      const normed = b.layerNorm("ln_1", x, hidden);
      const mixed = b.within("attn", () => {
        const parts = b.ops(
          "split.Tensor",
          { self: projected("c_attn", normed, [hidden, 3 * hidden]), split_size: hidden, dim: 2 },
          3,
        );
        const own = parts.map((part) => intoHeads(b, part, setting, shape));
        const y = attended(b, own, setting, { is_causal: true });
        return dropped(b, projected("c_proj", y, [hidden, hidden]), rate, setting);
      });
      const sum = add(b, mixed, x);
      const after = b.layerNorm("ln_2", sum, hidden);
      const fed = b.within("mlp", () => {
        const y = projected("c_proj", newGelu(b, projected("c_fc", after, [hidden, inner])), [inner, hidden]);
        return dropped(b, y, rate, setting);
      });
      return add(b, sum, fed);
    });
  }
  return b.op("linear", { input: b.layerNorm("transformer.ln_f", x, hidden), weight: table });
};

interface Encoder {
  readonly x: ValueName;
  readonly hidden: number;
  /** Whether norms come before what they are of, as in ViT, or after, as in BERT. */
  readonly isNormFirst: boolean;
}

/** A block of an encoder: attention and two linear layers, both with what they had added. */
function encoderBlock(b: ProgramBuilder, { x, hidden, isNormFirst }: Encoder, setting: Setting): ValueName {
  const { config } = setting;
  const heads = config.n(["num_attention_heads"]);
  const inner = config.n(["intermediate_size"]);
  const rate = config.rate(["hidden_dropout_prob"], isNormFirst ? 0 : 0.1);
  const shape = { heads, width: hidden / heads };
  const first = isNormFirst ? b.layerNorm("layernorm_before", x, hidden) : x;
  const mixed = b.within("attention", () => {
    const own = ["query", "key", "value"].map((name) =>
      intoHeads(b, b.linear(`self.${name}`, first, [hidden, hidden]), setting, shape),
    );
    const y = b.linear("output.dense", attended(b, own, setting, {}), [hidden, hidden]);
    return dropped(b, y, rate, setting);
  });
  const sum = add(b, mixed, x);
  const normed = b.layerNorm(isNormFirst ? "layernorm_after" : "attention.output.LayerNorm", sum, hidden);
  const fed = b.op("gelu", { self: b.linear("intermediate.dense", normed, [inner, hidden]) });
  const out = dropped(b, b.linear("output.dense", fed, [hidden, inner]), rate, setting);
  if (isNormFirst) return add(b, out, sum);
  return b.layerNorm("output.LayerNorm", add(b, out, normed), hidden);
}

const bert: Maker = (b, setting) => {
  const { config, batch, tokens } = setting;
  const hidden = config.n(["hidden_size"]);
  const vocabulary = config.n(["vocab_size"]);
  const ids = b.input("input_ids", [batch, tokens], INTEGER_CODE);
  const row = (name: string, count: number): ValueName =>
    b.within(`bert.embeddings.${name}`, () => b.parameter("weight", [count, hidden]));
  const words = row("word_embeddings", vocabulary);
  const [places, kinds] = [
    row("position_embeddings", config.n(["max_position_embeddings"], 512)),
    row("token_type_embeddings", config.n(["type_vocab_size"], 2)),
  ];
  const positions = b.op("unsqueeze", { self: b.op("arange", { end: tokens }, INTEGER_CODE), dim: 0 }, INTEGER_CODE);
  const types = b.op("full", { size: [batch, tokens], fill_value: 0 }, INTEGER_CODE);
  const both = add(
    b,
    b.op("embedding", { weight: words, indices: ids }),
    b.op("embedding", { weight: kinds, indices: types }),
  );
  const embedded = add(b, both, b.op("embedding", { weight: places, indices: positions }));
  let x = dropped(
    b,
    b.layerNorm("bert.embeddings.LayerNorm", embedded, hidden),
    config.rate(["hidden_dropout_prob"], 0.1),
    setting,
  );
  for (let layer = 0; layer < config.n(["num_hidden_layers"]); layer++) {
    x = b.within(`bert.encoder.layer.${layer}`, () => encoderBlock(b, { x, hidden, isNormFirst: false }, setting));
  }
  return b.within("cls.predictions", () => {
    const y = b.op("gelu", { self: b.linear("transform.dense", x, [hidden, hidden]) });
    const bias = b.within("decoder", () => b.parameter("bias", [vocabulary]));
    return b.op("linear", { input: b.layerNorm("transform.LayerNorm", y, hidden), weight: words, bias });
  });
};

const vit: Maker = (b, setting) => {
  const { config, batch } = setting;
  const [hidden, channels] = [config.n(["hidden_size"]), config.n(["num_channels"], 3)];
  const [size, patch] = [config.n(["image_size"], 224), config.n(["patch_size"], 16)];
  const patches = Math.floor(size / patch) ** 2;
  const inside: Setting = { ...setting, tokens: patches + 1 };
  const pixels = b.input("pixel_values", [batch, channels, size, size], FLOAT_CODE);
  const [first, places] = b.within("vit.embeddings", () => [
    b.parameter("cls_token", [1, 1, hidden]),
    b.parameter("position_embeddings", [1, patches + 1, hidden]),
  ]) as [ValueName, ValueName];
  const image = b.within("vit.embeddings.patch_embeddings.projection", () => {
    const [weight, bias] = [b.parameter("weight", [hidden, channels, patch, patch]), b.parameter("bias", [hidden])];
    return b.op("conv2d", { input: pixels, weight, bias, stride: [patch, patch] });
  });
  const rows = b.op("transpose.int", {
    self: b.op("flatten.using_ints", { self: image, start_dim: 2 }),
    dim0: 1,
    dim1: 2,
  });
  const all = b.op("cat", { tensors: [b.op("expand", { self: first, size: [batch, -1, -1] }), rows], dim: 1 });
  let x = add(b, all, places);
  for (let layer = 0; layer < config.n(["num_hidden_layers"]); layer++) {
    x = b.within(`vit.encoder.layer.${layer}`, () => encoderBlock(b, { x, hidden, isNormFirst: true }, inside));
  }
  const last = b.op("select.int", { self: b.layerNorm("vit.layernorm", x, hidden), dim: 1, index: 0 });
  return b.linear("classifier", last, [config.n(["num_labels"], 1000), hidden]);
};

const MAKERS: Readonly<Record<string, Maker>> = {
  ...{ llama, mistral: llama, qwen2: llama, qwen3: llama },
  ...{ gpt2, bert, vit },
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
    throw new TidemarkError("InvalidFile", `the config is of a model of the kind ${JSON.stringify(config.kind)}`, {
      help: `known are ${CONFIG_KINDS.join(", ")}; export others as .pt2`,
    });
  }
  const most = config.n(["max_position_embeddings", "n_positions"], MOST_TOKENS);
  const tokens = sizes.tokens ?? Math.min(most, MOST_TOKENS);
  if (tokens > most) {
    const summary = `${tokens} tokens, the model has positions for ${most}`;
    throw new TidemarkError("InvalidArgument", summary, { help: `give at most ${most}: --size T=${most}` });
  }
  const builder = new ProgramBuilder();
  const result = maker(builder, { config, batch: sizes.batch, tokens, dropout: sizes.dropout ?? false });
  return builder.finish(result);
}
