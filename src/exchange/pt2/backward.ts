/**
 * @file ATen operations of backward passes, in programs of forward and backward: each is the derivative of the forward operation, which is
 * known here already.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { averagePool, maxPool } from "../shared/pooling.ts";
import type { Args, Operator, Value } from "./args.ts";
import { poolingOf } from "./networks.ts";

type Forward = (...x: Tensor[]) => Tensor;

/** Cotangents of some operands for that of the result. */
const pulled = (of: Forward, operands: readonly Tensor[], cotangent: Tensor): readonly Tensor[] =>
  t.vjp<Tensor[], Tensor>(of, ...operands)[1](cotangent);

/** Of one operand, `self` or `input`, with the cotangent `grad_output`. */
const ofOne =
  (of: (x: Tensor, args: Args) => Tensor, operand = "self"): Operator =>
  (args) =>
    at(
      pulled((x) => of(x as Tensor, args), [args.t(operand)], args.t("grad_output")),
      0,
    );

/** The derivative in terms of the result y. */
const ofResult =
  (slope: (y: Tensor) => Tensor): Operator =>
  (args) =>
    t.mul(args.t("grad_output"), slope(args.t("output")));

const CONV = [t.conv1d, t.conv2d, t.conv3d] as const;
const TRANSPOSED = [t.convTranspose1d, t.convTranspose2d, t.convTranspose3d] as const;

function convolution(args: Args): Value {
  const [x, w, g] = [args.t("input"), args.t("weight"), args.t("grad_output")];
  const axes = w.rank - 2;
  const options = {
    stride: args.perAxis("stride", axes, 1),
    padding: args.perAxis("padding", axes, 0),
    dilation: args.perAxis("dilation", axes, 1),
    groups: args.n("groups", 1),
  };
  const outputPadding = args.perAxis("output_padding", axes, 0);
  const of: Forward = (v, k) =>
    args.flag("transposed")
      ? at(TRANSPOSED, axes - 1)(v as Tensor, k as Tensor, { ...options, outputPadding })
      : at(CONV, axes - 1)(v as Tensor, k as Tensor, options);
  const [dx, dw] = pulled(of, [x, w], g);
  const others = g.shape.map((_, axis) => axis).filter((axis) => axis !== 1);
  return [dx as Tensor, dw as Tensor, t.sum(g, others)];
}

/** Weights that are not there count as ones, offsets as zeros. */
function affine(args: Args, of: (x: Tensor, w: Tensor, b: Tensor) => Tensor, shape: readonly number[]): Value {
  const [x, g] = [args.t("input"), args.t("grad_out")];
  const weight = args.maybe("weight") ?? t.ones(shape, x.dtype);
  return pulled(of as Forward, [x, weight, t.zeros(shape, x.dtype)], g) as Value;
}

function layerNorm(args: Args): Value {
  const { rank } = args.t("input");
  const shape = args.ns("normalized_shape");
  const axes = Array.from({ length: shape.length }, (_, k) => rank - shape.length + k);
  return affine(args, (x, w, b) => t.add(t.mul(t.layerNorm(x, { axes }), w), b), shape);
}

function groupNorm(args: Args): Value {
  const groups = args.n("group");
  return affine(args, (x, scale, offset) => t.groupNorm(x, groups, { scale, offset }), [at(args.t("input").shape, 1)]);
}

function embedding(args: Args): Tensor {
  const [g, indices] = [args.t("grad_output"), args.t("indices")];
  const width = at(g.shape, g.rank - 1);
  const table = t.zeros([args.n("num_weights"), width], g.dtype);
  return t.scatterAdd(table, t.reshape(indices, [-1]), t.reshape(g, [-1, width]));
}

/** y · (g - Σ y · g), and g - eʸ · Σ g of the logarithm. */
function softmax(args: Args, isLog: boolean): Tensor {
  const [g, y] = [args.t("grad_output"), args.t("output")];
  const axis = args.axis(args.n("dim"), y.rank);
  if (isLog) return t.sub(g, t.mul(t.exp(y), t.sum(g, axis, { keepDims: true })));
  const weighted = t.mul(y, g);
  return t.sub(weighted, t.mul(y, t.sum(weighted, axis, { keepDims: true })));
}

const geluExact = (x: Tensor): Tensor => t.mul(t.mul(x, 0.5), t.add(t.erf(t.mul(x, Math.SQRT1_2)), 1));

export const BACKWARD: Readonly<Record<string, Operator>> = {
  convolution_backward: convolution,
  native_layer_norm_backward: layerNorm,
  native_group_norm_backward: groupNorm,
  max_pool2d_with_indices_backward: ofOne((x, args) => maxPool(x, poolingOf(args, 2))),
  avg_pool2d_backward: ofOne((x, args) => averagePool(x, poolingOf(args, 2), args.flag("count_include_pad", true))),
  _adaptive_avg_pool2d_backward: ofOne((x, args) => t.adaptiveAvgPool(x, args.t("grad_output").shape.slice(-2))),
  embedding_dense_backward: embedding,
  _softmax_backward_data: (args) => softmax(args, false),
  _log_softmax_backward_data: (args) => softmax(args, true),
  threshold_backward: (args) => {
    const g = args.t("grad_output");
    return t.where(t.greater(args.t("self"), args.n("threshold", 0)), g, t.zerosLike(g));
  },
  hardtanh_backward: ofOne((x, args) => t.hardTanh(x, args.n("min_val", -1), args.n("max_val", 1))),
  gelu_backward: ofOne((x, args) => (args.text("approximate", "none") === "tanh" ? t.gelu(x) : geluExact(x))),
  silu_backward: ofOne((x) => t.silu(x)),
  leaky_relu_backward: ofOne((x, args) => t.leakyRelu(x, args.n("negative_slope", 0.01))),
  hardswish_backward: ofOne((x) => t.hardSwish(x)),
  hardsigmoid_backward: ofOne((x) => t.hardSigmoid(x)),
  sigmoid_backward: ofResult((y) => t.mul(y, t.sub(1, y))),
  tanh_backward: ofResult((y) => t.sub(1, t.square(y))),
};
