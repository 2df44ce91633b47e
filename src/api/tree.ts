/**
 * @file Trees of tensors for users: nested arrays and plain objects, as functions take and return them. Users have these as
 * `tree.map`, `tree.flatten`, `tree.unflatten` and `tree.paths`.
 *
 *   { emb: w, blocks: [{ b }] }   ─ flatten ─→   [w, b] and a structure;   paths: ["emb", "blocks.0.b"]
 *
 * A path joins keys and positions by dots. It is the name that a tensor has in a file (save.ts).
 */
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { fail, requireFunction } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import {
  flattenLike,
  leafCount,
  unflatten as putTogether,
  type Tree,
  type TreeDef,
  flatten as takeApart,
} from "../trace/tree.ts";

/** The structure of a tree without its tensors: keys, lengths, numbers and booleans. */
export type TreeStructure = TreeDef;

/** A tree with something else in the places of its tensors. */
export type WithLeaves<T, Leaf> = T extends Tensor
  ? Leaf
  : T extends number | boolean | undefined | null
    ? T
    : { [K in keyof T]: WithLeaves<T[K], Leaf> };

/**
 * The tensors of a tree, in the order of its keys, and its structure.
 *
 * @memory None: leaves are the tensors themselves.
 *
 * @example
 * import { tensor, tree } from "tidemark";
 *
 * const { leaves, structure } = tree.flatten({ w: tensor([1, 2]), layers: [tensor(3)] });
 * console.log(leaves.length); // 2
 * console.log(tree.unflatten(structure, leaves.map((leaf) => leaf.shape))); // { w: [2], layers: [[]] }
 */
export function flatten(tree: Tree): { leaves: Tensor[]; structure: TreeStructure } {
  const { leaves, def } = takeApart(tree, "tree");
  return { leaves: [...leaves], structure: def };
}

/**
 * A tree of a structure, with `leaves` in the places of its tensors, in order.
 *
 * @memory None: leaves are the tensors themselves.
 *
 * @example
 * import { tensor, tree } from "tidemark";
 *
 * const { structure } = tree.flatten({ w: tensor([1]), b: tensor(2) });
 * console.log(tree.unflatten(structure, ["first", "second"])); // → { w: first, b: second }
 */
export function unflatten(structure: TreeStructure, leaves: readonly unknown[]): unknown {
  const count = leafCount(structure);
  if (leaves.length !== count) {
    const help = "give one leaf for each tensor of the tree that the structure came from";
    fail("InvalidTree", `unflatten: ${grouped(leaves.length)} leaves for a structure with ${grouped(count)}`, help);
  }
  return putTogether(structure, leaves);
}

/**
 * A tree with what a function returns for each tensor in its place. Further trees must have the structure of the first; the
 * function gets their tensors as well.
 *
 * @example
 * import { tensor, tree } from "tidemark";
 *
 * const params = { w: tensor([1, 2]), b: tensor([3]) };
 * const grads = { w: tensor([10, 10]), b: tensor([10]) };
 * const next = tree.map((p, g) => p.sub(g.mul(0.1)), params, grads);
 * console.log(next.w.toArray(), next.b.toArray()); // [0, 1] [2]
 */
export function map<T extends Tree, Rest extends readonly Tree[]>(
  fn: (leaf: Tensor, ...others: { [K in keyof Rest]: Tensor }) => Tensor,
  first: T,
  ...rest: Rest
): T;
export function map<T extends Tree, U, Rest extends readonly Tree[]>(
  fn: (leaf: Tensor, ...others: { [K in keyof Rest]: Tensor }) => U,
  first: T,
  ...rest: Rest
): WithLeaves<T, U>;
export function map(
  fn: (leaf: Tensor, ...others: readonly Tensor[]) => unknown,
  first: Tree,
  ...rest: readonly Tree[]
): unknown {
  requireFunction("tree.map", "its first argument", fn, "tree.map((leaf) => leaf.mul(2), params)");
  const { leaves, def } = takeApart(first, "tree");
  const others = rest.map((tree, n) => flattenLike(def, tree, `tree ${n + 2}`));
  const results = leaves.map((leaf, i) => fn(leaf, ...others.map((list) => at(list, i))));
  return putTogether(def, results);
}

/**
 * Where the tensors of a tree are, in order: keys and positions, joined by dots.
 *
 * @example
 * import { tensor, tree } from "tidemark";
 *
 * console.log(tree.paths({ emb: tensor(0), blocks: [{ w: tensor(1) }] })); // ["emb", "blocks.0.w"]
 */
export function paths(tree: Tree): string[] {
  const found: string[] = [];
  visitLeaves(takeApart(tree, "tree").def, (def, path) => {
    if (def.kind === "tensor") found.push(path);
  });
  return found;
}

/** Calls `visit` for every tensor, number and boolean of a structure, in order, with its path. @internal */
export function visitLeaves(def: TreeDef, visit: (leaf: TreeDef, path: string) => void, path = ""): void {
  const below = (key: string | number): string => (path === "" ? `${key}` : `${path}.${key}`);
  if (def.kind === "array") for (const [i, item] of def.items.entries()) visitLeaves(item, visit, below(i));
  else if (def.kind === "object") for (const [key, item] of def.entries) visitLeaves(item, visit, below(key));
  else visit(def, path);
}
