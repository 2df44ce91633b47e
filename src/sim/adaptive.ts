/**
 * @file Dormand-Prince with steps sized by the tolerance. One iteration of a `whileLoop` is one attempt: all stages, an
 * estimate of the error, and either the step or a smaller next attempt.
 *
 *   ──●────────●───────────────●──▫─────●──▶ t        ● ends of accepted steps
 *         ▲            ▲           ▲                  ▫ an attempt that was too long
 *         └────────────┴───────────┴─ wanted times: read off the polynomial over the step they fall into
 *
 * The reverse is the discrete adjoint: the derivative of the steps that were taken, with their sizes as constants.
 * Sizes are chosen from rounded error estimates and change by jumps when an attempt fails; their influence on the
 * result is of the order of the tolerance, and its derivative is noise. The last step ends at the last time whatever
 * its size, so derivatives with respect to times exist too. A failed attempt adds nothing to the gradient, even if the
 * right side overflowed in it. The loop has no bound, so the planner reserves no rows for it: its reverse keeps as many
 * states as fit and recomputes the others.
 */
import { applyGated, whileLoop } from "../api/control.ts";
import {
  abs,
  add,
  cast,
  clamp,
  div,
  equal,
  greater,
  greaterEqual,
  isnan,
  less,
  lessEqual,
  logicalAnd,
  maximum,
  minimum,
  mul,
  notEqual,
  pow,
  sign,
  sqrt,
  square,
  stopGradient,
  sub,
  where,
} from "../api/elementwise.ts";
import { fullOf } from "../api/operands.ts";
import { sum } from "../api/reduce.ts";
import { at } from "../base/invariant.ts";
import { elementsOf } from "../ir/type.ts";
import type { Tensor } from "../trace/tensor.ts";
import { advance, type Field, increment, type Leaves } from "./state.ts";
import { DOPRI5, DOPRI5_BEND, DOPRI5_EMBEDDED, type StepStart, stages, weighted } from "./steps.ts";

export interface Control {
  readonly rtol: number;
  readonly atol: number;
  readonly maxSteps: number;
  /** Undefined: the planner's choice. */
  readonly snapshots: number | undefined;
  /** No larger first attempt. */
  readonly firstStep: number;
}

/** The last accepted step, for reading between its ends. */
export type LastStep = {
  readonly t: Tensor;
  readonly h: Tensor;
  readonly y: Leaves;
  readonly k: Leaves;
  readonly bend: Leaves;
};

/** The position of a solution: the state y at t, its slope k, the size to try next, attempts so far. */
export type Cursor = {
  readonly t: Tensor;
  readonly y: Leaves;
  readonly k: Leaves;
  readonly h: Tensor;
  readonly tries: Tensor;
  /** Empty if no state between steps is needed. */
  readonly last: readonly LastStep[];
};

/** The end of a solution, and its direction: 1, -1, or 0 if start and end are equal. */
export interface Goal {
  readonly end: Tensor;
  readonly way: Tensor;
}

/** The field to integrate, its tolerances, and the end. */
export interface Integration {
  readonly field: Field;
  readonly control: Control;
  readonly goal: Goal;
}

const ERRORS = DOPRI5.b.map((weight, i) => weight - at(DOPRI5_EMBEDDED, i));
const [SAFETY, LEAST_FACTOR, MOST_FACTOR] = [0.9, 0.2, 10];

const f64 = (value: number): Tensor => fullOf("f64", [], value);

/** The root mean square of x / tolerance over all elements of the state. */
function norm(x: Leaves, tolerated: Leaves): Tensor {
  const squares = x.map((leaf, i) => cast(sum(square(div(leaf, at(tolerated, i)))), "f64"));
  const count = x.reduce((n, leaf) => n + elementsOf(leaf.shape), 0);
  return sqrt(
    mul(
      squares.reduce((total, part) => add(total, part)),
      1 / Math.max(1, count),
    ),
  );
}

const tolerance = ({ rtol, atol }: Control, sizes: Leaves): Leaves => sizes.map((y) => add(mul(y, rtol), atol));

/** A first size from how fast the slope itself changes (Hairer, Nørsett, Wanner, II.4). */
function firstSize({ field, control, goal: { end, way } }: Integration, { t, y, k }: StepStart): Tensor {
  const room = abs(sub(end, t));
  const tolerated = tolerance(control, y.map(abs));
  const [size, slope] = [norm(y, tolerated), norm(k, tolerated)];
  const still = minimum(size, slope);
  const guess = minimum(room, where(less(still, 1e-5), f64(1e-6), div(mul(size, 0.01), slope)));
  const there = mul(way, guess);
  const ahead = field(advance(y, there, [[1, k]]), add(t, there));
  const change = ahead.map((leaf, i) => sub(leaf, at(k, i)));
  const steepest = maximum(slope, div(norm(change, tolerated), maximum(guess, 1e-300)));
  const fitting = where(lessEqual(steepest, 1e-15), maximum(mul(guess, 1e-3), 1e-6), pow(div(0.01, steepest), 1 / 5));
  const chosen = minimum(minimum(mul(guess, 100), fitting), minimum(room, control.firstStep));
  // Without an estimate, the first attempts fail and find a size.
  return mul(way, where(isnan(chosen), mul(room, 1e-3), chosen));
}

/** `reads`: states between steps are needed. */
export function begin(integration: Integration, from: Tensor, y0: Leaves, reads: boolean): Cursor {
  const { field } = integration;
  const k = field(y0, from);
  const [t, y, slope] = [stopGradient(from), y0.map(stopGradient), k.map(stopGradient)];
  const h = stopGradient(firstSize(integration, { t, y, k: slope }));
  // One as size: nothing is read off this step, and nothing may divide by its size.
  const last = reads ? [{ t: from, h: f64(1), y: y0, k, bend: y0 }] : [];
  return { t: from, y: y0, k, h, tries: fullOf("i32", [], 0), last };
}

/** The result of a step of size h, and whether it is accepted. No gradient flows through a rejected one. */
interface Trial {
  readonly accepted: Tensor;
  readonly error: Tensor;
  readonly next: Leaves;
  readonly slope: Leaves;
  readonly bend: Leaves;
}

function trial({ field, control }: Integration, { t, y, k }: Cursor, h: Tensor): Trial {
  const n = y.length;
  const results = applyGated([t, h, ...y, ...k], ([from, size, ...rest]) => {
    const [state, first] = [rest.slice(0, n), rest.slice(n)];
    const step = size as Tensor;
    const ks = stages(DOPRI5, field, { t: from as Tensor, y: state, k: first }, step);
    const next = advance(state, step, weighted(DOPRI5.b, ks));
    const sizes = state.map((leaf, i) => maximum(abs(leaf), abs(at(next, i))));
    const off = increment(step, weighted(ERRORS, ks));
    const error = norm(off.map(stopGradient), tolerance(control, sizes.map(stopGradient)));
    const bend = increment(step, weighted(DOPRI5_BEND, ks));
    return [lessEqual(error, 1), error, ...next, ...at(ks, ks.length - 1), ...bend];
  });
  const leaves = (group: number): Leaves => results.slice(2 + group * n, 2 + (group + 1) * n);
  return { accepted: at(results, 0), error: at(results, 1), next: leaves(0), slope: leaves(1), bend: leaves(2) };
}

function attempt(integration: Integration, cursor: Cursor): Cursor {
  const { end } = integration.goal;
  const { t, y, k, tries, last } = cursor;
  const room = sub(end, t);
  const isLast = greaterEqual(abs(cursor.h), abs(room));
  const h = where(isLast, room, stopGradient(cursor.h));
  const { accepted, error, next, slope, bend } = trial(integration, cursor, h);
  const factor = clamp(mul(pow(error, -1 / 5), SAFETY), LEAST_FACTOR, MOST_FACTOR);
  const size = stopGradient(mul(h, where(isnan(error), f64(LEAST_FACTOR), factor)));
  const either = (yes: Leaves, no: Leaves): Leaves => yes.map((leaf, i) => where(accepted, leaf, at(no, i)));
  const read = last.map((before) => ({
    t: where(accepted, t, before.t),
    h: where(accepted, h, before.h),
    y: either(y, before.y),
    k: either(k, before.k),
    bend: either(bend, before.bend),
  }));
  const reached = where(isLast, end, add(t, h));
  return {
    t: where(accepted, reached, t),
    y: either(next, y),
    k: either(slope, k),
    h: size,
    tries: add(tries, 1),
    last: read,
  };
}

const isAhead = (target: Tensor, { way }: Goal, { t }: Cursor): Tensor => greater(mul(sub(target, t), way), 0);

/** Steps until the target is reached or passed, or until no progress is possible. */
export function proceed(integration: Integration, target: Tensor, from: Cursor): Cursor {
  const { control, goal } = integration;
  const goesOn = (cursor: Cursor): Tensor => {
    const hasTries = less(cursor.tries, control.maxSteps);
    const moves = notEqual(add(cursor.t, cursor.h), cursor.t);
    return logicalAnd(isAhead(target, goal, cursor), logicalAnd(hasTries, moves));
  };
  const { snapshots } = control;
  const options = snapshots === undefined ? {} : { snapshots };
  return whileLoop<Cursor>(goesOn, (cursor) => attempt(integration, cursor), from, options);
}

/** 0: the end was reached. 1: not within maxSteps. 2: steps became too small to move at all. */
export function statusOf({ maxSteps }: Control, goal: Goal, cursor: Cursor): Tensor {
  const [done, outOfTries] = [fullOf("i32", [], 0), fullOf("i32", [], 1)];
  const failed = where(greaterEqual(cursor.tries, maxSteps), outOfTries, fullOf("i32", [], 2));
  return where(isAhead(goal.end, goal, cursor), failed, done);
}

/** The state at a time that the cursor has reached or passed; otherwise NaN. */
export function stateAt(goal: Goal, target: Tensor, cursor: Cursor): Leaves {
  const missing = isAhead(target, goal, cursor);
  const read = cursor.last.length === 0 ? cursor.y : readOff(at(cursor.last, 0), target, cursor);
  return read.map((leaf) => where(missing, fullOf(leaf.dtype, leaf.shape, Number.NaN), leaf));
}

/** The polynomial of fourth order over the last step, which has the states and slopes of both ends. */
function readOff({ t, h, y, k, bend }: LastStep, target: Tensor, cursor: Cursor): Leaves {
  const part = div(sub(target, t), h);
  const isEnd = equal(target, cursor.t);
  return y.map((from, i) => {
    const to = at(cursor.y, i);
    const theta = cast(part, from.dtype);
    const rest = sub(1, theta);
    const [size, difference] = [cast(h, from.dtype), sub(to, from)];
    const rise = sub(mul(size, at(k, i)), difference);
    const fall = sub(sub(difference, mul(size, at(cursor.k, i))), rise);
    const inner = add(fall, mul(rest, at(bend, i)));
    const curve = add(from, mul(theta, add(difference, mul(rest, add(rise, mul(theta, inner))))));
    return where(isEnd, to, curve);
  });
}

export const goalOf = (from: Tensor, end: Tensor): Goal => ({ end, way: stopGradient(sign(sub(end, from))) });
