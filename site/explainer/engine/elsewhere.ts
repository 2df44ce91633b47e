/** @file Figures of the page about what else there is: inverses, fewer bits, a second memory, strips. */
import { additiveCoupling } from "../../../src/api/coupling.ts";
import { spec } from "../../../src/api/create.ts";
import { lossyDeviation } from "../../../src/api/deviation.ts";
import { add, square } from "../../../src/api/elementwise.ts";
import { matmul } from "../../../src/api/linear.ts";
import { crossEntropy } from "../../../src/api/loss.ts";
import type { LossyOptions, ResidualBits } from "../../../src/api/lossy-options.ts";
import { tanh } from "../../../src/api/math.ts";
import { random } from "../../../src/api/random.ts";
import { mean } from "../../../src/api/reduce.ts";
import { reversibleChain } from "../../../src/api/reversible.ts";
import { reportPlan } from "../../../src/plan/report.ts";
import type { AnyFunction } from "../../../src/trace/function.ts";
import type { Tensor } from "../../../src/trace/tensor.ts";
import { chainTraining } from "./models.ts";
import { type Planned, plansFor, target, withGradient } from "./plans.ts";

type Pair = readonly [Tensor, Tensor];
type PairParams = readonly (readonly [Tensor, Tensor])[];

const [PAIR_BATCH, PAIR_WIDTH] = [128, 32];

/** Coupled blocks, rebuilt by their inverses or differentiated as they are. */
function coupled(depth: number, inverted: boolean): Planned {
  const half = (x: Tensor, w: Tensor): Tensor => tanh(matmul(x, w));
  const block = additiveCoupling(half, half);
  const chain = reversibleChain(...Array.from({ length: depth }, () => block));
  const plain = (state: Pair, ps: PairParams): Pair =>
    ps.reduce<Pair>(([a, b], [f, g]) => {
      const first = add(a, half(b, f));
      return [first, add(b, half(first, g))];
    }, state);
  const loss = (ps: PairParams, a: Tensor, b: Tensor): Tensor => {
    const [c, d] = inverted ? (chain([a, b], ps) as Pair) : plain([a, b], ps);
    return add(mean(square(c)), mean(square(d)));
  };
  const weight = (): Tensor => spec([PAIR_WIDTH, PAIR_WIDTH]);
  const params = Array.from({ length: depth }, () => [weight(), weight()] as const);
  const x = spec([PAIR_BATCH, PAIR_WIDTH]);
  return { fn: withGradient(loss as AnyFunction, "coupled", ["p", "a", "b"]), args: [params, x, x] };
}

export interface InverseBytes {
  readonly storedBytes: number;
  readonly inverseBytes: number;
  /** Of one pair of states. */
  readonly stateBytes: number;
  /** Time of the program with inverses over that without. */
  readonly slowdown: number;
}

/** A chain of coupled blocks with everything stored, and with inputs rebuilt from outputs. */
export function inverseBytes(depth: number): InverseBytes {
  const stored = plansFor(coupled(depth, false)).storeAll;
  const inverse = plansFor(coupled(depth, true)).choose();
  return {
    storedBytes: stored.arenaBytes,
    inverseBytes: inverse.arenaBytes,
    stateBytes: 2 * PAIR_BATCH * PAIR_WIDTH * 4,
    slowdown: inverse.predictedMs / stored.predictedMs,
  };
}

/** Bits of kept values that all gradients are linear in; 32: as they are. */
export type KeptBits = ResidualBits | 32;

export interface RoundingError {
  /** Distance of the gradient from the exact one over its length, and the cosine of their angle: means over all weights. */
  readonly relative: number;
  readonly cosine: number;
}

const LOSSY_CHAIN = { depth: 6, batch: 256, width: 64 } as const;
const [WEIGHT_SCALE, INPUT_SEED] = [0.15, 99] as const;

const lossyOf = (linear: ResidualBits): LossyOptions => ({ residuals: { linear, rest: 8 } });

/** Bytes of the chain with residuals in a few bits. */
export function lossyBytes(bits: KeptBits): number {
  const planned = chainTraining(LOSSY_CHAIN);
  if (bits === 32) return plansFor(planned).storeAll.arenaBytes;
  return plansFor(planned, { lossy: lossyOf(bits) }).choose().arenaBytes;
}

/** By how much the gradient is off on random numbers: the program runs, with residuals rounded and without. */
export function roundingError(bits: ResidualBits): RoundingError {
  const { depth, batch, width } = LOSSY_CHAIN;
  const draw = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), [...shape]);
  const weights = Array.from({ length: depth }, (_, i) => draw(i, [width, width]).mul(WEIGHT_SCALE));
  const { fn } = chainTraining(LOSSY_CHAIN);
  const measure = lossyDeviation(fn as (...args: never[]) => unknown, { lossy: lossyOf(bits), target });
  const { results } = measure(...([weights, draw(INPUT_SEED, [batch, width])] as never[]));
  // the first result is the loss
  const slopes = results.slice(1);
  const average = (of: (one: (typeof slopes)[number]) => number): number =>
    slopes.reduce((sum, one) => sum + of(one), 0) / slopes.length;
  return { relative: average((one) => one.relative), cosine: average((one) => one.cosine) };
}

export interface Strips {
  readonly storedBytes: number;
  readonly stripBytes: number;
  /** Of the logits of all tokens. */
  readonly logitBytes: number;
  readonly strips: number;
  readonly slowdown: number;
}

const [STRIP_TOKENS, STRIP_WIDTH] = [2048, 64];

/** The loss of a language model over a vocabulary, whole and as small as the planner makes it. */
export function strips(vocabulary: number): Strips {
  const loss = (w: Tensor, h: Tensor, y: Tensor): Tensor => crossEntropy(matmul(h, w), y);
  const args = [spec([STRIP_WIDTH, vocabulary]), spec([STRIP_TOKENS, STRIP_WIDTH]), spec([STRIP_TOKENS], "i32")];
  const plans = plansFor({ fn: withGradient(loss as AnyFunction, "head", ["w", "h", "y"]), args });
  const least = plans.least({});
  const [report] = reportPlan(least.result.plan).strips;
  return {
    storedBytes: plans.storeAll.arenaBytes,
    stripBytes: least.arenaBytes,
    logitBytes: STRIP_TOKENS * vocabulary * 4,
    strips: report?.strips ?? 1,
    slowdown: least.predictedMs / plans.storeAll.predictedMs,
  };
}
