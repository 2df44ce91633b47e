/**
 * @file Connectionist temporal classification: minus the logarithm of the probability that a sequence of frames spells a target, summed
 * over all ways to repeat its letters and to put blanks between them.
 *
 *   target  a b b      letters of a way, s = 0 … 2S:   _ a _ b _ b _        (_ is the blank)
 *
 * A way goes through these from the left, one step a frame: it stays, goes on by one, or skips a blank between different
 * letters. α[s] is the logarithm of the probability of all ways to be at s after a frame:
 *
 *   α'[s] = log(e^α[s] + e^α[s-1] + e^α[s-2] if it may be skipped) + log p(letter s)
 *
 * from α = 0 at s = 0 before the first frame. The loss is -log of the last letter and the blank after it, after the last frame. The
 * reverse of this loop is the backward recurrence: derivatives come from the loop itself.
 */

import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { scan } from "./control.ts";
import { arange } from "./create.ts";
import {
  add,
  cast,
  div,
  equal,
  greater,
  greaterEqual,
  less,
  lessEqual,
  logicalAnd,
  maximum,
  mul,
  neg,
  notEqual,
  stopGradient,
  sub,
  where,
} from "./elementwise.ts";
import { gather } from "./indexing.ts";
import { stack } from "./join.ts";
import { exp, log } from "./math.ts";
import { fullOf, requireFloat } from "./operands.ts";
import { type LossOptions, reductionOf, requireNumber } from "./reduction.ts";
import { expandDims, pad, reshape, slice } from "./shape.ts";

/** Options of {@link ctc}. */
export interface CtcOptions extends LossOptions {
  /** The number of frames of each sequence, i32 [batch]; all by default. */
  readonly inputLengths?: Tensor;
  /** The number of letters of each target, i32 [batch]; all by default. Numbers of `targets` beyond may be anything. */
  readonly targetLengths?: Tensor;
  /** The class number of the blank; 0 by default. */
  readonly blank?: number;
  /** A target that its frames cannot spell has a loss of zero and no gradient, in place of ∞. */
  readonly zeroInfinity?: boolean;
}

const OPTIONS: OptionKinds<CtcOptions> = {
  reduction: "anything",
  inputLengths: "a tensor",
  targetLengths: "a tensor",
  blank: "a number",
  zeroInfinity: "a boolean",
};

const NEVER = Number.NEGATIVE_INFINITY;

/** log Σ eˣ of some tensors of one shape; -∞ where all are, with a derivative of zero. */
function logAdd(terms: readonly Tensor[]): Tensor {
  const top = stopGradient(terms.reduce((a, b) => maximum(a, b)));
  const isNever = equal(top, NEVER);
  const shift = where(isNever, 0, top);
  const total = terms.map((x) => exp(sub(x, shift))).reduce((a, b) => add(a, b));
  return where(isNever, NEVER, add(log(where(isNever, 1, total)), shift));
}

/** Elements along the last axis moved by `by` places to the right. */
function moved(x: Tensor, by: number, fill: number): Tensor {
  const width = at(x.shape, 1);
  const wide = pad(
    x,
    [
      [0, 0],
      [by, 0],
    ],
    fill,
  );
  return slice(wide, [null, [0, width]]);
}

/** What a batch is to spell. */
interface Spelling {
  /** Class numbers of letters and blanks, [batch, 2S + 1]. */
  readonly letters: Tensor;
  /** Where the blank before a letter may be skipped. */
  readonly skips: Tensor;
}

function spellingOf(targets: Tensor, lengths: Tensor, blank: number): Spelling {
  const [batch = 0, most = 0] = targets.shape;
  // Numbers beyond the end of a target may be anything: they count as blanks, which no way ends at.
  const own = where(less(arange(most), expandDims(lengths, 1)), targets, blank);
  const blanks = fullOf("i32", [batch, most], blank);
  const pairs = reshape(stack([blanks, own], 2), [batch, 2 * most]);
  const letters = pad(
    pairs,
    [
      [0, 0],
      [0, 1],
    ],
    blank,
  );
  // -1 is no class
  return { letters, skips: logicalAnd(notEqual(letters, blank), notEqual(letters, moved(letters, 2, -1))) };
}

/** Losses of a batch. */
function lossesOf(logs: Tensor, { letters, skips }: Spelling, { frames, letters: lengths }: Lengths): Tensor {
  const begin = where(equal(arange(at(letters.shape, 1)), 0), fullOf(logs.dtype, letters.shape, 0), NEVER);
  const step = (alpha: Tensor, row: Tensor, t: Tensor): [Tensor, []] => {
    const skipped = where(skips, moved(alpha, 2, NEVER), NEVER);
    const next = add(logAdd([alpha, moved(alpha, 1, NEVER), skipped]), gather(row, letters, 1));
    return [where(expandDims(less(t, frames), 1), next, alpha), []];
  };
  const [last] = scan(step, begin, logs);
  const end = mul(lengths, 2);
  const endAt = (s: Tensor): Tensor => reshape(gather(last, expandDims(s, 1), 1), lengths.shape);
  const letter = where(greater(lengths, 0), endAt(maximum(sub(end, 1), 0)), NEVER);
  return neg(logAdd([endAt(end), letter]));
}

/** Lengths of each sequence and of its target, [batch]. */
interface Lengths {
  readonly frames: Tensor;
  readonly letters: Tensor;
}

const INTEGERS = 'class numbers and lengths are i32 tensors: tensor([3, 1], { dtype: "i32" })';

function requireShapes(logs: Tensor, targets: Tensor): void {
  requireFloat("ctc", logs);
  requireTensor("ctc", "targets", targets, INTEGERS);
  if (!isIndexType(targets.dtype)) fail("DtypeMismatch", `ctc: targets are ${typeText(targets)}`, INTEGERS);
  if (logs.rank !== 3) {
    fail("ShapeMismatch", `ctc: logProbabilities are ${typeText(logs)}`, "give [frames, batch, classes]");
  }
  const batch = at(logs.shape, 1);
  if (targets.rank === 2 && targets.shape[0] === batch) return;
  const summary = `ctc: logProbabilities ${typeText(logs)} and targets ${typeText(targets)} do not match`;
  fail("ShapeMismatch", summary, `targets are i32[${batch},length], shorter ones filled up with anything`);
}

function lengthsOf(logs: Tensor, targets: Tensor, { inputLengths, targetLengths }: CtcOptions): Lengths {
  const batch = at(logs.shape, 1);
  const lengths = (what: string, given: Tensor | undefined, all: number): Tensor => {
    if (given === undefined) return fullOf("i32", [batch], all);
    if (!isIndexType(given.dtype)) return fail("DtypeMismatch", `ctc: ${what} are ${typeText(given)}`, INTEGERS);
    if (sameShape(given.shape, [batch])) return given;
    return fail("ShapeMismatch", `ctc: ${what} are ${typeText(given)} for a batch of ${batch}`, `give i32[${batch}]`);
  };
  return {
    frames: lengths("inputLengths", inputLengths, at(logs.shape, 0)),
    letters: lengths("targetLengths", targetLengths, at(targets.shape, 1)),
  };
}

/**
 * The loss of sequences whose frames are not aligned with their targets, such as speech with a text: logarithms of probabilities
 * [frames, batch, classes] and targets [batch, length], class numbers without blanks. A target that its frames cannot spell
 * has the loss ∞ and no gradient; lengths and class numbers out of range give NaN. A mean is that of losses divided by their target's length.
 *
 * @example
 * import { ctc, tensor } from "tidemark";
 *
 * const logs = tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log(); // two frames, one sequence, the blank and one letter
 * const loss = ctc(logs, tensor([[1]], { dtype: "i32" }));
 * console.log(Math.exp(-loss.item()).toFixed(4)); // "0.7500", all ways but two blanks
 */
export function ctc(logProbabilities: Tensor, targets: Tensor, options: CtcOptions = {}): Tensor {
  requireOptions("ctc", options, OPTIONS);
  const reduced = reductionOf("ctc", options);
  const logs = logProbabilities;
  requireShapes(logs, targets);
  const { blank = 0, zeroInfinity = false, reduction = "mean" } = options;
  const [most = 0, , classes = 0] = logs.shape;
  const isClass = Number.isInteger(blank) && blank >= 0 && blank < classes;
  requireNumber("ctc", ["blank", blank], isClass, `it is a class number below ${classes}`);
  const lengths = lengthsOf(logs, targets, options);
  return asFunction("ctc", () => {
    const losses = lossesOf(logs, spellingOf(targets, lengths.letters, blank), lengths);
    const within = (x: Tensor, limit: number): Tensor => logicalAnd(greaterEqual(x, 0), lessEqual(x, limit));
    const isRight = logicalAnd(within(lengths.frames, most), within(lengths.letters, at(targets.shape, 1)));
    const known = where(isRight, losses, Number.NaN);
    const finite = zeroInfinity ? where(equal(known, Number.POSITIVE_INFINITY), 0, known) : known;
    return reduced(reduction === "mean" ? div(finite, cast(maximum(lengths.letters, 1), logs.dtype)) : finite);
  });
}
