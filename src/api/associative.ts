/**
 * @file Prefix combinations of an associative function, by a tree: neighbours are combined in pairs, the pairs are scanned by the same
 * method, and every other result is one more combination. For n elements that is fewer than 2 n combinations in 2 log₂ n rounds, each of
 * which is one operation on a batch.
 *
 *   x    a   b   c   d   e            pairs      ab  cd
 *        │   ab  │   abcd │           scanned    ab  abcd
 *        a   ab  abc abcd abcde       between    ab·c  abcd·e
 */
import { at } from "../base/invariant.ts";
import { sameType, tensorType, typeText } from "../ir/type.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import { type Flat, flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import { applyGraph, placed } from "./apply.ts";
import { bind } from "./grad.ts";
import { concat, stack } from "./join.ts";
import { normalAxis } from "./operands.ts";
import { flip, reshape, slice, transpose } from "./shape.ts";
import { vmap } from "./vmap.ts";

/** Options of {@link associativeScan}. */
export interface AssociativeScanOptions {
  /** The axis along which elements follow each other; 0 by default. */
  readonly axis?: number;
  /** From the last element to the first. */
  readonly reverse?: boolean;
}

const OPTIONS: OptionKinds<AssociativeScanOptions> = { axis: "a number", reverse: "a boolean" };

type Elements = readonly Tensor[];

/** All prefixes of elements along the first axis; `combine` is of stacks of equally many. */
function prefixes(elements: Elements, count: number, combine: (a: Elements, b: Elements) => Elements): Elements {
  if (count < 2) return elements;
  const part = (from: Elements, start: number, stop: number, step: number): Elements =>
    from.map((x) => slice(x, [[start, stop, step]]));
  const pairs = combine(part(elements, 0, count - 1, 2), part(elements, 1, count, 2));
  const half = Math.floor(count / 2);
  const odd = prefixes(pairs, half, combine);
  const between = Math.ceil(count / 2) - 1;
  const first = part(elements, 0, 1, 1);
  if (between === 0) return first.map((x, i) => concat([x, at(odd, i)]));
  const later = combine(part(odd, 0, between, 1), part(elements, 2, count, 2));
  return first.map((x, i) => interleaved(concat([x, at(later, i)]), at(odd, i)));
}

/** Elements of two stacks in turn; the first may have one more. */
function interleaved(even: Tensor, odd: Tensor): Tensor {
  const [half = 0, ...shape] = odd.shape;
  const inTurn = reshape(stack([slice(even, [[0, half]]), odd], 1), [2 * half, ...shape]);
  return even.shape[0] === half ? inTurn : concat([inTurn, slice(even, [[half, null]])]);
}

/** The number of elements along the axis, which all tensors have, counted from the front. */
function lengthOf(
  { leaves, paths }: Flat,
  axis: number,
): { readonly count: number; readonly places: readonly number[] } {
  const places = leaves.map((x) => normalAxis("associativeScan", axis, x));
  const counts = leaves.map((x, i) => at(x.shape, at(places, i)));
  const [count] = counts;
  if (count === undefined) {
    return fail("InvalidTree", "associativeScan: the elements have no tensors", "give a tensor, or a tree of tensors");
  }
  if (counts.some((one) => one !== count)) {
    const list = leaves.map((x, i) => `${at(paths, i)} has ${counts[i]} (${typeText(x)})`).join(", ");
    fail(
      "ShapeMismatch",
      `associativeScan: numbers of elements differ: ${list}`,
      "all tensors have one along the axis",
    );
  }
  return { count, places };
}

/** A function of two elements, of stacks of them. */
function ofStacks({ def, leaves, paths }: Flat, fn: AnyFunction): (a: Elements, b: Elements) => Elements {
  const both = vmap(fn as (a: Tree, b: Tree) => Tree);
  return (a, b) => {
    const given = flattenLike(def, both(unflatten(def, a) as Tree, unflatten(def, b) as Tree), "the combination");
    const made = given.map((x, i) => placed(x, at(leaves, i)));
    made.forEach((x, i) => {
      const wanted = tensorType(at(leaves, i).dtype, at(a, i).shape);
      if (sameType(tensorType(x.dtype, x.shape), wanted)) return;
      const [got, of] = [tensorType(x.dtype, x.shape.slice(1)), tensorType(wanted.dtype, wanted.shape.slice(1))];
      const summary = `associativeScan: the function gives ${typeText(got)} for ${at(paths, i)}, whose elements are ${typeText(of)}`;
      fail("ShapeMismatch", summary, "combining two elements gives an element");
    });
    return made;
  };
}

const moved = (x: Tensor, from: number, to: number): Tensor => {
  if (from === to) return x;
  const perm = x.shape.map((_, axis) => axis).filter((axis) => axis !== from);
  perm.splice(to, 0, from);
  return transpose(x, perm);
};

/**
 * All prefixes of elements combined by an associative function: x₀, f(x₀, x₁), f(f(x₀, x₁), x₂), …. The function gets two elements
 * (trees of tensors without the axis) and returns one; it must be associative, since prefixes are combined as a tree, in logarithmically
 * many rounds. With `reverse` they go from the last element to the first.
 *
 * @example
 * import { associativeScan, tensor } from "tidemark";
 *
 * console.log(associativeScan((a, b) => a.mul(b), tensor([1, 2, 3, 4])).toArray()); // [1, 2, 6, 24]
 * // the recurrence y = a · y + b
 * const elements = { a: tensor([1, 2, 3]), b: tensor([1, 1, 1]) };
 * const { b } = associativeScan((p, q) => ({ a: p.a.mul(q.a), b: p.b.mul(q.a).add(q.b) }), elements);
 * console.log(b.toArray()); // [1, 3, 10]
 */
export function associativeScan<T extends Tree = Tensor>(
  fn: (a: T, b: T) => T,
  elements: T,
  options: AssociativeScanOptions = {},
): T {
  requireFunction("associativeScan", "its first argument", fn, "associativeScan((a, b) => a.add(b), x)");
  requireOptions("associativeScan", options, OPTIONS);
  if (elements === undefined) {
    fail(
      "InvalidArgument",
      `associativeScan: the elements are ${describe(elements)}`,
      "give a tensor, or a tree of tensors",
    );
  }
  const { axis = 0, reverse = false } = options;
  const scanned = (given: T): T => {
    const flat = flatten(given, "elements");
    const { count, places } = lengthOf(flat, axis);
    const inFront = flat.leaves.map((x, i) => moved(x, at(places, i), 0));
    const turned = (list: Elements): Elements => (reverse ? list.map((x) => flip(x, 0)) : list);
    const made = turned(prefixes(turned(inFront), count, ofStacks(flat, fn as AnyFunction)));
    return unflatten(
      flat.def,
      made.map((x, i) => moved(x, 0, at(places, i))),
    ) as T;
  };
  if (currentTrace()) return scanned(elements);
  // outside of programs all of it is one
  const { traced, inputs } = bind(scanned as AnyFunction, [elements]);
  return unflatten(traced.resultTree, applyGraph(traced.graph, inputs, "once")) as T;
}
