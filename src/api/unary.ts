/** @file One operation on the elements of one tensor. */
import type { NoAttrs, OpDef } from "../ir/op.ts";
import type { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { asTensor, type TensorLike } from "./operands.ts";

export function unary(name: string, op: OpDef<NoAttrs>, x: TensorLike): Tensor {
  return applyOp(op, [asTensor(name, x)], {});
}
