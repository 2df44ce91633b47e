/**
 * @file The choice of a token from the probabilities of all. What is kept of them follows from their values alone: those above a
 * threshold, and of those equal to it the first ones, so nothing is sorted but a copy of the numbers. A draw is a function of
 * the seed and of the token's number in its text: a text that is continued later continues alike.
 *
 *   probabilities   .1  .4  .2  .2  .1        topK 2 or topP 0.6: threshold .2, one of the two equal ones is kept
 *   kept             ·  .4  .2   ·   ·        a uniform number times their sum falls into one of them
 */
import { threefry, uniformFromBits } from "../base/random.ts";
import type { TypedArray } from "../kernel/dtype.ts";
import { describe, fail } from "../trace/arguments.ts";
import { wordsOf } from "./key.ts";

/** How the next token is drawn. */
export interface SamplingOptions {
  /** Scores are divided by it; at 0 the token with the highest score is taken, of equal ones the first. Default: 1. */
  readonly temperature?: number;
  /** Only so many of the most probable tokens; from the size of the vocabulary on all. */
  readonly topK?: number;
  /** Only the most probable tokens whose probabilities together reach this, above 0 and up to 1. */
  readonly topP?: number;
  /** Equal seeds draw equal tokens. Default: 0. */
  readonly seed?: number;
}

export function requireSampling(
  name: string,
  { temperature = 1, topK = 1, topP = 1, seed = 0 }: SamplingOptions,
): void {
  const wrong = (option: string, value: unknown, help: string): never =>
    fail("InvalidArgument", `${name}: ${option} is ${describe(value)}`, help);
  if (!(Number.isFinite(temperature) && temperature >= 0)) {
    wrong("temperature", temperature, "give a number above 0, or 0 for the token with the highest score");
  }
  if (!(Number.isSafeInteger(topK) && topK >= 1)) wrong("topK", topK, "give a whole number of tokens, 1 or more");
  if (!(topP > 0 && topP <= 1)) wrong("topP", topP, "give a probability above 0, and 1 for all tokens");
  if (!Number.isSafeInteger(seed)) wrong("seed", seed, "a seed is a whole number up to 2^53");
}

/** The stream of draws of tokens. */
const TOKENS = 4;

/** Uniform in [0, 1) for token number `index`. */
export const drawnAt = (seed: number, index: number): number =>
  uniformFromBits(threefry(wordsOf(seed), [index, TOKENS]), 53);

/** The first of the highest; null where one is NaN. */
export function highest(scores: TypedArray): number | null {
  let best = 0;
  for (let token = 0; token < scores.length; token++) {
    const score = Number(scores[token]);
    if (Number.isNaN(score)) return null;
    if (score > Number(scores[best])) best = token;
  }
  return scores.length > 0 ? best : null;
}

/** What is kept: everything above the threshold, and so many of those equal to it. */
interface Kept {
  readonly threshold: number;
  readonly equal: number;
}

function keptOf(probabilities: TypedArray, { topK, topP = 1 }: SamplingOptions): Kept {
  const most = Math.min(topK ?? Number.POSITIVE_INFINITY, probabilities.length);
  if (most === probabilities.length && topP === 1) return { threshold: -1, equal: 0 };
  const sorted = Float64Array.from(probabilities as ArrayLike<number>).sort();
  const total = sorted.reduceRight((sum, p) => sum + p, 0);
  let [sum, count] = [0, 0];
  // topP is a part of what topK leaves
  const of = topK === undefined ? total : sorted.subarray(sorted.length - most).reduceRight((all, p) => all + p, 0);
  while (count < most && (count === 0 || sum < topP * of)) sum += sorted[sorted.length - ++count] ?? 0;
  const threshold = sorted[sorted.length - count] ?? 0;
  let equal = 0;
  while (equal < count && sorted[sorted.length - count + equal] === threshold) equal++;
  return { threshold, equal };
}

/** A token by its probability among those that are kept; `place` is in [0, 1). Null where probabilities are not numbers. */
export function drawn(probabilities: TypedArray, options: SamplingOptions, place: number): number | null {
  const { threshold, equal } = keptOf(probabilities, options);
  const kept: number[] = [];
  let [total, left] = [0, equal];
  for (let token = 0; token < probabilities.length; token++) {
    const p = Number(probabilities[token]);
    if (Number.isNaN(p)) return null;
    if (p < threshold || (p === threshold && left-- <= 0) || p === 0) continue;
    kept.push(token);
    total += p;
  }
  let rest = place * total;
  for (const token of kept) {
    rest -= Number(probabilities[token]);
    if (rest < 0) return token;
  }
  return kept.at(-1) ?? null;
}
