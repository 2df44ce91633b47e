/**
 * @file Recurrences along an axis, one element after the other, or with `reverse` from the other end:
 *
 *   cumsum        y_i = y_(i-1) + x_i
 *   linear_scan   y_i = a_i · y_(i-1) + b_i
 *   cummax        y_i = max(y_(i-1), x_i), and cummin
 *
 * from y = 0 before the first element, or from what no element is above (below).
 */

import { at } from "../base/invariant.ts";
import { axisBehind, leading } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef, Reference, Sample } from "../ir/op.ts";
import { alongAll, type StripForms } from "../ir/strips.ts";
import { elementsOf, type TensorType, tensorType } from "../ir/type.ts";
import { NUMBER_TYPES, typeOf } from "../kernel/dtype.ts";
import { requireInputs, requireOne } from "./checks.ts";
import { fullLike } from "./create.ts";
import { apply, defineOp, requireAxis, requireDomain, requireSame } from "./define.ts";
import { add, eq, mul } from "./elementwise.ts";
import { addIn, mulIn, samplesIn } from "./reference.ts";
import { where } from "./select.ts";
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
function recur(
  type: TensorType,
  { axis, reverse }: ScanAxisAttrs,
  next: (e: number, y: number) => number,
  from = 0,
): Reference {
  const { shape } = type;
  const out = new Float64Array(elementsOf(shape));
  const extent = at(shape, axis);
  const inner = elementsOf(shape.slice(axis + 1));
  const step = reverse ? -inner : inner;
  for (let line = 0; line < elementsOf(shape.slice(0, axis)) * inner; line++) {
    const start = Math.floor(line / inner) * extent * inner + (line % inner);
    let y = from;
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
  batch: leading(axisBehind),
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
  batch: leading(axisBehind),
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

/**
 * A running extremum. Its element i is x at the last place up to i where x equals it, so between two such places tangents are
 * carried on, and cotangents add up at the first of them:
 *
 *   ẏ_i = ẋ_i where x_i = y_i, else ẏ_(i-1)        g_i = ȳ_i + [x_(i+1) ≠ y_(i+1)] · g_(i+1),  x̄_i = [x_i = y_i] · g_i
 */
function runningExtremum(name: string, combine: "max" | "min"): OpDef<ScanAxisAttrs> {
  const parts = (b: Build, x: Value, y: Value) => {
    const isOwn = apply(b, eq, x, y);
    const [zero, one] = [fullLike(b, y, 0), fullLike(b, y, 1)];
    return { isOwn, zero, carried: apply(b, where, isOwn, zero, one) };
  };
  return defineOp<ScanAxisAttrs>({
    name,
    batch: leading(axisBehind),
    defaults: { reverse: false },
    infer(inputs, { axis }) {
      const x = requireOne(name, inputs);
      requireDomain(name, "number", inputs);
      requireAxis(name, axis, x.shape.length);
      return [x];
    },
    derivative: {
      kind: "general",
      jvp(b, { x, y, tangents: [t], attrs }) {
        if (!t) return null;
        const { isOwn, zero, carried } = parts(b, at(x, 0), y);
        return b.call(linearScan, [carried, apply(b, where, isOwn, t, zero)], attrs);
      },
      vjp(b, { x, y, ct, attrs }) {
        const { isOwn, zero, carried } = parts(b, at(x, 0), y);
        const back = { ...attrs, reverse: !attrs.reverse };
        return apply(b, where, isOwn, b.call(linearScan, [before(b, carried, back), ct], back), zero);
      },
    },
    cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
    lower: {
      kind: "scan",
      body: 0,
      scale: null,
      combine,
      axis: (_, attrs) => attrs.axis,
      reverse: (attrs) => attrs.reverse,
    },
    evaluate({ inputs, inTypes, attrs }) {
      const [type, x] = [at(inTypes, 0), at(inputs, 0)];
      const { lowest, highest } = typeOf(type.dtype);
      return [recur(type, attrs, (e, y) => Math[combine](y, at(x, e)), combine === "max" ? lowest : highest)];
    },
    samples: () =>
      samplesIn(
        NUMBER_TYPES,
        [
          { shape: [5], axis: 0 },
          { shape: [2, 7, 3], axis: 1 },
          { shape: [4, 0], axis: 1 },
        ].map(({ shape, axis }, i) => ({ shapes: [shape], attrs: { axis, reverse: i === 1 } })),
      ),
  });
}

export const cummax: OpDef<ScanAxisAttrs> = runningExtremum("cummax", "max");
export const cummin: OpDef<ScanAxisAttrs> = runningExtremum("cummin", "min");
