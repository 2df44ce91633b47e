/** @file The times of a solution, as users give them: points at which the state is wanted, or a span. */
import { cast } from "../api/elementwise.ts";
import { fullOf } from "../api/operands.ts";
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { describe, fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { numberOf, Tensor } from "../trace/tensor.ts";

/** From one time to another, forwards or backwards; the result is the state at the end. */
export interface Span {
  readonly from: number | Tensor;
  readonly to: number | Tensor;
  /** Equal steps; "dopri5" chooses its steps itself without. */
  readonly steps?: number;
}

/** Points, the first of which belongs to y0: the result has the states at all of them, stacked. Or a span. */
export type Times = readonly number[] | Tensor | Span;

const SPAN: OptionKinds<Span> = { from: "anything", to: "anything", steps: "a number" };

/** Times as f64 tensors. */
export type ReadTimes =
  | { readonly kind: "points"; readonly points: Tensor; readonly count: number }
  | { readonly kind: "span"; readonly from: Tensor; readonly to: Tensor; readonly steps: number | undefined };

function instant(name: string, what: string, time: unknown): Tensor {
  if (typeof time === "number" && Number.isFinite(time)) return fullOf("f64", [], time);
  const number = numberOf(time);
  if (number) return number.as("f64");
  if (time instanceof Tensor && time.rank === 0 && isFloat(time.dtype)) return cast(time, "f64");
  return fail("InvalidArgument", `${name}: ${what} is ${describe(time)}`, "give a finite number, or a float scalar");
}

/** @internal */
export function requirePositive(name: string, what: string, count: number): void {
  if (Number.isInteger(count) && count >= 1 && count < 2 ** 31) return;
  fail("InvalidArgument", `${name}: ${what} is ${describe(count)}`, "give a whole number from 1 up");
}

function requireOneDirection(name: string, points: readonly number[]): void {
  const bad = points.findIndex((time) => typeof time !== "number" || !Number.isFinite(time));
  if (bad >= 0) fail("InvalidArgument", `${name}: time ${bad} is ${describe(points[bad])}`, "times are finite numbers");
  const way = Math.sign((points.at(-1) ?? 0) - (points[0] ?? 0));
  const wrong = points.findIndex((time, i) => i > 0 && (time - at(points, i - 1)) * (way || 1) < 0);
  if (wrong < 0) return;
  const summary = `${name}: time ${wrong} is ${points[wrong]} after ${points[wrong - 1]}, against the direction of the others`;
  fail("InvalidArgument", summary, "give times in order, rising or falling");
}

export function readTimes(name: string, times: Times): ReadTimes {
  if (times instanceof Tensor) {
    const [count] = times.shape;
    if (times.rank !== 1 || !count || !isFloat(times.dtype)) {
      fail("InvalidArgument", `${name}: the times are ${typeText(times)}`, "give a list of floats, f64[n] with n ≥ 1");
    }
    return { kind: "points", points: cast(times, "f64"), count };
  }
  if (Array.isArray(times)) {
    const points = times as readonly number[];
    if (points.length === 0) fail("InvalidArgument", `${name}: there are no times`, "give at least that of y0");
    requireOneDirection(name, points);
    return { kind: "points", points: tensor(new Float64Array(points)), count: points.length };
  }
  if (typeof times !== "object" || times === null) {
    fail(
      "InvalidArgument",
      `${name}: the times are ${describe(times)}`,
      "give a list, or { from: 0, to: 1, steps: 100 }",
    );
  }
  const span = times as Span;
  requireOptions(`${name}: times`, span, SPAN);
  if (span.steps !== undefined) requirePositive(name, "steps", span.steps);
  const [from, to] = [instant(name, "from", span.from), instant(name, "to", span.to)];
  return { kind: "span", from, to, steps: span.steps };
}
