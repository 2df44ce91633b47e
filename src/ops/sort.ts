/**
 * @file The order of elements. `argsort` gives numbers of elements, whole numbers without a derivative; the values in order are a
 * `gather` by them, whose transpose adds cotangents where the elements were. So what a backward pass keeps of a sort is the
 * order, and not the input.
 *
 * The order is one: equal elements stay as they are, in both directions; -0 equals 0; NaN is above all numbers, so that it is
 * last in ascending order and first in descending order.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { axisBehind, leading } from "../ir/batch.ts";
import type { LowerContext, OpDef } from "../ir/op.ts";
import { elementsOf, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, INDEX_TYPE } from "../kernel/dtype.ts";
import { constant, type Expr } from "../kernel/expr.ts";
import { offsetIndex, valueIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { add, not, pick } from "../kernel/scalar-ops.ts";
import { sortWords, wordsBefore } from "../kernel/sort-key.ts";
import { reshaped, withAxis } from "./batch.ts";
import { requireInputs, requireOne, requireSameDtype } from "./checks.ts";
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
  facts: { below: ({ axis }, [x]) => x?.shape[axis] ?? 0 },
  batch: leading(axisBehind),
  defaults: { descending: false },
  infer(inputs, { axis, count }) {
    const x = requireOne("argsort", inputs);
    requireAxis("argsort", axis, x.shape.length);
    const extent = item(x.shape, axis);
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
    const [x, { shape }] = [item(inputs, 0), item(inTypes, 0)];
    const [extent, inner] = [item(shape, axis), elementsOf(shape.slice(axis + 1))];
    const out = new Float64Array(elementsOf(shape.with(axis, count)));
    for (let line = 0; line < elementsOf(shape.slice(0, axis)) * inner; line++) {
      const [outer, column] = [Math.floor(line / inner), line % inner];
      const element = (i: number): number => item(x, (outer * extent + i) * inner + column);
      const order = Array.from({ length: extent }, (_, i) => i);
      order.sort((i, j) => (descending ? ordered(element(j), element(i)) : ordered(element(i), element(j))));
      for (let r = 0; r < count; r++) out[(outer * count + r) * inner + column] = item(order, r);
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

export type SearchAttrs = { readonly side: "left" | "right" };

/** Shapes of rows in order and of what is looked up in them: one row for all, or one for each leading position. */
function requireRows(sorted: TensorType, values: TensorType): void {
  requireSameDtype("searchsorted", ["sorted", "values"], sorted, values);
  const lead = sorted.shape.slice(0, -1);
  const fits = sorted.shape.length === values.shape.length && sameShape(lead, values.shape.slice(0, -1));
  if (sorted.shape.length === 1 || (sorted.shape.length > 1 && fits)) return;
  const summary = `searchsorted: sorted ${typeText(sorted)} for values ${typeText(values)}`;
  throw new TidemarkError("ShapeMismatch", summary, {
    help: "sorted is one row [n], or has the axes of values but for the last",
  });
}

/** How many elements of a row come before a value: those below it, with `right` also those equal to it. */
function countBefore(c: LowerContext<SearchAttrs>, at: Position): Expr {
  const [{ shape }, read] = [item(c.inTypes, 0), item(c.inputs, 0)];
  const n = item(shape, shape.length - 1);
  const wanted = sortWords(item(c.inputs, 1)(at), false);
  const lead = shape.length === 1 ? [] : at.idx.slice(0, -1);
  const isRight = c.attrs.side === "right";
  let count: Expr = constant("i32", 0);
  for (let power = 2 ** Math.floor(Math.log2(n)); n > 0 && power >= 1; power /= 2) {
    // with so many more, the last of them still comes before
    const probe = offsetIndex(valueIndex(count, 0, n), power - 1);
    const there = sortWords(read(Position.at(shape, [...lead, probe])), false);
    const isBefore = isRight ? not(wordsBefore(wanted, there)) : wordsBefore(there, wanted);
    const more = pick(isBefore, constant("i32", power), constant("i32", 0));
    const bounds = [{ index: probe, lo: 0, hi: n }];
    count = add(count, { kind: "guard", dtype: "i32", bounds, then: more, otherwise: constant("i32", 0) });
  }
  return count;
}

/** Where in rows that are in order values belong: before those equal to them, with `right` behind them. NaN is above all numbers. */
export const searchsorted: OpDef<SearchAttrs> = defineOp<SearchAttrs>({
  name: "searchsorted",
  facts: { below: (_, [sorted]) => (sorted?.shape.at(-1) ?? 0) + 1 },
  batch: {
    kind: "general",
    apply(b, site) {
      const { x, batched, attrs } = site;
      const isOneRow = item(x, 0).type.shape.length === (batched[0] ? 2 : 1);
      if (isOneRow && !batched[0]) return [b.call(searchsorted, x, attrs)];
      const [sorted, values] = [withAxis(b, site, 0), withAxis(b, site, 1)];
      if (!isOneRow) return [b.call(searchsorted, [sorted, values], attrs)];
      // a row for each element, and all that is looked up in it in one axis
      const { shape } = values.type;
      const flat = reshaped(b, values, [item(shape, 0), elementsOf(shape.slice(1))]);
      return [reshaped(b, b.call(searchsorted, [sorted, flat], attrs), shape)];
    },
  },
  defaults: { side: "left" },
  infer(inputs, { side }) {
    requireInputs("searchsorted", ["sorted", "values"], inputs);
    const [sorted, values] = [item(inputs, 0), item(inputs, 1)];
    requireRows(sorted, values);
    if (side === "left" || side === "right") return [tensorType(INDEX_TYPE, values.shape)];
    const summary = `searchsorted: side is ${JSON.stringify(side)}, which is neither "left" nor "right"`;
    throw new TidemarkError("InvalidArgument", summary, { help: 'leave it out, or write side="right"' });
  },
  derivative: { kind: "none" },
  cost: ([sorted, values]) => {
    const halvings = Math.ceil(Math.log2((sorted?.shape.at(-1) ?? 0) + 2));
    return { flops: 8 * halvings * (values ? elementsOf(values.shape) : 0) };
  },
  lower: { kind: "map", fusion: "once", value: countBefore },
  evaluate({ inputs, inTypes, attrs: { side } }) {
    const [sorted, values] = [item(inputs, 0), item(inputs, 1)];
    const { shape } = item(inTypes, 0);
    const n = item(shape, shape.length - 1);
    const columns = shape.length === 1 ? Number.POSITIVE_INFINITY : item(inTypes, 1).shape.at(-1);
    // the same halving as in kernels, so that rows that are not in order give the same
    return [
      values.map((value, e) => {
        const row = shape.length === 1 ? 0 : Math.floor(e / Number(columns));
        let count = 0;
        for (let power = 2 ** Math.floor(Math.log2(n)); n > 0 && power >= 1; power /= 2) {
          const probe = count + power - 1;
          if (probe >= n) continue;
          const order = ordered(item(sorted, row * n + probe), value);
          if (side === "right" ? order <= 0 : order < 0) count += power;
        }
        return count;
      }),
    ];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[9], [2, 3]], attrs: { side: "left" } },
      {
        shapes: [
          [2, 6],
          [2, 4],
        ],
        attrs: { side: "right" },
      },
      { shapes: [[0], [3]], attrs: { side: "left" } },
    ]),
});
