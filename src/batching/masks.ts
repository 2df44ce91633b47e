/**
 * @file Choosing by element of a batch. Where only some elements take part in something, it is computed for all, and the others keep
 * what they had:
 *
 *   y[n] = f(x[n]) where mask[n], else old[n]
 *
 * Nothing may flow back through f to the elements that do not take part, not even the NaN that zero times infinity would be: they
 * enter f with a gradient that is stopped.
 */
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import { isFloat } from "../kernel/dtype.ts";
import { broadcast } from "../ops/broadcast.ts";
import { apply } from "../ops/define.ts";
import { stopGradient, where } from "../ops/select.ts";

/** `mask`, one for each element of the batch, for all that an element of `like` consists of. */
function maskLike(b: Build, mask: Value, like: Value): Value {
  return b.call(broadcast, [mask], { shape: like.type.shape, axes: [0] });
}

/** By element of the batch: `yes` where the mask holds, else `no`. */
export function choose(b: Build, mask: Value, yes: Value, no: Value): Value {
  return yes === no ? yes : apply(b, where, maskLike(b, mask, yes), yes, no);
}

/** The same value, through which nothing flows back where the mask does not hold. Compiled, it is the value itself. */
export function flowingWhere(b: Build, mask: Value, value: Value): Value {
  return isFloat(value.type.dtype) ? choose(b, mask, value, apply(b, stopGradient, value)) : value;
}
