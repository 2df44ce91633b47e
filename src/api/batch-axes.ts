/**
 * @file Which axis of each tensor is the batch's, as users say it: one for all tensors of a tree, or a tree of them that has the structure
 * of the tensors down to where one is enough.
 *
 *   params { w, layers: [a, b] }      0                              axis 0 of all three
 *                                     { w: null, layers: 1 }         w does not vary, axis 1 of a and b
 */
import { at } from "../base/invariant.ts";
import { type TensorType, typeText } from "../ir/type.ts";
import { describe, fail } from "../trace/arguments.ts";
import { leafCount, type TreeDef } from "../trace/tree.ts";

/** An axis, negative ones counted from the end; null: there is none, every element of the batch gets the whole tensor. */
export type BatchAxis = number | null;

/** One for all tensors, or a tree of them like the tensors. */
export type BatchAxes = BatchAxis | readonly BatchAxes[] | { readonly [key: string]: BatchAxes };

const isAxis = (spec: unknown): spec is BatchAxis => spec === null || Number.isInteger(spec);

function wrong(what: string, path: string, spec: unknown, wanted: string): never {
  return fail("InvalidAxis", `vmap: ${what} for ${path} is ${describe(spec)}`, `give ${wanted}`);
}

/** One axis for each tensor of a structure, in order. @internal */
export function axesOf(what: string, def: TreeDef, spec: unknown): readonly BatchAxis[] {
  if (isAxis(spec)) return new Array<BatchAxis>(leafCount(def)).fill(spec);
  switch (def.kind) {
    case "tensor":
      return wrong(what, def.path, spec, "the number of an axis, or null where it does not vary");
    case "static":
    case "number":
      return [];
    case "array":
      if (!Array.isArray(spec) || spec.length !== def.items.length) {
        return wrong(what, def.path, spec, `an axis for all of it, or a list of ${def.items.length}`);
      }
      return def.items.flatMap((item, i) => axesOf(what, item, spec[i]));
    case "object": {
      const keys = def.entries.map(([key]) => key);
      const isLike = typeof spec === "object" && spec !== null && !Array.isArray(spec);
      const given = isLike ? Object.keys(spec) : [];
      if (!isLike || given.some((key) => !keys.includes(key)) || keys.some((key) => !given.includes(key))) {
        return wrong(
          what,
          def.path,
          isLike ? { ...spec } : spec,
          `an axis for all of it, or one for each of ${keys.join(", ")}`,
        );
      }
      return def.entries.flatMap(([key, item]) => axesOf(what, item, (spec as Record<string, unknown>)[key]));
    }
  }
}

/** A tensor among arguments, and which axis is the batch's. @internal */
export interface BatchLeaf {
  readonly path: string;
  readonly type: TensorType;
  readonly axis: BatchAxis;
}

/** An axis counted from the front, of something of a rank. @internal */
export function placeWithin(axis: number, rank: number, what: string): number {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  const help = rank === 0 ? "a scalar has no axes: give null for it" : `axes run from -${rank} to ${rank - 1}`;
  return fail("InvalidAxis", `vmap: axis ${axis} of ${what}`, help);
}

/** The batch's axis of an argument, counted from the front. @internal */
export const placeOf = ({ path, type }: BatchLeaf, axis: number): number =>
  placeWithin(axis, type.shape.length, `${path}, which is ${typeText(type)}`);

/** The number of elements of the batch, which all that vary agree on. @internal */
export function batchSize(leaves: readonly BatchLeaf[]): number {
  const varying = leaves.flatMap((leaf) => {
    const { path, type, axis } = leaf;
    return axis === null ? [] : [{ path, axis, size: at(type.shape, placeOf(leaf, axis)) }];
  });
  const [first] = varying;
  if (!first) {
    return fail(
      "InvalidArgument",
      "vmap: no argument has an axis of the batch",
      "give one: vmap(f, { in: [0, null] })",
    );
  }
  if (varying.every(({ size }) => size === first.size)) return first.size;
  const list = varying.map(({ path, axis, size }) => `${path} has ${size} along axis ${axis}`).join(", ");
  return fail(
    "ShapeMismatch",
    `vmap: sizes of the batch differ: ${list}`,
    "they must agree; null is for what does not vary",
  );
}
