/**
 * @file Recurrences along an axis, one element after the other, or with `reverse` from the other end:
 *
 *   cumsum        y_i = y_(i-1) + x_i
 *   linear_scan   y_i = a_i · y_(i-1) + b_i
 *
 * each from y = 0 before the first element.
 */

import { at } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef, Reference, Sample } from "../ir/op.ts";
import { alongAll, type StripForms } from "../ir/strips.ts";
import { elementsOf, type TensorType, tensorType } from "../ir/type.ts";
import { NUMBER_TYPES } from "../kernel/dtype.ts";
import { requireInputs, requireOne } from "./checks.ts";
import { apply, defineOp, requireAxis, requireDomain, requireSame } from "./define.ts";
import { add, mul } from "./elementwise.ts";
import { addIn, mulIn } from "./reference.ts";
import { pad, slice } from "./slice.ts";

export type ScanAxisAttrs = { readonly axis: number; readonly reverse: boolean };

function scanSamples(inputs: number): readonly Sample<ScanAxisAttrs>[] {
  const cases: readonly (readonly [readonly number[], number])[] = [
    [[5], 0],
    [[3, 4], 0],
    [[3, 4], 1],
    [[2, 5, 3], 1],
    [[1], 0],
    [[4, 0], 0],
    [[4, 0], 1],
    [[19], 0],
  ];
  return NUMBER_TYPES.flatMap((dtype) =>
    cases.flatMap(([shape, axis]) =>
      [false, true].map((reverse) => ({
        inputs: Array.from({ length: inputs }, () => tensorType(dtype, shape)),
        attrs: { axis, reverse },
      })),
    ),
  );
}

/** Runs a recurrence over elements: `next` has the number of an element and y of the one before. */
function recur(type: TensorType, { axis, reverse }: ScanAxisAttrs, next: (e: number, y: number) => number): Reference {
  const { shape } = type;
  const out = new Float64Array(elementsOf(shape));
  const extent = at(shape, axis);
  const inner = elementsOf(shape.slice(axis + 1));
  const step = reverse ? -inner : inner;
  for (let line = 0; line < elementsOf(shape.slice(0, axis)) * inner; line++) {
    const start = Math.floor(line / inner) * extent * inner + (line % inner);
    let y = 0;
    for (let i = 0, e = reverse ? start + (extent - 1) * inner : start; i < extent; i++, e += step) {
      y = next(e, y);
      out[e] = y;
    }
  }
  return out;
}

const alongOtherAxes: StripForms<ScanAxisAttrs> = (inputs, outputs, attrs) =>
  alongAll(inputs, outputs, attrs, [attrs.axis]);

export const cumsum: OpDef<ScanAxisAttrs> = defineOp<ScanAxisAttrs>({
  name: "cumsum",
  facts: { strips: alongOtherAxes },
  defaults: { reverse: false },
  infer(inputs, { axis }) {
    const x = requireOne("cumsum", inputs);
    requireDomain("cumsum", "number", inputs);
    requireAxis("cumsum", axis, x.shape.length);
    return [x];
  },
  derivative: {
    kind: "multilinear",
    // y_i = Σ_(j ≤ i) x_j, so dx_j = Σ_(i ≥ j) dy_i: the same sum from the other end
    transpose: (b, { ct, attrs }) => b.call(cumsum, [ct], { axis: attrs.axis, reverse: !attrs.reverse }),
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: { kind: "scan", body: 0, scale: null, axis: (_, attrs) => attrs.axis, reverse: (attrs) => attrs.reverse },
  evaluate({ inputs, inTypes, attrs }) {
    const [type, x] = [at(inTypes, 0), at(inputs, 0)];
    return [recur(type, attrs, (e, y) => addIn(type.dtype, y, at(x, e)))];
  },
  samples: () => scanSamples(1),
});

/** The element before, in the order of the scan; zero before the first. */
function before(b: Build, x: Value, { axis, reverse }: ScanAxisAttrs): Value {
  const { shape } = x.type;
  const none = shape.map(() => 0);
  const one = shape.map((_, i) => (i === axis ? 1 : 0));
  const moved = b.call(pad, [x], { lo: reverse ? none : one, hi: reverse ? one : none, interior: none, value: 0 });
  const start = reverse ? one : none;
  return b.call(slice, [moved], { start, limit: shape.map((n, i) => n + at(start, i)), stride: shape.map(() => 1) });
}

export const linearScan: OpDef<ScanAxisAttrs> = defineOp<ScanAxisAttrs>({
  name: "linear_scan",
  facts: { strips: alongOtherAxes },
  defaults: { reverse: false },
  infer(inputs, { axis }) {
    requireInputs("linear_scan", ["scale", "body"], inputs);
    requireDomain("linear_scan", "number", inputs);
    const type = requireSame("linear_scan", inputs);
    requireAxis("linear_scan", axis, type.shape.length);
    return [type];
  },
  derivative: {
    kind: "general",
    // ẏ_i = a_i · ẏ_(i-1) + (ȧ_i · y_(i-1) + ḃ_i)
    jvp(b, { x, y, tangents: [da, db], attrs }) {
      const ofScale = da ? apply(b, mul, da, before(b, y, attrs)) : null;
      const moved = ofScale && db ? apply(b, add, ofScale, db) : (ofScale ?? db);
      return moved ? b.call(linearScan, [at(x, 0), moved], attrs) : null;
    },
    // b̄_i = ȳ_i + a_(i+1) · b̄_(i+1), the same recurrence from the other end; ā_i = y_(i-1) · b̄_i
    vjp(b, { x, y, ct, input, attrs }) {
      const back = { ...attrs, reverse: !attrs.reverse };
      const ofBody = b.call(linearScan, [before(b, at(x, 0), back), ct], back);
      return input === 1 ? ofBody : apply(b, mul, before(b, y, attrs), ofBody);
    },
  },
  cost: (_, [out]) => ({ flops: out ? 2 * elementsOf(out.shape) : 0 }),
  lower: { kind: "scan", body: 1, scale: 0, axis: (_, attrs) => attrs.axis, reverse: (attrs) => attrs.reverse },
  evaluate({ inputs, inTypes, attrs }) {
    const type = at(inTypes, 0);
    const [a, b] = [at(inputs, 0), at(inputs, 1)];
    return [recur(type, attrs, (e, y) => addIn(type.dtype, mulIn(type.dtype, y, at(a, e)), at(b, e)))];
  },
  samples: () => scanSamples(2),
});
