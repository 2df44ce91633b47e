/**
 * @file Arithmetic, one element at a time. Each derivative has its formula above it. Partials prefer the output y to the
 * input x where either would do: y usually lives anyway.
 *
 * Simplifications keep every bit of every number, signed zeros and infinities included; a NaN stays a NaN. So x + 0 is
 * not x (it turns -0 into 0), but x + -0 and x - 0 are.
 */
import { roundHalfEven } from "../base/special.ts";
import type { Build } from "../ir/build.ts";
import type { OpFacts } from "../ir/facts.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { isBool, isFloat } from "../kernel/dtype.ts";
import { call, compare, constant, type Expr } from "../kernel/expr.ts";
import { fullLike, splatOf } from "./create.ts";
import { apply, elementwise, inputsIfMadeBy } from "./define.ts";
import { inLongs, mulIn } from "./reference.ts";
import { where } from "./select.ts";

const one = (x: Expr): Expr => constant(x.dtype, 1);
const zero = (x: Expr): Expr => constant(x.dtype, 0);
const arg = (x: readonly Expr[], i: number): Expr => x[i] as Expr;
const num = (x: readonly number[], i: number): number => x[i] as number;
const val = (x: readonly Value[], i: number): Value => x[i] as Value;

// ---- helpers of simplifications ----------------------------------------------------------------------------------

/** Whether a value is `c` throughout; 0 and -0 are different. */
const isSplat = (b: Build, v: Value, c: number): boolean => Object.is(splatOf(b, v), c);

/** The identity of addition: -0 for floats. */
const neutralZero = (v: Value): number => (isFloat(v.type.dtype) ? -0 : 0);

/** The only input of the node that made a value, if that is `op`. */
function under(b: Build, op: OpDef<NoAttrs>, v: Value): Value | null {
  return inputsIfMadeBy(b, v, op)?.[0] ?? null;
}

/** Plus or minus a power of two whose inverse is a normal number of every float type. */
function isPowerOfTwo(c: number): boolean {
  const exponent = Math.round(Math.log2(Math.abs(c)));
  return Math.abs(exponent) <= 126 && 2 ** exponent === Math.abs(c);
}

/** f(f(x)) = f(x), and likewise after the other functions given. */
const idempotent =
  (...after: readonly (() => OpDef<NoAttrs>)[]) =>
  (b: Build, node: Node): Value | null => {
    const x = val(node.inputs, 0);
    return after.some((op) => under(b, op(), x)) ? x : null;
  };

/** f(x, x) = x */
const ofEqual = (node: Node): Value | null => (node.inputs[0] === node.inputs[1] ? val(node.inputs, 0) : null);

// ---- arithmetic --------------------------------------------------------------------------------------------------

const INFINITE = Number.POSITIVE_INFINITY;

export const add: OpDef<NoAttrs> = elementwise("add", {
  inputs: 2,
  domain: "number",
  partials: ["one", "one"],
  scalar: (x) => call("add", x),
  reference: (x) => num(x, 0) + num(x, 1),
  exactInDouble: true,
  facts: {
    coefficients: [1, 1],
    absorbs: [
      { operand: 0, value: -INFINITE, unless: [INFINITE] },
      { operand: 1, value: -INFINITE, unless: [INFINITE] },
    ],
  },
  simplify(b, node) {
    const x = val(node.inputs, 0);
    const y = val(node.inputs, 1);
    if (isSplat(b, y, neutralZero(y))) return x;
    if (isSplat(b, x, neutralZero(x))) return y;
    // x + -y = x - y, also in the sign of zero
    const minusY = under(b, neg, y);
    if (minusY) return apply(b, sub, x, minusY);
    const minusX = under(b, neg, x);
    return minusX && apply(b, sub, y, minusX);
  },
});

export const sub: OpDef<NoAttrs> = elementwise("sub", {
  inputs: 2,
  domain: "number",
  partials: ["one", "minus_one"],
  scalar: (x) => call("sub", x),
  reference: (x) => num(x, 0) - num(x, 1),
  exactInDouble: true,
  facts: { coefficients: [1, -1], absorbs: [{ operand: 0, value: -INFINITE, unless: [-INFINITE] }] },
  simplify(b, node) {
    const x = val(node.inputs, 0);
    const y = val(node.inputs, 1);
    // x - 0 = x; -0 - y = -y; x - -y = x + y
    if (isSplat(b, y, 0)) return x;
    if (isSplat(b, x, neutralZero(x))) return apply(b, neg, y);
    const minusY = under(b, neg, y);
    return minusY && apply(b, add, x, minusY);
  },
});

export const mul: OpDef<NoAttrs> = elementwise("mul", {
  inputs: 2,
  domain: "number",
  partials: [(_, x) => val(x, 1), (_, x) => val(x, 0)],
  scalar: (x) => call("mul", x),
  reference: (x) => num(x, 0) * num(x, 1),
  integer: (x, dtype) => mulIn(dtype, num(x, 0), num(x, 1)),
  exactInDouble: true,
  facts: {
    isProduct: true,
    absorbs: [
      { operand: 0, value: 0, unless: [-INFINITE, INFINITE] },
      { operand: 1, value: 0, unless: [-INFINITE, INFINITE] },
    ],
  },
  simplify(b, node) {
    const x = val(node.inputs, 0);
    const y = val(node.inputs, 1);
    if (isSplat(b, y, 1)) return x;
    if (isSplat(b, x, 1)) return y;
    if (isSplat(b, y, -1)) return apply(b, neg, x);
    if (isSplat(b, x, -1)) return apply(b, neg, y);
    const minusX = under(b, neg, x);
    const minusY = under(b, neg, y);
    return minusX && minusY && apply(b, mul, minusX, minusY);
  },
});

export const div: OpDef<NoAttrs> = elementwise("div", {
  inputs: 2,
  domain: "number",
  // ∂(a/b)/∂a = 1/b, ∂(a/b)/∂b = -y/b
  partials: [
    (b, x) => apply(b, div, fullLike(b, val(x, 1), 1), val(x, 1)),
    (b, x, y) => apply(b, neg, apply(b, div, y, val(x, 1))),
  ],
  scalar: (x) => call("div", x),
  reference: (x) => num(x, 0) / num(x, 1),
  range: [
    [-2, 2],
    [1, 3],
  ],
  exactInDouble: true,
  facts: { absorbs: [{ operand: 0, value: 0, unless: [0] }], linearIn: [0], torchReads: [[1], [0, 1]] },
  simplify(b, node) {
    const x = val(node.inputs, 0);
    const c = splatOf(b, val(node.inputs, 1));
    if (c === 1) return x;
    if (c === null || !isFloat(x.type.dtype)) return null;
    if (c === -1) return apply(b, neg, x);
    // Both sides are the same real number, rounded once.
    return isPowerOfTwo(c) ? apply(b, mul, x, fullLike(b, x, 1 / c)) : null;
  },
});

export const neg: OpDef<NoAttrs> = elementwise("neg", {
  inputs: 1,
  domain: "number",
  partials: ["minus_one"],
  scalar: (x) => call("neg", x),
  reference: (x) => -num(x, 0),
  exactInDouble: true,
  facts: { coefficients: [-1] },
  simplify: (b, node) => under(b, neg, val(node.inputs, 0)),
});

/** 1 above zero, -1 below, else 0: by comparisons alone, so that backward needs two bits of x and not x. */
function signBySides(b: Build, x: Value): Value {
  const zeros = fullLike(b, x, 0);
  const below = apply(b, where, apply(b, lt, x, zeros), fullLike(b, x, -1), zeros);
  return apply(b, where, apply(b, gt, x, zeros), fullLike(b, x, 1), below);
}

export const abs: OpDef<NoAttrs> = elementwise("abs", {
  inputs: 1,
  domain: "number",
  partials: [(b, x) => signBySides(b, val(x, 0))],
  scalar: (x) => call("abs", x),
  reference: (x) => Math.abs(num(x, 0)),
  exactInDouble: true,
  simplify(b, node) {
    const x = val(node.inputs, 0);
    if (under(b, abs, x)) return x;
    const minusX = under(b, neg, x);
    return minusX && apply(b, abs, minusX);
  },
});

export const sign: OpDef<NoAttrs> = elementwise("sign", {
  inputs: 1,
  domain: "number",
  partials: ["zero"],
  // x > 0 → 1, x < 0 → -1, else x itself (0, -0, NaN)
  scalar: ([x]) => {
    const v = x as Expr;
    const below = call("pick", [compare("lt", v, zero(v)), constant(v.dtype, -1), v]);
    return call("pick", [compare("lt", zero(v), v), one(v), below]);
  },
  reference: (x) => Math.sign(num(x, 0)),
  exactInDouble: true,
  simplify: idempotent(() => sign),
});

export const square: OpDef<NoAttrs> = elementwise("square", {
  inputs: 1,
  domain: "number",
  partials: [(b, x) => apply(b, add, val(x, 0), val(x, 0))],
  scalar: ([x]) => call("mul", [x as Expr, x as Expr]),
  reference: (x) => num(x, 0) ** 2,
  integer: (x, dtype) => mulIn(dtype, num(x, 0), num(x, 0)),
  exactInDouble: true,
  simplify(b, node) {
    const x = under(b, neg, val(node.inputs, 0)) ?? under(b, abs, val(node.inputs, 0));
    return x && apply(b, square, x);
  },
});

export const sqrt: OpDef<NoAttrs> = elementwise("sqrt", {
  inputs: 1,
  domain: "float",
  // y' = 1/2 / y
  partials: [(b, _, y) => apply(b, div, fullLike(b, y, 0.5), y)],
  scalar: (x) => call("sqrt", x),
  reference: (x) => Math.sqrt(num(x, 0)),
  flops: 4,
  range: [0.2, 3],
  exactInDouble: true,
});

export const floor: OpDef<NoAttrs> = elementwise("floor", {
  inputs: 1,
  domain: "float",
  partials: ["zero"],
  scalar: (x) => call("floor", x),
  reference: (x) => Math.floor(num(x, 0)),
  exactInDouble: true,
  simplify: idempotent(
    () => floor,
    () => ceil,
    () => round,
  ),
});

export const ceil: OpDef<NoAttrs> = elementwise("ceil", {
  inputs: 1,
  domain: "float",
  partials: ["zero"],
  scalar: (x) => call("ceil", x),
  reference: (x) => Math.ceil(num(x, 0)),
  exactInDouble: true,
  simplify: idempotent(
    () => floor,
    () => ceil,
    () => round,
  ),
});

/** Rounds half to even. */
export const round: OpDef<NoAttrs> = elementwise("round", {
  inputs: 1,
  domain: "float",
  partials: ["zero"],
  scalar: (x) => call("nearest", x),
  reference: (x) => roundHalfEven(num(x, 0)),
  exactInDouble: true,
  simplify: idempotent(
    () => floor,
    () => ceil,
    () => round,
  ),
});

/**
 * 1 where x₀ `wins` against x₁, 1/2 where both are equal: the two partials of an extremum sum to one, and have the test for
 * equality in common.
 */
function share(b: Build, wins: OpDef<NoAttrs>, x: readonly Value[]): Value {
  const [first, second] = [val(x, 0), val(x, 1)];
  const tie = apply(b, where, apply(b, eq, first, second), fullLike(b, first, 0.5), fullLike(b, first, 0));
  return apply(b, where, apply(b, wins, first, second), fullLike(b, first, 1), tie);
}

export const min: OpDef<NoAttrs> = elementwise("min", {
  inputs: 2,
  domain: "number",
  partials: [(b, x) => share(b, lt, x), (b, x) => share(b, gt, x)],
  scalar: (x) => call("min", x),
  reference: (x) => Math.min(num(x, 0), num(x, 1)),
  exactInDouble: true,
  simplify: (_, node) => ofEqual(node),
});

export const max: OpDef<NoAttrs> = elementwise("max", {
  inputs: 2,
  domain: "number",
  partials: [(b, x) => share(b, gt, x), (b, x) => share(b, lt, x)],
  scalar: (x) => call("max", x),
  reference: (x) => Math.max(num(x, 0), num(x, 1)),
  exactInDouble: true,
  simplify: (_, node) => ofEqual(node),
});

export type ClampAttrs = { readonly min: number; readonly max: number };

export const clamp: OpDef<ClampAttrs> = elementwise<ClampAttrs>("clamp", {
  inputs: 1,
  domain: "number",
  // 1 inside, 0 where it was cut off: the output equals the input exactly inside
  partials: [(b, x, y) => apply(b, where, apply(b, eq, val(x, 0), y), fullLike(b, y, 1), fullLike(b, y, 0))],
  scalar: ([x], attrs) => {
    const v = x as Expr;
    return call("min", [call("max", [v, constant(v.dtype, attrs.min)]), constant(v.dtype, attrs.max)]);
  },
  reference: (x, attrs) => Math.min(Math.max(num(x, 0), attrs.min), attrs.max),
  attrSamples: [{ min: -1, max: 1 }],
  exactInDouble: true,
  facts: { torchReads: [[0]] },
});

/** max(x, 0). The derivative reads the sign of the output, so the input may die. */
export const relu: OpDef<NoAttrs> = elementwise("relu", {
  inputs: 1,
  domain: "number",
  partials: [(b, _, y) => apply(b, where, apply(b, gt, y, fullLike(b, y, 0)), fullLike(b, y, 1), fullLike(b, y, 0))],
  scalar: ([x]) => call("max", [x as Expr, zero(x as Expr)]),
  reference: (x) => Math.max(num(x, 0), 0),
  exactInDouble: true,
  simplify: idempotent(() => relu),
});

// ---- comparisons and logic ---------------------------------------------------------------------------------------

function comparison(
  name: string,
  scalar: (a: Expr, b: Expr) => Expr,
  test: (a: number, b: number) => boolean,
  compares?: OpFacts<NoAttrs>["compares"],
): OpDef<NoAttrs> {
  return elementwise(name, {
    inputs: 2,
    domain: "number",
    out: "bool",
    scalar: (x) => scalar(arg(x, 0), arg(x, 1)),
    reference: (x) => Number(test(num(x, 0), num(x, 1))),
    exactInDouble: true,
    ...(compares ? { facts: { compares } } : {}),
  });
}

export const eq: OpDef<NoAttrs> = comparison(
  "eq",
  (a, b) => compare("eq", a, b),
  (a, b) => a === b,
);
export const ne: OpDef<NoAttrs> = comparison(
  "ne",
  (a, b) => compare("ne", a, b),
  (a, b) => a !== b,
);
export const lt: OpDef<NoAttrs> = comparison(
  "lt",
  (a, b) => compare("lt", a, b),
  (a, b) => a < b,
  { sign: 1, strict: true },
);
export const le: OpDef<NoAttrs> = comparison(
  "le",
  (a, b) => compare("le", a, b),
  (a, b) => a <= b,
  { sign: 1, strict: false },
);
export const gt: OpDef<NoAttrs> = comparison(
  "gt",
  (a, b) => compare("lt", b, a),
  (a, b) => a > b,
  { sign: -1, strict: true },
);
export const ge: OpDef<NoAttrs> = comparison(
  "ge",
  (a, b) => compare("le", b, a),
  (a, b) => a >= b,
  { sign: -1, strict: false },
);

export const isnan: OpDef<NoAttrs> = elementwise("isnan", {
  inputs: 1,
  domain: "float",
  out: "bool",
  scalar: ([x]) => compare("ne", x as Expr, x as Expr),
  reference: (x) => Number(Number.isNaN(num(x, 0))),
  exactInDouble: true,
});

/** True, or all bits of an integer. */
const allOnes = (v: Value): number => (isBool(v.type.dtype) ? 1 : -1);

export const and: OpDef<NoAttrs> = elementwise("and", {
  inputs: 2,
  domain: "bits",
  scalar: (x) => call("and", x),
  reference: (x) => num(x, 0) & num(x, 1),
  integer: inLongs((a, b) => a & b),
  exactInDouble: true,
  simplify(b, node) {
    const x = val(node.inputs, 0);
    const y = val(node.inputs, 1);
    if (isSplat(b, y, allOnes(y)) || isSplat(b, x, 0)) return x;
    return isSplat(b, x, allOnes(x)) || isSplat(b, y, 0) ? y : ofEqual(node);
  },
});

export const or: OpDef<NoAttrs> = elementwise("or", {
  inputs: 2,
  domain: "bits",
  scalar: (x) => call("or", x),
  reference: (x) => num(x, 0) | num(x, 1),
  integer: inLongs((a, b) => a | b),
  exactInDouble: true,
  simplify(b, node) {
    const x = val(node.inputs, 0);
    const y = val(node.inputs, 1);
    if (isSplat(b, y, 0) || isSplat(b, x, allOnes(x))) return x;
    return isSplat(b, x, 0) || isSplat(b, y, allOnes(y)) ? y : ofEqual(node);
  },
});

export const xor: OpDef<NoAttrs> = elementwise("xor", {
  inputs: 2,
  domain: "bits",
  scalar: (x) => call("xor", x),
  reference: (x) => num(x, 0) ^ num(x, 1),
  integer: inLongs((a, b) => a ^ b),
  exactInDouble: true,
  simplify(b, node) {
    const x = val(node.inputs, 0);
    const y = val(node.inputs, 1);
    if (isSplat(b, y, 0)) return x;
    if (isSplat(b, x, 0)) return y;
    if (isSplat(b, y, allOnes(y))) return apply(b, not, x);
    return isSplat(b, x, allOnes(x)) ? apply(b, not, y) : null;
  },
});

export const not: OpDef<NoAttrs> = elementwise("not", {
  inputs: 1,
  domain: "bits",
  scalar: (x) => call("not", x),
  reference: (x) => 1 - num(x, 0),
  integer: (x) => -1 - num(x, 0),
  exactInDouble: true,
  facts: { isNegation: true },
  simplify(b, node) {
    const x = val(node.inputs, 0);
    // Of the comparisons only these two are each other's negation when NaN is about.
    const equal = inputsIfMadeBy(b, x, eq);
    if (equal) return apply(b, ne, ...equal);
    const unequal = inputsIfMadeBy(b, x, ne);
    return unequal ? apply(b, eq, ...unequal) : under(b, not, x);
  },
});
