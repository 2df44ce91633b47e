/**
 * @file Cutting out, writing back and padding. All are linear (pad: affine), and slices are the transposes of the others.
 * The transpose of a strided slice has gaps, hence the interior padding of `pad`:
 *
 *   x        a b c d e f g                 ct         p q r
 *   slice      b   d   f    {1, 7, 2}      pad      0 p 0 q 0 r 0     {lo 1, interior 1, hi 1}
 *
 *   slice_update(x, [p q r]) {1, 2}     a p c q e r g         slice_add     a b+p c d+q e f+r g
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { leading } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { ChangeRule } from "../ir/facts.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import { alongAll, axesOf, type StripForms } from "../ir/strips.ts";
import { elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, NUMBER_TYPES, storedNumber, typeOf } from "../kernel/dtype.ts";
import { type Bound, call, constant, type Index } from "../kernel/expr.ts";
import { divIndex, modIndex, offsetIndex, scaleIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { requireFill, requireInputs, requireList, requireOne, requireSameDtype } from "./checks.ts";
import { type FullAttrs, full, fullLike, splatOf } from "./create.ts";
import { apply, defineOp, requireDomain } from "./define.ts";
import { add } from "./elementwise.ts";
import { guarded } from "./guard.ts";
import { movedFull } from "./movement.ts";
import { addIn, elementAt, forEachIndex, samplesIn, tabulate } from "./reference.ts";
import { apart, limitOf, type Selection, sameSelection, within } from "./selection.ts";

export type SliceAttrs = {
  readonly start: readonly number[];
  readonly limit: readonly number[];
  readonly stride: readonly number[];
};

const selectionOf = ({ start, stride }: WindowAttrs, extents: readonly number[]): Selection => ({
  start,
  stride,
  extents,
});

/** The elements of x that a selection takes. */
function taken(b: Build, x: Value, wanted: Selection): Value {
  const { start, stride } = wanted;
  return b.call(slice, [x], { start, limit: start.map((_, axis) => limitOf(wanted, axis)), stride });
}

/**
 * Forwards a slice of an updated tensor to the update that contains it, if no later update overlaps it. Otherwise the slice
 * reads the newest version, never an older one, whose storage the newest may have taken over.
 */
function readBack(b: Build, x: Value, wanted: Selection): Value | null {
  for (let write = b.producer(x); write; write = b.producer(item(write.inputs, 0))) {
    if (write.op !== sliceUpdate && write.op !== sliceAdd) return null;
    const update = item(write.inputs, 1);
    const written = selectionOf(write.attrs as WindowAttrs, update.type.shape);
    const inside = write.op === sliceUpdate ? within(wanted, written) : null;
    if (inside) return taken(b, update, inside);
    if (!apart(wanted, written)) return null;
  }
  return null;
}

/** `count` elements from `start` on along one axis. */
export function partAlong(b: Build, x: Value, axis: number, [start, count]: readonly [number, number]): Value {
  const { shape } = x.type;
  if (start === 0 && count === shape[axis]) return x;
  return b.call(slice, [x], {
    start: shape.map((_, a) => (a === axis ? start : 0)),
    limit: shape.with(axis, start + count),
    stride: shape.map(() => 1),
  });
}

/** Independent along an axis of which all elements are taken. */
const sliceStrips: StripForms<SliceAttrs> = ([x], _, { start, limit, stride }) =>
  (x ? axesOf(x) : [])
    .filter((axis) => start[axis] === 0 && stride[axis] === 1 && limit[axis] === x?.shape[axis])
    .map((axis) => ({
      inputs: [axis],
      outputs: [axis],
      attrs: (strips) => ({ start, limit: limit.with(axis, item(limit, axis) / strips), stride }),
    }));

/** Elements start, start + stride, … below limit, along every axis. */
export const slice: OpDef<SliceAttrs> = defineOp<SliceAttrs>({
  name: "slice",
  batch: leading(({ start, limit, stride }, size) => ({
    start: [0, ...start],
    limit: [size, ...limit],
    stride: [1, ...stride],
  })),
  facts: { strips: sliceStrips },
  infer(inputs, { start, limit, stride }) {
    const x = requireOne("slice", inputs);
    const count = x.shape.length;
    requireList("slice", "start", start, { count, least: 0, of: typeText(x) });
    requireList("slice", "limit", limit, { count, least: 0, of: typeText(x) });
    requireList("slice", "stride", stride, { count, least: 1, of: typeText(x) });
    const shape = x.shape.map((extent, axis) => {
      const [from, to] = [item(start, axis), item(limit, axis)];
      if (from <= to && to <= extent) return Math.ceil((to - from) / item(stride, axis));
      const summary = `slice: [${from}, ${to}) on axis ${axis} is not within the extent ${extent} of ${typeText(x)}`;
      throw new TidemarkError("InvalidArgument", summary, { help: `choose 0 ≤ start ≤ limit ≤ ${extent}` });
    });
    return [tensorType(x.dtype, shape)];
  },
  derivative: {
    kind: "multilinear",
    transpose(b, { x, ct, attrs: { start, stride } }) {
      const lo = start;
      // The last element taken is start + stride (n - 1); elements beyond it are padded.
      const hi = item(x, 0).type.shape.map((extent, axis) => {
        const n = item(ct.type.shape, axis);
        return extent - item(start, axis) - (n === 0 ? 0 : (n - 1) * item(stride, axis) + 1);
      });
      return b.call(pad, [ct], { lo, hi, interior: stride.map((s) => s - 1), value: 0 });
    },
  },
  cost: () => ({ flops: 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const { start, stride } = c.attrs;
      const idx = at.idx.map((i, axis) => offsetIndex(scaleIndex(i, item(stride, axis)), item(start, axis)));
      return item(c.inputs, 0)(Position.at(item(c.inTypes, 0).shape, idx));
    },
  },
  view: {
    write: (b, x, update, { start, stride }) => b.call(sliceUpdate, [x, update], { start, stride }),
    add: (b, x, update, { start, stride }) => b.call(sliceAdd, [x, update], { start, stride }),
  },
  simplify(b, node, attrs) {
    const x = item(node.inputs, 0);
    const { shape } = item(node.outputs, 0).type;
    // As many elements along every axis as there are: all of them.
    if (sameShape(shape, x.type.shape)) return x;
    return movedFull(b, x, shape) ?? readBack(b, x, selectionOf(attrs, shape));
  },
  evaluate({ inputs: [x], inTypes, outTypes, attrs: { start, stride } }) {
    const from = item(inTypes, 0).shape;
    const source = (idx: readonly number[]) => idx.map((i, axis) => item(start, axis) + i * item(stride, axis));
    return [tabulate(item(outTypes, 0).shape, (idx) => item(x ?? [], elementAt(from, source(idx))))];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[4, 5]], attrs: { start: [1, 0], limit: [3, 4], stride: [1, 1] } },
      { shapes: [[7]], attrs: { start: [1], limit: [7], stride: [2] } },
      { shapes: [[8, 3]], attrs: { start: [0, 0], limit: [8, 3], stride: [3, 2] } },
      { shapes: [[4, 2]], attrs: { start: [2, 0], limit: [2, 2], stride: [1, 1] } },
      { shapes: [[]], attrs: { start: [], limit: [], stride: [] } },
    ]),
});

export type WindowAttrs = { readonly start: readonly number[]; readonly stride: readonly number[] };

function requireWindow(name: string, x: TensorType, update: TensorType, attrs: WindowAttrs): void {
  requireSameDtype(name, ["x", "update"], x, update);
  const count = x.shape.length;
  if (update.shape.length !== count) {
    const summary = `${name}: ranks differ: x ${typeText(x)}, update ${typeText(update)}`;
    throw new TidemarkError("ShapeMismatch", summary, { help: "reshape the update: an axis may have extent 1" });
  }
  requireList(name, "start", attrs.start, { count, least: 0, of: typeText(x) });
  requireList(name, "stride", attrs.stride, { count, least: 1, of: typeText(x) });
  x.shape.forEach((extent, axis) => {
    const limit = limitOf(selectionOf(attrs, update.shape), axis);
    if (limit <= extent) return;
    const summary =
      `${name}: an update of ${update.shape[axis]} from ${attrs.start[axis]} by ${attrs.stride[axis]} ` +
      `on axis ${axis} ends at ${limit}, beyond ${typeText(x)}`;
    throw new TidemarkError("InvalidArgument", summary, { help: `it must end at ${extent} or before` });
  });
}

/** The elements start, start + stride, … of as many as `shape` has. */
function windowAttrs({ start, stride }: WindowAttrs, shape: Shape): SliceAttrs {
  const limit = shape.map((extent, axis) =>
    extent === 0 ? item(start, axis) : item(start, axis) + (extent - 1) * item(stride, axis) + 1,
  );
  return { start, limit, stride };
}

/** The overwritten window is a slice, and an update restores it. */
const WINDOW_CHANGE: ChangeRule<WindowAttrs> = {
  read: ({ inputs: [x, update] }, attrs) => ({
    op: slice,
    inputs: [x as Value],
    attrs: windowAttrs(attrs, (update as Value).type.shape),
  }),
  restore: ({ attrs }, after, window) => ({ op: sliceUpdate, inputs: [after, window], attrs }),
};

/** Puts an update into the place of the elements that a slice takes, or adds it to them. */
function writing(name: string, adds: boolean): OpDef<WindowAttrs> {
  return defineOp<WindowAttrs>({
    name,
    batch: leading(({ start, stride }) => ({ start: [0, ...start], stride: [1, ...stride] })),
    facts: { change: WINDOW_CHANGE },
    infer(inputs, attrs) {
      requireInputs(name, ["x", "update"], inputs);
      const x = item(inputs, 0);
      if (adds) requireDomain(name, "number", [x]);
      requireWindow(name, x, item(inputs, 1), attrs);
      return [x];
    },
    derivative: {
      kind: "multilinear",
      jointly: true,
      transpose(b, { x, ct, input, attrs }) {
        const update = item(x, 1);
        if (input === 1) return taken(b, ct, selectionOf(attrs, update.type.shape));
        // Overwritten elements do not affect the result.
        return adds ? ct : b.call(sliceUpdate, [ct, fullLike(b, update, 0)], attrs);
      },
    },
    cost: ([, update]) => ({ flops: adds && update ? elementsOf(update.shape) : 0 }),
    lower: {
      kind: "update",
      updates: ([, update]) => update?.shape ?? [],
      target: (c, u) => windowPosition(c.attrs, item(c.inTypes, 0), u).linear,
      value(c, u) {
        const update = item(c.inputs, 1)(u);
        if (!adds) return update;
        return call("add", [item(c.inputs, 0)(windowPosition(c.attrs, item(c.inTypes, 0), u)), update]);
      },
    },
    simplify(b, node, attrs) {
      const [x, update] = [item(node.inputs, 0), item(node.inputs, 1)];
      const { shape } = update.type;
      if (elementsOf(shape) === 0) return x;
      if (sameShape(shape, x.type.shape)) return adds ? apply(b, add, x, update) : update;
      return !adds && isIdle(b, x, update, attrs) ? x : null;
    },
    evaluate({ inputs, inTypes, attrs: { start, stride } }) {
      const { shape, dtype } = item(inTypes, 0);
      const out = Float64Array.from(item(inputs, 0));
      forEachIndex(item(inTypes, 1).shape, (idx, u) => {
        const e = elementAt(
          shape,
          idx.map((i, axis) => item(start, axis) + i * item(stride, axis)),
        );
        const value = item(item(inputs, 1), u);
        out[e] = adds ? addIn(dtype, item(out, e), value) : value;
      });
      return [out];
    },
    samples: () => samplesIn(adds ? NUMBER_TYPES : DTYPES, WINDOWS),
  });
}

const WINDOWS = [
  {
    shapes: [
      [4, 5],
      [2, 4],
    ],
    attrs: { start: [1, 0], stride: [1, 1] },
  },
  { shapes: [[17], [6]], attrs: { start: [1], stride: [3] } },
  {
    shapes: [
      [8, 3],
      [3, 2],
    ],
    attrs: { start: [0, 0], stride: [3, 2] },
  },
  {
    shapes: [
      [3, 2, 20],
      [1, 2, 17],
    ],
    attrs: { start: [2, 0, 3], stride: [1, 1, 1] },
  },
  {
    shapes: [
      [4, 2],
      [0, 2],
    ],
    attrs: { start: [2, 0], stride: [1, 1] },
  },
  { shapes: [[5], [5]], attrs: { start: [0], stride: [1] } },
  { shapes: [[], []], attrs: { start: [], stride: [] } },
];

function windowPosition({ start, stride }: WindowAttrs, { shape }: TensorType, u: Position): Position {
  const idx = u.idx.map((i, axis) => offsetIndex(scaleIndex(i, item(stride, axis)), item(start, axis)));
  return Position.at(shape, idx);
}

/** Whether a write leaves x unchanged. */
function isIdle(b: Build, x: Value, update: Value, attrs: WindowAttrs): boolean {
  const splat = splatOf(b, x);
  if (splat !== null && Object.is(splat, splatOf(b, update))) return true;
  const read = b.producer(update);
  if (read?.op !== slice || read.inputs[0] !== x) return false;
  const { shape } = update.type;
  return sameSelection(selectionOf(read.attrs as SliceAttrs, shape), selectionOf(attrs, shape));
}

/** x with the elements that slice {start, stride} takes replaced by `update`; in place where x is not needed any more. */
export const sliceUpdate: OpDef<WindowAttrs> = writing("slice_update", false);

/** x with `update` added to the elements that slice {start, stride} takes. */
export const sliceAdd: OpDef<WindowAttrs> = writing("slice_add", true);

export type PadAttrs = {
  /** Elements put before, after, and between each two neighbours, along every axis. */
  readonly lo: readonly number[];
  readonly hi: readonly number[];
  readonly interior: readonly number[];
  readonly value: number;
};

/** Extent of n elements with `gap` elements between neighbours. */
function spanOf(n: number, gap: number): number {
  return n === 0 ? 0 : n + (n - 1) * gap;
}

/** The input with `value` around and between its elements. */
export const pad: OpDef<PadAttrs> = defineOp<PadAttrs>({
  name: "pad",
  batch: leading(({ lo, hi, interior, value }) => ({
    lo: [0, ...lo],
    hi: [0, ...hi],
    interior: [0, ...interior],
    value,
  })),
  defaults: { value: 0 },
  facts: {
    strips: (inputs, outputs, attrs) => {
      const padded = attrs.lo.flatMap((lo, axis) =>
        lo === 0 && attrs.hi[axis] === 0 && attrs.interior[axis] === 0 ? [] : [axis],
      );
      return alongAll(inputs, outputs, attrs, padded);
    },
  },
  infer(inputs, { lo, hi, interior, value }) {
    const x = requireOne("pad", inputs);
    const form = { count: x.shape.length, least: 0, of: typeText(x) };
    requireList("pad", "lo", lo, form);
    requireList("pad", "hi", hi, form);
    requireList("pad", "interior", interior, form);
    requireFill("pad", value, x.dtype);
    const shape = x.shape.map((n, axis) => item(lo, axis) + spanOf(n, item(interior, axis)) + item(hi, axis));
    return [tensorType(x.dtype, shape)];
  },
  // Affine: the value is constant, so tangents are padded with 0.
  derivative: {
    kind: "general",
    jvp: (b, { tangents: [t], attrs }) => (t ? b.call(pad, [t], { ...attrs, value: 0 }) : null),
    vjp(b, { x, ct, attrs: { lo, interior } }) {
      const limit = item(x, 0).type.shape.map((n, axis) => item(lo, axis) + spanOf(n, item(interior, axis)));
      return b.call(slice, [ct], { start: lo, limit, stride: interior.map((gap) => gap + 1) });
    },
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "once",
    value(c, at) {
      const { shape, dtype } = item(c.inTypes, 0);
      const bounds: Bound[] = [];
      const idx = shape.map((n, axis): Index => {
        const step = item(c.attrs.interior, axis) + 1;
        // Position past the leading padding; an element stands at every multiple of step below the span.
        const past = offsetIndex(item(at.idx, axis), -item(c.attrs.lo, axis));
        bounds.push({ index: past, lo: 0, hi: spanOf(n, step - 1) }, { index: modIndex(past, step), lo: 0, hi: 1 });
        return divIndex(past, step);
      });
      return guarded(
        bounds,
        () => item(c.inputs, 0)(Position.at(shape, idx)),
        constant(typeOf(dtype).compute, c.attrs.value),
      );
    },
  },
  simplify(b, node, { lo, hi, interior, value }) {
    const x = item(node.inputs, 0);
    if (sameShape(item(node.outputs, 0).type.shape, x.type.shape)) return x;
    const made = b.producer(x);
    if (made?.op === full && Object.is((made.attrs as FullAttrs).value, value)) {
      return movedFull(b, x, item(node.outputs, 0).type.shape);
    }
    if (made?.op !== pad || [...interior, ...(made.attrs as PadAttrs).interior].some((gap) => gap !== 0)) return null;
    const inner = made.attrs as PadAttrs;
    if (!Object.is(inner.value, value)) return null;
    const sum = (p: readonly number[], q: readonly number[]): number[] => p.map((n, axis) => n + item(q, axis));
    return b.call(pad, [item(made.inputs, 0)], { lo: sum(lo, inner.lo), hi: sum(hi, inner.hi), interior, value });
  },
  evaluate({ inputs: [x], inTypes, outTypes, attrs: { lo, interior, value } }) {
    const { shape, dtype } = item(inTypes, 0);
    const source = (idx: readonly number[]) => idx.map((i, axis) => (i - item(lo, axis)) / (item(interior, axis) + 1));
    return [
      tabulate(item(outTypes, 0).shape, (idx) => {
        const e = elementAt(shape, source(idx));
        return e < 0 ? storedNumber(dtype, value) : item(x ?? [], e);
      }),
    ];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[2, 3]], attrs: { lo: [1, 0], hi: [0, 2], interior: [0, 0], value: 0 } },
      { shapes: [[4]], attrs: { lo: [1], hi: [2], interior: [2], value: 1 } },
      { shapes: [[3, 2]], attrs: { lo: [0, 3], hi: [0, 0], interior: [1, 0], value: 1 } },
      { shapes: [[0, 2]], attrs: { lo: [2, 0], hi: [1, 1], interior: [3, 1], value: 1 } },
      { shapes: [[]], attrs: { lo: [], hi: [], interior: [], value: 0 } },
    ]),
});
