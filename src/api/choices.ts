/** @file Drawing integers, categories and samples, and the exponential and Gumbel numbers that choose among them. */
import { at } from "../base/invariant.ts";
import { type Shape, typeText } from "../ir/type.ts";
import { type FloatType, isFloat, significandBits } from "../kernel/dtype.ts";
import * as ops from "../ops/random.ts";
import { describe, fail, type OptionKinds, requireOptions, requireShape, requireTensor } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { type DrawOptions, optionsOf, permutation } from "./draws.ts";
import { add, div, less, minimum, mul, neg, stopGradient, sub } from "./elementwise.ts";
import { take } from "./indexing.ts";
import { concat } from "./join.ts";
import { requireDraw, requireKey, STREAM } from "./keys.ts";
import { log, log1p } from "./math.ts";
import { constantOf, normalAxis } from "./operands.ts";
import { argmax, cumsum, sum } from "./reduce.ts";
import { broadcastTo, expandDims, reshape, slice } from "./shape.ts";
import { topK } from "./sort.ts";

/** Integers from lo up to but not including hi, i32; all alike to 2⁻³². */
export function randint(from: Tensor, shape: Shape, lo: number, hi: number): Tensor {
  requireDraw("random.randint", from, shape);
  const whole = [lo, hi].every((n) => Number.isInteger(n) && Math.abs(n) <= 2 ** 31);
  if (!whole || lo >= hi || hi - lo > 2 ** 32) {
    const message = `random.randint: nothing is in [${describe(lo)}, ${describe(hi)})`;
    fail("InvalidArgument", message, "lo and hi are whole numbers of 32 bits, lo below hi");
  }
  return applyOp(ops.randomInteger, [from], { shape, lo, hi, stream: STREAM.draw });
}

const DRAW: OptionKinds<DrawOptions> = { dtype: "a float type" };

/** Uniform in (0, 1), near 0 in steps much finer than the grid, so that logarithms have their tails. @internal */
export function fineUniform(from: Tensor, shape: Shape, dtype: FloatType): Tensor {
  // spacing of uniform numbers, which is also how far they stay below 1
  const grid = 2 ** -significandBits(dtype);
  const coarse = applyOp(ops.randomUniform, [from], { shape, dtype, stream: STREAM.draw });
  const fine = applyOp(ops.randomUniform, [from], { shape, dtype, stream: STREAM.fine });
  return minimum(add(coarse, add(mul(fine, grid), grid * grid)), 1 - grid);
}

/** Exponential, with mean 1. */
export function exponential(from: Tensor, shape: Shape, given: DrawOptions | FloatType = {}): Tensor {
  const options = optionsOf(given);
  requireDraw("random.exponential", from, shape);
  requireOptions("random.exponential", options, DRAW);
  return neg(log1p(neg(fineUniform(from, shape, options.dtype ?? "f32"))));
}

/** Gumbel: -log of an exponential number. The largest of logits + Gumbel numbers is a draw by softmax(logits). */
export function gumbel(from: Tensor, shape: Shape, given: DrawOptions | FloatType = {}): Tensor {
  const options = optionsOf(given);
  requireDraw("random.gumbel", from, shape);
  requireOptions("random.gumbel", options, DRAW);
  return neg(log(exponential(from, shape, options)));
}

/** A tensor of floats with at least one element along its last axis. */
function requireWeights(name: string, role: string, x: Tensor): asserts x is Tensor {
  requireTensor(name, role, x);
  if (!isFloat(x.dtype)) {
    fail("DtypeMismatch", `${name}: ${role} are floats, got ${typeText(x)}`, 'convert them: x.cast("f32")');
  }
  if (x.rank >= 1 && at(x.shape, x.rank - 1) > 0) return;
  fail("ShapeMismatch", `${name}: ${role} ${typeText(x)} have no categories`, "they are along the last axis");
}

/**
 * Positions along the last axis drawn by softmax(logits), i32: one for each row, `shape` times. A logit of -∞ is never drawn unless
 * all are, which gives 0; NaN is drawn first. Without derivative.
 *
 * @example
 * import { random, tensor } from "tidemark";
 *
 * const draws = random.categorical(random.key(0), tensor([0, Number.NEGATIVE_INFINITY, 0]), [1000]);
 * console.log(draws.equal(1).sum().item()); // 0
 */
export function categorical(from: Tensor, logits: Tensor, shape: Shape = []): Tensor {
  requireKey("random.categorical", from);
  requireShape("random.categorical", shape);
  requireWeights("random.categorical", "logits", logits);
  const all = [...shape, ...logits.shape];
  const noise = gumbel(from, all, { dtype: logits.dtype as FloatType });
  return argmax(add(broadcastTo(stopGradient(logits), all), noise), -1);
}

/**
 * How often each category comes up in n draws with probabilities p, along the last axis: i32. p need not add up to 1. Takes n
 * comparisons for each category. Without derivative.
 */
export function multinomial(from: Tensor, n: number, p: Tensor): Tensor {
  requireKey("random.multinomial", from);
  if (typeof n !== "number") {
    fail("InvalidArgument", `random.multinomial: n is ${describe(n)}`, "give the number of draws, then probabilities");
  }
  requireShape("random.multinomial", [n]);
  requireWeights("random.multinomial", "p", p);
  const lead = p.shape.slice(0, -1);
  const sums = cumsum(stopGradient(p), -1);
  const last = at(p.shape, p.rank - 1) - 1;
  const every = lead.map(() => null);
  const inner = slice(sums, [...every, [0, last]]);
  const total = slice(sums, [...every, [last, last + 1]]);
  const u = applyOp(ops.randomUniform, [from], {
    shape: [...lead, n],
    dtype: p.dtype as FloatType,
    stream: STREAM.draw,
  });
  // draws below the end of each category but the last, which has the rest
  const below = sum(less(expandDims(u, -2), expandDims(div(inner, total), -1)), -1);
  const ends = concat([below, constantOf("random.multinomial", n, "i32", [...lead, 1])], -1);
  const starts = concat([constantOf("random.multinomial", 0, "i32", [...lead, 1]), below], -1);
  return sub(ends, starts);
}

/** x with its rows along an axis in random order. */
export function shuffle(from: Tensor, x: Tensor, axis = 0): Tensor {
  requireKey("random.shuffle", from);
  requireTensor("random.shuffle", "x", x);
  const along = normalAxis("random.shuffle", axis, x);
  return take(x, permutation(from, at(x.shape, along)), along);
}

/**
 * Options of `random.choice`.
 *
 * @example
 * import { type ChoiceOptions, random, tensor } from "tidemark";
 *
 * const options: ChoiceOptions = { replace: false };
 * console.log(random.choice(random.key(0), tensor([1, 2, 3]), [3], options).sum().item()); // → 6
 */
export interface ChoiceOptions {
  /** Whether a row may be drawn twice; true by default. */
  readonly replace?: boolean;
  /** Probabilities of the rows, need not add up to 1; all alike by default. */
  readonly p?: Tensor;
  /** Rows are along this axis; 0 by default. */
  readonly axis?: number;
}

const CHOICE: OptionKinds<ChoiceOptions> = { replace: "a boolean", p: "a tensor", axis: "a number" };

/** Numbers of drawn rows. */
function chosen(from: Tensor, rows: number, shape: Shape, { replace = true, p }: ChoiceOptions): Tensor {
  const count = shape.reduce((n, extent) => n * extent, 1);
  if (count > 0 && (rows < 1 || (!replace && count > rows))) {
    const message = `random.choice: ${count} of ${rows} rows${replace ? "" : " without replacement"}`;
    fail("InvalidArgument", message, "draw fewer, or with replacement from at least one row");
  }
  if (p && (p.rank !== 1 || at(p.shape, 0) !== rows)) {
    fail("ShapeMismatch", `random.choice: p ${typeText(p)} for ${rows} rows`, `give f32[${rows}]`);
  }
  if (count === 0) return constantOf("random.choice", 0, "i32", shape);
  if (!replace) {
    if (!p) return reshape(slice(permutation(from, rows), [[0, count]]), shape);
    // the largest of log p + Gumbel numbers are drawn one after the other, each in proportion to what is left
    const noise = gumbel(from, [rows], { dtype: p.dtype as FloatType });
    return reshape(topK(add(log(stopGradient(p)), noise), count).indices, shape);
  }
  return p ? categorical(from, log(stopGradient(p)), shape) : randint(from, shape, 0, rows);
}

/**
 * Rows of x, or numbers below n, drawn at random: `shape` takes the place of the axis. Derivatives go to the rows of x, not to p.
 *
 * @example
 * import { random, tensor } from "tidemark";
 *
 * const rows = random.choice(random.key(1), tensor([[1, 2], [3, 4], [5, 6]]), [2], { replace: false });
 * console.log(rows.shape, random.choice(random.key(2), 10, [4]).dtype); // [2, 2] i32
 */
export function choice(from: Tensor, x: Tensor | number, shape: Shape = [], options: ChoiceOptions = {}): Tensor {
  requireDraw("random.choice", from, shape);
  requireOptions("random.choice", options, CHOICE);
  if (options.p) requireWeights("random.choice", "p", options.p);
  if (!(x instanceof Tensor)) {
    if (!Number.isInteger(x) || x < 0) {
      fail("InvalidArgument", `random.choice: ${describe(x)}`, "give a tensor of rows, or how many numbers there are");
    }
    return chosen(from, x, shape, options);
  }
  const axis = normalAxis("random.choice", options.axis ?? 0, x);
  return take(x, chosen(from, at(x.shape, axis), shape, options), axis);
}
