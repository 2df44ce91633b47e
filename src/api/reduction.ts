/** @file What losses share: reductions of the losses of single examples, and checks of their arguments. */

import { at } from "../base/invariant.ts";
import { guess } from "../base/suggest.ts";
import { sameShape, typeText } from "../ir/type.ts";
import { fail, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { agreed } from "../trace/weak.ts";
import { requireFloat } from "./operands.ts";
import { mean, sum } from "./reduce.ts";

/** What becomes of the losses of single examples. */
export type Reduction = "mean" | "sum" | "none";

/** Options of losses. */
export interface LossOptions {
  /** "mean" by default. */
  readonly reduction?: Reduction;
}

/** Each way from the losses of single examples to the result. */
const REDUCTIONS: Readonly<Record<Reduction, (losses: Tensor) => Tensor>> = {
  mean: (losses) => mean(losses),
  sum: (losses) => sum(losses),
  none: (losses) => losses,
};

/** The reduction that options name. @internal */
export function requireReduction(name: string, { reduction = "mean" }: LossOptions): Reduction {
  if (Object.hasOwn(REDUCTIONS, reduction)) return reduction;
  const names = Object.keys(REDUCTIONS);
  const help = `${guess(String(reduction), names)}reductions are ${names.join(", ")}`;
  return fail("InvalidArgument", `${name}: there is no reduction ${JSON.stringify(reduction)}`, help);
}

/** That reduction as a function. @internal */
export function reductionOf(name: string, options: LossOptions): (losses: Tensor) => Tensor {
  return REDUCTIONS[requireReduction(name, options)];
}

/** A number among the options. @internal */
export function requireNumber(name: string, option: readonly [string, number], isRight: boolean, help: string): void {
  if (!isRight) fail("InvalidArgument", `${name}: ${option[0]} is ${option[1]}`, help);
}

/** Floats of one type and shape, by name; constants without a type take that of the others. @internal */
export function requireAlike(name: string, given: Readonly<Record<string, Tensor>>): readonly Tensor[] {
  for (const [what, x] of Object.entries(given)) requireTensor(name, what, x);
  const tensors = agreed(Object.values(given));
  const first = at(tensors, 0);
  requireFloat(name, first);
  tensors.forEach((x, i) => {
    const isAlike = sameShape(x.shape, first.shape) && x.dtype === first.dtype;
    if (isAlike) return;
    const [a, b] = [Object.keys(given)[0], Object.keys(given)[i]];
    const code = x.dtype === first.dtype ? "ShapeMismatch" : "DtypeMismatch";
    const help =
      x.dtype === first.dtype ? `give both the same shape: broadcastTo repeats elements` : "cast one of them";
    fail(code, `${name}: ${a} ${typeText(first)} and ${b} ${typeText(x)} differ`, help);
  });
  return tensors;
}
