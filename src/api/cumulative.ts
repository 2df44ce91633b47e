/** @file Running extrema and sums of exponentials along an axis. */
import { at } from "../base/invariant.ts";
import type { OpDef } from "../ir/op.ts";
import * as ops from "../ops/scan.ts";
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { customJvp } from "./custom.ts";
import { add, equal, minimum, mul, stopGradient, sub, where } from "./elementwise.ts";
import { concat } from "./join.ts";
import { exp, log } from "./math.ts";
import { normalAxis, requireFloat } from "./operands.ts";
import { linearScan, type ScanAxisOptions } from "./reduce.ts";
import { slice } from "./shape.ts";

const OPTIONS: OptionKinds<ScanAxisOptions> = { reverse: "a boolean" };

function running(op: OpDef<ops.ScanAxisAttrs>, x: Tensor, axis: number, options: ScanAxisOptions): Tensor {
  requireOptions(op.name, options, OPTIONS);
  return applyOp(op, [x], { axis: normalAxis(op.name, axis, x), reverse: options.reverse ?? false });
}

/**
 * The largest element so far along an axis; with `reverse` from its end. From a NaN on it is NaN. Among equal elements a cotangent goes
 * to the last one.
 *
 * @example
 * import { cummax, tensor } from "tidemark";
 *
 * console.log(cummax(tensor([1, 3, 2, 5])).toArray()); // [1, 3, 3, 5]
 */
export function cummax(x: Tensor, axis = 0, options: ScanAxisOptions = {}): Tensor {
  return running(ops.cummax, x, axis, options);
}

/**
 * The smallest element so far along an axis; with `reverse` from its end. Otherwise as `cummax`.
 *
 * @example
 * import { cummin, tensor } from "tidemark";
 *
 * console.log(cummin(tensor([3, 1, 2])).toArray()); // → [3, 1, 1]
 */
export function cummin(x: Tensor, axis = 0, options: ScanAxisOptions = {}): Tensor {
  return running(ops.cummin, x, axis, options);
}

/** The element before, in the order of the scan; the first one before itself. */
function before(x: Tensor, axis: number, reverse: boolean): Tensor {
  const part = (from: number, to: number): Tensor =>
    slice(
      x,
      x.shape.map((_, a) => (a === axis ? ([from, to] as const) : null)),
    );
  const n = at(x.shape, axis);
  return reverse ? concat([part(1, n), part(n - 1, n)], axis) : concat([part(0, 1), part(0, n - 1)], axis);
}

/**
 * log Σ eˣ of the elements so far along an axis, without overflow; with `reverse` from its end.
 *
 * y_i = m_i + log s_i with m the largest so far and s_i = s_(i-1) · e^(m_(i-1) - m_i) + e^(x_i - m_i). What a backward pass keeps is
 * x and y.
 *
 * @example
 * import { logcumsumexp, tensor } from "tidemark";
 *
 * console.log(logcumsumexp(tensor([0, 0])).toArray()); // [0, 0.6931471824645996]
 */
export function logcumsumexp(x: Tensor, axis = 0, options: ScanAxisOptions = {}): Tensor {
  requireFloat("logcumsumexp", x);
  requireOptions("logcumsumexp", options, OPTIONS);
  const along = normalAxis("logcumsumexp", axis, x);
  const { reverse = false } = options;
  if (x.elements === 0) return x;
  const value = (v: Tensor): Tensor => {
    const top = stopGradient(cummax(v, along, { reverse }));
    // ∞ - ∞ would follow
    const shift = where(equal(sub(top, top), 0), top, 0);
    const scale = exp(minimum(sub(before(shift, along, reverse), shift), 0));
    return add(shift, log(linearScan(exp(sub(v, shift)), scale, along, { reverse })));
  };
  // ẏ_i = e^(x_i - y_i) ẋ_i + e^(y_(i-1) - y_i) ẏ_(i-1)
  const tangent = (v: Tensor, t: Tensor): Tensor => {
    const y = value(v);
    const isNothing = equal(y, Number.NEGATIVE_INFINITY);
    const own = where(isNothing, 0, exp(sub(v, where(isNothing, 0, y))));
    const scale = where(isNothing, 0, exp(minimum(sub(before(y, along, reverse), where(isNothing, 0, y)), 0)));
    return linearScan(mul(own, t), scale, along, { reverse });
  };
  return asFunction("logcumsumexp", () => customJvp(value, ([v], [t]) => tangent(v, t))(x));
}
