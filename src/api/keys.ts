/**
 * @file Keys of random tensors. A key is a tensor of two words, and what is drawn is a function of the key: the same key gives the
 * same numbers. Draw with fresh keys by splitting.
 */
import type { Shape } from "../ir/type.ts";
import * as ops from "../ops/random.ts";
import { describe, fail, requireShape, requireTensor } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { numberOf, Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { add } from "./elementwise.ts";
import { concat } from "./join.ts";
import { constantOf } from "./operands.ts";
import { expandDims, slice } from "./shape.ts";

/** Uses of one key that must not see each other's numbers; 3 is that of parts of layers. @internal */
export const STREAM = { draw: 0, split: 1, fold: 2, fine: 4 } as const;

/** A key from a seed: a whole number up to 2⁵³. */
export function key(seed: number): Tensor {
  if (!Number.isSafeInteger(seed))
    fail("InvalidArgument", `random.key: seed ${describe(seed)}`, "a seed is a whole number up to 2^53");
  return tensor(new Int32Array([Math.floor(seed / 2 ** 32) | 0, seed | 0]));
}

/** @internal */
export function requireKey(name: string, from: unknown): asserts from is Tensor {
  requireTensor(name, "the key", from, `make one: random.key(${typeof from === "number" ? from : 0})`);
}

/** What all draws take. @internal */
export function requireDraw(name: string, from: unknown, shape: Shape): void {
  requireKey(name, from);
  requireShape(name, shape);
}

/** N tensors: a tuple when N is known to the compiler. */
export type Tensors<N extends number, A extends readonly Tensor[] = readonly []> = number extends N
  ? readonly Tensor[]
  : A["length"] extends N
    ? A
    : Tensors<N, readonly [...A, Tensor]>;

/** Independent keys from one, which should not be used again. */
export function split<N extends number = 2>(from: Tensor, count?: N): Tensors<N> {
  const n = count ?? 2;
  requireKey("random.split", from);
  requireShape("random.split", [n]);
  const all = keys(from, n);
  return Array.from({ length: n }, (_, i) => slice(all, [i])) as readonly Tensor[] as Tensors<N>;
}

/** The same keys in one tensor, i32[count, 2], for `vmap`: row i is the key that `split` gives at i. */
export function keys(from: Tensor, count: number): Tensor {
  requireKey("random.keys", from);
  requireShape("random.keys", [count]);
  return applyOp(ops.randomBits, [from], { shape: [count, 2], stream: STREAM.split });
}

/** A key for each number, from one key: for step numbers and the like. */
export function foldIn(from: Tensor, data: number | Tensor): Tensor {
  requireKey("random.foldIn", from);
  const isTensor = data instanceof Tensor && !numberOf(data);
  const number = isTensor ? data : constantOf("random.foldIn", data, "i32", []);
  const words = concat([constantOf("random.foldIn", 0, "i32", [1]), expandDims(number, 0)]);
  return applyOp(ops.randomBits, [add(from, words)], { shape: [2], stream: STREAM.fold });
}
