/** @file ATen operations of networks: products, convolutions, pooling, normalisations, attention, losses, images, dropout. */

import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { bytesOf, type FloatType, isBool } from "../../kernel/dtype.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { averagePool, maxPool, maxPoolWithPositions, type Pooling } from "../shared/pooling.ts";
import { cubic, LINEAR, resampled, type Taps, tapsAt } from "../shared/resample.ts";
import { sampleAt } from "../shared/sample.ts";
import type { Args, Operator } from "./args.ts";
import { as } from "./promote.ts";

// ---- products -----------------------------------------------------------------------------------------------------

function linear(args: Args): Tensor {
  const y = t.matmul(args.t("input"), args.t("weight"), { tb: true });
  const bias = args.maybe("bias");
  return bias ? t.add(y, bias) : y;
}

/** beta · self + alpha · product. */
function addedTo(args: Args, product: Tensor): Tensor {
  const [alpha, beta] = [args.n("alpha", 1), args.n("beta", 1)];
  const scaled = alpha === 1 ? product : t.mul(product, alpha);
  return t.add(beta === 1 ? args.t("self") : t.mul(args.t("self"), beta), scaled);
}

// ---- convolutions -------------------------------------------------------------------------------------------------

const CONV = [t.conv1d, t.conv2d, t.conv3d] as const;
const TRANSPOSED = [t.convTranspose1d, t.convTranspose2d, t.convTranspose3d] as const;

const withBias = (y: Tensor, bias: Tensor | null): Tensor =>
  bias ? t.add(y, t.reshape(bias, [-1, ...y.shape.slice(2).map(() => 1)])) : y;

/** An input without a batch has one for the convolution. */
function batched(x: Tensor, rank: number, of: (x: Tensor) => Tensor): Tensor {
  return x.rank === rank ? of(x) : t.squeeze(of(t.expandDims(x, 0)), 0);
}

function convolve(args: Args, transposed: boolean): Tensor {
  const [x, w] = [args.t("input"), args.t("weight")];
  const axes = w.rank - 2;
  const stride = args.perAxis("stride", axes, 1);
  const dilation = args.perAxis("dilation", axes, 1);
  const groups = args.n("groups", 1);
  const mode = args.get("padding");
  const padding = typeof mode === "string" ? (mode as "same" | "valid") : args.perAxis("padding", axes, 0);
  const options = { stride, dilation, padding, groups };
  const bias = args.maybe("bias");
  return batched(x, w.rank, (input) => {
    if (!transposed) return withBias(at(CONV, axes - 1)(input, w, options), bias);
    const outputPadding = args.perAxis("output_padding", axes, 0);
    return withBias(at(TRANSPOSED, axes - 1)(input, w, { ...options, outputPadding }), bias);
  });
}

// ---- pooling ------------------------------------------------------------------------------------------------------

/** The windows of an operator of pooling. */
export function poolingOf(args: Args, axes: number): Pooling {
  const window = args.perAxis("kernel_size", axes, 1);
  const given = args.has("stride") ? args.ns("stride") : [];
  const stride = given.length === 0 ? window : window.map((_, k) => given[k] ?? at(given, 0));
  const pad = args.perAxis("padding", axes, 0);
  return {
    window,
    stride,
    dilation: args.perAxis("dilation", axes, 1),
    lo: pad,
    hi: pad,
    ceil: args.flag("ceil_mode"),
  };
}

const largest =
  (axes: number): Operator =>
  (args) =>
    maxPool(args.t("self"), poolingOf(args, axes));

/** Positions are made where something reads them. */
const largestWithPositions =
  (axes: number): Operator =>
  (args) => {
    const [x, of] = [args.t("self"), poolingOf(args, axes)];
    if (args.isUsed(1)) return maxPoolWithPositions(x, of);
    const values = maxPool(x, of);
    return [values, t.zeros(values.shape, "i32")];
  };

const average =
  (axes: number): Operator =>
  (args) =>
    averagePool(
      args.t("self"),
      poolingOf(args, axes),
      args.flag("count_include_pad", true),
      args.maybeN("divisor_override") ?? undefined,
    );

// ---- normalisations -----------------------------------------------------------------------------------------------

const optional = (name: string, value: Tensor | null) => (value ? { [name]: value } : {});

function batchNorm(args: Args): readonly Tensor[] {
  const x = args.t("input");
  const affine = {
    ...optional("scale", args.maybe("weight")),
    ...optional("offset", args.maybe("bias")),
    eps: args.n("eps"),
  };
  const training =
    args.flag("training", false) || (args.node.target.includes("_legit") && !args.node.target.includes("no_training"));
  const [mean, variance] = [args.maybe("running_mean"), args.maybe("running_var")];
  if (!training && mean && variance) {
    const { y } = t.batchNorm(x, { ...affine, mean, variance });
    return [y, t.zeros([0], x.dtype), t.zeros([0], x.dtype)];
  }
  const made = t.batchNorm(x, affine);
  const scale = t.rsqrt(t.add(made.variance, args.n("eps")));
  if (!mean || !variance || !args.node.target.includes("functional")) return [made.y, made.mean, scale];
  const momentum = args.n("momentum", 0.1);
  const count = x.elements / at(x.shape, 1);
  const blended = (old: Tensor, now: Tensor): Tensor => t.add(t.mul(old, 1 - momentum), t.mul(now, momentum));
  const unbiased = t.mul(made.variance, count / Math.max(1, count - 1));
  return [made.y, made.mean, scale, blended(mean, made.mean), blended(variance, unbiased)];
}

/** Statistics of every instance and channel; without running ones. */
function instanceNorm(args: Args): Tensor {
  const x = args.t("input");
  if (!args.flag("use_input_stats", true)) return at(batchNorm(args), 0);
  const axes = x.shape.slice(2).map((_, k) => k + 2);
  const y = t.layerNorm(x, { axes, eps: args.n("eps") });
  const per = (v: Tensor): Tensor => t.reshape(v, [-1, ...x.shape.slice(2).map(() => 1)]);
  const [weight, bias] = [args.maybe("weight"), args.maybe("bias")];
  const scaled = weight ? t.mul(y, per(weight)) : y;
  return bias ? t.add(scaled, per(bias)) : scaled;
}

function layerNorm(args: Args): readonly Tensor[] {
  const x = args.t("input");
  const count = args.ns("normalized_shape").length;
  const axes = x.shape.map((_, axis) => axis).slice(x.rank - count);
  const eps = args.n("eps", 1e-5);
  const y = t.layerNorm(x, { axes, eps });
  const [weight, bias] = [args.maybe("weight"), args.maybe("bias")];
  const scaled = weight ? t.mul(y, weight) : y;
  const mean = t.mean(x, axes, { keepDims: true });
  const scale = t.rsqrt(t.add(t.mean(t.square(t.sub(x, mean)), axes, { keepDims: true }), eps));
  return [bias ? t.add(scaled, bias) : scaled, mean, scale];
}

function rmsNorm(args: Args): Tensor {
  const x = args.t("input");
  const count = args.ns("normalized_shape").length;
  const axes = x.shape.map((_, axis) => axis).slice(x.rank - count);
  const y = t.rmsNorm(x, { axes, eps: args.n("eps", 2 ** (bytesOf(x.dtype) > 4 ? -52 : -23)) });
  const weight = args.maybe("weight");
  return weight ? t.mul(y, weight) : y;
}

function groupNorm(args: Args): readonly Tensor[] {
  const x = args.t("input");
  const groups = args.has("group") ? args.n("group") : args.n("num_groups");
  const affine = { ...optional("scale", args.maybe("weight")), ...optional("offset", args.maybe("bias")) };
  const eps = args.n("eps", 1e-5);
  const flat = t.reshape(x, [at(x.shape, 0), groups, -1]);
  const mean = t.mean(flat, 2);
  const scale = t.rsqrt(t.add(t.mean(t.square(t.sub(flat, t.expandDims(mean, 2))), 2), eps));
  return [t.groupNorm(x, groups, { ...affine, eps }), mean, scale];
}

// ---- attention ----------------------------------------------------------------------------------------------------

/** Queries and keys from which on attention without a mask stores no scores. */
const STREAMED = 1024;

function isStreamed(args: Args): boolean {
  const rowsOf = (x: Tensor): number => at(x.shape, x.rank - 2);
  const [rows, columns] = [rowsOf(args.t("query")), rowsOf(args.t("key"))];
  const isSquare = !args.flag("is_causal") || rows === columns;
  const isPlain = !args.maybe("attn_mask") && args.n("dropout_p", 0) === 0;
  return Math.min(rows, columns) >= STREAMED && isSquare && isPlain;
}

function attention(args: Args): Tensor {
  const q = args.t("query");
  const flat = ["query", "key", "value"].find((name) => args.t(name).rank < 2);
  if (flat !== undefined) args.fail(`its ${flat} has fewer than two axes`, "rows and features are the last two");
  if (isStreamed(args)) {
    const scale = args.has("scale") ? { scale: args.n("scale") } : {};
    const v = args.t("value");
    // with products in halves, queries and keys that were turned in f32 meet values of a half
    return t.attention(as(q, v.dtype), as(args.t("key"), v.dtype), v, { causal: args.flag("is_causal"), ...scale });
  }
  const heads = q.shape.at(-3) ?? 1;
  const wide = (x: Tensor): Tensor => {
    const own = x.shape.at(-3) ?? 1;
    return args.flag("enable_gqa") && own !== heads ? t.repeat(x, heads / own, x.rank - 3) : x;
  };
  const [k, v] = [wide(args.t("key")), wide(args.t("value"))];
  const scale = args.has("scale") ? args.n("scale") : 1 / Math.sqrt(at(q.shape, q.rank - 1));
  const scores = t.mul(t.matmul(q, k, { tb: true }), scale);
  const [rows, columns] = scores.shape.slice(-2) as [number, number];
  const causal = args.flag("is_causal")
    ? t.where(
        t.greaterEqual(t.reshape(t.arange(rows), [rows, 1]), t.reshape(t.arange(columns), [1, columns])),
        scores,
        Number.NEGATIVE_INFINITY,
      )
    : scores;
  const mask = args.maybe("attn_mask");
  const masked = mask ? hidden(causal, mask) : causal;
  const weights = t.softmax(masked);
  const rate = args.n("dropout_p", 0);
  return t.matmul(rate > 0 ? t.dropout(weights, rate, args.key()) : weights, v);
}

const hidden = (scores: Tensor, mask: Tensor): Tensor =>
  isBool(mask.dtype) ? t.where(mask, scores, Number.NEGATIVE_INFINITY) : t.add(scores, mask);

// ---- losses -------------------------------------------------------------------------------------------------------

const reduced = (losses: Tensor, reduction: number): Tensor => {
  if (reduction === 0) return losses;
  return reduction === 1 ? t.mean(losses) : t.sum(losses);
};

function likelihood(args: Args, logs: Tensor): readonly [loss: Tensor, weight: Tensor] {
  const targets = args.t("target");
  const axis = logs.rank === 1 ? 0 : 1;
  const ignored = args.n("ignore_index", -100);
  const isIgnored = t.equal(targets, ignored);
  const safe = t.where(isIgnored, 0, targets);
  const chosen = t.squeeze(t.gather(logs, t.expandDims(safe, axis), axis), axis);
  const weight = args.maybe("weight");
  const weights = t.where(isIgnored, 0, weight ? t.take(weight, safe) : t.onesLike(chosen));
  const losses = t.neg(t.mul(chosen, weights));
  const total = t.sum(weights);
  const reduction = args.n("reduction", 1);
  if (reduction === 0) return [losses, total];
  return [reduction === 1 ? t.div(t.sum(losses), total) : t.sum(losses), total];
}

function crossEntropy(args: Args): Tensor {
  const x = args.t("self");
  if (args.n("label_smoothing", 0) === 0 && args.t("target").rank < x.rank) {
    return at(likelihood(args, t.logSoftmax(x, x.rank === 1 ? 0 : 1)), 0);
  }
  const reductions = ["none", "mean", "sum"] as const;
  const weight = args.maybe("weight");
  if (x.rank > 2) args.fail("label smoothing or class probabilities over further axes", "flatten them into the batch");
  return t.crossEntropy(x, args.t("target"), {
    labelSmoothing: args.n("label_smoothing", 0),
    reduction: at(reductions, args.n("reduction", 1)),
    ...(weight ? { weight } : {}),
  });
}

// ---- images -------------------------------------------------------------------------------------------------------

/** Sizes and scales of the last axes: `output_size`, or `scale_factors` (one of them a list). */
function sizesOf(args: Args, x: Tensor, axes: number): readonly (readonly [to: number, scale: number])[] {
  const space = x.shape.slice(-axes);
  const factors = args.has("scale_factors")
    ? args.ns("scale_factors")
    : ["scales_d", "scales_h", "scales_w", "scales"].flatMap((name) => (args.has(name) ? [args.n(name)] : []));
  if (args.has("output_size")) {
    const size = args.ns("output_size");
    return space.map((from, k) => [at(size, k), factors[k] ?? at(size, k) / from] as const);
  }
  return space.map((from, k) => [Math.floor(from * at(factors, k)), at(factors, k)] as const);
}

const tapsOf = (places: readonly number[]): Taps => places.map((place) => [[place, 1] as const]);

function nearest(args: Args, axes: number, exact: boolean): Tensor {
  const given = args.has("self") ? args.t("self") : args.t("input");
  return sizesOf(args, given, axes).reduce((x, [to, scale], k) => {
    const axis = given.rank - axes + k;
    const from = at(given.shape, axis);
    const places = Array.from({ length: to }, (_, i) => Math.min(Math.floor((exact ? i + 0.5 : i) / scale), from - 1));
    return resampled(x, tapsOf(places), axis);
  }, given);
}

const interpolated =
  (axes: number, isCubic: boolean): Operator =>
  (args) => {
    const given = args.has("self") ? args.t("self") : args.t("input");
    const kernel = isCubic ? cubic(-0.75) : LINEAR;
    const isAligned = args.flag("align_corners");
    return sizesOf(args, given, axes).reduce((x, [to, scale], k) => {
      const axis = given.rank - axes + k;
      const from = at(given.shape, axis);
      if (from === to && scale === 1) return x;
      const places = Array.from({ length: to }, (_, i) => {
        if (isAligned) return to === 1 ? 0 : (i * (from - 1)) / (to - 1);
        const place = (i + 0.5) / scale - 0.5;
        return isCubic ? place : Math.max(0, place);
      });
      return resampled(x, tapsAt(places, { from, kernel, shrink: 1, excludeOutside: false }), axis);
    }, given);
  };

function gridSample(args: Args): Tensor {
  return sampleAt(args.t("input"), args.t("grid"), {
    mode: at(["bilinear", "nearest", "bicubic"] as const, args.n("interpolation_mode", 0)),
    padding: at(["zeros", "border", "reflection"] as const, args.n("padding_mode", 0)),
    alignCorners: args.flag("align_corners"),
  });
}

// ---- random -------------------------------------------------------------------------------------------------------

function dropout(args: Args): Tensor {
  const x = args.has("input") ? args.t("input") : args.t("self");
  const rate = args.n("p", 0.5);
  return args.flag("train", true) && rate > 0 ? t.dropout(x, rate, args.key()) : x;
}

function nativeDropout(args: Args): readonly Tensor[] {
  const [x, rate] = [args.t("input"), args.n("p", 0.5)];
  if (!args.flag("train", true) || rate === 0) return [x, t.full(x.shape, true)];
  const mask = t.random.bernoulli(args.key(), 1 - rate, x.shape);
  return [t.where(mask, t.mul(x, 1 / (1 - rate)), 0), mask];
}

const drawn =
  (of: typeof t.random.uniform | typeof t.random.normal): Operator =>
  (args) => {
    const shape = args.has("size") ? args.ns("size") : args.t("self").shape;
    const dtype = (args.dtype() ?? (args.has("self") ? args.t("self").dtype : "f32")) as FloatType;
    return of(args.key(), shape, { dtype });
  };

export const NETWORKS: Readonly<Record<string, Operator>> = {
  linear,
  matmul: (args) => t.matmul(args.t("self"), args.t("other")),
  mm: (args) => t.matmul(args.t("self"), args.t("mat2")),
  bmm: (args) => t.matmul(args.t("self"), args.t("mat2")),
  mv: (args) => t.matmul(args.t("self"), args.t("vec")),
  dot: (args) => t.dot(args.t("self"), args.t("tensor")),
  outer: (args) => t.outer(args.t("self"), args.t("vec2")),
  addmm: (args) => addedTo(args, t.matmul(args.t("mat1"), args.t("mat2"))),
  baddbmm: (args) => addedTo(args, t.matmul(args.t("batch1"), args.t("batch2"))),
  einsum: (args) => t.einsum(args.text("equation", "").replaceAll(/\s/g, ""), ...args.tensors("tensors")),
  conv1d: (args) => convolve(args, false),
  conv2d: (args) => convolve(args, false),
  conv3d: (args) => convolve(args, false),
  convolution: (args) => convolve(args, args.flag("transposed")),
  conv_transpose1d: (args) => convolve(args, true),
  conv_transpose2d: (args) => convolve(args, true),
  conv_transpose3d: (args) => convolve(args, true),
  max_pool1d: largest(1),
  max_pool2d: largest(2),
  max_pool3d: largest(3),
  max_pool2d_with_indices: largestWithPositions(2),
  max_pool3d_with_indices: largestWithPositions(3),
  avg_pool1d: average(1),
  avg_pool2d: average(2),
  avg_pool3d: average(3),
  adaptive_avg_pool1d: (args) => t.adaptiveAvgPool(args.t("self"), args.ns("output_size")),
  adaptive_avg_pool2d: (args) => t.adaptiveAvgPool(args.t("self"), args.ns("output_size")),
  _adaptive_avg_pool2d: (args) => t.adaptiveAvgPool(args.t("self"), args.ns("output_size")),
  _adaptive_avg_pool3d: (args) => t.adaptiveAvgPool(args.t("self"), args.ns("output_size")),
  adaptive_avg_pool3d: (args) => t.adaptiveAvgPool(args.t("self"), args.ns("output_size")),
  batch_norm: (args) => at(batchNorm(args), 0),
  _native_batch_norm_legit: batchNorm,
  _native_batch_norm_legit_functional: batchNorm,
  _native_batch_norm_legit_no_training: batchNorm,
  native_batch_norm: batchNorm,
  instance_norm: instanceNorm,
  layer_norm: (args) => at(layerNorm(args), 0),
  native_layer_norm: layerNorm,
  rms_norm: rmsNorm,
  group_norm: (args) => at(groupNorm(args), 0),
  native_group_norm: groupNorm,
  softmax: (args) => t.softmax(args.t("self"), args.axis(args.n("dim"), args.t("self").rank)),
  _softmax: (args) => t.softmax(args.t("self"), args.axis(args.n("dim"), args.t("self").rank)),
  _safe_softmax: (args) => t.softmax(args.t("self"), args.axis(args.n("dim"), args.t("self").rank)),
  log_softmax: (args) => t.logSoftmax(args.t("self"), args.axis(args.n("dim"), args.t("self").rank)),
  _log_softmax: (args) => t.logSoftmax(args.t("self"), args.axis(args.n("dim"), args.t("self").rank)),
  glu: (args) => t.glu(args.t("self"), args.axis(args.n("dim", -1), args.t("self").rank)),
  scaled_dot_product_attention: attention,
  nll_loss: (args) => at(likelihood(args, args.t("self")), 0),
  nll_loss_nd: (args) => at(likelihood(args, args.t("self")), 0),
  nll_loss_forward: (args) => likelihood(args, args.t("self")),
  nll_loss2d_forward: (args) => likelihood(args, args.t("self")),
  cross_entropy_loss: crossEntropy,
  mse_loss: (args) => reduced(t.square(t.sub(args.t("self"), args.t("target"))), args.n("reduction", 1)),
  l1_loss: (args) => reduced(t.abs(t.sub(args.t("self"), args.t("target"))), args.n("reduction", 1)),
  upsample_nearest1d: (args) => nearest(args, 1, false),
  upsample_nearest2d: (args) => nearest(args, 2, false),
  upsample_nearest3d: (args) => nearest(args, 3, false),
  _upsample_nearest_exact2d: (args) => nearest(args, 2, true),
  upsample_linear1d: interpolated(1, false),
  upsample_bilinear2d: interpolated(2, false),
  upsample_trilinear3d: interpolated(3, false),
  upsample_bicubic2d: interpolated(2, true),
  grid_sampler: gridSample,
  grid_sampler_2d: gridSample,
  dropout,
  feature_dropout: (args) => {
    const x = args.t("input");
    const rate = args.n("p", 0.5);
    if (!args.flag("train", true) || rate === 0) return x;
    return t.mul(
      x,
      t.dropout(t.ones([...x.shape.slice(0, 2), ...x.shape.slice(2).map(() => 1)], x.dtype), rate, args.key()),
    );
  },
  native_dropout: nativeDropout,
  bernoulli: (args) => {
    const p = args.t("self");
    return t.cast(t.less(t.random.uniform(args.key(), p.shape, { dtype: p.dtype as FloatType }), p), p.dtype);
  },
  rand: drawn(t.random.uniform),
  rand_like: drawn(t.random.uniform),
  randn: drawn(t.random.normal),
  randn_like: drawn(t.random.normal),
};
