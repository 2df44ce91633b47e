/**
 * @file How an operation acts on a batch: on operands some of which have one more axis, the first, along which it is applied to
 * each element on its own. Rules are a field of an operation's declaration; the transformation of graphs is in batching/.
 *
 *   sum {axes=[0]}      x f32[3,5] → f32[5]          one
 *   sum {axes=[1]}      x f32[8,3,5] → f32[8,5]      of a batch of 8
 *
 * An operation without a rule is applied to the elements one after the other, in a loop; one that is `pointwise` needs none.
 */
import type { Build } from "./build.ts";
import type { Value } from "./graph.ts";
import type { AnyOp, Attrs } from "./op.ts";

/** An application to a batch. */
export interface BatchSite<A> {
  /** Those marked in `batched` have a first axis of `size` elements; at least one is. */
  readonly x: readonly Value[];
  readonly batched: readonly boolean[];
  readonly size: number;
  readonly attrs: A;
}

/**
 * - leading: the same operation with these attributes, where every operand has the axis; one that does not vary is repeated,
 *   which is a view.
 * - general: nodes that compute the results, each with the axis; null where there is no such rule for these operands.
 */
export type BatchRule<A> =
  | { readonly kind: "leading"; attrs(attrs: A, size: number): A }
  | { readonly kind: "general"; apply(b: Build, site: BatchSite<A>): readonly Value[] | null };

/** The rule of operations whose attributes say nothing about leading axes. */
export const LEADING = { kind: "leading", attrs: <A>(attrs: A): A => attrs } as const;

/** The rule of operations with attributes that do. */
export const leading = <A>(attrs: (attrs: A, size: number) => A): BatchRule<A> => ({ kind: "leading", attrs });

/** Of operations along one axis. */
export const axisBehind = <A extends { readonly axis: number }>(attrs: A): A => ({ ...attrs, axis: attrs.axis + 1 });

/** Axes behind a new first one. */
export const behind = (axes: readonly number[]): readonly number[] => axes.map((axis) => axis + 1);

/** The rule of an operation: its own, or that of operations on elements; null if there is none. */
export function batchRule({ batch, lower }: AnyOp): BatchRule<Attrs> | null {
  if (batch) return batch;
  return lower.kind === "map" && lower.pointwise === true ? LEADING : null;
}
