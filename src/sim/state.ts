/**
 * @file States of solvers as lists of tensors. Users give trees; inside, a state is the list of its leaves and the right
 * side a function of lists, so that the arithmetic of a step is written once. Time is f64 whatever the state is: in f32 a
 * thousand additions of a step would move it; the right side is given it in the element type of the state.
 */
import { add, cast, mul } from "../api/elementwise.ts";
import { at } from "../base/invariant.ts";
import { sameType, tensorType, typeText } from "../ir/type.ts";
import { type FloatScalar, isFloat, widestFloat } from "../kernel/dtype.ts";
import { fail } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";

/** The leaves of a state. */
export type Leaves = readonly Tensor[];

/** The right side y' = f(y, t), of lists; t is f64[]. */
export type Field = (y: Leaves, t: Tensor) => Leaves;

export interface System<S extends Tree> {
  readonly y0: Leaves;
  readonly dtype: FloatScalar;
  readonly field: Field;
  /** The state of the user's structure. */
  tree(leaves: Leaves): S;
}

const typeOf = (x: Tensor) => tensorType(x.dtype, x.shape);

/** The user's right side and first state; checks every result of the right side. */
export function systemOf<S extends Tree>(name: string, f: (y: S, t: Tensor) => S, state: S): System<S> {
  const { leaves: y0, paths, def } = flatten(state, "y0");
  if (y0.length === 0)
    fail("InvalidTree", `${name}: y0 has no tensors`, "give a tensor, or an array or object of them");
  const integer = y0.findIndex((leaf) => !isFloat(leaf.dtype));
  if (integer >= 0) {
    const summary = `${name}: ${at(paths, integer)} is ${typeText(at(y0, integer))}, which no rate of change can be added to`;
    fail("DtypeMismatch", summary, 'a state is f32 or f64: x.cast("f32")');
  }
  const dtype = widestFloat(y0.map((leaf) => leaf.dtype));
  const tree = (leaves: Leaves): S => unflatten(def, leaves) as S;
  const field: Field = (y, t) => {
    const rates = flattenLike(def, f(tree(y), cast(t, dtype)), "the rate of change");
    rates.forEach((leaf, i) => {
      const wanted = at(y0, i);
      if (sameType(typeOf(leaf), typeOf(wanted))) return;
      const summary = `${name}: the rate of change of ${at(paths, i)} is ${typeText(leaf)}, the state ${typeText(wanted)}`;
      fail(leaf.dtype === wanted.dtype ? "ShapeMismatch" : "DtypeMismatch", summary, "f returns a tree like its y");
    });
    return rates;
  };
  return { y0, dtype, field, tree };
}

/** A multiple of a list. */
export type Term = readonly [factor: number, k: Leaves];

/** Σ factor · k; terms with the factor 0 do not count. */
function combination(terms: readonly Term[], i: number): Tensor {
  const parts = terms.filter(([factor]) => factor !== 0).map(([factor, k]) => [factor, at(k, i)] as const);
  const scaled = parts.map(([factor, k]) => (factor === 1 ? k : mul(k, factor)));
  return scaled.reduce((sum, part) => add(sum, part));
}

/** h · Σ factor · k, for a step h of f64[]. */
export function increment(h: Tensor, terms: readonly Term[]): Leaves {
  const [, first] = at(terms, 0);
  return first.map((leaf, i) => mul(cast(h, leaf.dtype), combination(terms, i)));
}

/** y + h · Σ factor · k. */
export function advance(y: Leaves, h: Tensor, terms: readonly Term[]): Leaves {
  return increment(h, terms).map((step, i) => add(at(y, i), step));
}
