/** @file Functions of one number, one element at a time: exponentials, logarithms, angles, and the curves of activations. */

import * as ops from "../ops/elementwise.ts";
import * as math from "../ops/math.ts";
import { describe, fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { greater, mul, where } from "./elementwise.ts";
import { asTensor, type TensorLike } from "./operands.ts";
import { unary } from "./unary.ts";

/**
 * eˣ.
 *
 * @example
 * import { exp } from "tidemark";
 *
 * console.log(exp([0, 1]).toArray()); // → [1, 2.71828]
 */
export function exp(x: TensorLike): Tensor {
  return unary("exp", math.exp, x);
}

/**
 * eˣ - 1, exact near 0.
 *
 * @example
 * import { expm1 } from "tidemark";
 *
 * console.log(expm1([0, 1e-10]).toArray()); // → [0, 1e-10]
 */
export function expm1(x: TensorLike): Tensor {
  return unary("expm1", math.expm1, x);
}

/**
 * The natural logarithm.
 *
 * @example
 * import { log } from "tidemark";
 *
 * console.log(log([1, Math.E]).toArray()); // → [0, 1]
 */
export function log(x: TensorLike): Tensor {
  return unary("log", math.log, x);
}

/**
 * log(1 + x), exact near 0.
 *
 * @example
 * import { log1p } from "tidemark";
 *
 * console.log(log1p([0, 1e-10]).toArray()); // → [0, 1e-10]
 */
export function log1p(x: TensorLike): Tensor {
  return unary("log1p", math.log1p, x);
}

/**
 * The sine of an angle in radians.
 *
 * @example
 * import { sin } from "tidemark";
 *
 * console.log(sin([0, Math.PI / 2]).toArray()); // → [0, 1]
 */
export function sin(x: TensorLike): Tensor {
  return unary("sin", math.sin, x);
}

/**
 * The cosine of an angle in radians.
 *
 * @example
 * import { cos } from "tidemark";
 *
 * console.log(cos([0, Math.PI]).toArray()); // → [1, -1]
 */
export function cos(x: TensorLike): Tensor {
  return unary("cos", math.cos, x);
}

/**
 * The tangent of an angle in radians.
 *
 * @example
 * import { tan } from "tidemark";
 *
 * console.log(tan([0, 1]).toArray()); // → [0, 1.55741]
 */
export function tan(x: TensorLike): Tensor {
  return unary("tan", math.tan, x);
}

/**
 * The hyperbolic tangent.
 *
 * @example
 * import { tanh } from "tidemark";
 *
 * console.log(tanh([0, 1]).toArray()); // → [0, 0.761594]
 */
export function tanh(x: TensorLike): Tensor {
  return unary("tanh", math.tanh, x);
}

/**
 * 1 / (1 + e⁻ˣ).
 *
 * @example
 * import { sigmoid } from "tidemark";
 *
 * console.log(sigmoid([-100, 0]).toArray()); // → [3.78351e-44, 0.5]
 */
export function sigmoid(x: TensorLike): Tensor {
  return unary("sigmoid", math.sigmoid, x);
}

/**
 * The error function.
 *
 * @example
 * import { erf } from "tidemark";
 *
 * console.log(erf([0, 1]).toArray()); // → [0, 0.842701]
 */
export function erf(x: TensorLike): Tensor {
  return unary("erf", math.erf, x);
}

/**
 * max(x, 0).
 *
 * @example
 * import { relu } from "tidemark";
 *
 * console.log(relu([-1, 2]).toArray()); // → [0, 2]
 */
export function relu(x: TensorLike): Tensor {
  return unary("relu", ops.relu, x);
}

/**
 * x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))): close to x · Φ(x) with the normal distribution function Φ.
 *
 * @example
 * import { gelu } from "tidemark";
 *
 * console.log(gelu([-1, 0, 1]).toArray()); // → [-0.158808, 0, 0.841192]
 */
export function gelu(x: TensorLike): Tensor {
  return unary("gelu", math.gelu, x);
}

/**
 * x · sigmoid(x).
 *
 * @example
 * import { silu } from "tidemark";
 *
 * console.log(silu([-1, 0, 1]).toArray()); // → [-0.268941, 0, 0.731059]
 */
export function silu(x: TensorLike): Tensor {
  return unary("silu", math.silu, x);
}

/** Options of {@link softplus}. */
export interface SoftplusOptions {
  /** log(1 + e^(beta·x)) / beta; 1 by default. */
  readonly beta?: number;
  /** Where beta·x is above, the result is x itself. None by default: nothing overflows without. */
  readonly threshold?: number;
}

const SOFTPLUS_OPTIONS: OptionKinds<SoftplusOptions> = { beta: "a number", threshold: "a number" };

/**
 * log(1 + eˣ).
 *
 * @example
 * import { softplus } from "tidemark";
 *
 * console.log(softplus([0, 100]).toArray()); // → [0.693147, 100]
 */
export function softplus(x: TensorLike, options: SoftplusOptions = {}): Tensor {
  requireOptions("softplus", options, SOFTPLUS_OPTIONS);
  const { beta = 1, threshold } = options;
  if (!(beta > 0)) fail("InvalidArgument", `softplus: beta ${describe(beta)}`, "give a number above 0");
  const v = asTensor("softplus", x);
  const scaled = beta === 1 ? v : mul(v, beta);
  const log = unary("softplus", math.softplus, scaled);
  const y = beta === 1 ? log : mul(log, 1 / beta);
  return threshold === undefined ? y : where(greater(scaled, threshold), v, y);
}
