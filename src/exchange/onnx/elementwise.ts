/** @file Operators of one element: arithmetic, comparisons, logic, conversions, activations. */
import * as t from "../../api/functions.ts";
import type { OnnxElement } from "../../formats/onnx-tensor.ts";
import { isBool, isComputed, isFloat, isIndexType } from "../../kernel/dtype.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Call, Operator } from "./call.ts";
import { castType } from "./types.ts";
import { dtypeFor, type FloatChoice, Value } from "./value.ts";

/** i32 as numbers of fewer bits, which wrap around; those of 16 bits are i32 here. */
const NARROW: Readonly<Partial<Record<OnnxElement, (x: Tensor) => Tensor>>> = {
  uint8: (x) => t.bitwiseAnd(x, 0xff),
  int8: (x) => t.rightShift(t.leftShift(x, 24), 24),
  uint16: (x) => t.bitwiseAnd(x, 0xffff),
  int16: (x) => t.rightShift(t.leftShift(x, 16), 16),
};

/** A result of operands of a type; truth values of comparisons stay as they are. */
const wrapped = (x: Tensor, type: OnnxElement): Tensor => (isIndexType(x.dtype) ? (NARROW[type]?.(x) ?? x) : x);

export function converted(x: Tensor, type: OnnxElement, floats: FloatChoice): Value {
  const dtype = dtypeFor(type, floats, "a conversion");
  if (dtype === x.dtype) return Value.tensor("", type, x);
  const isWhole = !isFloat(x.dtype) && !isBool(x.dtype);
  const bits = isWhole ? (NARROW[type]?.(isComputed(x.dtype) ? x : t.cast(x, "i32")) ?? x) : x;
  return Value.tensor("", type, wrapped(t.cast(bits, dtype), type));
}

type Two = (a: Tensor, b: Tensor) => Tensor;

/** Before version 7 the second operand is aligned at an axis. */
function second(call: Call): Tensor {
  const b = call.x(1);
  const axis = call.attribute("axis");
  if (call.opset >= 7 || !axis) return b;
  const a = call.x(0);
  const behind = a.rank - call.axis(Number(axis.int), a.rank) - b.rank;
  return t.reshape(b, [...b.shape, ...new Array<number>(Math.max(0, behind)).fill(1)]);
}

const two =
  (of: Two): Operator =>
  (call) =>
    wrapped(of(call.x(0), second(call)), call.value(0).type);
const many =
  (of: Two): Operator =>
  (call) =>
    call.all().reduce(of);
const one =
  (of: (x: Tensor) => Tensor): Operator =>
  (call) =>
    of(call.x(0));

/** A function of floats, on what may be whole numbers. */
const asFloat = (x: Tensor, of: (x: Tensor) => Tensor): Tensor =>
  isFloat(x.dtype) ? of(x) : t.cast(of(t.cast(x, "f64")), x.dtype);

function power(call: Call): Tensor {
  const [x, given] = [call.x(0), second(call)];
  const { known } = call.value(1);
  if (known && known.values.length === 1 && isFloat(x.dtype)) {
    const shape = x.rank >= known.shape.length ? null : known.shape;
    const y = t.pow(x, Number(known.values[0]));
    return shape ? t.reshape(y, [...shape.slice(x.rank), ...y.shape]) : y;
  }
  if (isFloat(x.dtype)) return t.pow(x, t.cast(given, x.dtype));
  return t.cast(t.pow(t.cast(x, "f64"), t.cast(given, "f64")), x.dtype);
}

function clip(call: Call): Tensor {
  const x = call.x(0);
  const bound = (i: number, name: string): number | Tensor | null => {
    if (call.opset < 11) return call.attribute(name)?.float ?? null;
    const value = call.maybe(i);
    if (!value) return null;
    return value.known && value.known.values.length === 1 ? Number(value.known.values[0]) : value.tensor;
  };
  const [lo, hi] = [bound(1, "min"), bound(2, "max")];
  // mostly relu6, whose derivative is 0 at the bounds
  if (typeof lo === "number" && typeof hi === "number" && lo <= hi && isFloat(x.dtype)) return t.hardTanh(x, lo, hi);
  const raised = lo === null ? x : t.maximum(x, lo);
  return hi === null ? raised : t.minimum(raised, hi);
}

function isInfinite(call: Call): Tensor {
  const x = call.x(0);
  const [below, above] = [call.flag("detect_negative", true), call.flag("detect_positive", true)];
  if (below && above) return t.isinf(x);
  if (!below && !above) return t.full(x.shape, false);
  return t.equal(x, above ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY);
}

/** x/2 · (1 + erf(x / √2)). */
const geluExact = (x: Tensor): Tensor => t.mul(t.mul(x, 0.5), t.add(t.erf(t.mul(x, Math.SQRT1_2)), 1));

function shrink(call: Call): Tensor {
  const [lambda, bias] = [call.float("lambd", 0.5), call.float("bias", 0)];
  const x = call.x(0);
  return t.where(t.less(x, -lambda), t.add(x, bias), t.where(t.greater(x, lambda), t.sub(x, bias), t.zerosLike(x)));
}

function selu(call: Call): Tensor {
  const [alpha, gamma] = [call.float("alpha", 1.6732631921768188), call.float("gamma", 1.0507010221481323)];
  return t.mul(t.elu(call.x(0), alpha), gamma);
}

function shift(call: Call): Tensor {
  const [x, by] = [call.x(0), call.x(1)];
  return wrapped(
    call.text("direction", "LEFT") === "LEFT" ? t.leftShift(x, by) : t.rightShift(x, by),
    call.value(0).type,
  );
}

/** Slopes of one axis before version 7 are for channels. */
function prelu(call: Call): Tensor {
  const [x, slope] = [call.x(0), call.x(1)];
  const isChannel = slope.rank === 1 && x.rank > 2 && call.opset < 7;
  const shaped = isChannel ? t.reshape(slope, [-1, ...x.shape.slice(2).map(() => 1)]) : slope;
  return t.where(t.less(x, 0), t.mul(x, shaped), x);
}

/** A float or whole-number function that keeps its type; of whole numbers it is the same number. */
const whole = (of: (x: Tensor) => Tensor): Operator => one((x) => (isFloat(x.dtype) ? of(x) : x));

export const ELEMENTWISE: Readonly<Record<string, Operator>> = {
  Add: two(t.add),
  Sub: two(t.sub),
  Mul: two(t.mul),
  Div: two(t.div),
  Mod: (call) => wrapped((call.flag("fmod") ? t.fmod : t.remainder)(call.x(0), call.x(1)), call.value(0).type),
  Pow: power,
  Max: many(t.maximum),
  Min: many(t.minimum),
  Sum: many(t.add),
  Mean: (call) =>
    t.div(
      call.all().reduce((a, b) => t.add(a, b)),
      call.inputs.length,
    ),
  Neg: one(t.neg),
  Abs: one(t.abs),
  Sign: one(t.sign),
  Sqrt: one((x) => asFloat(x, t.sqrt)),
  Reciprocal: one((x) => t.div(1, x)),
  Floor: whole(t.floor),
  Ceil: whole(t.ceil),
  Round: whole(t.round),
  Exp: one(t.exp),
  Log: one(t.log),
  Erf: one(t.erf),
  Sin: one(t.sin),
  Cos: one(t.cos),
  Tan: one(t.tan),
  Asin: one(t.asin),
  Acos: one(t.acos),
  Atan: one(t.atan),
  Sinh: one(t.sinh),
  Cosh: one(t.cosh),
  Tanh: one(t.tanh),
  Asinh: one(t.asinh),
  Acosh: one(t.acosh),
  Atanh: one(t.atanh),
  Equal: two(t.equal),
  Less: two(t.less),
  Greater: two(t.greater),
  LessOrEqual: two(t.lessEqual),
  GreaterOrEqual: two(t.greaterEqual),
  And: two(t.logicalAnd),
  Or: two(t.logicalOr),
  Xor: two(t.logicalXor),
  Not: one(t.logicalNot),
  BitShift: shift,
  BitwiseAnd: two(t.bitwiseAnd),
  BitwiseOr: two(t.bitwiseOr),
  BitwiseXor: two(t.bitwiseXor),
  BitwiseNot: (call) => wrapped(t.bitwiseNot(call.x(0)), call.value(0).type),
  IsNaN: one(t.isnan),
  IsInf: isInfinite,
  Where: (call) => t.where(call.x(0), call.x(1), call.x(2)),
  Cast: (call) => converted(call.x(0), castType(call), call.around.floats),
  CastLike: (call) => converted(call.x(0), call.value(1).type, call.around.floats),
  Identity: (call) => call.value(0),
  Clip: clip,
  Relu: one((x) => (isFloat(x.dtype) ? t.relu(x) : t.maximum(x, 0))),
  LeakyRelu: (call) => t.leakyRelu(call.x(0), call.float("alpha", 0.01)),
  PRelu: prelu,
  Elu: (call) => t.elu(call.x(0), call.float("alpha", 1)),
  Celu: (call) => t.celu(call.x(0), call.float("alpha", 1)),
  Selu: selu,
  ThresholdedRelu: (call) => t.where(t.greater(call.x(0), call.float("alpha", 1)), call.x(0), t.zerosLike(call.x(0))),
  Sigmoid: one(t.sigmoid),
  HardSigmoid: (call) => t.clamp(t.add(t.mul(call.x(0), call.float("alpha", 0.2)), call.float("beta", 0.5)), 0, 1),
  HardSwish: one(t.hardSwish),
  Softplus: one((x) => t.softplus(x)),
  Softsign: one(t.softsign),
  Shrink: shrink,
  Gelu: (call) => (call.text("approximate", "none") === "tanh" ? t.gelu(call.x(0)) : geluExact(call.x(0))),
  Mish: one(t.mish),
  Swish: (call) => t.mul(call.x(0), t.sigmoid(t.mul(call.x(0), call.float("alpha", 1)))),
};
