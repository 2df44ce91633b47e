/** @file Losses that measure distances: of numbers, of a side of a margin, of directions, and of embeddings. */

import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import { isBool } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { customJvp } from "./custom.ts";
import { abs, add, clamp, div, equal, maximum, minimum, mul, pow, sqrt, square, sub, where } from "./elementwise.ts";
import { relu } from "./math.ts";
import { normalAxis } from "./operands.ts";
import { norm, sum } from "./reduce.ts";
import { type LossOptions, reductionOf, requireAlike, requireNumber } from "./reduction.ts";

const REDUCTION_ONLY: OptionKinds<LossOptions> = { reduction: "anything" };

/**
 * Absolute differences.
 *
 * @example
 * import { l1, tensor } from "tidemark";
 *
 * console.log(l1(tensor([1, 5]), tensor([2, 2])).item()); // 2
 */
export function l1(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  requireOptions("l1", options, REDUCTION_ONLY);
  const reduced = reductionOf("l1", options);
  const [x, y] = requireAlike("l1", { prediction, target }) as [Tensor, Tensor];
  return asFunction("l1", () => reduced(abs(sub(x, y))));
}

/**
 * c·(|d| - c/2) with c = |d| up to a limit: d²/2 near zero, straight lines beyond. Its derivative is d cut off at ± limit, so d is
 * all that is kept.
 */
function cutOff(d: Tensor, limit: number): Tensor {
  const value = (v: Tensor): Tensor => {
    const size = abs(v);
    const c = minimum(size, limit);
    return mul(c, sub(size, mul(c, 0.5)));
  };
  return customJvp(value, ([v], [t]) => mul(clamp(v, -limit, limit), t))(d);
}

/** Options of {@link huber}. */
export interface HuberOptions extends LossOptions {
  /** Where the loss goes on as a straight line; 1 by default. */
  readonly delta?: number;
}

const HUBER: OptionKinds<HuberOptions> = { reduction: "anything", delta: "a number" };

/**
 * d²/2 for differences d up to delta, delta · (|d| - delta/2) beyond.
 *
 * @example
 * import { huber, tensor } from "tidemark";
 *
 * console.log(huber(tensor([0.5, 3]), tensor([0, 0]), { reduction: "none" }).toArray()); // [0.125, 2.5]
 */
export function huber(prediction: Tensor, target: Tensor, options: HuberOptions = {}): Tensor {
  requireOptions("huber", options, HUBER);
  const reduced = reductionOf("huber", options);
  const { delta = 1 } = options;
  requireNumber("huber", ["delta", delta], delta > 0 && Number.isFinite(delta), "it is a number above 0");
  const [x, y] = requireAlike("huber", { prediction, target }) as [Tensor, Tensor];
  return asFunction("huber", () => reduced(cutOff(sub(x, y), delta)));
}

/** Options of {@link smoothL1}. */
export interface SmoothL1Options extends LossOptions {
  /** Where the loss goes on as a straight line; 1 by default. With 0 it is l1. */
  readonly beta?: number;
}

const SMOOTH: OptionKinds<SmoothL1Options> = { reduction: "anything", beta: "a number" };

/**
 * d² / 2beta for differences d up to beta, |d| - beta/2 beyond: huber / beta.
 *
 * @example
 * import { smoothL1, tensor } from "tidemark";
 *
 * console.log(smoothL1(tensor([1, 3]), tensor([0, 0]), { beta: 2, reduction: "none" }).toArray()); // [0.25, 2]
 */
export function smoothL1(prediction: Tensor, target: Tensor, options: SmoothL1Options = {}): Tensor {
  requireOptions("smoothL1", options, SMOOTH);
  const reduced = reductionOf("smoothL1", options);
  const { beta = 1 } = options;
  requireNumber("smoothL1", ["beta", beta], beta >= 0 && Number.isFinite(beta), "it is a number of 0 or more");
  const [x, y] = requireAlike("smoothL1", { prediction, target }) as [Tensor, Tensor];
  return asFunction("smoothL1", () => reduced(beta === 0 ? abs(sub(x, y)) : div(cutOff(sub(x, y), beta), beta)));
}

/** Options of losses with a margin. */
export interface MarginOptions extends LossOptions {
  readonly margin?: number;
}

const MARGIN: OptionKinds<MarginOptions> = { reduction: "anything", margin: "a number" };

function marginOf(name: string, { margin }: MarginOptions, usual: number): number {
  const own = margin ?? usual;
  requireNumber(name, ["margin", own], Number.isFinite(own), "it is a finite number");
  return own;
}

/**
 * max(0, margin - prediction · target) for targets of 1 and -1: zero where a prediction is on its target's side, beyond the margin, which is
 * 1 by default.
 *
 * @example
 * import { hinge, tensor } from "tidemark";
 *
 * console.log(hinge(tensor([2, 0.5, 0.5]), tensor([1, 1, -1]), { reduction: "none" }).toArray()); // [0, 0.5, 1.5]
 */
export function hinge(prediction: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  requireOptions("hinge", options, MARGIN);
  const reduced = reductionOf("hinge", options);
  const margin = marginOf("hinge", options, 1);
  const [x, y] = requireAlike("hinge", { prediction, target }) as [Tensor, Tensor];
  return asFunction("hinge", () => reduced(relu(sub(margin, mul(x, y)))));
}

/** Options of {@link cosineSimilarity}. */
export interface CosineOptions {
  /** The last by default. */
  readonly axis?: number;
  /** Lengths below count as this one; 1e-8 by default. */
  readonly eps?: number;
}

const COSINE: OptionKinds<CosineOptions> = { axis: "a number", eps: "a number" };

/** a·b / (|a|·|b|) along an axis; a vector of length zero has the cosine 0 and no gradient through its length. */
function cosines(a: Tensor, b: Tensor, axis: number, eps: number): Tensor {
  const length = (x: Tensor): Tensor => maximum(norm(x, axis), eps);
  return div(sum(mul(a, b), axis), mul(length(a), length(b)));
}

/**
 * The cosine of the angle between vectors along an axis.
 *
 * @example
 * import { cosineSimilarity, tensor } from "tidemark";
 *
 * console.log(cosineSimilarity(tensor([[1, 0], [3, 4]]), tensor([[2, 0], [-4, 3]])).toArray()); // [1, 0]
 */
export function cosineSimilarity(a: Tensor, b: Tensor, options: CosineOptions = {}): Tensor {
  requireOptions("cosineSimilarity", options, COSINE);
  const { axis = -1, eps = 1e-8 } = options;
  requireNumber("cosineSimilarity", ["eps", eps], eps > 0 && Number.isFinite(eps), "it is a number above 0");
  const [x, y] = requireAlike("cosineSimilarity", { a, b }) as [Tensor, Tensor];
  const along = normalAxis("cosineSimilarity", axis, x);
  return asFunction("cosineSimilarity", () => cosines(x, y, along, eps));
}

/** Vectors along the last axis, of one type and shape. */
function requireVectors(name: string, given: Readonly<Record<string, Tensor>>): readonly Tensor[] {
  const vectors = requireAlike(name, given);
  if (at(vectors, 0).rank > 0) return vectors;
  return fail("ShapeMismatch", `${name}: takes vectors along the last axis, got scalars`, "give tensors [..., width]");
}

/**
 * For vectors along the last axis that belong together (target 1), 1 - cosine; for others (target -1), max(0, cosine - margin),
 * with a margin of 0 by default. Targets [...] are i32 or floats.
 *
 * @example
 * import { cosineEmbedding, tensor } from "tidemark";
 *
 * const [a, b] = [tensor([[1, 0], [1, 0]]), tensor([[0, 1], [1, 0]])];
 * console.log(cosineEmbedding(a, b, tensor([1, -1]), { reduction: "none" }).toArray()); // [1, 1]
 */
export function cosineEmbedding(a: Tensor, b: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  const name = "cosineEmbedding";
  requireOptions(name, options, MARGIN);
  const reduced = reductionOf(name, options);
  const margin = marginOf(name, options, 0);
  const [x, y] = requireVectors(name, { a, b }) as [Tensor, Tensor];
  requireTensor(name, "target", target);
  if (isBool(target.dtype) || !sameShape(target.shape, x.shape.slice(0, -1))) {
    const summary = `${name}: vectors ${typeText(x)} and targets ${typeText(target)} do not match`;
    fail("ShapeMismatch", summary, `targets are numbers, 1 or -1, [${x.shape.slice(0, -1).join(",")}]`);
  }
  return asFunction(name, () => {
    const cosine = cosines(x, y, x.rank - 1, 1e-8);
    const apart = where(equal(target, -1), relu(sub(cosine, margin)), 0);
    return reduced(where(equal(target, 1), sub(1, cosine), apart));
  });
}

/** Options of {@link tripletMargin}. */
export interface TripletMarginOptions extends MarginOptions {
  /** Distances are (Σ |difference|^p)^(1/p); 2 by default. */
  readonly p?: number;
  /** Added to every difference, so that a distance of zero has a derivative; 1e-6 by default. */
  readonly eps?: number;
  /** Take the distance between positive and negative where that is smaller than the one between anchor and negative. */
  readonly swap?: boolean;
}

const TRIPLET: OptionKinds<TripletMarginOptions> = { ...MARGIN, p: "a number", eps: "a number", swap: "a boolean" };

/** (Σ |a - b + eps|^p)^(1/p) along the last axis. */
function distance(a: Tensor, b: Tensor, p: number, eps: number): Tensor {
  const apart = add(sub(a, b), eps);
  if (p === 2) return sqrt(sum(square(apart), -1));
  return p === 1 ? sum(abs(apart), -1) : pow(sum(pow(abs(apart), p), -1), 1 / p);
}

/**
 * max(0, |anchor - positive| - |anchor - negative| + margin) for vectors along the last axis; the margin is 1 by default.
 *
 * @example
 * import { tensor, tripletMargin } from "tidemark";
 *
 * const [anchor, near, far] = [tensor([[0, 0]]), tensor([[0, 1]]), tensor([[3, 4]])];
 * console.log(tripletMargin(anchor, near, far, { margin: 5 }).item().toFixed(3)); // "1.000"
 */
export function tripletMargin(
  anchor: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: TripletMarginOptions = {},
): Tensor {
  const name = "tripletMargin";
  requireOptions(name, options, TRIPLET);
  const reduced = reductionOf(name, options);
  const margin = marginOf(name, options, 1);
  const { p = 2, eps = 1e-6, swap = false } = options;
  requireNumber(name, ["p", p], p >= 1 && Number.isFinite(p), "it is a number of 1 or more");
  requireNumber(name, ["eps", eps], eps >= 0 && Number.isFinite(eps), "it is a number of 0 or more");
  const [a, b, c] = requireVectors(name, { anchor, positive, negative }) as [Tensor, Tensor, Tensor];
  return asFunction(name, () => {
    const far = distance(a, c, p, eps);
    const apart = swap ? minimum(far, distance(b, c, p, eps)) : far;
    return reduced(relu(add(sub(distance(a, b, p, eps), apart), margin)));
  });
}
