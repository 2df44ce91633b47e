/**
 * @file Convolution, over any number of spatial axes. With s = p · stride + r · dilation - lo (see conv-geometry.ts), one
 * form that is linear in each of three tensors,
 *
 *     T(x, w, y) = Σ over n, o, c, p, r of  x[n, c, s] · w[o, c, r] · y[n, o, p]
 *
 * has three partial derivatives, and those are the operations here:
 *
 *     conv(x, w)        = ∂T/∂y      the convolution
 *     conv_input(y, w)  = ∂T/∂x      its gradient to the input, also known as the transposed convolution
 *     conv_weight(x, y) = ∂T/∂w      its gradient to the weights
 *
 * So each one's transposes are the other two, and derivatives of any order stay among the three. With groups, channels
 * of group g of the input are multiplied only with those of group g of the result.
 *
 * All three are matrix products whose panels are gathered from the tensors while they are packed, so no column matrix
 * is ever stored. Padding reads as zero through guards. conv_input is a product for each phase of its stride, so that no
 * position multiplies the zeros between strides (see `Phase` in conv-geometry.ts).
 */

import { at } from "../base/invariant.ts";
import type { BatchSite } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { ContractPart, Derivative, LowerContext, OpDef, Reference, Sample } from "../ir/op.ts";
import { type StripForm, type StripForms, sameAttrs } from "../ir/strips.ts";
import { elementsOf, type TensorType, tensorType } from "../ir/type.ts";
import { typeOf } from "../kernel/dtype.ts";
import { type Bound, constant, type Expr, type Index } from "../kernel/expr.ts";
import { addIndex, linearIndex, offsetIndex, scaleIndex, splitIndex } from "../kernel/index-math.ts";
import { depthRun, type Window } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { resultType, wideResult } from "./checks.ts";
import { convInputOfBatch, convOfBatch, convWeightOfBatch } from "./conv-batch.ts";
import {
  type ConvAttrs,
  type ConvInputAttrs,
  type ConvWeightAttrs,
  convGeometry,
  convInputGeometry,
  convWeightGeometry,
  eachTerm,
  type Geometry,
  type Phase,
  phases,
  shapeOfW,
  shapeOfX,
  shapeOfY,
  sharedAttrs,
} from "./conv-geometry.ts";
import { convInputSamples, convSamples, convWeightSamples } from "./conv-samples.ts";
import { defineOp } from "./define.ts";
import { guarded } from "./guard.ts";
import { inDtype } from "./select.ts";
import { partAlong } from "./slice.ts";

export type { ConvAttrs, ConvInputAttrs, ConvWeightAttrs } from "./conv-geometry.ts";

// ---- reading panels ------------------------------------------------------------------------------------------------

/** Of a tensor [rows, columns, …rest]: row, column, and the rest as one number. */
type Place = readonly [Index, Index, Index];

/** A row-major tensor at a place: no division for a stored one. */
function read(c: LowerContext<unknown>, i: number, [row, column, rest]: Place): Expr {
  const { shape } = at(c.inTypes, i);
  const inner = elementsOf(shape.slice(2));
  const linear = addIndex(scaleIndex(row, at(shape, 1) * inner), scaleIndex(column, inner), rest);
  return at(c.inputs, i)(Position.linear(shape, linear));
}

/** Input 0 at (n, channel, …place), or zero where a bound fails. */
function readWhere(c: LowerContext<unknown>, place: readonly Index[], bounds: readonly Bound[]): Expr {
  const { dtype, shape } = at(c.inTypes, 0);
  return guarded(bounds, () => at(c.inputs, 0)(Position.at(shape, place)), constant(typeOf(dtype).compute, 0));
}

/** x in (n, channel) at what place `p` of the result sees through tap `r`: s = p · stride + r · dilation - lo. */
function readSeen(c: LowerContext<unknown>, g: Geometry, [n, channel, p]: Place, r: Index): Expr {
  if (isPointwise(g)) return read(c, 0, [n, channel, p]);
  const places = splitIndex(p, g.output);
  const taps = splitIndex(r, g.kernel);
  const s = g.input.map((_, axis) => {
    const first = scaleIndex(at(places, axis), at(g.stride, axis));
    return offsetIndex(addIndex(first, scaleIndex(at(taps, axis), at(g.dilation, axis))), -at(g.lo, axis));
  });
  return readWhere(
    c,
    [n, channel, ...s],
    s.map((index, axis) => ({ index, lo: 0, hi: at(g.input, axis) })),
  );
}

/** A phase of the gradient to the input. */
interface PhaseGeometry {
  readonly g: Geometry;
  readonly phase: readonly Phase[];
}

/** y in (n, channel) at the place that sees position u of a phase through its tap t. */
function readSeeing(c: LowerContext<unknown>, { g, phase }: PhaseGeometry, [n, channel, u]: Place, t: Index): Expr {
  if (isPointwise(g)) return read(c, 0, [n, channel, u]);
  const positions = splitIndex(
    u,
    phase.map((axis) => axis.positions),
  );
  const taps = splitIndex(
    t,
    phase.map((axis) => axis.taps),
  );
  const p = phase.map((axis, a) =>
    offsetIndex(addIndex(at(positions, a), scaleIndex(at(taps, a), -axis.back)), axis.seen),
  );
  return readWhere(
    c,
    [n, channel, ...p],
    p.map((index, axis) => ({ index, lo: 0, hi: at(g.output, axis) })),
  );
}

/** Every place reads only the position with its own number. */
function isPointwise(g: Geometry): boolean {
  return g.input.every(
    (extent, axis) => extent === g.output[axis] && g.kernel[axis] === 1 && g.stride[axis] === 1 && g.lo[axis] === 0,
  );
}

// ---- the three operations ------------------------------------------------------------------------------------------

/** The differences between the three. `batch` of the matrix product always ends with the group. */
interface View<A extends ConvAttrs> {
  readonly name: string;
  geometry(inputs: readonly TensorType[], attrs: A): Geometry;
  result(g: Geometry): readonly number[];
  parts(g: Geometry): readonly ContractPart<A>[];
  readonly strips: StripForms<A>;
  batch(b: Build, site: BatchSite<A>): readonly Value[];
  readonly transpose: Extract<Derivative<A>, { kind: "multilinear" }>["transpose"];
  /** Elements of the result and of both inputs in the term x[e] · w[f] · y[h]. */
  term(e: number, f: number, h: number): readonly [number, number, number];
  samples(): readonly Sample<A>[];
}

function defineView<A extends ConvAttrs>(view: View<A>): OpDef<A> {
  const parts = (inputs: readonly TensorType[], attrs: A): readonly ContractPart<A>[] =>
    view.parts(view.geometry(inputs, attrs));
  return defineOp<A>({
    name: view.name,
    defaults: { groups: 1, wide: false } as OpDef<A>["defaults"],
    facts: { strips: view.strips, autocast: "product", wideResult },
    batch: { kind: "general", apply: view.batch },
    infer: (inputs, attrs) => [
      tensorType(resultType(at(inputs, 0).dtype, attrs.wide), view.result(view.geometry(inputs, attrs))),
    ],
    derivative: {
      kind: "multilinear",
      transpose: (b, site) => view.transpose(b, { ...site, ct: inDtype(b, site.ct, at(site.x, 0).type.dtype) }),
    },
    cost(inputs, _, attrs) {
      // Work of the products, padding included.
      const flops = parts(inputs, attrs).map(({ batch, m, n, k }) => 2 * elementsOf(batch) * m * n * k);
      return { flops: flops.reduce((sum, n) => sum + n, 0) };
    },
    lower: { kind: "contract", parts },
    evaluate({ inputs, inTypes, attrs }) {
      const g = view.geometry(inTypes, attrs);
      const [left, right] = inputs as [Reference, Reference];
      const out = new Float64Array(elementsOf(view.result(g)));
      eachTerm(g, (e, f, h) => {
        const [to, i, j] = view.term(e, f, h);
        out[to] = at(out, to) + at(left, i) * at(right, j);
      });
      return [out];
    },
    samples: view.samples,
  });
}

/** Channel number of channel `c` of the group that `batch` ends with. */
function inGroup(batch: readonly Index[], perGroup: number, c: Index): Index {
  return addIndex(scaleIndex(at(batch, batch.length - 1), perGroup), c);
}

/** A counter over `outer` × the elements of `inner`, as the two. */
function pair(counter: Index, outer: number, inner: readonly number[]): readonly [Index, Index] {
  const [first, second] = splitIndex(counter, [outer, elementsOf(inner)]);
  return [first as Index, second as Index];
}

/**
 * The depth of a product over taps and channels. Channels run fastest: the position that a tap reads, and whether it
 * is inside, is then computed once for all channels while a panel is packed.
 */
function tapAndChannel(k: Index, taps: readonly number[], channels: number): readonly [Index, Index] {
  const [tap, channel] = splitIndex(k, [elementsOf(taps), channels]);
  return [tap as Index, channel as Index];
}

/** The window of x, for a convolution without stride and dilation. */
function windowOf(g: Geometry, sums: Window["sums"]): Pick<ContractPart<never>, "window"> {
  const { stride, dilation, output, kernel } = g;
  if ([...stride, ...dilation].some((n) => n !== 1)) return {};
  return { window: { sums, places: output, taps: kernel, slides: 1 } };
}

/** Cut along images, or along the channels of the result, which are those of the weights along `weights`. */
const imageStrips =
  <A extends ConvAttrs>(weights: number): StripForms<A> =>
  (_, __, attrs) => [
    sameAttrs([0, null], [0], attrs),
    ...(attrs.groups === 1 ? [sameAttrs([null, weights], [1], attrs)] : []),
  ];

/** Cut along images, which are summed over: one product for each run of the depth, where runs are whole images. */
const weightStrips: StripForms<ConvWeightAttrs> = (inputs, _, attrs) => {
  const { batch, output } = convWeightGeometry(inputs, attrs);
  const places = elementsOf(output);
  const images = depthRun(batch * places) / places;
  const isExact = typeOf(at(inputs, 0).dtype).accumulate === resultType(at(inputs, 0).dtype, attrs.wide);
  const parts: StripForm["parts"] = (b, sides, strips) =>
    Array.from({ length: batch / strips / images }, (__, i) => {
      const part = [i * images, images] as const;
      return b.call(
        convWeight,
        sides.map((side) => partAlong(b, side, 0, part)),
        attrs,
      );
    });
  const inRuns = (strips: number): ConvWeightAttrs | null =>
    isExact && Number.isInteger(images) && (batch / strips) % images === 0 ? attrs : null;
  return [{ inputs: [0, 0], outputs: [null], attrs: inRuns, parts }];
};

/** y[n, o, p] = Σ over c, r of x[n, c, s] · w[o, c, r]. */
export const conv: OpDef<ConvAttrs> = defineView<ConvAttrs>({
  name: "conv",
  geometry: convGeometry,
  strips: imageStrips(0),
  batch: convOfBatch(() => conv),
  result: shapeOfY,
  parts: (g) => [
    {
      batch: [g.batch, g.groups],
      m: g.outChannels,
      n: elementsOf(g.output),
      k: elementsOf(g.kernel) * g.inChannels,
      run: g.inChannels,
      columns: g.output,
      depths: [...g.kernel, g.inChannels],
      ...windowOf(g, "channels"),
      a(c, batch, i, k) {
        const [r, inner] = tapAndChannel(k, g.kernel, g.inChannels);
        return read(c, 1, [inGroup(batch, g.outChannels, i), inner, r]);
      },
      b(c, batch, k, j) {
        const [r, inner] = tapAndChannel(k, g.kernel, g.inChannels);
        return readSeen(c, g, [at(batch, 0), inGroup(batch, g.inChannels, inner), j], r);
      },
    },
  ],
  // ∂/∂x and ∂/∂w of T(x, w, dy)
  transpose: (b, { x, ct: dy, input, attrs }) =>
    input === 0
      ? b.call(convInput, [dy, at(x, 1)], { ...sharedAttrs(attrs), size: at(x, 0).type.shape.slice(2) })
      : b.call(convWeight, [at(x, 0), dy], { ...sharedAttrs(attrs), kernel: at(x, 1).type.shape.slice(2) }),
  term: (e, f, h) => [h, e, f],
  samples: convSamples,
});

/** The gradient to the positions of one phase: a convolution without stride over those of its taps. */
function phasePart(g: Geometry, phase: readonly Phase[]): ContractPart<ConvInputAttrs> {
  const [positions, taps] = [phase.map((axis) => axis.positions), phase.map((axis) => axis.taps)];
  const whole = g.stride.every((stride) => stride === 1);
  const place: ContractPart<ConvInputAttrs>["place"] = (batch, i, j) => [
    at(batch, 0),
    inGroup(batch, g.inChannels, i),
    ...splitIndex(j, positions).map((u, a) => offsetIndex(scaleIndex(u, at(g.stride, a)), at(phase, a).first)),
  ];
  return {
    batch: [g.batch, g.groups],
    m: g.inChannels,
    n: elementsOf(positions),
    k: elementsOf(taps) * g.outChannels,
    run: g.outChannels,
    columns: positions,
    depths: [...taps, g.outChannels],
    ...(phase.every(({ back }) => back === 1)
      ? { window: { sums: "channels", places: positions, taps, slides: -1 } as const }
      : {}),
    a(c, batch, i, k) {
      const [t, inner] = tapAndChannel(k, taps, g.outChannels);
      const r = splitIndex(t, taps).map((tap, a) =>
        offsetIndex(scaleIndex(tap, at(phase, a).tapStep), at(phase, a).tap),
      );
      return read(c, 1, [inGroup(batch, g.outChannels, inner), i, linearIndex(r, g.kernel)]);
    },
    b(c, batch, k, j) {
      const [t, inner] = tapAndChannel(k, taps, g.outChannels);
      return readSeeing(c, { g, phase }, [at(batch, 0), inGroup(batch, g.outChannels, inner), j], t);
    },
    ...(whole ? {} : { place }),
  };
}

/** x[n, c, s] = Σ over o and those p, r that see s of y[n, o, p] · w[o, c, r]. */
export const convInput: OpDef<ConvInputAttrs> = defineView<ConvInputAttrs>({
  name: "conv_input",
  geometry: convInputGeometry,
  strips: imageStrips(1),
  batch: convInputOfBatch(() => convInput),
  result: shapeOfX,
  parts: (g) => phases(g).map((phase) => phasePart(g, phase)),
  // ∂/∂y and ∂/∂w of T(dx, w, y)
  transpose: (b, { x, ct: dx, input, attrs }) =>
    input === 0
      ? b.call(conv, [dx, at(x, 1)], sharedAttrs(attrs))
      : b.call(convWeight, [dx, at(x, 0)], { ...sharedAttrs(attrs), kernel: at(x, 1).type.shape.slice(2) }),
  term: (e, f, h) => [e, h, f],
  samples: convInputSamples,
});

/** w[o, c, r] = Σ over n, p of x[n, c, s] · y[n, o, p]. */
export const convWeight: OpDef<ConvWeightAttrs> = defineView<ConvWeightAttrs>({
  name: "conv_weight",
  geometry: convWeightGeometry,
  strips: weightStrips,
  batch: convWeightOfBatch(() => convWeight),
  result: shapeOfW,
  parts: (g) => [
    {
      batch: [g.groups],
      m: g.outChannels,
      n: g.inChannels * elementsOf(g.kernel),
      k: g.batch * elementsOf(g.output),
      run: g.output[g.output.length - 1] ?? 1,
      columns: [g.inChannels, ...g.kernel],
      depths: [g.batch, ...g.output],
      ...windowOf(g, "places"),
      a(c, batch, i, k) {
        const [n, p] = pair(k, g.batch, g.output);
        return read(c, 1, [n, inGroup(batch, g.outChannels, i), p]);
      },
      b(c, batch, k, j) {
        const [n, p] = pair(k, g.batch, g.output);
        const [inner, r] = pair(j, g.inChannels, g.kernel);
        return readSeen(c, g, [n, inGroup(batch, g.inChannels, inner), p], r);
      },
    },
  ],
  // ∂/∂x and ∂/∂y of T(x, dw, y)
  transpose: (b, { x, ct: dw, input, attrs }) =>
    input === 0
      ? b.call(convInput, [at(x, 1), dw], { ...sharedAttrs(attrs), size: at(x, 0).type.shape.slice(2) })
      : b.call(conv, [at(x, 0), dw], sharedAttrs(attrs)),
  term: (e, f, h) => [f, e, h],
  samples: convWeightSamples,
});
