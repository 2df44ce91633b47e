/**
 * @file Draws by rejection: candidates are drawn for all elements, each with the probability to be taken, until every element has
 * one. Attempt t of an element depends on the key, t and the element's place alone; so bits do not depend on how many attempts
 * the others need.
 *
 *   attempt 0   ■ □ ■ ■ □ ■        ■ taken
 *   attempt 1     ■     □
 *   attempt 2           ■
 */
import { at } from "../base/invariant.ts";
import { type Shape, typeText } from "../ir/type.ts";
import { type FloatType, isFloat } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions, requireShape } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { exponential, fineUniform } from "./choices.ts";
import { whileLoop } from "./control.ts";
import { full, zeros } from "./create.ts";
import { type DrawOptions, normal, uniform } from "./draws.ts";
import {
  add,
  cast,
  clamp,
  div,
  floor,
  greater,
  greaterEqual,
  less,
  lessEqual,
  logicalAnd,
  logicalNot,
  logicalOr,
  maximum,
  minimum,
  mul,
  neg,
  rsqrt,
  sqrt,
  square,
  stopGradient,
  sub,
  where,
} from "./elementwise.ts";
import { foldIn, requireDraw, requireKey, split } from "./keys.ts";
import { exp, log, log1p, sigmoid } from "./math.ts";
import { broadcastShapes, broadcastToShape, constantOf } from "./operands.ts";
import { any } from "./reduce.ts";

interface Candidates {
  readonly value: Tensor;
  readonly taken: Tensor;
}

/** Attempts after which what is there is returned: none comes near it. */
const MOST_ATTEMPTS = 10_000;

/** The first candidate of each element that is taken. `start` has the type, and is what parameters that are NaN give. */
function firstTaken(from: Tensor, start: Tensor, draw: (key: Tensor) => Candidates): Tensor {
  const init = { value: start, open: full(start.shape, true, "bool") };
  const { value } = whileLoop(
    ({ open }) => any(open),
    ({ value, open }, t) => {
      const candidates = draw(foldIn(from, t));
      return {
        value: where(logicalAnd(open, candidates.taken), candidates.value, value),
        open: logicalAnd(open, logicalNot(candidates.taken)),
      };
    },
    init,
    { maxSteps: MOST_ATTEMPTS },
  );
  return value;
}

// ---- truncated normal -----------------------------------------------------------------------------------------------

/**
 * Options of `random.truncatedNormal`.
 *
 * @example
 * import { random, type TruncatedOptions } from "tidemark";
 *
 * const options: TruncatedOptions = { lo: -1, hi: 1 };
 * console.log(random.truncatedNormal(random.key(0), [100], options).abs().max().item() <= 1); // → true
 */
export interface TruncatedOptions extends DrawOptions {
  /** Bounds in deviations from the mean; -2 and 2 by default. */
  readonly lo?: number;
  readonly hi?: number;
  readonly mean?: number;
  readonly std?: number;
}

const TRUNCATED: OptionKinds<TruncatedOptions> = {
  dtype: "a float type",
  lo: "a number",
  hi: "a number",
  mean: "a number",
  std: "a number",
};

/** Standard normal in [lo, hi] with 0 ≤ lo: from an exponential beyond lo (C. P. Robert, 1995), or uniform if that is narrower. */
function tail(from: Tensor, shape: Shape, [lo, hi]: readonly [number, number], dtype: FloatType): Candidates {
  const [first, second] = split(from);
  const rate = (lo + Math.sqrt(lo * lo + 4)) / 2;
  const u = fineUniform(second, shape, dtype);
  if ((hi - lo) * rate < 1) {
    const value = uniform(first, shape, { lo, hi, dtype });
    return { value, taken: lessEqual(log(u), mul(sub(lo * lo, square(value)), 0.5)) };
  }
  const value = add(div(exponential(first, shape, { dtype }), rate), lo);
  const taken = lessEqual(log(u), mul(square(sub(value, rate)), -0.5));
  return { value, taken: logicalAnd(taken, lessEqual(value, hi)) };
}

/** Standard normal in [lo, hi]. */
function between(from: Tensor, shape: Shape, [lo, hi]: readonly [number, number], dtype: FloatType): Tensor {
  const start = zeros(shape, dtype);
  if (hi < 0) return neg(between(from, shape, [-hi, -lo], dtype));
  if (lo > 0.5) return firstTaken(from, start, (key) => tail(key, shape, [lo, hi], dtype));
  if (hi - lo < 1.5) {
    // uniform numbers, taken in proportion to their density
    const most = lo > 0 ? lo * lo : 0;
    return firstTaken(from, start, (key) => {
      const [first, second] = split(key);
      const value = uniform(first, shape, { lo, hi, dtype });
      return { value, taken: lessEqual(log(fineUniform(second, shape, dtype)), mul(sub(most, square(value)), 0.5)) };
    });
  }
  return firstTaken(from, start, (key) => {
    const value = normal(key, shape, { dtype });
    return { value, taken: logicalAnd(greaterEqual(value, lo), lessEqual(value, hi)) };
  });
}

/** Normal numbers within bounds, which count in deviations: two to each side of the mean by default. */
export function truncatedNormal(from: Tensor, shape: Shape, options: TruncatedOptions = {}): Tensor {
  requireDraw("random.truncatedNormal", from, shape);
  requireOptions("random.truncatedNormal", options, TRUNCATED);
  const { dtype = "f32", lo = -2, hi = 2, mean = 0, std = 1 } = options;
  if (!(lo < hi)) {
    fail("InvalidArgument", `random.truncatedNormal: nothing is in [${lo}, ${hi}]`, "lo must be below hi");
  }
  return asFunction("truncatedNormal", () => add(mul(between(from, shape, [lo, hi], dtype), std), mean));
}

// ---- gamma and beta -------------------------------------------------------------------------------------------------

/**
 * Shape and type of a draw whose parameters may be tensors.
 *
 * @example
 * import { random, type ShapedOptions } from "tidemark";
 *
 * const options: ShapedOptions = { shape: [2, 3] };
 * console.log(random.gamma(random.key(0), 2, options).shape); // → [2, 3]
 */
export interface ShapedOptions extends DrawOptions {
  /** Of the result; parameters broadcast to it. Theirs by default. */
  readonly shape?: Shape;
}

const SHAPED: OptionKinds<ShapedOptions> = { shape: "anything", dtype: "a float type" };

type Parameter = Tensor | number;

interface Parameters {
  readonly values: readonly Tensor[];
  readonly shape: Shape;
  readonly dtype: FloatType;
}

/** Parameters as floats of one shape, constants to derivatives. */
function parametersOf(name: string, given: readonly Parameter[], options: ShapedOptions): Parameters {
  requireOptions(name, options, SHAPED);
  if (options.shape) requireShape(name, options.shape);
  const tensors = given.filter((x): x is Tensor => x instanceof Tensor);
  const odd = tensors.find((x) => !isFloat(x.dtype) || x.dtype !== (options.dtype ?? tensors[0]?.dtype));
  if (odd) fail("DtypeMismatch", `${name}: a parameter is ${typeText(odd)}`, "parameters are floats of one type");
  const dtype = options.dtype ?? (tensors[0]?.dtype as FloatType | undefined) ?? "f32";
  const shape = options.shape ?? broadcastShapes(name, tensors, tensors);
  const values = given.map((x) =>
    x instanceof Tensor ? stopGradient(broadcastToShape(x, shape)) : constantOf(name, x, dtype, shape),
  );
  return { values, shape, dtype };
}

/**
 * Logarithms of gamma numbers: d·v with v = (1 + c·x)³ of a normal x, and of one more by a power of a uniform number where alpha is
 * below 1 (G. Marsaglia, W. W. Tsang, 2000).
 */
function logGamma(from: Tensor, alpha: Tensor, dtype: FloatType): Tensor {
  const { shape } = alpha;
  const [first, second] = split(from);
  const small = less(alpha, 1);
  const d = sub(add(alpha, cast(small, dtype)), 1 / 3);
  const c = mul(rsqrt(d), 1 / 3);
  const start = full(shape, Number.NaN, dtype);
  const v = firstTaken(first, start, (key) => {
    const [one, other] = split(key);
    const x = normal(one, shape, { dtype });
    const root = add(mul(c, x), 1);
    const value = mul(mul(root, root), root);
    const density = add(mul(square(x), 0.5), mul(d, add(sub(1, value), log(maximum(value, 1e-30)))));
    const taken = logicalAnd(greater(root, 0), less(log(fineUniform(other, shape, dtype)), density));
    // parameters that are not positive, or NaN, have no numbers: they stay NaN
    return { value, taken: logicalOr(taken, logicalNot(greater(alpha, 0))) };
  });
  const more = div(log(fineUniform(second, shape, dtype)), alpha);
  return where(greater(alpha, 0), add(log(mul(d, v)), where(small, more, 0)), Number.NaN);
}

/**
 * Gamma numbers with shape parameter alpha, a number or a tensor, and scale 1; NaN where alpha is not above 0. Without derivative:
 * alpha counts as a constant. Times a tensor of scales, the product has its derivatives.
 *
 * @example
 * import { random, tensor } from "tidemark";
 *
 * const draws = random.gamma(random.key(0), tensor([1, 2, 8]), { shape: [1000, 3] });
 * console.log(draws.mean(0).round().toArray()); // [1, 2, 8]
 */
export function gamma(from: Tensor, alpha: Parameter, options: ShapedOptions = {}): Tensor {
  requireKey("random.gamma", from);
  const { values, dtype } = parametersOf("random.gamma", [alpha], options);
  return asFunction("gamma", () => exp(logGamma(from, at(values, 0), dtype)));
}

/** Beta numbers: X / (X + Y) of two gamma numbers; NaN where a or b is not above 0. Without derivative: a and b count as constants. */
export function beta(from: Tensor, a: Parameter, b: Parameter, options: ShapedOptions = {}): Tensor {
  requireKey("random.beta", from);
  const { values, dtype } = parametersOf("random.beta", [a, b], options);
  const [first, second] = split(from);
  return asFunction("beta", () =>
    sigmoid(sub(logGamma(first, at(values, 0), dtype), logGamma(second, at(values, 1), dtype))),
  );
}

// ---- poisson --------------------------------------------------------------------------------------------------------

/** Rates from which on candidates are drawn; smaller ones are counted through. */
const LARGE_RATE = 10;
/** No count of a rate below LARGE_RATE reaches this. */
const MOST_COUNTED = 128;

/** The number of terms of the distribution function that stay below a uniform number. */
function counted(from: Tensor, rate: Tensor, dtype: FloatType): Tensor {
  const { shape } = rate;
  const u = uniform(from, shape, { dtype });
  const term = exp(neg(rate));
  const init = { k: zeros(shape, dtype), term, sum: term };
  const { k } = whileLoop(
    ({ sum }) => any(greaterEqual(u, sum)),
    (state, t) => {
      const next = add(cast(t, dtype), 1);
      const term = mul(state.term, div(rate, next));
      return { k: where(greaterEqual(u, state.sum), next, state.k), term, sum: add(state.sum, term) };
    },
    init,
    { maxSteps: MOST_COUNTED },
  );
  return k;
}

/** log(k! / (√(2πk) · (k/e)ᵏ)), the error of Stirling's formula, for k of 4 or more. */
function stirlingError(k: Tensor): Tensor {
  const inverse = div(1, k);
  const squared = square(inverse);
  return mul(inverse, sub(1 / 12, mul(squared, sub(1 / 360, mul(squared, 1 / 1260)))));
}

/** log of the probability of k, from 4 on; without the cancellation of its large terms. */
function logPoisson(k: Tensor, rate: Tensor): Tensor {
  const excess = div(sub(rate, k), k);
  const main = mul(k, sub(log1p(excess), excess));
  return sub(sub(main, mul(log(mul(k, 2 * Math.PI)), 0.5)), stirlingError(k));
}

/** log k! for k below 4, in place of Stirling's formula. */
function logSmall(k: Tensor, rate: Tensor): Tensor {
  const factorial = where(less(k, 1.5), 0, where(less(k, 2.5), Math.log(2), full(k.shape, Math.log(6), k.dtype)));
  return sub(sub(mul(k, log(rate)), rate), factorial);
}

/** Transformed rejection (W. Hörmann, 1993) for rates of 10 and more. */
function transformed(from: Tensor, rate: Tensor, dtype: FloatType): Tensor {
  const { shape } = rate;
  const b = add(mul(sqrt(rate), 2.53), 0.931);
  const a = add(mul(b, 0.02483), -0.059);
  const inverseAlpha = add(div(1.1328, sub(b, 3.4)), 1.1239);
  return firstTaken(from, zeros(shape, dtype), (key) => {
    const [one, other] = split(key);
    const u = sub(fineUniform(one, shape, dtype), 0.5);
    const us = sub(0.5, where(less(u, 0), neg(u), u));
    const k = floor(add(add(mul(add(div(mul(a, 2), us), b), u), rate), 0.43));
    const v = log(mul(fineUniform(other, shape, dtype), div(inverseAlpha, add(div(a, square(us)), b))));
    const density = where(less(k, 3.5), logSmall(clamp(k, 0, 3), rate), logPoisson(maximum(k, 4), rate));
    return { value: k, taken: logicalAnd(greaterEqual(k, 0), lessEqual(v, density)) };
  });
}

/** Poisson numbers of a rate, a number or a tensor: i32. The rate is at most 2²⁴; negative ones and NaN give -1. Without derivative. */
export function poisson(from: Tensor, rate: Parameter, options: ShapedOptions = {}): Tensor {
  requireKey("random.poisson", from);
  const { values, dtype } = parametersOf("random.poisson", [rate], options);
  const [first, second] = split(from);
  return asFunction("poisson", () => {
    const given = at(values, 0);
    const isRate = greaterEqual(given, 0);
    // no candidate would ever be taken where it is NaN
    const lambda = where(isRate, given, 0);
    const some =
      typeof rate === "number" ? { small: rate < LARGE_RATE, large: rate >= LARGE_RATE } : { small: true, large: true };
    const few = some.small ? counted(first, clamp(lambda, 0, LARGE_RATE), dtype) : null;
    const many = some.large ? transformed(second, clamp(lambda, LARGE_RATE, 2 ** 24), dtype) : null;
    const k = few && many ? where(less(lambda, LARGE_RATE), few, many) : ((few ?? many) as Tensor);
    return cast(where(isRate, minimum(k, 2 ** 30), -1), "i32");
  });
}
