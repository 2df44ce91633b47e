/** @file Arithmetic on trees, leaf by leaf: what states of solvers and of reversible blocks are added and scaled with. */
import { at } from "../base/invariant.ts";
import { isFloat } from "../kernel/dtype.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";

/** A tree of what a function makes of the leaves of trees that have the structure of the first. @internal */
export function mapTrees<T extends Tree>(
  fn: (...leaves: readonly Tensor[]) => Tensor,
  first: T,
  ...rest: unknown[]
): T {
  const { leaves, def } = flatten(first, "tree");
  const others = rest.map((tree, n) => flattenLike(def, tree, `tree ${n + 2}`));
  return unflatten(
    def,
    leaves.map((leaf, i) => fn(leaf, ...others.map((list) => at(list, i)))),
  ) as T;
}

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
