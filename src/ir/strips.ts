/**
 * @file How an operation acts on strips of rows. A value is cut along one axis into equal strips; an operation that is
 * independent along that axis gives a strip of its result from strips of some operands and the whole of others:
 *
 *   y = x·w       x cut along rows, w whole        y cut along rows
 *   dw = xᵀ·dy    both cut along the summed axis   dw is a sum of parts, in order
 *
 * Forms are facts of an operation's declaration (facts.ts); the rewrite into a loop is loops/strips.
 */
import type { Build } from "./build.ts";
import type { Node, Value } from "./graph.ts";
import type { Attrs } from "./op.ts";
import type { TensorType } from "./type.ts";

/** One way to compute a node strip by strip. */
export interface StripForm {
  /** The axis along which each operand is cut; null for one that every strip reads whole. */
  readonly inputs: readonly (number | null)[];
  /** The axis along which each result is cut; null for a sum over strips. */
  readonly outputs: readonly (number | null)[];
  /** The attributes for one of so many strips; null where there is no such cut, or bits would change. */
  attrs(strips: number): Attrs | null;
  /**
   * Of a sum over strips: nodes for the parts that one strip of the operands contributes. All parts of all strips, added one
   * by one in order, have the bits of the result.
   */
  parts?(b: Build, inputs: readonly Value[], strips: number): readonly Value[];
  /** Of a sum over strips: the sum gone on by one strip, for targets whose sums are one chain. Null where it would have other bits. */
  onto?(b: Build, sum: Value, inputs: readonly Value[]): Value | null;
}

/** The forms of a node whose operands and results have these types. */
export type StripForms<A> = (
  inputs: readonly TensorType[],
  outputs: readonly TensorType[],
  attrs: A,
) => readonly StripForm[];

/** The extent of an axis after a cut; null if strips are not equal. */
export function cutExtent(extent: number | undefined, strips: number): number | null {
  return extent !== undefined && extent % strips === 0 && extent > 0 ? extent / strips : null;
}

/** A form whose attributes do not depend on the cut. */
export const sameAttrs = (
  inputs: readonly (number | null)[],
  outputs: readonly (number | null)[],
  attrs: Attrs,
): StripForm => ({ inputs, outputs, attrs: () => attrs });

/** All axes of a type. */
export const axesOf = ({ shape }: TensorType): readonly number[] => shape.map((_, axis) => axis);

/** Independent along every axis that all operands and results have in common, except those of `not`. */
export function alongAll(
  inputs: readonly TensorType[],
  outputs: readonly TensorType[],
  attrs: Attrs,
  not: readonly number[] = [],
): readonly StripForm[] {
  const [first] = outputs;
  if (!first) return [];
  return axesOf(first)
    .filter((axis) => !not.includes(axis))
    .map((axis) =>
      sameAttrs(
        inputs.map(() => axis),
        outputs.map(() => axis),
        attrs,
      ),
    );
}

/** The forms of a node: those that its operation states, or those of an operation on elements. */
export function stripForms({ op, inputs, outputs, attrs }: Node): readonly StripForm[] {
  const [ins, outs] = [inputs.map(({ type }) => type), outputs.map(({ type }) => type)];
  if (op.facts?.strips) return op.facts.strips(ins, outs, attrs);
  const isPointwise = op.lower.kind === "map" && op.lower.pointwise === true;
  const rank = outs[0]?.shape.length;
  return isPointwise && ins.every(({ shape }) => shape.length === rank) ? alongAll(ins, outs, attrs) : [];
}
