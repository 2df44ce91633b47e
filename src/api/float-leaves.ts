/** @file The leaves of a tree that have derivatives, and the tree with others in their places. */
import { at } from "../base/invariant.ts";
import { isFloat } from "../kernel/dtype.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";

/** The leaves of a tree that have derivatives. @internal */
export function floatLeaves(tree: Tree): readonly Tensor[] {
  return flatten(tree, "tree").leaves.filter((leaf) => isFloat(leaf.dtype));
}

/** The tree with others in the places of those leaves. @internal */
export function withFloats<T extends Tree>(tree: T, floats: readonly Tensor[]): T {
  const { leaves, def } = flatten(tree, "tree");
  let next = 0;
  return unflatten(
    def,
    leaves.map((leaf) => (isFloat(leaf.dtype) ? at(floats, next++) : leaf)),
  ) as T;
}
