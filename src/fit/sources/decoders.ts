/** @file Language models that read from left to right: the Llama family and GPT-2. */
import { activated, add, attended, dropped, intoHeads, type Maker, type Setting } from "./config.ts";
import { INTEGER_CODE, type ProgramBuilder, type ValueName, WIDE_CODE } from "./program-builder.ts";

interface Norm {
  readonly width: number;
  readonly isGemma: boolean;
}

/** x · rsqrt(mean(x²) + ε) · w, in steps, of which all but the last compute in f32. Gemma has 1 + w in place of w, and f32 to the end. */
function rmsNorm(b: ProgramBuilder, name: string, x: ValueName, { width, isGemma }: Norm): ValueName {
  const wide = (op: string, args: Parameters<ProgramBuilder["op"]>[1]): ValueName => b.op(op, args, WIDE_CODE);
  return b.within(name, () => {
    const weight = b.parameter("weight", [width]);
    const floats = wide("to.dtype", { self: x });
    const squares = wide("pow.Tensor_Scalar", { self: floats, exponent: 2 });
    const mean = wide("mean.dim", { self: squares, dim: [-1], keepdim: true });
    const root = wide("rsqrt", { self: wide("add.Tensor", { self: mean, other: 1e-6 }) });
    const normed = wide("mul.Tensor", { self: floats, other: root });
    if (!isGemma) return b.op("mul.Tensor", { self: weight, other: b.op("to.dtype", { self: normed }) });
    const scale = wide("add.Tensor", { self: wide("to.dtype", { self: weight }), other: 1 });
    return b.op("to.dtype", { self: wide("mul.Tensor", { self: normed, other: scale }) });
  });
}

/** Classes of a text, read from its last token. */
function scored(b: ProgramBuilder, x: ValueName, hidden: number, { config }: Setting): ValueName {
  const scores = b.linear("score", x, [config.n(["num_labels"], 2), hidden], false);
  return b.op("select.int", { self: scores, dim: 1, index: -1 });
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

export const llama: Maker = (b, setting) => {
  const { config, batch, tokens } = setting;
  const hidden = config.n(["hidden_size"]);
  const { heads, width } = config.heads(hidden, ["num_attention_heads"]);
  const shared = config.n(["num_key_value_heads"], heads);
  const isGemma = config.kind === "gemma";
  const act = config.text(["hidden_activation", "hidden_act"], isGemma ? "gelu_pytorch_tanh" : "silu");
  const norm = (name: string, y: ValueName, over = hidden): ValueName => rmsNorm(b, name, y, { width: over, isGemma });
  const inner = config.n(["intermediate_size"]);
  const vocabulary = config.n(["vocab_size"]);
  const bias = config.flag("attention_bias", config.kind === "qwen2");
  const isNormed = config.kind === "qwen3";
  const ids = b.input("input_ids", [batch, tokens], INTEGER_CODE);
  const table = b.within("model.embed_tokens", () => b.parameter("weight", [vocabulary, hidden]));
  let x = b.op("embedding", { weight: table, indices: ids });
  if (isGemma) x = b.op("mul.Tensor", { self: x, other: Math.sqrt(hidden) });
  const turns = ["cos", "sin"].map(() => b.op("full", { size: [1, 1, tokens, width], fill_value: 1.5 }));
  for (let layer = 0; layer < config.layers(["num_hidden_layers"]); layer++) {
    x = b.within(`model.layers.${layer}`, () => {
      const normed = norm("input_layernorm", x);
      const mixed = b.within("self_attn", () => {
        const own = (name: string, count: number): ValueName => {
          const y = b.linear(name, normed, [count * width, hidden], bias);
          const split = b.op("view", { self: y, size: [batch, tokens, count, width] });
          const scaled = isNormed && name !== "v_proj" ? norm(name.replace("proj", "norm"), split, width) : split;
          return b.op("transpose.int", { self: scaled, dim0: 1, dim1: 2 });
        };
        const [q, k, v] = [own("q_proj", heads), own("k_proj", shared), own("v_proj", shared)];
        const turned = [rotated(b, q, turns, width), rotated(b, k, turns, width), v];
        const y = attended(b, turned, setting, { is_causal: true, enable_gqa: shared !== heads });
        return b.linear("o_proj", y, [hidden, heads * width], config.flag("attention_bias", false));
      });
      const sum = add(b, x, mixed);
      const after = norm("post_attention_layernorm", sum);
      const fed = b.within("mlp", () => {
        const hasBias = config.flag("mlp_bias", false);
        const gate = activated(b, b.linear("gate_proj", after, [inner, hidden], hasBias), act);
        const up = b.linear("up_proj", after, [inner, hidden], hasBias);
        return b.linear("down_proj", b.op("mul.Tensor", { self: gate, other: up }), [hidden, inner], hasBias);
      });
      return add(b, sum, fed);
    });
  }
  const last = norm("model.norm", x);
  if (config.task === "SequenceClassification") return scored(b, last, hidden, setting);
  if (config.flag("tie_word_embeddings", isGemma)) return b.op("linear", { input: last, weight: table });
  return b.linear("lm_head", last, [vocabulary, hidden], false);
};

export const gpt2: Maker = (b, setting) => {
  const { config, batch, tokens } = setting;
  const hidden = config.n(["n_embd", "hidden_size"]);
  const shape = config.heads(hidden, ["n_head", "num_attention_heads"]);
  const act = config.text(["activation_function"], "gelu_new");
  const inner = config.n(["n_inner"], 4 * hidden);
  const vocabulary = config.n(["vocab_size"]);
  const rate = config.rate(["resid_pdrop"], 0.1);
  /** The weight lies as [in, out]. */
  const projected = (name: string, x: ValueName, [rows, columns]: readonly [number, number]): ValueName =>
    b.within(name, () => {
      const [weight, bias] = [b.parameter("weight", [rows, columns]), b.parameter("bias", [columns])];
      const flat = b.op("view", { self: x, size: [batch * tokens, rows] });
      const y = b.op("addmm", { self: bias, mat1: flat, mat2: weight });
      return b.op("view", { self: y, size: [batch, tokens, columns] });
    });
  const ids = b.input("input_ids", [batch, tokens], INTEGER_CODE);
  const table = b.within("transformer.wte", () => b.parameter("weight", [vocabulary, hidden]));
  const places = b.within("transformer.wpe", () => b.parameter("weight", [config.n(["n_positions"], 1024), hidden]));
  const positions = b.op("unsqueeze", { self: b.op("arange", { end: tokens }, INTEGER_CODE), dim: 0 }, INTEGER_CODE);
  const embedded = add(
    b,
    b.op("embedding", { weight: table, indices: ids }),
    b.op("embedding", { weight: places, indices: positions }),
  );
  let x = dropped(b, embedded, config.rate(["embd_pdrop"], 0.1), setting);
  for (let layer = 0; layer < config.layers(["n_layer", "num_hidden_layers"]); layer++) {
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
        const y = projected("c_proj", activated(b, projected("c_fc", after, [hidden, inner]), act), [inner, hidden]);
        return dropped(b, y, rate, setting);
      });
      return add(b, sum, fed);
    });
  }
  const last = b.layerNorm("transformer.ln_f", x, hidden);
  if (config.task === "SequenceClassification") return scored(b, last, hidden, setting);
  if (!config.flag("tie_word_embeddings", true)) return b.linear("lm_head", last, [vocabulary, hidden], false);
  return b.op("linear", { input: last, weight: table });
};
