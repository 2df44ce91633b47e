/**
 * @file The order of elements. `argsort` gives numbers of elements, whole numbers without a derivative; the values in order are a
 * `gather` by them, whose transpose adds cotangents where the elements were. So what a backward pass keeps of a sort is the
 * order, and not the input.
 *
 * The order is one: equal elements stay as they are, in both directions; -0 equals 0; NaN is above all numbers, so that it is
 * last in ascending order and first in descending order.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { OpDef } from "../ir/op.ts";
import { elementsOf, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, INDEX_TYPE } from "../kernel/dtype.ts";
import { requireOne } from "./checks.ts";
import { defineOp, requireAxis } from "./define.ts";
import { samplesIn } from "./reference.ts";

export type SortAttrs = {
  readonly axis: number;
  readonly descending: boolean;
  /** How many are wanted: the first in order. */
  readonly count: number;
};

/** a - b for an order in which NaN is above all numbers. */
function ordered(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return Number(a > b) - Number(a < b);
}

/** y[a, r, b] is the number along the axis of the element that is in place r of its row in order. */
export const argsort: OpDef<SortAttrs> = defineOp<SortAttrs>({
  name: "argsort",
  defaults: { descending: false },
  infer(inputs, { axis, count }) {
    const x = requireOne("argsort", inputs);
    requireAxis("argsort", axis, x.shape.length);
    const extent = at(x.shape, axis);
    if (Number.isInteger(count) && count >= 0 && count <= extent) {
      return [tensorType(INDEX_TYPE, x.shape.with(axis, count))];
    }
    const summary = `argsort: the first ${String(count)} of ${extent} elements along axis ${axis} of ${typeText(x)}`;
    throw new TidemarkError("InvalidArgument", summary, { help: `ask for a whole number from 0 to ${extent}` });
  },
  derivative: { kind: "none" },
  // a comparison for each halving of a row; of a row's first `count` elements those of a row of that length
  cost: ([x], _, { count }) => ({ flops: x ? elementsOf(x.shape) * Math.ceil(Math.log2(count + 2)) : 0 }),
  lower: { kind: "sort", axis: (attrs) => attrs.axis, descending: (attrs) => attrs.descending },
  evaluate({ inputs, inTypes, attrs: { axis, descending, count } }) {
    const [x, { shape }] = [at(inputs, 0), at(inTypes, 0)];
    const [extent, inner] = [at(shape, axis), elementsOf(shape.slice(axis + 1))];
    const out = new Float64Array(elementsOf(shape.with(axis, count)));
    for (let line = 0; line < elementsOf(shape.slice(0, axis)) * inner; line++) {
      const [outer, column] = [Math.floor(line / inner), line % inner];
      const element = (i: number): number => at(x, (outer * extent + i) * inner + column);
      const order = Array.from({ length: extent }, (_, i) => i);
      order.sort((i, j) => (descending ? ordered(element(j), element(i)) : ordered(element(i), element(j))));
      for (let r = 0; r < count; r++) out[(outer * count + r) * inner + column] = at(order, r);
    }
    return [out];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[7]], attrs: { axis: 0, descending: false, count: 7 } },
      { shapes: [[3, 5]], attrs: { axis: 0, descending: true, count: 3 } },
      { shapes: [[2, 70, 2]], attrs: { axis: 1, descending: false, count: 70 } },
      { shapes: [[2, 150]], attrs: { axis: 1, descending: true, count: 3 } },
      { shapes: [[4, 0]], attrs: { axis: 1, descending: false, count: 0 } },
      { shapes: [[0, 4]], attrs: { axis: 1, descending: false, count: 2 } },
    ]),
});
