/** @file Joining along an axis; its transpose takes the slices of the result that the inputs became. */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { axisBehind, leading } from "../ir/batch.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import { alongAll } from "../ir/strips.ts";
import { elementsOf, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES } from "../kernel/dtype.ts";
import { requireSameDtype } from "./checks.ts";
import { defineOp, requireAxis } from "./define.ts";
import { samplesIn } from "./reference.ts";
import { slice } from "./slice.ts";

export type ConcatAttrs = { readonly axis: number };

function requireJoinable(first: TensorType, next: TensorType, axis: number): void {
  requireSameDtype("concat", ["the first input", "another"], first, next);
  const differs = first.shape.findIndex((extent, a) => a !== axis && extent !== next.shape[a]);
  if (first.shape.length === next.shape.length && differs < 0) return;
  const what =
    first.shape.length !== next.shape.length
      ? `ranks differ: ${typeText(first)}, ${typeText(next)}`
      : `extents of axis ${differs} differ: ${first.shape[differs]} in ${typeText(first)}, ` +
        `${next.shape[differs]} in ${typeText(next)}`;
  throw new TidemarkError("ShapeMismatch", `concat: ${what}`, {
    help: `joining along axis ${axis}, all other axes must agree: reshape, slice or pad one of the inputs`,
  });
}

/** The inputs one after the other along an axis. */
export const concat: OpDef<ConcatAttrs> = defineOp<ConcatAttrs>({
  name: "concat",
  batch: leading(axisBehind),
  facts: { strips: (inputs, outputs, attrs) => alongAll(inputs, outputs, attrs, [attrs.axis]) },
  defaults: { axis: 0 },
  infer(inputs, { axis }) {
    const [first] = inputs;
    if (!first) {
      throw new TidemarkError("InvalidArgument", "concat: needs at least one input, got none", {
        help: "give one tensor or more: concat([a, b])",
      });
    }
    requireAxis("concat", axis, first.shape.length);
    let extent = 0;
    for (const next of inputs) {
      requireJoinable(first, next, axis);
      extent += item(next.shape, axis);
    }
    return [tensorType(first.dtype, first.shape.with(axis, extent))];
  },
  derivative: {
    kind: "multilinear",
    jointly: true,
    transpose(b, { x, ct, input, attrs: { axis } }) {
      const extentOf = (v: Value): number => item(v.type.shape, axis);
      const from = x.slice(0, input).reduce((sum, v) => sum + extentOf(v), 0);
      const whole = ct.type.shape;
      return b.call(slice, [ct], {
        start: whole.map((_, a) => (a === axis ? from : 0)),
        limit: whole.with(axis, from + extentOf(item(x, input))),
        stride: whole.map(() => 1),
      });
    },
  },
  cost: () => ({ flops: 0 }),
  lower: { kind: "concat", axis: ({ axis }) => axis },
  simplify: (_, node) => (node.inputs.length === 1 ? item(node.inputs, 0) : null),
  evaluate({ inputs, inTypes, outTypes, attrs: { axis } }) {
    const { shape } = item(outTypes, 0);
    const out = new Float64Array(elementsOf(shape));
    const outer = elementsOf(shape.slice(0, axis));
    const row = elementsOf(shape.slice(axis));
    let from = 0;
    inputs.forEach((x, i) => {
      const part = elementsOf(item(inTypes, i).shape.slice(axis));
      for (let o = 0; o < outer; o++) out.set(x.subarray(o * part, (o + 1) * part), o * row + from);
      from += part;
    });
    return [out];
  },
  samples: () =>
    samplesIn(DTYPES, [
      {
        shapes: [
          [2, 3],
          [4, 3],
        ],
        attrs: { axis: 0 },
      },
      {
        shapes: [
          [2, 3],
          [2, 1],
          [2, 2],
        ],
        attrs: { axis: 1 },
      },
      { shapes: [[3], [0], [2]], attrs: { axis: 0 } },
      { shapes: [[2, 1, 2]], attrs: { axis: 2 } },
      {
        shapes: [
          [0, 2],
          [0, 3],
        ],
        attrs: { axis: 1 },
      },
    ]),
});
