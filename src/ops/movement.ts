/**
 * @file Operations that rearrange elements and compute nothing: reshape, transpose, flip. Each is a rule from an output
 * position to an input position, so that inside a kernel a chain of them is index arithmetic and no memory is touched.
 * Every one is linear and its transpose is one of its kind: reshape back, the inverse permutation, the same flip.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { behind, leading } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import { alongAll, axesOf, cutExtent, type StripForms, sameAttrs } from "../ir/strips.ts";
import { elementsOf, type Shape, sameShape, shapeText, tensorType, typeText } from "../ir/type.ts";
import { DTYPES } from "../kernel/dtype.ts";
import { addIndex, constIndex, scaleIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { requireAxes, requireList, requireOne } from "./checks.ts";
import { type FullAttrs, full } from "./create.ts";
import { defineOp } from "./define.ts";
import { elementAt, samplesIn, tabulate } from "./reference.ts";

/** A rearrangement of one value throughout is that value throughout: `full` of the new shape, or null. */
export function movedFull(b: Build, x: Value, shape: Shape): Value | null {
  const made = b.producer(x);
  if (made?.op !== full) return null;
  return b.call(full, [], { ...(made.attrs as FullAttrs), shape });
}

export type ReshapeAttrs = { readonly shape: readonly number[] };

/** The new number of an axis: that of one with the same extent and stride. */
function reshapedAxis(from: Shape, to: Shape, axis: number): number | null {
  const behind = (shape: Shape, i: number): number => elementsOf(shape.slice(i + 1));
  const wanted = behind(from, axis);
  const place = to.findIndex((extent, i) => extent === from[axis] && behind(to, i) === wanted);
  return place < 0 ? null : place;
}

/** A strip is a run of elements in every part before its axis: [8, 1024, d] and [8192, d] have the same ones. */
const reshapeStrips: StripForms<ReshapeAttrs> = ([x], [y], { shape }) => {
  if (!x || !y) return [];
  const before = (extents: Shape, axis: number): number => elementsOf(extents.slice(0, axis));
  return axesOf(x).flatMap((axis) => {
    const to = shape.findIndex((extent, i) => extent > 1 && before(shape, i) === before(x.shape, axis));
    if (item(x.shape, axis) <= 1 || to < 0) return [];
    const attrs = (strips: number): ReshapeAttrs | null => {
      const [from, rows] = [cutExtent(x.shape[axis], strips), cutExtent(shape[to], strips)];
      return from === null || rows === null ? null : { shape: shape.with(to, rows) };
    };
    return [{ inputs: [axis], outputs: [to], attrs }];
  });
};

/** The same elements in the same order under another shape; shares the input's storage. */
export const reshape: OpDef<ReshapeAttrs> = defineOp<ReshapeAttrs>({
  name: "reshape",
  batch: leading(({ shape }, size) => ({ shape: [size, ...shape] })),
  facts: { viewAxes: (_, from, to) => from.map((__, axis) => reshapedAxis(from, to, axis)), strips: reshapeStrips },
  infer(inputs, { shape }) {
    const x = requireOne("reshape", inputs);
    requireList("reshape", "shape", shape, { count: shape.length, least: 0, of: "the result" });
    const has = elementsOf(x.shape);
    const wants = elementsOf(shape);
    if (has === wants) return [tensorType(x.dtype, shape)];
    const summary = `reshape: ${typeText(x)} has ${has} elements, ${shapeText(shape)} has ${wants}`;
    throw new TidemarkError("ShapeMismatch", summary, { help: `choose extents whose product is ${has}` });
  },
  derivative: {
    kind: "multilinear",
    transpose: (b, { x, ct }) => b.call(reshape, [ct], { shape: item(x, 0).type.shape }),
  },
  cost: () => ({ flops: 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value: (c, at) => item(c.inputs, 0)(at.reshaped(item(c.inTypes, 0).shape)),
  },
  alias: 0,
  view: { write: (b, x, update) => b.call(reshape, [update], { shape: x.type.shape }) },
  simplify(b, node, { shape }) {
    const x = item(node.inputs, 0);
    if (sameShape(x.type.shape, shape)) return x;
    const inner = b.producer(x);
    if (inner?.op === reshape) return b.call(reshape, [item(inner.inputs, 0)], { shape });
    return movedFull(b, x, shape);
  },
  evaluate: ({ inputs }) => [Float64Array.from(item(inputs, 0))],
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[3, 4]], attrs: { shape: [2, 6] } },
      { shapes: [[2, 3, 5]], attrs: { shape: [30] } },
      { shapes: [[]], attrs: { shape: [1, 1] } },
      { shapes: [[0, 3]], attrs: { shape: [5, 0] } },
    ]),
});

export type TransposeAttrs = { readonly perm: readonly number[] };

/** Axes whose extent is not 1, in the order that the permutation puts them. */
function movesOnlyOnes(perm: readonly number[], shape: Shape): boolean {
  const moved = perm.filter((axis) => shape[axis] !== 1);
  return moved.every((axis, i) => i === 0 || item(moved, i - 1) < axis);
}

const inverse = (perm: readonly number[]): readonly number[] => perm.map((_axis, i) => perm.indexOf(i));

/** Output axis i is input axis perm[i]. */
export const transpose: OpDef<TransposeAttrs> = defineOp<TransposeAttrs>({
  name: "transpose",
  batch: leading(({ perm }) => ({ perm: [0, ...behind(perm)] })),
  facts: {
    viewAxes: ({ perm }) => perm.map((_, axis) => perm.indexOf(axis)),
    strips: (_, __, { perm }) => perm.map((from, axis) => sameAttrs([from], [axis], { perm })),
  },
  infer(inputs, { perm }) {
    const x = requireOne("transpose", inputs);
    const rank = x.shape.length;
    const sorted = [...perm].sort((a, b) => a - b);
    if (sorted.length !== rank || sorted.some((axis, i) => axis !== i)) {
      const summary = `transpose: perm ${shapeText(perm)} is not a permutation of the ${rank} axes of ${typeText(x)}`;
      throw new TidemarkError("InvalidAxis", summary, {
        help: rank === 0 ? "a scalar has no axes: use perm []" : `name each of the axes 0 to ${rank - 1} once`,
      });
    }
    return [
      tensorType(
        x.dtype,
        perm.map((axis) => item(x.shape, axis)),
      ),
    ];
  },
  derivative: {
    kind: "multilinear",
    transpose: (b, { ct, attrs }) => b.call(transpose, [ct], { perm: inverse(attrs.perm) }),
  },
  view: { write: (b, _, update, { perm }) => b.call(transpose, [update], { perm: inverse(perm) }) },
  cost: () => ({ flops: 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const { perm } = c.attrs;
      const idx = perm.map((_axis, i) => item(at.idx, perm.indexOf(i)));
      return item(c.inputs, 0)(Position.at(item(c.inTypes, 0).shape, idx));
    },
  },
  simplify(b, node, { perm }) {
    const x = item(node.inputs, 0);
    if (perm.every((axis, i) => axis === i)) return x;
    const shape = item(node.outputs, 0).type.shape;
    if (movesOnlyOnes(perm, x.type.shape)) return b.call(reshape, [x], { shape });
    const inner = b.producer(x);
    if (inner?.op === transpose) {
      // y[i] = m[perm[i]] = x[first[perm[i]]]
      const first = (inner.attrs as TransposeAttrs).perm;
      return b.call(transpose, [item(inner.inputs, 0)], { perm: perm.map((axis) => item(first, axis)) });
    }
    return movedFull(b, x, shape);
  },
  evaluate({ inputs: [x], inTypes, outTypes, attrs: { perm } }) {
    const from = item(inTypes, 0).shape;
    const source = (idx: readonly number[]) => perm.map((_axis, i) => item(idx, perm.indexOf(i)));
    return [tabulate(item(outTypes, 0).shape, (idx) => item(x ?? [], elementAt(from, source(idx))))];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[3, 5]], attrs: { perm: [1, 0] } },
      { shapes: [[2, 3, 4]], attrs: { perm: [2, 0, 1] } },
      { shapes: [[2, 1, 3]], attrs: { perm: [1, 0, 2] } },
      { shapes: [[]], attrs: { perm: [] } },
      { shapes: [[0, 2]], attrs: { perm: [1, 0] } },
    ]),
});

export type FlipAttrs = { readonly axes: readonly number[] };

/** Reversed along the axes. */
export const flip: OpDef<FlipAttrs> = defineOp<FlipAttrs>({
  name: "flip",
  batch: leading(({ axes }) => ({ axes: behind(axes) })),
  facts: { strips: (inputs, outputs, attrs) => alongAll(inputs, outputs, attrs, attrs.axes) },
  infer(inputs, { axes }) {
    const x = requireOne("flip", inputs);
    requireAxes("flip", axes, x);
    return [x];
  },
  derivative: { kind: "multilinear", transpose: (b, { ct, attrs }) => b.call(flip, [ct], attrs) },
  view: { write: (b, _, update, attrs) => b.call(flip, [update], attrs) },
  cost: () => ({ flops: 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const { shape } = item(c.inTypes, 0);
      const idx = at.idx.map((i, axis) => {
        if (!c.attrs.axes.includes(axis)) return i;
        return addIndex(constIndex(item(shape, axis) - 1), scaleIndex(i, -1));
      });
      return item(c.inputs, 0)(Position.at(shape, idx));
    },
  },
  simplify(b, node, { axes }) {
    const x = item(node.inputs, 0);
    const reversed = axes.filter((axis) => item(x.type.shape, axis) > 1);
    if (reversed.length === 0) return x;
    const inner = b.producer(x);
    if (inner?.op !== flip) return movedFull(b, x, x.type.shape);
    // Flipping twice is the identity.
    const before = (inner.attrs as FlipAttrs).axes;
    const once = [...before.filter((a) => !reversed.includes(a)), ...reversed.filter((a) => !before.includes(a))];
    return b.call(flip, [item(inner.inputs, 0)], { axes: once.sort((p, q) => p - q) });
  },
  evaluate({ inputs: [x], inTypes, attrs: { axes } }) {
    const { shape } = item(inTypes, 0);
    const source = (idx: readonly number[]) =>
      idx.map((i, axis) => (axes.includes(axis) ? item(shape, axis) - 1 - i : i));
    return [tabulate(shape, (idx) => item(x ?? [], elementAt(shape, source(idx))))];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[3, 4]], attrs: { axes: [1] } },
      { shapes: [[2, 3, 2]], attrs: { axes: [0, 2] } },
      { shapes: [[]], attrs: { axes: [] } },
      { shapes: [[2, 0]], attrs: { axes: [0, 1] } },
    ]),
});
