/** @file Around optimizers: averages of weights, and gradients of a batch that is computed in parts. */

import { FULL, isHalf } from "../api/autocast-mode.ts";
import { scan } from "../api/control.ts";
import { add, mul } from "../api/elementwise.ts";
import { inTypeOf, wide } from "../api/full-precision.ts";
import { valueAndGrad } from "../api/grad.ts";
import { fullOf } from "../api/operands.ts";
import { reshape } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { describe, fail, requireFunction, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { inPhase } from "../trace/trace.ts";
import { flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import type { Optimizer } from "./optimizer.ts";

/**
 * An optimizer that also keeps an average of the weights, `state.slots.average`: average ← decay·average + (1-decay)·params after
 * every update. It starts as the initial weights.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { ema, sgd } from "tidemark/optim";
 *
 * const optimizer = ema(sgd({ lr: 1 }), 0.75);
 * const state = optimizer.update(optimizer.init({ x: tensor([4]) }), { x: tensor([4]) });
 * console.log(state.params.x.toArray(), state.slots.average?.x.toArray()); // [0] [3]
 */
export function ema(optimizer: Optimizer, decay = 0.999): Optimizer {
  if (!(decay >= 0 && decay < 1)) {
    fail("InvalidArgument", `ema: decay ${describe(decay)}`, "give a number of at least 0 and below 1");
  }
  const mapped = <P extends Tree>(trees: readonly P[], fn: (...leaves: Tensor[]) => Tensor): P => {
    const { def, leaves } = flatten(at(trees, 0), "params");
    const others = trees.slice(1).map((tree) => flattenLike(def, tree, "average"));
    return unflatten(
      def,
      leaves.map((leaf, i) => fn(leaf, ...others.map((list) => at(list, i)))),
    ) as P;
  };
  return {
    init: (params) => {
      const state = optimizer.init(params);
      const average = mapped([params], (param) => mul(wide(param), 1));
      return { ...state, slots: { ...state.slots, average } };
    },
    update: (state, grads) => {
      const { average, ...slots } = state.slots;
      const next = optimizer.update({ ...state, slots }, grads);
      const blend = (param: Tensor, past: Tensor): Tensor => add(mul(past, decay), mul(wide(param), 1 - decay));
      const after = inPhase("update", () => mapped([next.params, average as typeof next.params], blend));
      return { ...next, slots: { ...next.slots, average: after } };
    },
  };
}

/** [n, …] → [parts, n/parts, …]. */
function inParts(x: Tensor, parts: number, i: number): Tensor {
  requireTensor("accumulate", `argument ${i + 1}`, x);
  const n = x.shape[0];
  if (n === undefined || n % parts !== 0) {
    const what = n === undefined ? "has no batch" : `has ${n} examples`;
    const summary = `accumulate: argument ${i + 1}, ${typeText(x)}, ${what} for ${parts} parts`;
    fail("ShapeMismatch", summary, "give a number of parts that divides the first axis");
  }
  return reshape(x, [parts, n / parts, ...x.shape.slice(1)]);
}

/**
 * The mean loss and gradients of a batch, computed in equal parts one after the other, in a loop of the program: memory for
 * activations is that of one part. The loss must be a mean over examples; each tensor after the parameters is cut along its first axis.
 *
 * @memory Activations of one part at a time, the sums of gradients, and the gradients of a part.
 *
 * @example
 * import { arange, type Tensor, tensor } from "tidemark";
 * import { accumulate } from "tidemark/optim";
 *
 * const step = accumulate((w: Tensor, x: Tensor) => x.mul(w).square().mean(), 4);
 * const [loss, slope] = step(tensor(1), arange(8, "f32"));
 * console.log(loss.item(), slope.item()); // 17.5 35
 */
export function accumulate<P extends Tree>(
  lossOf: (params: P, ...batch: Tensor[]) => Tensor,
  parts: number,
): (params: P, ...batch: Tensor[]) => readonly [Tensor, P] {
  requireFunction("accumulate", "the loss", lossOf);
  if (!(Number.isInteger(parts) && parts >= 1)) {
    fail("InvalidArgument", `accumulate: ${describe(parts)} parts`, "give a whole number from 1 up");
  }
  return (params, ...batch) => {
    const { leaves, def } = flatten(params, "params");
    const rows = batch.map((x, i) => inParts(x, parts, i));
    const types = leaves.map(({ dtype }) => (isHalf(dtype) ? FULL : dtype));
    const zero = fullOf(at(types, 0), [], 0);
    const zeros = leaves.map((leaf, i) => fullOf(at(types, i), leaf.shape, 0));
    const [sums] = scan(
      (sum: readonly Tensor[], part: readonly Tensor[]) => {
        const [loss, grads] = valueAndGrad(lossOf as (params: Tree, ...batch: Tensor[]) => Tensor)(params, ...part);
        const own = [loss, ...flattenLike(def, grads as Tree, "grads")];
        return [sum.map((total, i) => add(total, wide(at(own, i)))), {}];
      },
      [zero, ...zeros],
      rows,
    );
    const [loss, ...means] = sums.map((sum) => mul(sum, 1 / parts));
    const grads = means.map((mean, i) => inTypeOf(mean, at(leaves, i)));
    return [loss as Tensor, unflatten(def, grads) as P];
  };
}
