/**
 * @file Functions of several operations (norms, softmax, losses) on bf16 and f16. They are computed in f32 and their result is
 * rounded once, not after every operation; under `autocast` it stays f32.
 */
import type { Tensor } from "../trace/tensor.ts";
import { autocastMode, FULL, isHalf } from "./autocast-mode.ts";
import { cast } from "./elementwise.ts";

/** In f32 if it is a half. @internal */
export const wide = (x: Tensor): Tensor => (isHalf(x.dtype) ? cast(x, FULL) : x);

export const wideOrNone = (x: Tensor | undefined): Tensor | undefined => x && wide(x);

/** In the type of another. @internal */
export const inTypeOf = (y: Tensor, { dtype }: Tensor): Tensor => (y.dtype === dtype ? y : cast(y, dtype));

/** A result in the type of what it was computed from. @internal */
export const likeGiven = (y: Tensor, given: Tensor): Tensor =>
  autocastMode() || !isHalf(given.dtype) ? y : inTypeOf(y, given);

/** Computes on f32 what is a function of a half. @internal */
export const inFull = (x: Tensor, fn: (wide: Tensor) => Tensor): Tensor => likeGiven(fn(wide(x)), x);
