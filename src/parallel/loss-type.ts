/** @file Losses that devices can add up. */
import { type TensorType, tensorType, typeText } from "../ir/type.ts";
import { isComputed } from "../kernel/dtype.ts";
import { fail } from "../trace/arguments.ts";

/** Fails for a loss of 16 bits, which no communicator adds up. */
export function requireSummable(name: string, { dtype, shape }: Pick<TensorType, "dtype" | "shape">): void {
  if (isComputed(dtype)) return;
  const summary = `${name}: the loss is ${typeText(tensorType(dtype, shape))}, and devices add up losses of f32 and f64`;
  fail("DtypeMismatch", summary, 'cast it: loss.cast("f32")');
}
