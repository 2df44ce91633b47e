/** @file Operators that reduce axes or run along one. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import { isBool, isFloat } from "../../kernel/dtype.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Call, Operator } from "./call.ts";

type Reduce = (x: Tensor, axes: readonly number[], options: { readonly keepDims: boolean }) => Tensor;

/** A reduction over the axes of a node; older versions have them as an attribute. */
const over =
  (reduce: Reduce): Operator =>
  (call) => {
    const x = call.x(0);
    const axes = call.axesFrom(1) ?? [];
    if (axes.length === 0 && call.flag("noop_with_empty_axes")) return x;
    const list = axes.length === 0 ? x.shape.map((_, axis) => axis) : call.axes(axes, x.rank);
    return reduce(x, list, { keepDims: call.flag("keepdims", true) });
  };

/** The mean of whole numbers is a whole number, cut off. */
const mean: Reduce = (x, axes, options) =>
  isFloat(x.dtype)
    ? t.mean(x, axes, options)
    : t.div(t.sum(x, axes, options), elementsOf(axes.map((axis) => at(x.shape, axis))));

/** Before version 13 axes before and from `axis` on are taken together. */
function rows(call: Call, of: (x: Tensor, axis: number) => Tensor): Tensor {
  const x = call.x(0);
  if (call.opset >= 13) return of(x, call.axis(call.int("axis", -1), x.rank));
  const axis = call.int("axis", 1);
  const front = axis < 0 ? axis + x.rank : axis;
  const flat = t.reshape(x, [elementsOf(x.shape.slice(0, front)), elementsOf(x.shape.slice(front))]);
  return t.reshape(of(flat, 1), x.shape);
}

const hardmax = (x: Tensor, axis: number): Tensor => {
  const extent = at(x.shape, axis);
  const first = t.argmax(x, axis, { keepDims: true });
  const numbers = t.reshape(
    t.arange(extent),
    x.shape.map((_, a) => (a === axis ? extent : 1)),
  );
  return t.cast(t.equal(numbers, first), x.dtype);
};

const argument =
  (of: typeof t.argmax): Operator =>
  (call) => {
    const x = call.x(0);
    const axis = call.axis(call.int("axis", 0), x.rank);
    const options = { keepDims: call.flag("keepdims", true) };
    if (!call.flag("select_last_index")) return of(x, axis, options);
    return t.sub(at(x.shape, axis) - 1, of(t.flip(x, axis), axis, options));
  };

function cumulativeSum(call: Call): Tensor {
  const x = call.x(0);
  const axis = call.axis(at(call.numbers(1, "axis"), 0), x.rank);
  const reverse = call.flag("reverse");
  if (!call.flag("exclusive")) return t.cumsum(x, axis, { reverse });
  const extent = at(x.shape, axis);
  const part = reverse ? ([1, extent] as const) : ([0, extent - 1] as const);
  const cut = t.slice(
    x,
    x.shape.map((_, a) => (a === axis ? part : null)),
  );
  const widths = x.shape.map((_, a) =>
    a === axis ? ((reverse ? [0, 1] : [1, 0]) as [number, number]) : ([0, 0] as const),
  );
  return t.cumsum(t.pad(cut, widths), axis, { reverse });
}

const extremum =
  (of: typeof t.max, ofBools: typeof t.any): Reduce =>
  (x, axes, options) =>
    isBool(x.dtype) ? ofBools(x, axes, options) : of(x, axes, options);

const lpNormalization: Operator = (call) => {
  const x = call.x(0);
  const axis = call.axis(call.int("axis", -1), x.rank);
  const size = call.int("p", 2) === 1 ? t.sum(t.abs(x), axis, { keepDims: true }) : t.norm(x, axis, { keepDims: true });
  return t.div(x, size);
};

function reverseSequence(call: Call): Tensor {
  const x = call.x(0);
  const [time, batch] = [call.int("time_axis", 0), call.int("batch_axis", 1)];
  const along = (axis: number, v: Tensor): Tensor =>
    t.reshape(
      v,
      x.shape.map((_, a) => (a === axis ? at(x.shape, axis) : 1)),
    );
  const number = along(time, t.arange(at(x.shape, time)));
  const length = along(batch, call.x(1));
  const from = t.where(t.less(number, length), t.sub(t.sub(length, 1), number), number);
  return t.gather(x, t.broadcastTo(from, x.shape), time);
}

export const REDUCTIONS: Readonly<Record<string, Operator>> = {
  ReduceSum: over(t.sum),
  ReduceMean: over(mean),
  ReduceMax: over(extremum(t.max, t.any)),
  ReduceMin: over(extremum(t.min, t.all)),
  ReduceProd: over(t.prod),
  ReduceL1: over((x, axes, options) => t.sum(t.abs(x), axes, options)),
  ReduceL2: over((x, axes, options) => t.norm(x, axes, options)),
  ReduceSumSquare: over((x, axes, options) => t.sum(t.square(x), axes, options)),
  ReduceLogSum: over((x, axes, options) => t.log(t.sum(x, axes, options))),
  ReduceLogSumExp: over((x, axes, options) => t.logsumexp(x, axes, options)),
  ArgMax: argument(t.argmax),
  ArgMin: argument(t.argmin),
  CumSum: cumulativeSum,
  Softmax: (call) => rows(call, t.softmax),
  LogSoftmax: (call) => rows(call, t.logSoftmax),
  Hardmax: (call) => rows(call, hardmax),
  LpNormalization: lpNormalization,
  ReverseSequence: reverseSequence,
};
