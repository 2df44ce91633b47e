/** @file Element types of mixed operands, as PyTorch chooses them: bool < whole numbers < floats; tensors with axes before scalars. */
import * as t from "../../api/functions.ts";
import { bytesOf, type DType, isBool, isFloat } from "../../kernel/dtype.ts";
import { Tensor } from "../../trace/tensor.ts";
import type { Args } from "./args.ts";

const category = (dtype: DType): number => {
  if (isFloat(dtype)) return 2;
  return isBool(dtype) ? 0 : 1;
};

/** The type that two tensors are computed in. */
function common(a: Tensor, b: Tensor): DType {
  const [ca, cb] = [category(a.dtype), category(b.dtype)];
  if (ca !== cb) return ca > cb ? a.dtype : b.dtype;
  if (a.rank > 0 !== b.rank > 0) return a.rank > 0 ? a.dtype : b.dtype;
  return bytesOf(a.dtype) >= bytesOf(b.dtype) ? a.dtype : b.dtype;
}

export const as = (x: Tensor, dtype: DType): Tensor => (x.dtype === dtype ? x : t.cast(x, dtype));

/** A tensor and a number in one type. */
function withNumber(x: Tensor, isFloatNumber: boolean): Tensor {
  if (isFloat(x.dtype)) return x;
  if (isFloatNumber) return as(x, "f32");
  return isBool(x.dtype) ? as(x, "i32") : x;
}

/** Two arguments of one element type. */
export function pair(args: Args, first = "self", second = "other"): readonly [Tensor, Tensor | number] {
  const [a, b] = [args.either(first), args.either(second)];
  if (a instanceof Tensor && b instanceof Tensor) {
    const dtype = common(a, b);
    return [as(a, dtype), as(b, dtype)];
  }
  if (a instanceof Tensor) return [withNumber(a, args.isFloat(second)), b];
  if (b instanceof Tensor) {
    const other = withNumber(b, args.isFloat(first));
    return [t.full([], a, other.dtype), other];
  }
  return [t.full([], a), b];
}

/** A tensor of floats: whole numbers and bools become f32. */
export const floats = (x: Tensor): Tensor => (isFloat(x.dtype) ? x : as(x, "f32"));

/** Bools as whole numbers, for sums. */
export const numbers = (x: Tensor): Tensor => (isBool(x.dtype) ? as(x, "i32") : x);
