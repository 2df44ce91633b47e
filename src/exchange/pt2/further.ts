/** @file ATen operations that exporters keep whole in training form: losses, shuffles, similarity, windows, fused attention. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Args, Operator, Value } from "./args.ts";
import { NETWORKS } from "./networks.ts";

/** 0 keeps every loss, 1 is their mean, 2 their sum. */
function reduced(losses: Tensor, args: Args): Tensor {
  const reduction = args.n("reduction", 1);
  if (reduction === 0) return losses;
  return reduction === 1 ? t.mean(losses) : t.sum(losses);
}

const difference = (args: Args): Tensor => t.sub(args.t("self"), args.t("target"));

/** d²/2 below delta, else linear; `smooth_l1` divides by beta. */
function huber(args: Args, delta: number, divided: boolean): Tensor {
  const d = t.abs(difference(args));
  if (delta === 0) return reduced(d, args);
  const losses = t.where(t.less(d, delta), t.mul(t.square(d), 0.5), t.mul(t.sub(d, delta / 2), delta));
  return reduced(divided ? t.div(losses, delta) : losses, args);
}

function weighted(losses: Tensor, args: Args): Tensor {
  const weight = args.maybe("weight");
  return reduced(weight ? t.mul(losses, weight) : losses, args);
}

/** -(y · log p + (1 - y) · log(1 - p)), logarithms cut off at -100. */
function binaryCrossEntropy(args: Args): Tensor {
  const [p, y] = [args.t("self"), args.t("target")];
  const log = (x: Tensor): Tensor => t.maximum(t.log(x), -100);
  return weighted(t.neg(t.add(t.mul(y, log(p)), t.mul(t.sub(1, y), log(t.sub(1, p))))), args);
}

/** (1 - y) · x + (1 + (w - 1) · y) · log(1 + e⁻ˣ). */
function binaryCrossEntropyWithLogits(args: Args): Tensor {
  const [x, y, positive] = [args.t("self"), args.t("target"), args.maybe("pos_weight")];
  const rest = t.softplus(t.neg(x));
  const scaled = positive ? t.mul(rest, t.add(t.mul(t.sub(positive, 1), y), 1)) : rest;
  return weighted(t.add(t.mul(t.sub(1, y), x), scaled), args);
}

function cosine(args: Args): Tensor {
  const [a, b] = [args.t("x1"), args.t("x2")];
  const axis = args.axis(args.n("dim", 1), Math.max(a.rank, b.rank));
  const eps = args.n("eps", 1e-8);
  const size = (x: Tensor): Tensor => t.maximum(t.norm(x, axis), eps);
  return t.div(t.sum(t.mul(a, b), axis), t.mul(size(a), size(b)));
}

function channelShuffle(args: Args): Tensor {
  const x = args.t("self");
  const groups = args.n("groups");
  const [batch, channels, ...space] = x.shape as [number, number, ...number[]];
  return t.reshape(t.swapAxes(t.reshape(x, [batch, groups, channels / groups, ...space]), 1, 2), x.shape);
}

function columns(args: Args): Tensor {
  return t.unfold(args.t("self"), args.ns("kernel_size"), {
    dilation: args.ns("dilation"),
    padding: args.ns("padding"),
    stride: args.ns("stride"),
  });
}

/** The result, and in the place of the others what nothing here reads. */
const attentionWithMore: Operator = (args): Value => {
  const y = NETWORKS.scaled_dot_product_attention?.(args) as Tensor;
  const nothing = t.zeros([0], y.dtype);
  return args.node.outputs.map((_, i) => (i === 0 ? y : nothing));
};

function largestAdaptive(args: Args): Value {
  const y = t.adaptiveMaxPool(args.t("self"), args.ns("output_size"));
  if (args.isUsed(1)) args.fail("positions of adaptive maxima", "use max pooling with a fixed window");
  return [y, t.zeros(y.shape, "i32")];
}

/** Distances between all rows of two matrices. */
function distances(args: Args): Tensor {
  const [a, b] = [args.t("x1"), args.t("x2")];
  const apart = t.sub(t.expandDims(a, -2), t.expandDims(b, -3));
  const p = args.n("p", 2);
  if (p === 2) return t.norm(apart, -1);
  return p === 1 ? t.sum(t.abs(apart), -1) : t.pow(t.sum(t.pow(t.abs(apart), p), -1), 1 / p);
}

export const FURTHER: Readonly<Record<string, Operator>> = {
  smooth_l1_loss: (args) => huber(args, args.n("beta", 1), true),
  huber_loss: (args) => huber(args, args.n("delta", 1), false),
  binary_cross_entropy: binaryCrossEntropy,
  binary_cross_entropy_with_logits: binaryCrossEntropyWithLogits,
  soft_margin_loss: (args) => reduced(t.softplus(t.neg(t.mul(args.t("self"), args.t("target")))), args),
  kl_div: (args) => {
    const [logs, y] = [args.t("self"), args.t("target")];
    if (args.flag("log_target")) return reduced(t.mul(t.exp(y), t.sub(y, logs)), args);
    const safe = t.where(t.greater(y, 0), y, 1);
    return reduced(t.where(t.greater(y, 0), t.mul(y, t.sub(t.log(safe), logs)), 0), args);
  },
  cosine_similarity: cosine,
  pairwise_distance: (args) =>
    t.norm(t.add(t.sub(args.t("x1"), args.t("x2")), args.n("eps", 1e-6)), -1, { keepDims: args.flag("keepdim") }),
  cdist: distances,
  _cdist_forward: distances,
  channel_shuffle: channelShuffle,
  native_channel_shuffle: channelShuffle,
  im2col: columns,
  col2im: (args) =>
    t.fold(args.t("self"), args.ns("output_size"), args.ns("kernel_size"), {
      dilation: args.ns("dilation"),
      padding: args.ns("padding"),
      stride: args.ns("stride"),
    }),
  adaptive_max_pool1d: largestAdaptive,
  adaptive_max_pool2d: largestAdaptive,
  adaptive_max_pool3d: largestAdaptive,
  _scaled_dot_product_flash_attention: attentionWithMore,
  _scaled_dot_product_flash_attention_for_cpu: attentionWithMore,
  _scaled_dot_product_efficient_attention: attentionWithMore,
  _scaled_dot_product_fused_attention_overrideable: attentionWithMore,
  swapaxes: (args) => t.swapAxes(args.t("self"), args.n("axis0"), args.n("axis1")),
  swapdims: (args) => t.swapAxes(args.t("self"), args.n("dim0"), args.n("dim1")),
  zero: (args) => t.zerosLike(args.t("self")),
  meshgrid: (args) => t.meshgrid(args.tensors("tensors"), { indexing: args.text("indexing", "ij") as "ij" }),
  softshrink: (args) => t.softShrink(args.t("self"), args.n("lambd", 0.5)),
  hardshrink: (args) => t.hardShrink(args.t("self"), args.n("lambd", 0.5)),
  histc: (args) =>
    t.histogram(args.t("self"), args.n("bins", 100), { range: [args.n("min", 0), args.n("max", 0)] }).counts,
  bilinear: (args) => {
    const y = t.einsum("...i,oij,...j->...o", args.t("input1"), args.t("weight"), args.t("input2"));
    const bias = args.maybe("bias");
    return bias ? t.add(y, bias) : y;
  },
  _weight_norm_interface: (args) => weightNorm(args),
  _weight_norm: (args) => at(weightNorm(args), 0),
};

/** g · v / |v|, the norm over all axes but one. */
function weightNorm(args: Args): readonly Tensor[] {
  const [v, g] = [args.t("v"), args.t("g")];
  const kept = args.axis(args.n("dim", 0), v.rank);
  const axes = v.shape.map((_, axis) => axis).filter((axis) => axis !== kept);
  const size = t.norm(v, axes, { keepDims: true });
  return [t.mul(v, t.div(g, size)), size];
}
