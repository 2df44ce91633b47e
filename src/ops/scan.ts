/**
 * @file Running sums along an axis, y_i = x_0 + … + x_i, or with `reverse` y_i = x_i + … + x_(n-1). Added one after the
 * other from the end it starts at.
 */

import { at } from "../base/invariant.ts";
import type { OpDef, Sample } from "../ir/op.ts";
import { elementsOf, tensorType } from "../ir/type.ts";
import { NUMBER_TYPES } from "../kernel/dtype.ts";
import { requireOne } from "./checks.ts";
import { defineOp, requireAxis, requireDomain } from "./define.ts";
import { addIn } from "./reference.ts";

export type CumsumAttrs = { readonly axis: number; readonly reverse: boolean };

function cumsumSamples(): readonly Sample<CumsumAttrs>[] {
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
      [false, true].map((reverse) => ({ inputs: [tensorType(dtype, shape)], attrs: { axis, reverse } })),
    ),
  );
}

export const cumsum: OpDef<CumsumAttrs> = defineOp<CumsumAttrs>({
  name: "cumsum",
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
    transpose: (b, ct, _, __, { axis, reverse }) => b.call(cumsum, [ct], { axis, reverse: !reverse }),
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: { kind: "scan", axis: (_, attrs) => attrs.axis, reverse: (attrs) => attrs.reverse },
  evaluate({ inputs, inTypes, attrs: { axis, reverse } }) {
    const { shape, dtype } = at(inTypes, 0);
    const x = at(inputs, 0);
    const out = new Float64Array(x.length);
    const extent = at(shape, axis);
    const inner = elementsOf(shape.slice(axis + 1));
    const step = reverse ? -inner : inner;
    for (let line = 0; line < elementsOf(shape.slice(0, axis)) * inner; line++) {
      const start = Math.floor(line / inner) * extent * inner + (line % inner);
      let sum = 0;
      for (let i = 0, e = reverse ? start + (extent - 1) * inner : start; i < extent; i++, e += step) {
        sum = addIn(dtype, sum, at(x, e));
        out[e] = sum;
      }
    }
    return [out];
  },
  samples: () => cumsumSamples(),
});
