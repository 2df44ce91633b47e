/** @file Losses of predictions that are logits or logarithms of probabilities, and squared differences. */

import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { agreed } from "../trace/weak.ts";
import { customJvp } from "./custom.ts";
import {
  abs,
  add,
  div,
  equal,
  greaterEqual,
  less,
  logicalAnd,
  mul,
  neg,
  notEqual,
  square,
  sub,
  where,
} from "./elementwise.ts";
import { likeGiven, wide } from "./full-precision.ts";
import { gather, oneHotMask } from "./indexing.ts";
import { exp, log, log1p, relu, sigmoid } from "./math.ts";
import { logSoftmax } from "./normalize.ts";
import { fullOf, operands, requireFloat } from "./operands.ts";
import { sum } from "./reduce.ts";
import {
  type LossOptions,
  type Reduction,
  reductionOf,
  requireAlike,
  requireNumber,
  requireReduction,
} from "./reduction.ts";
import { expandDims, reshape } from "./shape.ts";

export type { LossOptions, Reduction };

const REDUCTION_ONLY: OptionKinds<LossOptions> = { reduction: "anything" };

/** Options of losses over classes, such as {@link nll}. */
export interface ClassLossOptions extends LossOptions {
  /** What classes count, [classes]; a mean is divided by the sum of the weights of the targets. */
  readonly weight?: Tensor;
  /** Examples with this class number have a loss of zero, no gradient, and do not count in a mean. */
  readonly ignoreIndex?: number;
}

/** Options of {@link crossEntropy}. */
export interface CrossEntropyOptions extends ClassLossOptions {
  /** The part of every target that is spread evenly over all classes, from 0 to 1. */
  readonly labelSmoothing?: number;
}

const CLASS_OPTIONS: OptionKinds<ClassLossOptions> = {
  reduction: "anything",
  weight: "a tensor",
  ignoreIndex: "a number",
};
const CROSS_ENTROPY: OptionKinds<CrossEntropyOptions> = { ...CLASS_OPTIONS, labelSmoothing: "a number" };

const ONE_CLASS = 'class numbers are an i32 tensor: tensor([3, 1], { dtype: "i32" })';

/** Predictions of classes, and how examples count. */
interface Classified {
  readonly scores: Tensor;
  readonly targets: Tensor;
  /** Whether targets are class numbers, not probabilities. */
  readonly asClasses: boolean;
  /** [classes], or null if all count the same. */
  readonly weight: Tensor | null;
  readonly ignored: number | null;
}

const classesOf = ({ scores }: Classified): number => at(scores.shape, scores.rank - 1);

/** Predictions and targets that fit together; `what` the former are. */
function classified(
  [name, what]: readonly [string, string],
  given: readonly [scores: Tensor, targets: Tensor],
  { weight, ignoreIndex }: ClassLossOptions,
): Classified {
  requireFloat(name, given[0]);
  const targets = given[1];
  requireTensor(name, "targets", targets, ONE_CLASS);
  const [scores = given[0], own = null] = agreed(weight ? [given[0], weight] : [given[0]]);
  const asClasses = isIndexType(targets.dtype);
  const examples = scores.shape.slice(0, -1);
  const mayBeMixed = name === "crossEntropy";
  if (
    scores.rank === 0 ||
    !sameShape(targets.shape, asClasses ? examples : scores.shape) ||
    !(asClasses || mayBeMixed)
  ) {
    const probabilities = mayBeMixed ? ` or probabilities ${typeText(scores)}` : "";
    fail(
      "ShapeMismatch",
      `${name}: ${what} ${typeText(scores)} and targets ${typeText(targets)} do not match`,
      `targets are class numbers i32[${examples.join(",")}]${probabilities}`,
    );
  }
  const made = { scores, targets, asClasses, weight: own, ignored: ignoreIndex ?? null };
  if (own && (own.dtype !== scores.dtype || !sameShape(own.shape, [classesOf(made)]))) {
    const summary = `${name}: the weight is ${typeText(own)}, ${what} are ${typeText(scores)}`;
    fail("ShapeMismatch", summary, `give one number for each class, ${scores.dtype}[${classesOf(made)}]`);
  }
  if (ignoreIndex === undefined) return made;
  requireNumber(name, ["ignoreIndex", ignoreIndex], (ignoreIndex | 0) === ignoreIndex, "it is a class number");
  if (!asClasses) {
    const help = "give probabilities of zero to examples that do not count";
    fail("InvalidArgument", `${name}: ignoreIndex with probabilities as targets`, help);
  }
  return made;
}

/** What class numbers weigh. */
const weightsOf = (weight: Tensor, given: Classified): Tensor =>
  sum(where(oneHotMask(given.targets, classesOf(given)), weight, 0), -1);

/** Minus the logarithms of the probabilities of class numbers, times their weights. */
function classLosses(logs: Tensor, given: Classified): Tensor {
  const { targets } = given;
  const losses = neg(reshape(gather(logs, expandDims(targets, -1), -1), targets.shape));
  return given.weight ? mul(losses, weightsOf(given.weight, given)) : losses;
}

/** Zero for examples that do not count. */
const counted = (losses: Tensor, { targets, ignored }: Classified): Tensor =>
  ignored === null ? losses : where(notEqual(targets, ignored), losses, 0);

/** NaN for class numbers out of range, zero for those that do not count. */
function known(losses: Tensor, given: Classified): Tensor {
  const { targets } = given;
  const inRange = logicalAnd(greaterEqual(targets, 0), less(targets, classesOf(given)));
  return counted(where(inRange, losses, Number.NaN), given);
}

/** What a mean over class numbers is divided by: the sum of the weights of those that count. */
function totalWeight(given: Classified): Tensor {
  const { targets, weight, scores } = given;
  const each = weight ? weightsOf(weight, given) : fullOf(scores.dtype, targets.shape, 1);
  return sum(counted(each, given));
}

/** The reduction of the losses of class numbers. */
function reduceClasses(name: string, options: ClassLossOptions, given: Classified): (losses: Tensor) => Tensor {
  const isPlain = given.weight === null && given.ignored === null;
  if (requireReduction(name, options) !== "mean" || isPlain || !given.asClasses) return reductionOf(name, options);
  return (losses) => div(sum(losses), totalWeight(given));
}

/**
 * Cross entropy of logits [..., classes] against class numbers (i32, [...]) or probabilities ([..., classes]). The loss
 * of an example whose class number is out of range is NaN.
 *
 * @example
 * import { crossEntropy, tensor } from "tidemark";
 *
 * const loss = crossEntropy(tensor([[0, 0]]), tensor([1], { dtype: "i32" }));
 * console.log(loss.item().toFixed(4)); // "0.6931"
 */
export function crossEntropy(logits: Tensor, targets: Tensor, options: CrossEntropyOptions = {}): Tensor {
  requireFloat("crossEntropy", logits);
  requireTensor("crossEntropy", "targets", targets, ONE_CLASS);
  requireOptions("crossEntropy", options, CROSS_ENTROPY);
  const { labelSmoothing = 0 } = options;
  const isPart = labelSmoothing >= 0 && labelSmoothing <= 1;
  requireNumber("crossEntropy", ["labelSmoothing", labelSmoothing], isPart, "it is from 0 to 1");
  requireReduction("crossEntropy", options);
  return asFunction("crossEntropy", () => likeGiven(entropy(logits, targets, options), logits));
}

function entropy(logits: Tensor, targets: Tensor, options: CrossEntropyOptions): Tensor {
  const { labelSmoothing = 0, weight } = options;
  const counting = weight ? { ...options, weight: wide(weight) } : options;
  const given = classified(["crossEntropy", "logits"], [wide(logits), wide(targets)], counting);
  const reduced = reduceClasses("crossEntropy", options, given);
  const logs = logSoftmax(given.scores);
  if (!given.asClasses) return reduced(againstProbabilities(logs, given, labelSmoothing));
  const own = classLosses(logs, given);
  if (labelSmoothing === 0) return reduced(known(own, given));
  const all = neg(sum(given.weight ? mul(logs, given.weight) : logs, -1));
  const mixed = add(mul(own, 1 - labelSmoothing), mul(all, labelSmoothing / classesOf(given)));
  return reduced(known(mixed, given));
}

function againstProbabilities(logs: Tensor, given: Classified, smoothing: number): Tensor {
  const { targets, weight } = given;
  const mixed = smoothing === 0 ? targets : add(mul(targets, 1 - smoothing), smoothing / classesOf(given));
  return neg(sum(mul(weight ? mul(mixed, weight) : mixed, logs), -1));
}

/**
 * Minus the logarithm of the probability of each class number (i32, [...]), for logarithms of probabilities [..., classes]:
 * `crossEntropy` after `logSoftmax`. The loss of a class number out of range is NaN.
 *
 * @example
 * import { nll, tensor } from "tidemark";
 *
 * const logs = tensor([[0.25, 0.75]]).log();
 * console.log(nll(logs, tensor([0], { dtype: "i32" })).item().toFixed(4)); // "1.3863"
 */
export function nll(logProbabilities: Tensor, targets: Tensor, options: ClassLossOptions = {}): Tensor {
  requireOptions("nll", options, CLASS_OPTIONS);
  requireReduction("nll", options);
  const given = classified(["nll", "logProbabilities"], [logProbabilities, targets], options);
  const reduced = reduceClasses("nll", options, given);
  return asFunction("nll", () => reduced(known(classLosses(given.scores, given), given)));
}

/** Options of {@link binaryCrossEntropyWithLogits}. */
export interface BinaryCrossEntropyOptions extends LossOptions {
  /** What targets of one count, beside those of zero; broadcasts to the logits. */
  readonly posWeight?: Tensor;
}

const BINARY: OptionKinds<BinaryCrossEntropyOptions> = { reduction: "anything", posWeight: "a tensor" };

/** The losses log(1 + e⁻ˣ) of a one and log(1 + eˣ) of a zero, from one logarithm. */
function answers(x: Tensor): readonly [yes: Tensor, no: Tensor] {
  const near = log1p(exp(neg(abs(x))));
  return [add(relu(neg(x)), near), add(relu(x), near)];
}

/** p·z·log(1 + e⁻ˣ) + (1 - z)·log(1 + eˣ): for z from 0 to 1 neither term cancels the other. */
function binaryLosses(x: Tensor, z: Tensor, p: Tensor | null): Tensor {
  const [yes, no] = answers(x);
  return add(mul(p ? mul(p, z) : z, yes), mul(sub(1, z), no));
}

/**
 * Cross entropy of independent yes-or-no questions: logits and targets from 0 to 1 of the same shape. Its derivative reads the
 * logits and targets alone.
 *
 * @example
 * import { binaryCrossEntropyWithLogits, tensor } from "tidemark";
 *
 * console.log(binaryCrossEntropyWithLogits(tensor([0, 100]), tensor([1, 1])).item().toFixed(4)); // "0.3466"
 */
export function binaryCrossEntropyWithLogits(
  logits: Tensor,
  targets: Tensor,
  options: BinaryCrossEntropyOptions = {},
): Tensor {
  const name = "binaryCrossEntropyWithLogits";
  requireOptions(name, options, BINARY);
  const reduced = reductionOf(name, options);
  const [x, z] = requireAlike(name, { logits, targets }) as [Tensor, Tensor];
  const weights = options.posWeight ? [at(operands(name, x, options.posWeight), 1)] : [];
  if (weights.some((p) => !sameShape(p.shape, x.shape))) {
    const summary = `${name}: the posWeight ${typeText(options.posWeight as Tensor)} does not broadcast to ${typeText(x)}`;
    fail("ShapeMismatch", summary, "give one number for each logit of an example, or a scalar");
  }
  const losses = customJvp(
    (a: Tensor, b: Tensor, [p]: readonly Tensor[]) => binaryLosses(a, b, p ?? null),
    ([a, b, [p]], [da, db, [dp]]) => {
      const [yes, no] = answers(a);
      const ofLogits = sub(mul(sub(1, b), sigmoid(a)), mul(p ? mul(p, b) : b, sigmoid(neg(a))));
      const ofTargets = sub(p ? mul(p, yes) : yes, no);
      const own = add(mul(ofLogits, da), mul(ofTargets, db));
      return dp ? add(own, mul(mul(b, yes), dp)) : own;
    },
  );
  return asFunction(name, () => reduced(losses(x, z, weights)));
}

/** Options of {@link klDivergence}. */
export interface KlDivergenceOptions extends LossOptions {
  /** Targets are logarithms of probabilities. */
  readonly logTarget?: boolean;
}

const KL: OptionKinds<KlDivergenceOptions> = { reduction: "anything", logTarget: "a boolean" };

/**
 * Σ q · (log q - log p) over the last axis, for logarithms of probabilities log p and probabilities q, both [..., classes].
 * The mean is over examples (`batchmean` in PyTorch). A q of zero adds nothing.
 *
 * @example
 * import { klDivergence, tensor } from "tidemark";
 *
 * const loss = klDivergence(tensor([[0.5, 0.5]]).log(), tensor([[0, 1]]));
 * console.log(loss.item().toFixed(4)); // "0.6931"
 */
export function klDivergence(logProbabilities: Tensor, targets: Tensor, options: KlDivergenceOptions = {}): Tensor {
  requireOptions("klDivergence", options, KL);
  const reduced = reductionOf("klDivergence", options);
  const [p, q] = requireAlike("klDivergence", { logProbabilities, targets }) as [Tensor, Tensor];
  if (p.rank === 0) {
    fail("ShapeMismatch", "klDivergence: a scalar is no distribution", "the last axis is that of the classes");
  }
  return asFunction("klDivergence", () => {
    if (options.logTarget) return reduced(sum(mul(exp(q), sub(q, p)), -1));
    // 0 · log 0 is 0, and so is its derivative: neither sees the logarithm
    const isZero = equal(q, 0);
    return reduced(sum(where(isZero, 0, mul(q, sub(log(where(isZero, 1, q)), p))), -1));
  });
}

/**
 * Squared differences.
 *
 * @example
 * import { mse, tensor } from "tidemark";
 *
 * console.log(mse(tensor([1, 2]), tensor([1, 4])).item()); // → 2
 */
export function mse(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  requireOptions("mse", options, REDUCTION_ONLY);
  const reduced = reductionOf("mse", options);
  return asFunction("mse", () => likeGiven(reduced(square(sub(wide(prediction), wide(target)))), prediction));
}
