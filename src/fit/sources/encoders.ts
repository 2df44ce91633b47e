/** @file Encoders: BERT and its kind for texts, ViT for images. */
import { activated, add, attended, dropped, intoHeads, type Maker, type Setting } from "./config.ts";
import { FLOAT_CODE, INTEGER_CODE, type ProgramBuilder, type ValueName } from "./program-builder.ts";

interface Encoder {
  readonly x: ValueName;
  readonly hidden: number;
  /** Whether norms come before what they are of, as in ViT, or after, as in BERT. */
  readonly isNormFirst: boolean;
}

/** A block of an encoder: attention and two linear layers, both with what they had added. */
function encoderBlock(b: ProgramBuilder, { x, hidden, isNormFirst }: Encoder, setting: Setting): ValueName {
  const { config } = setting;
  const inner = config.n(["intermediate_size"]);
  const act = config.text(["hidden_act"], "gelu");
  const rate = config.rate(["hidden_dropout_prob"], isNormFirst ? 0 : 0.1);
  const shape = config.heads(hidden, ["num_attention_heads"]);
  const first = isNormFirst ? b.layerNorm("layernorm_before", x, hidden) : x;
  const mixed = b.within("attention", () => {
    const own = ["query", "key", "value"].map((name) =>
      intoHeads(b, b.linear(`self.${name}`, first, [hidden, hidden], config.flag("qkv_bias", true)), setting, shape),
    );
    const y = b.linear("output.dense", attended(b, own, setting, {}), [hidden, hidden]);
    return dropped(b, y, rate, setting);
  });
  const sum = add(b, mixed, x);
  const normed = b.layerNorm(isNormFirst ? "layernorm_after" : "attention.output.LayerNorm", sum, hidden);
  const fed = activated(b, b.linear("intermediate.dense", normed, [inner, hidden]), act);
  const out = dropped(b, b.linear("output.dense", fed, [hidden, inner]), rate, setting);
  if (isNormFirst) return add(b, out, sum);
  return b.layerNorm("output.LayerNorm", add(b, out, normed), hidden);
}

export const bert: Maker = (b, setting) => {
  const { config, batch, tokens } = setting;
  const { kind } = config;
  const hidden = config.n(["hidden_size"]);
  const vocabulary = config.n(["vocab_size"]);
  const ids = b.input("input_ids", [batch, tokens], INTEGER_CODE);
  const row = (name: string, count: number): ValueName =>
    b.within(`${kind}.embeddings.${name}`, () => b.parameter("weight", [count, hidden]));
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
    b.layerNorm(`${kind}.embeddings.LayerNorm`, embedded, hidden),
    config.rate(["hidden_dropout_prob"], 0.1),
    setting,
  );
  for (let layer = 0; layer < config.layers(["num_hidden_layers"]); layer++) {
    x = b.within(`${kind}.encoder.layer.${layer}`, () => encoderBlock(b, { x, hidden, isNormFirst: false }, setting));
  }
  if (/^(Sequence|Token)Classification$/.test(config.task)) return classes(b, x, hidden, setting);
  return b.within(kind === "bert" ? "cls.predictions" : "lm_head", () => {
    const dense = b.linear(kind === "bert" ? "transform.dense" : "dense", x, [hidden, hidden]);
    const y = activated(b, dense, kind === "bert" ? config.text(["hidden_act"], "gelu") : "gelu");
    const bias = b.within("decoder", () => b.parameter("bias", [vocabulary]));
    const normed = b.layerNorm(kind === "bert" ? "transform.LayerNorm" : "layer_norm", y, hidden);
    return b.op("linear", { input: normed, weight: words, bias });
  });
};

/** Classes of each token, or of the text, from a further layer on its first token. */
function classes(b: ProgramBuilder, x: ValueName, hidden: number, setting: Setting): ValueName {
  const { config } = setting;
  const rate = config.rate(["classifier_dropout", "hidden_dropout_prob"], 0.1);
  const labels = config.n(["num_labels"], 2);
  if (config.task === "TokenClassification")
    return b.linear("classifier", dropped(b, x, rate, setting), [labels, hidden]);
  const first = b.op("select.int", { self: x, dim: 1, index: 0 });
  const pooled = b.op("tanh", { self: b.linear(`${config.kind}.pooler.dense`, first, [hidden, hidden]) });
  return b.linear("classifier", dropped(b, pooled, rate, setting), [labels, hidden]);
}

export const vit: Maker = (b, setting) => {
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
  for (let layer = 0; layer < config.layers(["num_hidden_layers"]); layer++) {
    x = b.within(`vit.encoder.layer.${layer}`, () => encoderBlock(b, { x, hidden, isNormFirst: true }, inside));
  }
  const last = b.op("select.int", { self: b.layerNorm("vit.layernorm", x, hidden), dim: 1, index: 0 });
  return b.linear("classifier", last, [config.n(["num_labels"], 2), hidden]);
};
