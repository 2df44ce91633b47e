/**
 * @file Cross entropy of a linear layer without its logits: tokens are taken in strips, and the logits of one strip become its
 * losses and, in place, their own gradient, before those of the next strip are computed.
 *
 *   h [tokens, width]      one strip                                       kept
 *   ┌──────────────┐
 *   │ strip 0      │──→ logits [strip, classes] ──→ losses                 [tokens]
 *   ├──────────────┤             │ in place
 *   │ strip 1      │             ↓
 *   ├──────────────┤    gradient of the logits ──→ rows of that of h       [tokens, width]
 *   │ …            │                           ──→ added to that of w      [width, classes]
 *   └──────────────┘
 *
 * The cotangent of a loss that is one scalar only scales gradients, so they are computed in the loop that computes the loss. That
 * is a rule of forward mode, t ↦ ⟨dh, t_h⟩ + ⟨dw, t_w⟩ + ⟨db, t_b⟩, whose loop equals that of the value: in a joint program
 * both are one (passes/cse.ts), and where only the loss is read the gradients drop out of the loop (passes/narrow.ts). Losses
 * of single tokens have cotangents of their own, so with the reduction "none" the reverse recomputes logits.
 *
 * Every strip is a checkpoint: derivatives of the gradients recompute a strip as well.
 */

import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { LONGEST_DEPTH } from "../kernel/loops.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction, currentTrace } from "../trace/trace.ts";
import { agreed } from "../trace/weak.ts";
import { FULL } from "./autocast-mode.ts";
import { scan } from "./control.ts";
import { checkpoint, customJvp } from "./custom.ts";
import { add, cast, div, greaterEqual, less, logicalAnd, mul, notEqual, square, sub, where } from "./elementwise.ts";
import { likeGiven, wide } from "./full-precision.ts";
import { gather, oneHotMask } from "./indexing.ts";
import { concat } from "./join.ts";
import { matmul } from "./linear.ts";
import { shiftOf } from "./log-sum.ts";
import { exp, log } from "./math.ts";
import { fullOf, requireFloat } from "./operands.ts";
import { sum } from "./reduce.ts";
import { type LossOptions, requireReduction } from "./reduction.ts";
import { expandDims, reshape, slice } from "./shape.ts";

/** Options of {@link linearCrossEntropy}. */
export interface LinearCrossEntropyOptions extends LossOptions {
  /** Added to the logits, [classes]. */
  readonly bias?: Tensor;
  /** w is [classes, width], as the table of an embedding is, and not [width, classes]. */
  readonly transposed?: boolean;
  /** Tokens with this target have a loss of zero, no gradient, and do not count in a mean. */
  readonly ignoreIndex?: number;
  /** The part of every target that is spread evenly over all classes, from 0 to 1. */
  readonly labelSmoothing?: number;
  /** Adds zLoss · (log Σ e^logit)² to the loss of every token, which holds logits near zero. */
  readonly zLoss?: number;
  /** Tokens whose logits exist at once; 1,024 by default. */
  readonly strip?: number;
}

const OPTIONS: OptionKinds<LinearCrossEntropyOptions> = {
  reduction: "anything",
  bias: "a tensor",
  transposed: "a boolean",
  ignoreIndex: "a number",
  labelSmoothing: "a number",
  zLoss: "a number",
  strip: "a number",
};

const DEFAULT_STRIP = 1024;

/** What the logits of a strip are computed from, beside the strip. */
interface Head {
  readonly w: Tensor;
  readonly bias: Tensor | null;
}

const sharedOf = ({ w, bias }: Head): readonly Tensor[] => (bias ? [w, bias] : [w]);
const headOf = ([w, bias]: readonly Tensor[]): Head => ({ w: w as Tensor, bias: bias ?? null });

/** How losses follow from logits. */
interface Recipe {
  readonly transposed: boolean;
  readonly smoothing: number;
  readonly zLoss: number;
  readonly ignored: number | null;
  readonly strip: number;
}

/** Some tokens: rows of h with their targets. */
interface Tokens {
  readonly rows: Tensor;
  readonly targets: Tensor;
}

/** Logits of tokens, from the greatest down: nothing else is kept of them, so that one strip of memory holds all. */
interface Logits {
  /** logit - greatest, [tokens, classes]. */
  readonly below: Tensor;
  /** The greatest logit, and log Σ e^below; [tokens, 1]. */
  readonly top: Tensor;
  readonly logTotal: Tensor;
}

function logitsOf({ rows }: Tokens, { w, bias }: Head, { transposed }: Recipe): Logits {
  const product = matmul(rows, w, { tb: transposed });
  const logits = wide(bias ? add(product, bias) : product);
  const top = shiftOf(logits, -1);
  const below = sub(logits, top);
  return { below, top, logTotal: log(sum(exp(below), -1, { keepDims: true })) };
}

const classesOf = ({ below }: Logits): number => at(below.shape, 1);

/** Which tokens count. */
const counts = (targets: Tensor, { ignored }: Recipe): Tensor | null =>
  ignored === null ? null : notEqual(targets, ignored);

const inRange = (targets: Tensor, classes: number): Tensor =>
  logicalAnd(greaterEqual(targets, 0), less(targets, classes));

/** With s the smoothing: log Σ e^l - (1 - s) · l[target] - s · mean l + z · (log Σ e^l)², of each token. */
function lossesOf(logits: Logits, targets: Tensor, recipe: Recipe): Tensor {
  const { below, top, logTotal } = logits;
  const { smoothing, zLoss } = recipe;
  const classes = classesOf(logits);
  const own = gather(below, expandDims(targets, 1), 1);
  const spread = smoothing === 0 ? null : mul(sum(below, -1, { keepDims: true }), smoothing / classes);
  const plain = sub(logTotal, spread ? add(mul(own, 1 - smoothing), spread) : own);
  const each = zLoss === 0 ? plain : add(plain, mul(square(add(top, logTotal)), zLoss));
  const known = where(inRange(targets, classes), reshape(each, targets.shape), Number.NaN);
  const counted = counts(targets, recipe);
  return counted ? where(counted, known, 0) : known;
}

/**
 * The derivative of a loss by its logits, e^l / Σ e^l · (1 + 2z · log Σ e^l) - (1 - s) · [target] - s / classes, times what
 * `each` token weighs.
 */
function gradientOf(logits: Logits, targets: Tensor, recipe: Recipe, each: Tensor): Tensor {
  const { below, top, logTotal } = logits;
  const { smoothing, zLoss } = recipe;
  const classes = classesOf(logits);
  const counted = counts(targets, recipe);
  const within = inRange(targets, classes);
  const weight = expandDims(where(counted ? logicalAnd(counted, within) : within, each, 0), 1);
  const scale = zLoss === 0 ? weight : mul(weight, add(mul(add(top, logTotal), 2 * zLoss), 1));
  const rest = smoothing / classes;
  const wanted = where(oneHotMask(targets, classes), mul(weight, 1 - smoothing + rest), mul(weight, rest));
  return sub(mul(exp(sub(below, logTotal)), scale), wanted);
}

/** Gradients leave products as they were added up, where these are of f32 that `autocast` rounds. */
const unrounded = (x: Tensor): { readonly result?: "f32" } => (x.dtype === FULL ? { result: "f32" } : {});

/** sum + aᵀ·b, in the order in which one product over all tokens adds: runs along the depth, one after the other. */
function addProduct(start: Tensor, a: Tensor, b: Tensor): Tensor {
  const runs = at(a.shape, 0) / LONGEST_DEPTH;
  const step = (before: Tensor, x: Tensor, y: Tensor): Tensor =>
    add(before, matmul(x, y, { ta: true, ...unrounded(x) }));
  if (runs <= 1 || !Number.isInteger(runs)) return step(start, a, b);
  const cut = (x: Tensor): Tensor => reshape(x, [runs, LONGEST_DEPTH, at(x.shape, 1)]);
  return scan((before: Tensor, [x, y]: [Tensor, Tensor]) => [step(before, x, y), []], start, [cut(a), cut(b)])[0];
}

/** Sums so far and some tokens → sums with these tokens, and rows of [tokens, …]. */
type Strip = (sums: readonly Tensor[], tokens: Tokens) => readonly [sums: readonly Tensor[], rows: readonly Tensor[]];

/** The losses of tokens, [tokens]. */
const lossStrip =
  (recipe: Recipe, head: Head): Strip =>
  (sums, tokens) => {
    const strip = (rows: Tensor, targets: Tensor): Tensor =>
      lossesOf(logitsOf({ rows, targets }, head, recipe), targets, recipe);
    return [sums, [checkpoint(strip)(tokens.rows, tokens.targets)]];
  };

/** Losses and the gradient of rows; the sums are the gradients of w and of the bias, if there is one. */
const gradientStrip =
  (recipe: Recipe, head: Head, each: Tensor): Strip =>
  (sums, tokens) => {
    const strip = (rows: Tensor, targets: Tensor, [dw, db]: readonly Tensor[]): ReturnType<Strip> => {
      const logits = logitsOf({ rows, targets }, head, recipe);
      const losses = lossesOf(logits, targets, recipe);
      const g = gradientOf(logits, targets, recipe, each);
      const product = recipe.transposed ? addProduct(dw as Tensor, g, rows) : addProduct(dw as Tensor, rows, g);
      const dh = matmul(g, head.w, { tb: !recipe.transposed, ...unrounded(g) });
      return [
        [product, ...(db ? [add(db, sum(g, 0))] : [])],
        [losses, dh],
      ];
    };
    return checkpoint(strip)(tokens.rows, tokens.targets, sums);
  };

/** All strips, one after the other; the last one may be shorter. */
function overStrips(
  { rows, targets }: Tokens,
  length: number,
  first: readonly Tensor[],
  strip: Strip,
): ReturnType<Strip> {
  const count = at(targets.shape, 0);
  const whole = Math.floor(count / length);
  if (count <= length) return strip(first, { rows, targets });
  const all = whole * length;
  const stacks = {
    rows: reshape(slice(rows, [[0, all]]), [whole, length, at(rows.shape, 1)]),
    targets: reshape(slice(targets, [[0, all]]), [whole, length]),
  };
  const [sums, made] = scan(strip as (sums: readonly Tensor[], tokens: Tokens) => [Tensor[], Tensor[]], first, stacks);
  const flat = made.map((y) => reshape(y, [all, ...y.shape.slice(2)]));
  if (all === count) return [sums, flat];
  const [last, end] = strip(sums, { rows: slice(rows, [[all, count]]), targets: slice(targets, [[all, count]]) });
  return [last, flat.map((y, i) => concat([y, at(end, i)]))];
}

/** Losses of tokens, whatever becomes of them. */
function losses(tokens: Tokens, head: Head, recipe: Recipe): Tensor {
  // A loop has a state.
  const nothing = fullOf("i32", [], 0);
  return at(overStrips(tokens, recipe.strip, [nothing], lossStrip(recipe, head))[1], 0);
}

/** The number of tokens that count, as a float. */
function countOf(targets: Tensor, recipe: Recipe, { dtype }: Tensor): Tensor {
  const counted = counts(targets, recipe);
  return counted ? cast(sum(counted), dtype) : fullOf(dtype, [], at(targets.shape, 0));
}

/** A loss as one scalar, and its gradients. */
interface Gradients {
  readonly loss: Tensor;
  readonly dh: Tensor;
  /** Of w and of the bias, if there is one. */
  readonly shared: readonly Tensor[];
}

function gradients(tokens: Tokens, head: Head, recipe: Recipe, isMean: boolean): Gradients {
  const { rows, targets } = tokens;
  const count = isMean ? countOf(targets, recipe, rows) : fullOf(rows.dtype, [], 1);
  // -0 + x is x, whatever its sign.
  const first = sharedOf(head).map(({ dtype, shape }) => fullOf(dtype, shape, -0));
  const strip = gradientStrip(recipe, head, div(1, count));
  const [shared, [each, dh]] = overStrips(tokens, recipe.strip, first, strip);
  return { loss: div(sum(each as Tensor), count), dh: dh as Tensor, shared };
}

/** The loss, of which a derivative is a sum of products with gradients. */
function scalarLoss(tokens: Tokens, head: Head, recipe: Recipe, isMean: boolean): Tensor {
  const along = (gradient: Tensor, tangent: Tensor): Tensor => sum(mul(gradient, tangent));
  const loss = customJvp(
    (h: Tensor, shared: readonly Tensor[], targets: Tensor) =>
      gradients({ rows: h, targets }, headOf(shared), recipe, isMean).loss,
    ([h, shared, targets], [th, tangents]) => {
      const made = gradients({ rows: h, targets }, headOf(shared), recipe, isMean);
      return made.shared.reduce((total, dw, i) => add(total, along(dw, at(tangents, i))), along(made.dh, th));
    },
  );
  if (currentTrace()) return loss(tokens.rows, sharedOf(head), tokens.targets);
  const total = sum(losses(tokens, head, recipe));
  return isMean ? div(total, countOf(tokens.targets, recipe, tokens.rows)) : total;
}

/** What is given, in shapes and types that fit together. */
interface Given {
  readonly h: Tensor;
  readonly head: Head;
}

function requireWeights(h: Tensor, { w, bias }: Head, transposed: boolean): void {
  const width = h.shape.at(-1);
  const [inner, classes] = transposed ? [w.shape[1], w.shape[0]] : w.shape;
  if (h.rank === 0 || w.rank !== 2 || inner !== width) {
    const isOther = w.rank === 2 && classes === width;
    fail(
      "ShapeMismatch",
      `linearCrossEntropy: h ${typeText(h)} and w ${typeText(w)} do not match`,
      isOther
        ? `w seems to be ${transposed ? "[width, classes]" : "[classes, width]"}: { transposed: ${!transposed} }`
        : `h is [..., width], w ${transposed ? "[classes, width]" : "[width, classes]"}`,
    );
  }
  const wrong = sharedOf({ w, bias }).find(({ dtype }) => dtype !== h.dtype);
  if (wrong) {
    const summary = `linearCrossEntropy: h is ${typeText(h)}, ${wrong === w ? "w" : "the bias"} ${typeText(wrong)}`;
    fail("DtypeMismatch", summary, "cast one of them");
  }
  if (!bias || sameShape(bias.shape, [classes as number])) return;
  const summary = `linearCrossEntropy: the bias is ${typeText(bias)}, there are ${classes} classes`;
  fail("ShapeMismatch", summary, `give ${h.dtype}[${classes}]`);
}

function requireGiven(h: Tensor, w: Tensor, targets: Tensor, options: LinearCrossEntropyOptions): Given {
  requireFloat("linearCrossEntropy", h);
  requireTensor("linearCrossEntropy", "w", w);
  const example = 'class numbers are an i32 tensor: tensor([3, 1], { dtype: "i32" })';
  requireTensor("linearCrossEntropy", "targets", targets, example);
  const [rows = h, ...shared] = agreed([h, ...sharedOf({ w, bias: options.bias ?? null })]).map(wide);
  requireWeights(rows, headOf(shared), options.transposed ?? false);
  if (!isIndexType(targets.dtype) || !sameShape(targets.shape, h.shape.slice(0, -1))) {
    const summary = `linearCrossEntropy: h ${typeText(h)} and targets ${typeText(targets)} do not match`;
    fail("ShapeMismatch", summary, `targets are class numbers i32[${h.shape.slice(0, -1).join(",")}]`);
  }
  return { h: rows, head: headOf(shared) };
}

function recipeOf(options: LinearCrossEntropyOptions): Recipe {
  const { transposed = false, ignoreIndex, labelSmoothing = 0, zLoss = 0, strip = DEFAULT_STRIP } = options;
  const requireNumber = (name: string, value: number, isRight: boolean, help: string): void => {
    if (!isRight) fail("InvalidArgument", `linearCrossEntropy: ${name} is ${value}`, help);
  };
  requireNumber("labelSmoothing", labelSmoothing, labelSmoothing >= 0 && labelSmoothing <= 1, "it is from 0 to 1");
  requireNumber("zLoss", zLoss, Number.isFinite(zLoss) && zLoss >= 0, "it is a factor of 0 or more, 1e-4 for instance");
  requireNumber(
    "strip",
    strip,
    Number.isInteger(strip) && strip > 0,
    "it is a whole number of tokens, best a multiple of 512",
  );
  if (ignoreIndex !== undefined) {
    requireNumber("ignoreIndex", ignoreIndex, (ignoreIndex | 0) === ignoreIndex, "it is a target, a whole number");
  }
  return { transposed, smoothing: labelSmoothing, zLoss, ignored: ignoreIndex ?? null, strip };
}

/**
 * `crossEntropy` of the logits h·w for h [..., width] and class numbers [...] (i32), without the logits of all tokens: those of
 * one strip of tokens exist at a time, and loss and gradients are computed in one pass. For large numbers of classes, where
 * logits are most of a program's memory. A token whose target is out of range has the loss NaN and no gradient; a mean over
 * no tokens is NaN, and its gradients are zero.
 *
 * @example
 * import { linearCrossEntropy, tensor } from "tidemark";
 *
 * const h = tensor([[1, 0], [0, 1]]);
 * const w = tensor([[2, 0, 0], [0, 0, 2]]);
 * const loss = linearCrossEntropy(h, w, tensor([0, 2], { dtype: "i32" }));
 * console.log(loss.item().toFixed(4)); // "0.2395"
 */
export function linearCrossEntropy(
  h: Tensor,
  w: Tensor,
  targets: Tensor,
  options: LinearCrossEntropyOptions = {},
): Tensor {
  requireOptions("linearCrossEntropy", options, OPTIONS);
  const reduction = requireReduction("linearCrossEntropy", options);
  const given = requireGiven(h, w, targets, options);
  const recipe = recipeOf(options);
  return asFunction("linearCrossEntropy", () => {
    const count = targets.elements;
    const tokens = { rows: reshape(given.h, [count, at(h.shape, h.rank - 1)]), targets: reshape(targets, [count]) };
    if (reduction === "none") return likeGiven(reshape(losses(tokens, given.head, recipe), targets.shape), h);
    return likeGiven(scalarLoss(tokens, given.head, recipe, reduction === "mean"), h);
  });
}
