/** @file ATen operations of one element: arithmetic, comparisons, functions, activations. Forms that change their operand are the same functions. */
import * as t from "../../api/functions.ts";
import { isBool, isFloat } from "../../kernel/dtype.ts";
import { Tensor } from "../../trace/tensor.ts";
import type { Args, Operator } from "./args.ts";
import { as, floats, pair } from "./promote.ts";

type Two = (a: Tensor, b: Tensor | number) => Tensor;

const one =
  (of: (x: Tensor) => Tensor): Operator =>
  (args) =>
    of(args.t("self"));
const float =
  (of: (x: Tensor) => Tensor): Operator =>
  (args) =>
    of(floats(args.t("self")));
const whole = (of: (x: Tensor) => Tensor): Operator => one((x) => (isFloat(x.dtype) ? of(x) : x));
const two =
  (of: Two): Operator =>
  (args) =>
    of(...pair(args));

/** a ± alpha · b. */
const scaled =
  (of: Two): Operator =>
  (args) => {
    const [a, b] = pair(args);
    const alpha = args.n("alpha", 1);
    if (alpha === 1) return of(a, b);
    return of(a, typeof b === "number" ? b * alpha : t.mul(b, alpha));
  };

function divide(args: Args): Tensor {
  const [a, b] = pair(args);
  const mode = args.text("rounding_mode", "");
  if (mode === "floor") return t.floorDiv(a, b);
  if (mode === "trunc") return isFloat(a.dtype) ? t.trunc(t.div(a, b)) : t.div(a, b);
  const x = floats(a);
  return t.div(x, b instanceof Tensor ? floats(b) : b);
}

function power(args: Args): Tensor {
  const base = args.either("self");
  const exponent = args.either("exponent");
  if (base instanceof Tensor && typeof exponent === "number") {
    const isWhole = !isFloat(base.dtype) && !args.isFloat("exponent");
    return isWhole ? as(t.round(t.pow(t.cast(base, "f64"), exponent)), base.dtype) : t.pow(floats(base), exponent);
  }
  const [a, b] = pair(args, "self", "exponent");
  return t.pow(floats(a), b instanceof Tensor ? floats(b) : b);
}

function clamp(args: Args): Tensor {
  const x = args.t("self");
  const bound = (name: string): Tensor | number | null => (args.has(name) ? args.either(name) : null);
  const [lo, hi] = [bound("min"), bound("max")];
  if (typeof lo === "number" && typeof hi === "number" && lo <= hi) return t.clamp(x, lo, hi);
  const raised = lo === null ? x : t.maximum(x, lo);
  return hi === null ? raised : t.minimum(raised, hi);
}

function where(args: Args): Tensor {
  const condition = args.t("condition");
  const [a, b] = pair(args);
  return t.where(isBool(condition.dtype) ? condition : t.notEqual(condition, 0), a, b);
}

/** Bools by logic, whole numbers by bits. */
const bits = (ofBits: Two): Operator =>
  two((a, b) => ofBits(a, typeof b === "number" && isBool(a.dtype) ? t.full([], b !== 0) : b));

const truth = (x: Tensor): Tensor => (isBool(x.dtype) ? x : t.notEqual(x, 0));
const logic =
  (of: (a: Tensor, b: Tensor) => Tensor): Operator =>
  (args) =>
    of(truth(args.t("self")), truth(args.t("other")));

/** x/2 · (1 + erf(x / √2)). */
const geluExact = (x: Tensor): Tensor => t.mul(t.mul(x, 0.5), t.add(t.erf(t.mul(x, Math.SQRT1_2)), 1));

export const POINTWISE: Readonly<Record<string, Operator>> = {
  add: scaled(t.add),
  sub: scaled(t.sub),
  rsub: (args) => {
    const [a, b] = pair(args);
    return t.sub(b, t.mul(a, args.n("alpha", 1)));
  },
  mul: two((a, b) => (isBool(a.dtype) && b instanceof Tensor ? t.logicalAnd(a, b) : t.mul(a, b))),
  div: divide,
  true_divide: divide,
  floor_divide: two(t.floorDiv),
  remainder: two(t.remainder),
  fmod: two(t.fmod),
  pow: power,
  maximum: two(t.maximum),
  minimum: two(t.minimum),
  atan2: two(t.atan2),
  eq: two(t.equal),
  ne: two(t.notEqual),
  lt: two(t.less),
  le: two(t.lessEqual),
  gt: two(t.greater),
  ge: two(t.greaterEqual),
  bitwise_and: bits(t.bitwiseAnd),
  __and__: bits(t.bitwiseAnd),
  bitwise_or: bits(t.bitwiseOr),
  __or__: bits(t.bitwiseOr),
  bitwise_xor: bits(t.bitwiseXor),
  bitwise_not: one(t.bitwiseNot),
  bitwise_left_shift: two(t.leftShift),
  bitwise_right_shift: two(t.rightShift),
  __lshift__: two(t.leftShift),
  __rshift__: two(t.rightShift),
  logical_and: logic(t.logicalAnd),
  logical_or: logic(t.logicalOr),
  logical_xor: logic(t.logicalXor),
  logical_not: one((x) => t.logicalNot(truth(x))),
  where,
  masked_fill: (args) => {
    const [x, mask, value] = [args.t("self"), args.t("mask"), args.either("value")];
    return t.where(mask, value instanceof Tensor ? as(value, x.dtype) : value, x);
  },
  clamp,
  clip: clamp,
  clamp_min: (args) => t.maximum(args.t("self"), args.either("min")),
  clamp_max: (args) => t.minimum(args.t("self"), args.either("max")),
  neg: one(t.neg),
  abs: one(t.abs),
  sign: one(t.sign),
  sgn: one(t.sign),
  floor: whole(t.floor),
  ceil: whole(t.ceil),
  round: whole(t.round),
  trunc: whole(t.trunc),
  exp: float(t.exp),
  exp2: float(t.exp2),
  expm1: float(t.expm1),
  log: float(t.log),
  log1p: float(t.log1p),
  log2: float(t.log2),
  log10: float(t.log10),
  sqrt: float(t.sqrt),
  rsqrt: float(t.rsqrt),
  square: one(t.square),
  reciprocal: float((x) => t.div(1, x)),
  sin: float(t.sin),
  cos: float(t.cos),
  tan: float(t.tan),
  asin: float(t.asin),
  acos: float(t.acos),
  atan: float(t.atan),
  sinh: float(t.sinh),
  cosh: float(t.cosh),
  tanh: float(t.tanh),
  asinh: float(t.asinh),
  acosh: float(t.acosh),
  atanh: float(t.atanh),
  erf: float(t.erf),
  erfc: float(t.erfc),
  lgamma: float(t.lgamma),
  digamma: float(t.digamma),
  isnan: (args) => (isFloat(args.t("self").dtype) ? t.isnan(args.t("self")) : t.full(args.t("self").shape, false)),
  isinf: (args) => (isFloat(args.t("self").dtype) ? t.isinf(args.t("self")) : t.full(args.t("self").shape, false)),
  isfinite: one(t.isfinite),
  sigmoid: float(t.sigmoid),
  relu: one((x) => (isFloat(x.dtype) ? t.relu(x) : t.maximum(x, 0))),
  relu6: one(t.relu6),
  silu: one(t.silu),
  mish: one(t.mish),
  gelu: (args) => (args.text("approximate", "none") === "tanh" ? t.gelu(args.t("self")) : geluExact(args.t("self"))),
  leaky_relu: (args) => t.leakyRelu(args.t("self"), args.n("negative_slope", 0.01)),
  prelu: (args) => {
    const [x, slope] = [args.t("self"), args.t("weight")];
    const shaped = slope.elements > 1 && x.rank > 1 ? t.reshape(slope, [-1, ...x.shape.slice(2).map(() => 1)]) : slope;
    return t.where(t.less(x, 0), t.mul(x, shaped), x);
  },
  elu: (args) => {
    const [x, alpha] = [args.t("self"), args.n("alpha", 1)];
    const [scale, inputScale] = [args.n("scale", 1), args.n("input_scale", 1)];
    const y = t.elu(inputScale === 1 ? x : t.where(t.greater(x, 0), x, t.mul(x, inputScale)), alpha);
    return scale === 1 ? y : t.mul(y, scale);
  },
  selu: one(t.selu),
  celu: (args) => t.celu(args.t("self"), args.n("alpha", 1)),
  hardtanh: (args) => t.hardTanh(args.t("self"), args.n("min_val", -1), args.n("max_val", 1)),
  hardsigmoid: one(t.hardSigmoid),
  hardswish: one(t.hardSwish),
  softplus: (args) => t.softplus(args.t("self"), { beta: args.n("beta", 1), threshold: args.n("threshold", 20) }),
  logit: float((x) => t.log(t.div(x, t.sub(1, x)))),
  log_sigmoid: one(t.logSigmoid),
  threshold: (args) => {
    const x = args.t("self");
    return t.where(t.greater(x, args.n("threshold")), x, args.n("value"));
  },
  lerp: (args) => t.add(args.t("self"), t.mul(t.sub(args.t("end"), args.t("self")), args.either("weight"))),
  addcmul: (args) => t.add(args.t("self"), t.mul(t.mul(args.t("tensor1"), args.t("tensor2")), args.n("value", 1))),
  addcdiv: (args) => t.add(args.t("self"), t.mul(t.div(args.t("tensor1"), args.t("tensor2")), args.n("value", 1))),
};
