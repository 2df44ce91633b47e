/**
 * @file Learning rates that change: functions from the number of updates so far (i32[], from 0) to a scalar. They are
 * traced into the training step, so a program is compiled once and the rate is computed from the state it carries.
 *
 *   warmupCosine   ╱‾‾╲                cosine ‾‾╲            stepDecay ‾‾|__
 *                 ╱    ╲__                       ╲__                        |__
 */
import { add, cast, clamp, div, less, mul, pow, where } from "../api/elementwise.ts";
import { cos } from "../api/math.ts";
import { at } from "../base/invariant.ts";
import { describe, fail, type OptionKinds, requireArray, requireOptions } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { numberOf, type Tensor } from "../trace/tensor.ts";

/** The rate of the update after `step` updates. */
export type Schedule = (step: Tensor) => Tensor;

/** A constant rate, or a schedule. */
export type LearningRate = number | Schedule;

function requireSteps(name: string, counts: Readonly<Record<string, number>>): void {
  for (const [what, count] of Object.entries(counts)) {
    if (Number.isInteger(count) && count > 0) continue;
    fail("InvalidArgument", `${name}: ${what} ${describe(count)}`, "give a whole number of steps from 1 up");
  }
}

function requireRates(name: string, rates: Readonly<Record<string, number>>): void {
  for (const [what, rate] of Object.entries(rates)) {
    if (Number.isFinite(rate)) continue;
    fail("InvalidArgument", `${name}: ${what} ${describe(rate)}`, "give a finite number");
  }
}

/** (step - from) / steps, kept between 0 and 1. */
const progress = (step: Tensor, from: number, steps: number): Tensor =>
  clamp(div(add(cast(step, "f32"), -from), steps), 0, 1);

/**
 * The same rate throughout.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { constant, sgd } from "tidemark/optim";
 *
 * const optimizer = sgd({ lr: constant(0.1) });
 * console.log(optimizer.init(tensor([1])).step.item(), constant(0.1)(tensor(5)).item()); // → 0 0.1
 */
export function constant(value: number): Schedule {
  // one that may differ between calls
  if (numberOf(value)) return () => value as unknown as Tensor;
  requireRates("constant", { value });
  return () => tensor(value);
}

/**
 * From one rate to another along a straight line of `steps` updates, then the second one.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { linear } from "tidemark/optim";
 *
 * const rate = linear(1, 0, 10);
 * console.log([0, 5, 10].map((step) => rate(tensor(step, { dtype: "i32" })).item())); // → [1, 0.5, 0]
 */
export function linear(from: number, to: number, steps: number): Schedule {
  requireRates("linear", { from, to });
  requireSteps("linear", { steps });
  return (step) => add(mul(progress(step, 0, steps), to - from), from);
}

/**
 * peak · (step + 1) / steps, then the peak: the first update already moves.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { linearWarmup } from "tidemark/optim";
 *
 * const rate = linearWarmup(1, 10);
 * console.log([0, 5, 20].map((step) => rate(tensor(step, { dtype: "i32" })).item())); // → [0.1, 0.6, 1]
 */
export function linearWarmup(peak: number, steps: number): Schedule {
  requireRates("linearWarmup", { peak });
  requireSteps("linearWarmup", { steps });
  return (step) => mul(progress(step, -1, steps), peak);
}

/**
 * From peak to end along half a period of the cosine (I. Loshchilov, F. Hutter, ICLR 2017), then the end.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { cosine } from "tidemark/optim";
 *
 * const rate = cosine(1, 100);
 * console.log([0, 50, 100].map((step) => rate(tensor(step, { dtype: "i32" })).item())); // → [1, 0.5, 0]
 */
export function cosine(peak: number, steps: number, end = 0): Schedule {
  requireRates("cosine", { peak, end });
  requireSteps("cosine", { steps });
  return (step) => halfCosine(progress(step, 0, steps), peak, end);
}

// end + (peak - end) · (1 + cos πp) / 2
function halfCosine(p: Tensor, peak: number, end: number): Tensor {
  return add(mul(add(cos(mul(p, Math.PI)), 1), (peak - end) / 2), end);
}

/** Options of {@link warmupCosine}. */
export interface WarmupOptions {
  /** Updates until the peak. */
  readonly warmup: number;
  /** Updates until the end. */
  readonly total: number;
  /** The rate from there on; 0 by default. */
  readonly end?: number;
}

const WARMUP_OPTIONS: OptionKinds<WarmupOptions> = { warmup: "a number", total: "a number", end: "a number" };

/**
 * Linear warm-up over the first `warmup` updates, then the cosine down to `end` at update number `total`.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { warmupCosine } from "tidemark/optim";
 *
 * const rate = warmupCosine(0.1, { warmup: 10, total: 110 });
 * console.log(rate(tensor(60, { dtype: "i32" })).item().toFixed(3)); // "0.050"
 */
export function warmupCosine(peak: number, options: WarmupOptions): Schedule {
  requireOptions("warmupCosine", options, WARMUP_OPTIONS);
  requireRates("warmupCosine", { peak, end: options.end ?? 0 });
  const { warmup, total, end = 0 } = options;
  requireSteps("warmupCosine", { warmup, total, "total - warmup": total - warmup });
  const rise = linearWarmup(peak, warmup);
  return (step) => where(less(step, warmup), rise(step), halfCosine(progress(step, warmup, total - warmup), peak, end));
}

/**
 * start · factor^(step / every).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { exponential } from "tidemark/optim";
 *
 * const rate = exponential(1, 0.5, 10);
 * console.log([0, 10, 20].map((step) => rate(tensor(step, { dtype: "i32" })).item())); // → [1, 0.5, 0.25]
 */
export function exponential(start: number, factor: number, every = 1): Schedule {
  requireRates("exponential", { start, factor });
  requireSteps("exponential", { every });
  return (step) => mul(pow(factor, div(cast(step, "f32"), every)), start);
}

/**
 * start · factor^⌊step / every⌋.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { stepDecay } from "tidemark/optim";
 *
 * const rate = stepDecay(1, 0.5, 10);
 * console.log([0, 9, 10].map((step) => rate(tensor(step, { dtype: "i32" })).item())); // → [1, 1, 0.5]
 */
export function stepDecay(start: number, factor: number, every: number): Schedule {
  requireRates("stepDecay", { start, factor });
  requireSteps("stepDecay", { every });
  // division of i32 truncates
  return (step) => mul(pow(factor, cast(div(step, every), "f32")), start);
}

/**
 * values[i] from update boundaries[i - 1] on: one value more than boundaries, which increase.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { piecewise } from "tidemark/optim";
 *
 * const rate = piecewise([10, 20], [1, 0.5, 0.1]);
 * console.log([0, 10, 20].map((step) => rate(tensor(step, { dtype: "i32" })).item())); // → [1, 0.5, 0.1]
 */
export function piecewise(boundaries: readonly number[], values: readonly number[]): Schedule {
  requireArray("piecewise", "the boundaries", boundaries, "piecewise([10, 20], [0.1, 0.01, 0.001])");
  requireArray("piecewise", "the values", values, "piecewise([10, 20], [0.1, 0.01, 0.001])");
  const increasing = boundaries.every((b, i) => i === 0 || b > at(boundaries, i - 1));
  if (values.length !== boundaries.length + 1 || !increasing) {
    const summary = `piecewise: ${values.length} values for boundaries [${boundaries.join(", ")}]`;
    fail("InvalidArgument", summary, "give increasing boundaries and one value more than boundaries");
  }
  return (step) =>
    boundaries.reduceRight<Tensor>(
      (later, boundary, i) => where(less(step, boundary), at(values, i), later),
      tensor(at(values, values.length - 1)),
    );
}
