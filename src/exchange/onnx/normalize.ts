/** @file Normalisations, products, losses. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Call, Operator, Result } from "./call.ts";
import { isBoolElement } from "./value.ts";

const perChannel = (v: Tensor, x: Tensor): Tensor => t.reshape(v, [-1, ...x.shape.slice(2).map(() => 1)]);

function batchNorm(call: Call): readonly Result[] {
  const x = call.x(0);
  const [scale, offset, mean, variance] = [1, 2, 3, 4].map((i) => call.x(i)) as [Tensor, Tensor, Tensor, Tensor];
  const eps = call.float("epsilon", 1e-5);
  const isTraining = call.opset >= 14 ? call.flag("training_mode") : call.opset < 7 && !call.flag("is_test");
  if (!isTraining) return [t.batchNorm(x, { scale, offset, mean, variance, eps }).y];
  const made = t.batchNorm(x, { scale, offset, eps });
  const momentum = call.float("momentum", 0.9);
  const blended = (old: Tensor, now: Tensor): Tensor => t.add(t.mul(old, momentum), t.mul(now, 1 - momentum));
  return [made.y, blended(mean, made.mean), blended(variance, made.variance)];
}

function instanceNorm(call: Call): Tensor {
  const x = call.x(0);
  const eps = call.float("epsilon", 1e-5);
  const axes = x.shape.slice(2).map((_, k) => k + 2);
  const y = t.layerNorm(x, { axes, eps });
  return t.add(t.mul(y, perChannel(call.x(1), x)), perChannel(call.x(2), x));
}

function layerNorm(call: Call): readonly Result[] {
  const x = call.x(0);
  const first = call.axis(call.int("axis", -1), x.rank);
  const axes = x.shape.map((_, axis) => axis).slice(first);
  const eps = call.float("epsilon", 1e-5);
  const y = t.mul(t.layerNorm(x, { axes, eps }), call.x(1));
  const moved = call.has(2) ? t.add(y, call.x(2)) : y;
  if (call.node.outputs.length < 2) return [moved];
  const mean = t.mean(x, axes, { keepDims: true });
  return [moved, mean, t.rsqrt(t.add(t.mean(t.square(t.sub(x, mean)), axes, { keepDims: true }), eps))];
}

function groupNorm(call: Call): Tensor {
  const x = call.x(0);
  const groups = call.int("num_groups", 1);
  const y = t.groupNorm(x, groups, { eps: call.float("epsilon", 1e-5) });
  const channels = at(x.shape, 1);
  // of version 18 scale and bias are for groups
  const wide = (v: Tensor): Tensor => (v.elements === channels ? v : t.repeat(v, channels / groups));
  return t.add(t.mul(y, perChannel(wide(call.x(1)), x)), perChannel(wide(call.x(2)), x));
}

function rmsNorm(call: Call): Tensor {
  const x = call.x(0);
  const first = call.axis(call.int("axis", -1), x.rank);
  const axes = x.shape.map((_, axis) => axis).slice(first);
  return t.mul(t.rmsNorm(x, { axes, eps: call.float("epsilon", 1e-5) }), call.x(1));
}

function meanVariance(call: Call): Tensor {
  const x = call.x(0);
  const axes = call.ints("axes") ?? [0, 2, 3];
  const moved = t.sub(x, t.mean(x, axes, { keepDims: true }));
  const deviation = t.sqrt(t.mean(t.square(moved), axes, { keepDims: true }));
  return t.div(moved, t.add(deviation, 1e-9));
}

function gemm(call: Call): Tensor {
  const [alpha, beta] = [call.float("alpha", 1), call.float("beta", 1)];
  const product = t.matmul(call.x(0), call.x(1), { ta: call.flag("transA"), tb: call.flag("transB") });
  const scaled = alpha === 1 ? product : t.mul(product, alpha);
  if (!call.has(2)) return scaled;
  return t.add(scaled, beta === 1 ? call.x(2) : t.mul(call.x(2), beta));
}

// ---- losses -------------------------------------------------------------------------------------------------------

/** -Σ w · log p of the target classes, along axis 1. */
function likelihood(call: Call, logs: Tensor, i: number): Tensor {
  const targets = call.x(i);
  const classes = at(logs.shape, 1);
  const ignored = call.attribute("ignore_index");
  const isIgnored = ignored ? t.equal(targets, Number(ignored.int)) : null;
  const safe = isIgnored ? t.where(isIgnored, 0, targets) : targets;
  const chosen = t.squeeze(t.gather(logs, t.expandDims(safe, 1), 1), 1);
  const given = call.has(i + 1) ? t.take(call.x(i + 1), safe) : t.onesLike(chosen);
  const weights = isIgnored ? t.where(isIgnored, 0, given) : given;
  if (classes === 0) call.fail("there are no classes");
  const losses = t.neg(t.mul(chosen, weights));
  switch (call.text("reduction", "mean")) {
    case "none":
      return losses;
    case "sum":
      return t.sum(losses);
    default:
      return t.div(t.sum(losses), t.sum(weights));
  }
}

function crossEntropy(call: Call): readonly Result[] {
  const logs = t.logSoftmax(call.x(0), 1);
  return [likelihood(call, logs, 1), logs];
}

// ---- attention ----------------------------------------------------------------------------------------------------

/** [batch, length, heads · width] → [batch, heads, length, width]. */
function heads(x: Tensor, count: number): Tensor {
  if (x.rank === 4) return x;
  const [batch, length, width] = x.shape as [number, number, number];
  return t.transpose(t.reshape(x, [batch, length, count, width / count]), [0, 2, 1, 3]);
}

/** Repeats the heads of keys and values that several heads of queries share. */
function shared(x: Tensor, count: number): Tensor {
  const own = at(x.shape, 1);
  return own === count ? x : t.repeat(x, count / own, 1);
}

function attention(call: Call): Tensor {
  if (call.has(4) || call.has(5) || call.node.outputs.slice(1).some((name) => name !== "")) {
    call.fail("past keys and values, or further results", "export the model without a cache of keys and values");
  }
  const [first, keys, values] = [call.x(0), call.x(1), call.x(2)];
  const q = heads(first, call.int("q_num_heads", 1));
  const [k, v] = [keys, values].map((x) => shared(heads(x, call.int("kv_num_heads", 1)), at(q.shape, 1))) as [
    Tensor,
    Tensor,
  ];
  const scale = call.float("scale", 1 / Math.sqrt(at(q.shape, 3)));
  const raw = t.mul(t.matmul(q, k, { tb: true }), scale);
  const cap = call.float("softcap", 0);
  const capped = cap > 0 ? t.mul(t.tanh(t.div(raw, cap)), cap) : raw;
  const y = t.matmul(t.softmax(masked(call, capped)), v);
  if (first.rank === 4) return y;
  const [batch, count, length, width] = y.shape as [number, number, number, number];
  return t.reshape(t.transpose(y, [0, 2, 1, 3]), [batch, length, count * width]);
}

function masked(call: Call, scores: Tensor): Tensor {
  const [rows, columns] = scores.shape.slice(-2) as [number, number];
  const causal = call.flag("is_causal")
    ? t.where(t.tril(t.ones([rows, columns], scores.dtype)).greater(0), scores, Number.NEGATIVE_INFINITY)
    : scores;
  if (!call.has(3)) return causal;
  const mask = call.value(3);
  return isBoolElement(mask.type) ? t.where(mask.tensor, causal, Number.NEGATIVE_INFINITY) : t.add(causal, mask.tensor);
}

export const NORMALIZATIONS: Readonly<Record<string, Operator>> = {
  BatchNormalization: batchNorm,
  InstanceNormalization: instanceNorm,
  LayerNormalization: layerNorm,
  GroupNormalization: groupNorm,
  RMSNormalization: rmsNorm,
  MeanVarianceNormalization: meanVariance,
  MatMul: (call) => t.matmul(call.x(0), call.x(1)),
  Gemm: gemm,
  Einsum: (call) => t.einsum(call.text("equation", "").replaceAll(/\s/g, ""), ...call.all()),
  Det: (call) => t.linalg.det(call.x(0)),
  NegativeLogLikelihoodLoss: (call) => likelihood(call, call.x(0), 1),
  SoftmaxCrossEntropyLoss: crossEntropy,
  Attention: attention,
};
