/** @file Norms, softmax, attention, embeddings, reductions, indexing, losses, dropout. */
import type { Autograd, EagerTensor } from "../autograd.ts";
import type { Call, Rule } from "../call.ts";
import { contiguousStrides, elementsOf, likeStrides, type Shape } from "../layout.ts";
import { withTemporaries } from "./shared.ts";

const FLOAT = { item: 4, isFloat: true };
const WHOLE = { item: 8, isFloat: false };
const FLAGS = { item: 1, isFloat: false };

const like = ({ g }: Call, x: EagerTensor): EagerTensor => g.fresh(x.shape, x, likeStrides(x.shape, x.strides));

/** Gradients of the input, the scale and the shift. */
const normGradients = (call: Call, operands: readonly (EagerTensor | null)[]) => (): readonly (EagerTensor | null)[] =>
  operands.map((operand) => (operand && call.g.needsGradient(operand) ? like(call, operand) : null));

/** A norm that keeps its input and two statistics, whose shape is given. */
function norm(call: Call, statistics: Shape, x: EagerTensor): readonly EagerTensor[] {
  const { g } = call;
  const [weight, bias] = [call.maybe("weight"), call.maybe("bias")];
  const y = call.out(0, contiguousStrides(x.shape));
  const kept = [g.fresh(statistics, FLOAT), g.fresh(statistics, FLOAT)];
  g.record({
    ...{ name: call.node.target, inputs: [x, weight, bias], outputs: [y], saved: [x, weight, ...kept] },
    backward: normGradients(call, [x, weight, bias]),
  });
  if (call.outputs > 1) return [y, ...kept];
  for (const one of kept) g.release(one);
  return [y];
}

const layerNorm: Rule = (call) => {
  const x = call.t("input");
  const over = call.ns("normalized_shape", [x.shape.at(-1) ?? 1]).length;
  return norm(call, x.shape.slice(0, x.shape.length - over), x);
};

const groupNorm: Rule = (call) => {
  const x = call.t("input");
  return norm(call, [x.shape[0] ?? 1, call.n("num_groups", call.n("group", 1))], x);
};

/** Statistics that are read are kept by the module; those of the batch are kept for the gradient. */
const batchNorm: Rule = (call) => {
  const x = call.t("input");
  return norm(call, call.flag("training", false) ? [x.shape[1] ?? 1] : [0], x);
};

/** The same with new running statistics as further results. */
const updatingNorm: Rule = (call) => [
  ...batchNorm(call).slice(0, 3),
  ...[3, 4].map((i) => (call.isMade(i) ? call.out(i) : null)),
];

/** The batch norm of one image of all channels of all images; scale and shift are repeated for each. */
const instanceNorm: Rule = (call) => {
  const x = call.t("input");
  return norm(call, [(x.shape[0] ?? 1) * (x.shape[1] ?? 1)], x);
};

/** `rms_norm`: x · rsqrt(mean(x²) + ε) · w, as one kernel that keeps its input and one statistic. */
const rmsNorm: Rule = (call) => {
  const x = call.t("input");
  return norm(call, x.shape.slice(0, -1), x);
};

const softmax: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  const y = call.out();
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y], saved: [y] },
    backward: ([dy]) => [dy ? like(call, x) : null],
  });
  return [y];
};

const dropout: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("input") ?? call.t("self");
  const isOn = call.flag("train", true) && call.n("p", 0.5) > 0;
  if (!isOn) return [{ ...g.view(x), edge: x.edge }];
  const y = call.out(0, likeStrides(x.shape, x.strides));
  const mask = g.fresh(x.shape, FLAGS);
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y], saved: [mask] },
    backward: ([dy]) => [dy ? withTemporaries(g, dy, 0) : null],
  });
  if (call.outputs > 1) return [y, mask];
  g.release(mask);
  return [y];
};

/**
 * Memory-efficient attention, which PyTorch chooses for f32 and wherever there is a mask, and flash attention otherwise: both keep the
 * operands, the result and one number a row. A mask of flags becomes one of floats, which is kept too.
 */
const attention: Rule = (call) => {
  const { g } = call;
  const isShared = call.t("query").shape.at(-3) !== call.t("key").shape.at(-3);
  if (isShared && call.t("query").item > HALF) return sharedHeads(call);
  const [q, k, v, mask] = [call.t("query"), call.t("key"), call.t("value"), call.maybe("attn_mask")];
  const { shape } = call.type();
  const [batch, heads, rows, width] = [shape.at(-4) ?? 1, shape.at(-3) ?? 1, shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const asFloats = mask && !mask.isFloat ? g.fresh(mask.shape, q) : null;
  const bias = asFloats ?? (mask ? g.view(mask) : null);
  // results lie as [batch, rows, heads, width]
  const y = call.out(0, [rows * heads * width, width, heads * width, 1].slice(4 - shape.length));
  const sums = g.fresh([batch, heads, Math.ceil(rows / 32) * 32], FLOAT);
  g.record({
    ...{ name: call.node.target, inputs: [q, k, v], outputs: [y], saved: [q, k, v, bias, y, sums] },
    backward: ([dy]) => {
      if (!dy) return [];
      const made = [q, k, v].map((x) => (g.needsGradient(x) ? g.fresh(x.shape, x, headsInside(x.shape)) : null));
      const around = [g.fresh([batch, heads, rows], FLOAT), ...(q.item > HALF ? [] : halfSums(g, [q, k, v]))];
      for (const one of around) g.release(one);
      return made;
    },
  });
  if (bias) g.release(bias);
  g.release(sums);
  return [y];
};

const HALF = 2;

/** Flash attention adds gradients of queries up in f32, and those of shared keys and values for each head. */
function halfSums(g: Autograd, [q, k, v]: readonly [EagerTensor, EagerTensor, EagerTensor]): readonly EagerTensor[] {
  const heads = q.shape.at(-3) ?? 1;
  const own = (x: EagerTensor): Shape => [...x.shape.slice(0, -3), heads, ...x.shape.slice(-2)];
  const shared = k.shape.at(-3) === heads ? [] : [k, v].map((x) => g.fresh(own(x), x));
  return [g.fresh(q.shape, FLOAT), ...shared];
}

/**
 * Heads that share keys and values: flash attention has them, and is there for half floats only. Others are computed in steps: keys and values
 * repeated, both factors scaled, all scores, their softmax; the scaled factors, the values and the softmax are kept.
 */
function sharedHeads(call: Call): readonly EagerTensor[] {
  const { g } = call;
  const [q, k, v] = [call.t("query"), call.t("key"), call.t("value")];
  const { shape } = call.type();
  const [rows, columns] = [q.shape.at(-2) ?? 1, k.shape.at(-2) ?? 1];
  const each = [...shape.slice(0, -2), columns, k.shape.at(-1) ?? 1];
  const scores = [...shape.slice(0, -2), rows, columns];
  const values = g.fresh(each, v);
  const keys = g.fresh(each, k);
  const [scaledQ, scaledK] = [g.fresh(q.shape, q), g.fresh(each, k)];
  g.release(keys);
  const products = g.fresh(scores, q);
  const softened = g.fresh(scores, q);
  g.memory.workspace(elementsOf(scores));
  g.release(products);
  const y = call.out();
  g.record({
    ...{ name: call.node.target, inputs: [q, k, v], outputs: [y], saved: [scaledQ, scaledK, values, softened] },
    backward: ([dy]) => {
      if (!dy) return [];
      const [dSoftened, dValues] = [g.fresh(scores, q), g.fresh(each, v)];
      const dScores = g.fresh(scores, q);
      g.release(dSoftened);
      const [dScaledQ, dScaledK] = [g.fresh(q.shape, q), g.fresh(each, k)];
      g.release(dScores);
      const made = [g.fresh(q.shape, q), g.fresh(k.shape, k), g.fresh(v.shape, v)];
      for (const one of [dScaledQ, dScaledK, dValues]) g.release(one);
      return made;
    },
  });
  for (const one of [scaledQ, scaledK, values, softened]) g.release(one);
  return [y];
}

/** Gradients of [batch, heads, rows, width] lie as [batch, rows, heads, width]. */
function headsInside(shape: Shape): readonly number[] {
  const [heads, rows, width] = [shape.at(-3) ?? 1, shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  return [rows * heads * width, width, heads * width, 1].slice(4 - shape.length);
}

/** Rows of a table; its gradient is a whole table, made after a sort of the indices. */
const embedding: Rule = (call) => {
  const { g } = call;
  const [weight, indices] = [call.t("weight"), call.t("indices")];
  const y = call.out();
  const count = elementsOf(indices.shape);
  g.record({
    ...{ name: call.node.target, inputs: [weight], outputs: [y], saved: [indices] },
    backward: ([dy]) => {
      if (!dy) return [];
      const sorted = count > 3072 ? [1, 2, 3].map(() => g.fresh([count], WHOLE)) : [];
      const made = g.fresh(weight.shape, weight);
      for (const one of sorted) g.release(one);
      return [made];
    },
  });
  return [y];
};

/** A sum passes its gradient on with strides of 0; a mean divides it. */
const reduction =
  (keeps: "nothing" | "input", kernels: number): Rule =>
  (call) => {
    const { g } = call;
    const x = call.maybe("self") ?? call.t("input");
    const outputs = Array.from({ length: call.outputs }, (_, i) => call.out(i));
    const y = outputs[0] as EagerTensor;
    const saved = keeps === "input" ? [x] : [];
    g.record({
      ...{ name: call.node.target, inputs: [x], outputs, saved },
      backward: ([dy]) => {
        if (!dy) return [null];
        if (kernels === 0)
          return [
            g.view(
              dy,
              x.shape,
              x.shape.map(() => 0),
            ),
          ];
        return [withTemporaries(g, { ...dy, shape: x.shape, strides: x.strides }, kernels - 1)];
      },
    });
    return y === undefined ? [] : outputs;
  };

/** Values at indices, which are kept; the gradient is a tensor of zeros with values added in. */
const indexed: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  const index = [...call.list("indices"), call.maybe("index")];
  const y = call.out();
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y], saved: index },
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  return [y];
};

/** Values put at indices: both sides have gradients of their shapes. */
const put: Rule = (call) => {
  const { g } = call;
  const x = call.t("self");
  const source = call.maybe("src") ?? call.maybe("source") ?? call.maybe("values") ?? call.maybe("value");
  const y = call.out();
  g.record({
    ...{
      name: call.node.target,
      inputs: [x, source],
      outputs: [y],
      saved: [call.maybe("index"), ...call.list("indices")],
    },
    backward: ([dy]) => (dy ? [x, source].map((one) => (g.needsGradient(one) ? g.fresh(one.shape, one) : null)) : []),
  });
  return [y];
};

/** The negative log likelihood keeps its log-probabilities and targets; its gradient is a whole tensor of zeros with one entry a row. */
function likelihood(call: Call, x: EagerTensor, target: EagerTensor): readonly EagerTensor[] {
  const { g } = call;
  const outputs = Array.from({ length: call.outputs }, (_, i) => call.out(i));
  g.record({
    ...{ name: "nll_loss", inputs: [x], outputs, saved: [x, target] },
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  return outputs;
}

const nllLoss: Rule = (call) => likelihood(call, call.t("self"), call.t("target"));

const crossEntropy: Rule = (call) => {
  const { g } = call;
  const [x, target] = [call.t("self"), call.t("target")];
  const logs = g.fresh(x.shape, x);
  g.record({
    ...{ name: "log_softmax", inputs: [x], outputs: [logs], saved: [logs] },
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  const made = likelihood(call, logs, target);
  g.release(logs);
  return made;
};

const squaredError: Rule = (call) => {
  const { g } = call;
  const [x, target] = [call.t("self"), call.t("target")];
  const y = call.out();
  g.record({
    ...{ name: "mse_loss", inputs: [x, target], outputs: [y], saved: [x, target] },
    backward: ([dy]) => (dy ? [x, target].map((one) => (g.needsGradient(one) ? like(call, one) : null)) : []),
  });
  return [y];
};

/** A gated unit: one operand, the halves of which are read. */
const glu: Rule = (call) => {
  const { g } = call;
  const x = call.t("self");
  const y = call.out();
  g.record({
    name: "glu",
    inputs: [x],
    outputs: [y],
    saved: [x],
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  return [y];
};

/** Operands are kept, and have gradients of their shapes. */
const keeping: Rule = (call) => {
  const { g } = call;
  const operands = call.tensors();
  const outputs = Array.from({ length: call.outputs }, (_, i) => call.out(i));
  g.record({
    ...{ name: call.node.target, inputs: operands, outputs, saved: operands },
    backward: () => operands.map((x) => (g.needsGradient(x) ? like(call, x) : null)),
  });
  return outputs;
};

/** An operation that is not known: it keeps what it reads and writes, and its gradients are of the shapes of its operands. */
export const opaque: Rule = (call) => {
  const { g } = call;
  const operands = call.tensors();
  const outputs = Array.from({ length: call.outputs }, (_, i) => call.out(i));
  g.record({
    ...{ name: call.node.target, inputs: operands, outputs, saved: [...operands, ...outputs] },
    backward: () => operands.map((x) => (g.needsGradient(x) ? like(call, x) : null)),
  });
  return outputs;
};

/** Tensors of the size of a layer's result that the reserve has for each layer. */
const RESERVES: readonly (readonly [string, number])[] = [
  ["lstm", 6],
  ["gru", 5],
];

/** cuDNN's recurrent networks keep operands, results and a reserve: gates, cells and states of all steps and layers. */
const recurrent: Rule = (call) => {
  const { g } = call;
  const x = call.t("input");
  const weights = call.list("params");
  const states = call.list("hx");
  const outputs = Array.from({ length: call.outputs }, (_, i) => call.out(i));
  const packed = g.fresh([weights.reduce((sum, w) => sum + elementsOf(w.shape), 0)], x);
  const y = outputs[0] as EagerTensor;
  const gates = RESERVES.find(([name]) => call.node.target.includes(name))?.[1] ?? 2;
  const layers = call.n("num_layers", 1);
  const reserve = g.fresh([elementsOf(y.shape) * gates * layers], x);
  const inputs = [x, ...states, ...weights];
  g.record({
    ...{ name: call.node.target, inputs, outputs, saved: [x, ...states, packed, reserve, ...outputs] },
    backward: () => {
      const whole = g.fresh(packed.shape, packed);
      const made = inputs.map((one) => (g.needsGradient(one) ? g.fresh(one.shape, one) : null));
      g.release(whole);
      return made;
    },
  });
  g.release(packed);
  g.release(reserve);
  return outputs;
};

const each = (text: string, rule: Rule): readonly (readonly [string, Rule])[] =>
  text.split(" ").map((name) => [name, rule] as const);

export const NETWORKS: Readonly<Record<string, Rule>> = Object.fromEntries([
  ...each("layer_norm native_layer_norm", layerNorm),
  ...each("group_norm native_group_norm", groupNorm),
  ...each(
    "batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training native_batch_norm cudnn_batch_norm",
    batchNorm,
  ),
  ...each("_batch_norm_with_update", batchNorm),
  ...each("_native_batch_norm_legit_functional", updatingNorm),
  ...each("instance_norm", instanceNorm),
  ...each("rms_norm _fused_rms_norm", rmsNorm),
  ...each("softmax _softmax log_softmax _log_softmax _safe_softmax", softmax),
  ...each("dropout native_dropout", dropout),
  ...each("scaled_dot_product_attention", attention),
  ...each("_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention", attention),
  ...each("_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable", attention),
  ...each("embedding", embedding),
  ...each("sum trace nansum", reduction("nothing", 0)),
  ...each("mean nanmean", reduction("nothing", 1)),
  ...each("var std var_mean logsumexp norm linalg_vector_norm linalg_norm prod std_mean", reduction("input", 3)),
  ...each("amax amin max min aminmax sort topk median kthvalue cummax cummin", reduction("input", 2)),
  ...each("index index_select gather take_along_dim _unsafe_index", indexed),
  ...each("scatter scatter_add index_put index_add index_copy slice_scatter select_scatter copy fill", put),
  ...each("_unsafe_index_put scatter_reduce masked_scatter index_fill", put),
  ...each("nll_loss nll_loss_forward nll_loss2d nll_loss2d_forward nll_loss_nd", nllLoss),
  ...each("cross_entropy_loss", crossEntropy),
  ...each(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits binary_cross_entropy",
    squaredError,
  ),
  ...each("kl_div soft_margin_loss", squaredError),
  ...each("addcmul addcdiv lerp outer bilinear cosine_similarity pairwise_distance cdist _cdist_forward", keeping),
  ...each("_weight_norm _weight_norm_interface addr addmv tensordot kron inner cross linalg_cross dist", keeping),
  ...each("lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell embedding_bag _embedding_bag", keeping),
  ...each("triplet_margin_loss margin_ranking_loss cosine_embedding_loss hinge_embedding_loss", keeping),
  ...each("poisson_nll_loss broadcast_tensors _embedding_bag_forward_only _grouped_mm", keeping),
  ...each("glu", glu),
  ...each("lstm gru rnn_tanh rnn_relu", recurrent),
]);
