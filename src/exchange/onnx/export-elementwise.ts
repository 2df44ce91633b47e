/** @file Operations on elements as operators of ONNX: most have one, others are a few of them. */
import { at } from "../../base/invariant.ts";
import type { Node } from "../../ir/graph.ts";
import type { AnyOp } from "../../ir/op.ts";
import type { TensorType } from "../../ir/type.ts";
import { isBool, isComputed, isFloat, typeOf } from "../../kernel/dtype.ts";
import * as activations from "../../ops/activations.ts";
import * as ops from "../../ops/elementwise.ts";
import * as math from "../../ops/math.ts";
import * as remainder from "../../ops/remainder.ts";
import { cast, stopGradient, where, widen } from "../../ops/select.ts";
import * as special from "../../ops/special.ts";
import { codeFor, commonShape, type GraphWriter } from "./export-graph.ts";

/** Writes a node; a text says why that is not possible. */
export type ExportRule = (w: GraphWriter, node: Node) => string | undefined;

/** Operators applied to names: scalars become constants of the operands' type. */
interface Formula {
  (kind: string, ...operands: readonly (string | number)[]): string;
  readonly type: TensorType;
}

type Written = (f: Formula, x: readonly string[], node: Node) => string | null;

const elementwise =
  (write: Written, reason = "has no form for this element type"): ExportRule =>
  (w, node) => {
    const inputs = node.inputs.map((input) => w.loose(input));
    const { type } = at(node.inputs, node.inputs.length - 1);
    const call = (kind: string, ...operands: readonly (string | number)[]): string =>
      w.emit(
        kind,
        operands.map((operand) => (typeof operand === "number" ? w.scalar(type, operand) : operand)),
      );
    const before = w.nodes.length;
    const name = write(
      Object.assign(call, { type }),
      inputs.map((input) => input.name),
      node,
    );
    if (name === null) {
      w.nodes.length = before;
      return reason;
    }
    w.set(at(node.outputs, 0), { name, shape: commonShape(inputs.map(({ shape }) => shape)) });
    return undefined;
  };

/** One operator with the same operands. */
const same = (kind: string): ExportRule => elementwise((f, x) => f(kind, ...x));

const onFloats =
  (write: Written): Written =>
  (f, x, node) =>
    isFloat(f.type.dtype) ? write(f, x, node) : null;

const one = (x: readonly string[]): string => at(x, 0);

/** e^x - 1 without loss near zero: tanh(x / 2)·(e^x + 1). */
const expm1 = (f: Formula, x: string): string => f("Mul", f("Tanh", f("Mul", x, 0.5)), f("Add", f("Exp", x), 1));

/** log(1 + x) without loss near zero: with u = 1 + x, x·log(u) / (u - 1), and x where u is 1. */
function log1p(f: Formula, x: string): string {
  const u = f("Add", x, 1);
  const isOne = f("Equal", u, 1);
  const below = f("Where", isOne, 1, f("Sub", u, 1));
  return f("Where", isOne, x, f("Div", f("Mul", x, f("Log", u)), below));
}

/** The rest with the sign of the divisor. */
function remainderOf(f: Formula, a: string, b: string): string {
  const rest = isFloat(f.type.dtype) ? null : f("Mod", a, b);
  if (rest !== null) return rest;
  return f("Sub", a, f("Mul", f("Floor", f("Div", a, b)), b));
}

const bits = (kind: string): ExportRule =>
  elementwise((f, x) => (isBool(f.type.dtype) ? f(kind, ...x) : null), "has a form for bool only");

/** Whole numbers of few bits saturate here, and wrap around in ONNX. */
const conversion: ExportRule = (w, node) => {
  const [from, to] = [at(node.inputs, 0), at(node.outputs, 0)];
  const { dtype } = to.type;
  const [own, wanted] = [typeOf(from.type.dtype), typeOf(dtype)];
  const narrows = !isFloat(dtype) && !isBool(dtype) && !isComputed(dtype) && !isBool(from.type.dtype);
  const { name, shape } = w.loose(from);
  // bounds that no number of the operand's type passes are left out
  const bounds = [wanted.lowest, wanted.highest].map((end) => {
    const isInside = own.lowest < end && end < own.highest;
    return narrows && isInside ? w.scalar(from.type, end) : "";
  });
  const held = bounds.some((bound) => bound !== "") ? w.emit("Clip", [name, ...bounds]) : name;
  w.set(to, { name: w.emit("Cast", [held], { to: { int: codeFor(dtype) } }), shape });
  return undefined;
};

/** Comparisons of bools are those of numbers. */
const comparison = (kind: string): ExportRule => elementwise((f, x) => f(kind, ...x));

export const ELEMENTWISE: ReadonlyMap<AnyOp, ExportRule> = new Map<AnyOp, ExportRule>([
  [ops.add, same("Add")],
  [ops.sub, same("Sub")],
  [ops.mul, same("Mul")],
  [ops.div, same("Div")],
  [ops.neg, same("Neg")],
  [ops.abs, same("Abs")],
  [ops.sign, same("Sign")],
  [ops.square, elementwise((f, x) => f("Mul", one(x), one(x)))],
  [ops.sqrt, same("Sqrt")],
  [ops.floor, same("Floor")],
  [ops.ceil, same("Ceil")],
  [ops.round, same("Round")],
  [ops.min, same("Min")],
  [ops.max, same("Max")],
  [
    ops.clamp,
    elementwise((f, x, { attrs }) => f("Clip", one(x), (attrs as ops.ClampAttrs).min, (attrs as ops.ClampAttrs).max)),
  ],
  [ops.relu, same("Relu")],
  [ops.eq, comparison("Equal")],
  [ops.ne, elementwise((f, x) => f("Not", f("Equal", ...x)))],
  [ops.lt, comparison("Less")],
  [ops.le, comparison("LessOrEqual")],
  [ops.gt, comparison("Greater")],
  [ops.ge, comparison("GreaterOrEqual")],
  [ops.isnan, same("IsNaN")],
  [ops.and, bits("And")],
  [ops.or, bits("Or")],
  [ops.xor, bits("Xor")],
  [ops.not, bits("Not")],
  [math.exp, same("Exp")],
  [math.expm1, elementwise((f, x) => expm1(f, one(x)))],
  [math.log, same("Log")],
  [math.log1p, elementwise((f, x) => log1p(f, one(x)))],
  [math.sin, same("Sin")],
  [math.cos, same("Cos")],
  [math.tan, same("Tan")],
  [math.tanh, same("Tanh")],
  [math.sigmoid, same("Sigmoid")],
  [math.erf, same("Erf")],
  [math.rsqrt, elementwise((f, x) => f("Reciprocal", f("Sqrt", one(x))))],
  [
    math.gelu,
    elementwise((f, [x = ""]) => {
      const cube = f("Mul", f("Mul", f("Mul", x, x), x), 0.044715);
      const inner = f("Tanh", f("Mul", f("Add", x, cube), Math.sqrt(2 / Math.PI)));
      return f("Mul", f("Mul", x, 0.5), f("Add", inner, 1));
    }),
  ],
  [math.silu, elementwise((f, x) => f("Mul", one(x), f("Sigmoid", one(x))))],
  [math.softplus, same("Softplus")],
  [math.pow, same("Pow")],
  [special.exp2, elementwise((f, x) => f("Pow", 2, one(x)))],
  [special.log2, elementwise((f, x) => f("Mul", f("Log", one(x)), Math.LOG2E))],
  [special.log10, elementwise((f, x) => f("Mul", f("Log", one(x)), Math.LOG10E))],
  [special.cbrt, elementwise((f, x) => f("Mul", f("Sign", one(x)), f("Pow", f("Abs", one(x)), 1 / 3)))],
  [special.asin, same("Asin")],
  [special.acos, same("Acos")],
  [special.atan, same("Atan")],
  [special.sinh, same("Sinh")],
  [special.cosh, same("Cosh")],
  [special.asinh, same("Asinh")],
  [special.acosh, same("Acosh")],
  [special.atanh, same("Atanh")],
  [special.erfc, elementwise((f, x) => f("Sub", 1, f("Erf", one(x))))],
  [
    activations.elu,
    elementwise((f, [x = ""], { attrs }) => {
      const { alpha, scale, rate } = attrs as activations.EluAttrs;
      const below = f("Mul", expm1(f, f("Mul", f("Min", x, 0), rate)), scale * alpha);
      return f("Where", f("Greater", x, 0), f("Mul", x, scale), below);
    }),
  ],
  [activations.mish, elementwise((f, x) => f("Mul", one(x), f("Tanh", f("Softplus", one(x)))))],
  [activations.softsign, same("Softsign")],
  [activations.logSigmoid, elementwise((f, x) => f("Neg", f("Softplus", f("Neg", one(x)))))],
  [activations.hardSwish, same("HardSwish")],
  [remainder.trunc, elementwise((f, x) => f("Mul", f("Sign", one(x)), f("Floor", f("Abs", one(x)))))],
  [
    remainder.fmod,
    (w, node) => {
      const inputs = node.inputs.map((input) => w.loose(input));
      const name = w.emit(
        "Mod",
        inputs.map((input) => input.name),
        { fmod: { int: 1 } },
      );
      w.set(at(node.outputs, 0), { name, shape: commonShape(inputs.map(({ shape }) => shape)) });
      return undefined;
    },
  ],
  [remainder.remainder, elementwise((f, x) => remainderOf(f, one(x), at(x, 1)))],
  [
    remainder.floorDiv,
    elementwise(
      onFloats((f, x) => f("Floor", f("Div", ...x))),
      "has a form for floats only",
    ),
  ],
  [where, same("Where")],
  [cast, conversion],
  [widen, conversion],
  [
    stopGradient,
    (w, node) => {
      w.set(at(node.outputs, 0), w.loose(at(node.inputs, 0)));
      return undefined;
    },
  ],
]);
