/**
 * @file Reading and adding at positions that are known only at run time. Two families, each a read and its transpose:
 *
 *   take(x, indices) {axis}      whole rows:     y[a, i…, b] = x[a, indices[i…], b]      ↔  scatter_add
 *   gather(x, indices) {axis}    element-wise:   y[a, i, b] = x[a, indices[a, i, b], b]  ↔  scatter_add_along
 *
 * An index out of range, negative ones included, is never an access to memory: a read gives `outside` (NaN, so that the
 * mistake shows; integers and bools have none and give 0), an addition is dropped. The transpose of an addition
 * therefore reads with `outside` zero. Additions run one after the other in the order of the updates, so sums over
 * repeated indices have one defined order and one set of bits.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { axisBehind, type BatchRule, type BatchSite, leading } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { OpFacts } from "../ir/facts.ts";
import type { Value } from "../ir/graph.ts";
import type { LowerContext, OpDef, Reference, Sample } from "../ir/op.ts";
import { alongAll, type StripForms, sameAttrs } from "../ir/strips.ts";
import { elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, type DType, isFloat, NUMBER_TYPES, typeOf } from "../kernel/dtype.ts";
import { type Bound, constant, type Expr, type Index } from "../kernel/expr.ts";
import { valueIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { movedAxis, reshaped, withAxis } from "./batch.ts";
import { broadcast } from "./broadcast.ts";
import { requireIndices, requireInputs, requireSameDtype } from "./checks.ts";
import { fullLike, iota } from "./create.ts";
import { apply, defineOp, requireAxis, requireDomain } from "./define.ts";
import { eq } from "./elementwise.ts";
import { guarded } from "./guard.ts";
import { reshape } from "./movement.ts";
import { addIn, elementAt, forEachIndex, tabulate } from "./reference.ts";
import { where } from "./select.ts";

export type AxisAttrs = { readonly axis: number };

/** The result of a read out of range. */
export type ReadAttrs = AxisAttrs & { readonly outside: "nan" | "zero" };

function outsideValue(dtype: DType, { outside }: ReadAttrs): number {
  return outside === "nan" && isFloat(dtype) ? Number.NaN : 0;
}

function requireOutside(name: string, { outside }: ReadAttrs): void {
  if (outside === "nan" || outside === "zero") return;
  const summary = `${name}: outside is ${JSON.stringify(outside)}, which is neither "nan" nor "zero"`;
  throw new TidemarkError("InvalidArgument", summary, { help: 'leave it out, or write outside="zero"' });
}

/** A run-time index into an axis of `extent` elements: the bound that it must keep, and the index where it does. */
function checkedIndex(raw: Expr, extent: number): { readonly bound: Bound; readonly index: Index } {
  const bound = { index: valueIndex(raw, -0x80000000, 0x7fffffff), lo: 0, hi: extent };
  return { bound, index: valueIndex(raw, 0, Math.max(0, extent - 1)) };
}

/**
 * How one family pairs elements: given a position in the result of the read (equally: in the updates), where its index
 * stands among the indices, and which element of x belongs to it once the index is known. One rule for the kernels, on
 * index expressions, and for the reference, on numbers.
 */
export interface Pairing {
  /** Shape of the result of the read. */
  shape(x: Shape, indices: Shape, axis: number): Shape;
  indexAt<I>(idx: readonly I[], indexRank: number, axis: number): readonly I[];
  elementAt<I>(idx: readonly I[], index: I, indexRank: number, axis: number): readonly I[];
}

const byRows: Pairing = {
  shape: (x, indices, axis) => [...x.slice(0, axis), ...indices, ...x.slice(axis + 1)],
  indexAt: (idx, indexRank, axis) => idx.slice(axis, axis + indexRank),
  elementAt: (idx, index, indexRank, axis) => [...idx.slice(0, axis), index, ...idx.slice(axis + indexRank)],
};

const alongAxis: Pairing = {
  shape: (_, indices) => indices,
  indexAt: (idx) => idx,
  elementAt: (idx, index, _, axis) => idx.with(axis, index),
};

/** Bounds on, and position of, the element of x that belongs to position `at`. */
export function pairedElement<A extends AxisAttrs>(pairing: Pairing, c: LowerContext<A>, at: Position) {
  const [{ shape }, indices] = [item(c.inTypes, 0), item(c.inTypes, 1)];
  const { axis } = c.attrs;
  const rank = indices.shape.length;
  const raw = item(c.inputs, 1)(Position.at(indices.shape, pairing.indexAt(at.idx, rank, axis)));
  const { bound, index } = checkedIndex(raw, item(shape, axis));
  return { bounds: [bound], position: Position.at(shape, pairing.elementAt(at.idx, index, rank, axis)) };
}

/** Element number in x that belongs to multi-index `idx`, or -1 where its index is out of range. */
export function pairedNumber(pairing: Pairing, types: readonly TensorType[], indices: Reference, axis: number) {
  const [x, of] = [item(types, 0).shape, item(types, 1).shape];
  return (idx: readonly number[]): number => {
    const index = item(indices, elementAt(of, pairing.indexAt(idx, of.length, axis)));
    return elementAt(x, pairing.elementAt(idx, index, of.length, axis));
  };
}

export interface PairSpec {
  readonly pairing: Pairing;
  /** Of the read. */
  readonly strips: StripForms<ReadAttrs>;
  readonly cases: readonly { readonly x: Shape; readonly indices: Shape; readonly axis: number }[];
  check(name: string, x: TensorType, indices: TensorType, axis: number): void;
}

/** One sample with all indices in range and one with some outside, for each case and element type. */
function pairSamples<A>(
  { pairing, cases }: PairSpec,
  dtypes: readonly DType[],
  withUpdates: boolean,
  attrs: (axis: number, strays: boolean) => A,
): readonly Sample<A>[] {
  return dtypes.flatMap((dtype) =>
    cases.flatMap(({ x, indices, axis }) =>
      [false, true].map((strays) => {
        const types = [tensorType(dtype, x), tensorType("i32", indices)];
        const values = typeOf(dtype).samples;
        const extent = item(x, axis);
        const within = strays ? ([-2, extent + 2] as const) : ([0, Math.max(1, extent)] as const);
        return {
          inputs: withUpdates ? [...types, tensorType(dtype, pairing.shape(x, indices, axis))] : types,
          attrs: attrs(axis, strays),
          range: withUpdates ? [values, within, values] : [values, within],
          // A stray read is NaN, from which no differences can be taken; a stray update is dropped, which is smooth.
          smooth: withUpdates || (!strays && extent > 0),
        };
      }),
    ),
  );
}

/** The cotangent of x, of which `indices` along an axis were read, from that of the result. */
type Transposed = (b: Build, read: Readonly<Record<"x" | "indices" | "ct", Value>> & AxisAttrs) => Value;

const addedToZeros =
  (adding: () => OpDef<AxisAttrs>): Transposed =>
  (b, { x, indices, ct, axis }) =>
    b.call(adding(), [fullLike(b, x, 0), indices, ct], { axis });

/**
 * One index on the whole axis names the only element that gets anything: a comparison, which is computed where it is read, in
 * place of zeros that would have to be stored.
 */
const comparedIfOne: Transposed = (b, read) => {
  const { x, indices, ct, axis } = read;
  if (indices.type.shape[axis] !== 1) return addedToZeros(() => scatterAddAlong)(b, read);
  const { shape } = x.type;
  const others = shape.flatMap((_, a) => (a === axis ? [] : [a]));
  const spread = (value: Value): Value => {
    const flat = b.call(reshape, [value], { shape: others.map((a) => item(shape, a)) });
    return b.call(broadcast, [flat], { axes: others, shape });
  };
  const isIt = apply(b, eq, b.call(iota, [], { shape, axis }), spread(indices));
  return b.call(where, [isIt, spread(ct), fullLike(b, x, 0)], {});
};

/**
 * Indices of whole rows, for each element of a batch its own, as one index for each element of x[n, a, ·, b]: i32[n, a, i, b] with
 * all positions of an element in one axis. And x, or updates in their place, to go with them.
 */
function indicesAlong(b: Build, x: Value, indices: Value, axis: number): Value {
  const [n = 0, ...own] = indices.type.shape;
  const flat = reshaped(b, indices, [n, elementsOf(own)]);
  return b.call(broadcast, [flat], { shape: x.type.shape.with(axis + 1, elementsOf(own)), axes: [0, axis + 1] });
}

/** Rows by indices: one list for all elements of a batch, or one for each, which is an index for each element. */
const readRowsOfBatch =
  (along: () => OpDef<ReadAttrs>) =>
  (b: Build, { x, batched, size, attrs }: BatchSite<ReadAttrs>): readonly Value[] => {
    const [from, indices] = [item(x, 0), item(x, 1)];
    const { axis } = attrs;
    if (!batched[1]) return [b.call(take, [from, indices], { ...attrs, axis: axis + 1 })];
    if (!batched[0]) return [movedAxis(b, b.call(take, [from, indices], attrs), axis, 0)];
    const read = b.call(along(), [from, indicesAlong(b, from, indices, axis)], { ...attrs, axis: axis + 1 });
    const shape = byRows.shape(from.type.shape.slice(1), indices.type.shape.slice(1), axis);
    return [reshaped(b, read, [size, ...shape])];
  };

/** The same for what changes rows: `own` by rows, `along` by elements. */
export const changeRowsOfBatch =
  (
    own: () => OpDef<AxisAttrs>,
    along: () => OpDef<AxisAttrs>,
  ): Extract<BatchRule<AxisAttrs>, { kind: "general" }>["apply"] =>
  (b, site) => {
    const [x, indices, updates] = [withAxis(b, site, 0), item(site.x, 1), withAxis(b, site, 2)];
    const attrs = axisBehind(site.attrs);
    if (!site.batched[1]) return [b.call(own(), [x, indices, updates], attrs)];
    const { shape } = x.type;
    const flat = reshaped(b, updates, shape.with(attrs.axis, elementsOf(indices.type.shape.slice(1))));
    return [b.call(along(), [x, indicesAlong(b, x, indices, site.attrs.axis), flat], attrs)];
  };

function reading(name: string, spec: PairSpec, transposed: Transposed): OpDef<ReadAttrs> {
  const { pairing } = spec;
  return defineOp<ReadAttrs>({
    name,
    batch: spec === rows ? { kind: "general", apply: readRowsOfBatch(() => gather) } : leading(axisBehind),
    defaults: { axis: 0, outside: "nan" },
    facts: { strips: spec.strips },
    infer(inputs, attrs) {
      requireInputs(name, ["x", "indices"], inputs);
      const [x, indices] = [item(inputs, 0), item(inputs, 1)];
      requireOutside(name, attrs);
      spec.check(name, x, indices, attrs.axis);
      return [tensorType(x.dtype, pairing.shape(x.shape, indices.shape, attrs.axis))];
    },
    derivative: {
      kind: "multilinear",
      linear: [0],
      transpose: (b, { x, ct, attrs }) => transposed(b, { x: item(x, 0), indices: item(x, 1), ct, axis: attrs.axis }),
    },
    cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
    lower: {
      kind: "map",
      fusion: "once",
      value(c, at) {
        const { bounds, position } = pairedElement(pairing, c, at);
        const { dtype } = item(c.inTypes, 0);
        return guarded(
          bounds,
          () => item(c.inputs, 0)(position),
          constant(typeOf(dtype).compute, outsideValue(dtype, c.attrs)),
        );
      },
    },
    evaluate({ inputs, inTypes, outTypes, attrs }) {
      const element = pairedNumber(pairing, inTypes, item(inputs, 1), attrs.axis);
      const outside = outsideValue(item(inTypes, 0).dtype, attrs);
      return [
        tabulate(item(outTypes, 0).shape, (idx) => {
          const e = element(idx);
          return e < 0 ? outside : item(item(inputs, 0), e);
        }),
      ];
    },
    samples: () => [
      ...pairSamples<ReadAttrs>(spec, DTYPES, false, (axis) => ({ axis, outside: "nan" })),
      ...pairSamples<ReadAttrs>(spec, ["f32"], false, (axis) => ({ axis, outside: "zero" })).map((sample) => ({
        ...sample,
        smooth: true,
      })),
    ],
  });
}

/** The type of x, where indices and updates fit it. */
export function requireUpdates(name: string, spec: PairSpec, inputs: readonly TensorType[], axis: number): TensorType {
  requireInputs(name, ["x", "indices", "updates"], inputs);
  const [x, indices, updates] = [item(inputs, 0), item(inputs, 1), item(inputs, 2)];
  requireDomain(name, "number", [x]);
  spec.check(name, x, indices, axis);
  requireSameDtype(name, ["x", "updates"], x, updates);
  const wanted = tensorType(x.dtype, spec.pairing.shape(x.shape, indices.shape, axis));
  if (sameShape(wanted.shape, updates.shape)) return x;
  const summary =
    `${name}: updates are ${typeText(updates)}, but x ${typeText(x)} with ` +
    `indices ${typeText(indices)} on axis ${axis} takes ${typeText(wanted)}`;
  throw new TidemarkError("ShapeMismatch", summary, { help: "reshape, transpose or broadcast the updates" });
}

function adding(
  name: string,
  spec: PairSpec,
  reader: () => OpDef<ReadAttrs>,
  facts: OpFacts<AxisAttrs> = {},
): OpDef<AxisAttrs> {
  const { pairing } = spec;
  return defineOp<AxisAttrs>({
    name,
    facts,
    batch:
      spec === rows
        ? {
            kind: "general",
            apply: changeRowsOfBatch(
              () => scatterAdd,
              () => scatterAddAlong,
            ),
          }
        : leading(axisBehind),
    defaults: { axis: 0 },
    infer(inputs, { axis }) {
      return [requireUpdates(name, spec, inputs, axis)];
    },
    derivative: {
      kind: "multilinear",
      linear: [0, 2],
      jointly: true,
      transpose: (b, { x, ct, input, attrs: { axis } }) =>
        input === 0 ? ct : b.call<ReadAttrs>(reader(), [ct, item(x, 1)], { axis, outside: "zero" }),
    },
    cost: ([, , updates]) => ({ flops: updates ? elementsOf(updates.shape) : 0 }),
    lower: {
      kind: "scatter",
      updates: ([, , updates]) => updates?.shape ?? [],
      target(c, u) {
        const { bounds, position } = pairedElement(pairing, c, u);
        return { bounds, index: position.linear };
      },
      value: (c, u) => item(c.inputs, 2)(u),
    },
    evaluate({ inputs, inTypes, attrs: { axis } }) {
      const element = pairedNumber(pairing, inTypes, item(inputs, 1), axis);
      const { dtype } = item(inTypes, 0);
      const out = Float64Array.from(item(inputs, 0));
      forEachIndex(item(inTypes, 2).shape, (idx, u) => {
        const e = element(idx);
        if (e >= 0) out[e] = addIn(dtype, item(out, e), item(item(inputs, 2), u));
      });
      return [out];
    },
    samples: () => pairSamples<AxisAttrs>(spec, NUMBER_TYPES, true, (axis) => ({ axis })),
  });
}

export const rows: PairSpec = {
  pairing: byRows,
  // cut along the indices: all of x is read
  strips: ([, indices], _, attrs) =>
    (indices?.shape ?? []).map((__, axis) => sameAttrs([null, axis], [attrs.axis + axis], attrs)),
  check(name, x, indices, axis) {
    requireIndices(name, "indices", indices);
    requireAxis(name, axis, x.shape.length);
  },
  cases: [
    { x: [5, 3], indices: [4], axis: 0 },
    { x: [2, 4, 3], indices: [2, 3], axis: 1 },
    { x: [3, 4], indices: [], axis: 1 },
    { x: [6], indices: [0], axis: 0 },
    { x: [0, 2], indices: [3], axis: 0 },
  ],
};

export const aligned: PairSpec = {
  pairing: alongAxis,
  strips: (inputs, outputs, attrs) => alongAll(inputs, outputs, attrs, [attrs.axis]),
  check(name, x, indices, axis) {
    requireIndices(name, "indices", indices);
    requireAxis(name, axis, x.shape.length);
    const differs = x.shape.findIndex((extent, a) => a !== axis && extent !== indices.shape[a]);
    if (x.shape.length === indices.shape.length && differs < 0) return;
    const what =
      x.shape.length !== indices.shape.length
        ? `ranks differ: x ${typeText(x)}, indices ${typeText(indices)}`
        : `extents of axis ${differs} differ: x ${typeText(x)}, indices ${typeText(indices)}`;
    throw new TidemarkError("ShapeMismatch", `${name}: ${what}`, {
      help: `x and indices must agree on every axis but axis ${axis}; to pick whole rows, use take`,
    });
  },
  cases: [
    { x: [5, 3], indices: [2, 3], axis: 0 },
    { x: [3, 4], indices: [3, 6], axis: 1 },
    { x: [2, 3, 2], indices: [2, 4, 2], axis: 1 },
    { x: [2, 3, 2], indices: [2, 1, 2], axis: 1 },
    { x: [4], indices: [0], axis: 0 },
    { x: [0], indices: [2], axis: 0 },
  ],
};

/** x with its axis replaced by the rows that `indices` name: y[a, i…, b] = x[a, indices[i…], b]. */
export const take: OpDef<ReadAttrs> = reading(
  "take",
  rows,
  addedToZeros(() => scatterAdd),
);

/** x with updates[a, i…, b] added to element [a, indices[i…], b]. */
export const scatterAdd: OpDef<AxisAttrs> = adding("scatter_add", rows, () => take, { addsRows: ({ axis }) => axis });

/** One index for each element: y[a, i, b] = x[a, indices[a, i, b], b]. */
export const gather: OpDef<ReadAttrs> = reading("gather", aligned, comparedIfOne);

/** x with updates[a, i, b] added to element [a, indices[a, i, b], b]. */
export const scatterAddAlong: OpDef<AxisAttrs> = adding("scatter_add_along", aligned, () => gather);
