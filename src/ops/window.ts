/**
 * @file Sliding windows over the trailing axes, and their transpose. `unfold` copies out every window; `fold` adds
 * windows back where they came from.
 *
 *   window 3, stride 2, lo 1, hi 1                     x    a b c d e
 *                                                    .  a b
 *   unfold: windows o = 0, 1, 2 as rows:                   b c d              . reads `value`
 *                                                              d e .
 *
 * Window position w of window o reads x[o·stride + w·dilation - lo]. Pooling is a reduction over the window axes that
 * fuses with `unfold`, so the copies are never stored; its derivative is `fold`, which computes for every x the windows
 * that contain it: o = (i + lo - w·dilation) / stride where that is whole and in range.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { LEADING } from "../ir/batch.ts";
import type { OpDef } from "../ir/op.ts";
import { type StripForms, sameAttrs } from "../ir/strips.ts";
import { elementsOf, type Shape, sameShape, shapeText, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, FLOAT_TYPES, NUMBER_TYPES, storedNumber, typeOf } from "../kernel/dtype.ts";
import { type Bound, constant, type Index } from "../kernel/expr.ts";
import { addIndex, divIndex, modIndex, offsetIndex, scaleIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { requireFill, requireList, requireOne } from "./checks.ts";
import { defineOp, requireDomain } from "./define.ts";
import { guarded } from "./guard.ts";
import { addIn, elementAt, forEachIndex, samplesIn, tabulate } from "./reference.ts";

/** One number for each of the trailing axes that the windows slide over. */
export type WindowAttrs = {
  readonly window: readonly number[];
  readonly stride: readonly number[];
  /** Positions before and after each axis that windows may cover. */
  readonly lo: readonly number[];
  readonly hi: readonly number[];
  readonly dilation: readonly number[];
};

/** `value` is read where a window hangs over the edge. */
export type UnfoldAttrs = WindowAttrs & { readonly value: number };

/** `size`: extents of the axes that the windows slid over. */
export type FoldAttrs = WindowAttrs & { readonly size: readonly number[] };

/** How many windows fit along each axis of `size`. */
function windowsOver(name: string, size: Shape, attrs: WindowAttrs, of: string): readonly number[] {
  const count = attrs.window.length;
  requireList(name, "window", attrs.window, { count, least: 1, of });
  requireList(name, "stride", attrs.stride, { count, least: 1, of });
  requireList(name, "lo", attrs.lo, { count, least: 0, of });
  requireList(name, "hi", attrs.hi, { count, least: 0, of });
  requireList(name, "dilation", attrs.dilation, { count, least: 1, of });
  return size.map((extent, k) => {
    const reach = (item(attrs.window, k) - 1) * item(attrs.dilation, k) + 1;
    const padded = extent + item(attrs.lo, k) + item(attrs.hi, k);
    if (reach <= padded) return Math.floor((padded - reach) / item(attrs.stride, k)) + 1;
    const [lo, hi] = [item(attrs.lo, k), item(attrs.hi, k)];
    const summary = `${name}: a window of reach ${reach} does not fit the extent ${extent} + ${lo} + ${hi} of ${of}`;
    throw new TidemarkError("InvalidArgument", summary, { help: "use a smaller window or dilation, or more padding" });
  });
}

/** Extents of the leading axes, that windows do not touch, and of the trailing ones. */
function splitShape(name: string, x: TensorType, trailing: number): readonly [Shape, Shape] {
  const lead = x.shape.length - trailing;
  if (lead >= 0) return [x.shape.slice(0, lead), x.shape.slice(lead)];
  const summary = `${name}: windows over ${trailing} axes need a tensor of that rank, got ${typeText(x)}`;
  throw new TidemarkError("InvalidArgument", summary, {
    help: "give window, stride, lo, hi and dilation fewer numbers",
  });
}

/** Cut along an axis that windows do not touch. */
const alongLead: StripForms<WindowAttrs> = ([x], [y], attrs) => {
  const lead = Math.min(x?.shape.length ?? 0, y?.shape.length ?? 0) - attrs.window.length;
  return Array.from({ length: Math.max(0, lead) }, (_, axis) => sameAttrs([axis], [axis], attrs));
};

/** The position, along one axis, that window position w of window o reads. */
function readAt(attrs: WindowAttrs, k: number, o: number, w: number): number {
  return o * item(attrs.stride, k) + w * item(attrs.dilation, k) - item(attrs.lo, k);
}

/** x[…, s₁ … s_d] → windows[…, o₁ … o_d, w₁ … w_d]. */
export const unfold: OpDef<UnfoldAttrs> = defineOp<UnfoldAttrs>({
  name: "unfold",
  batch: LEADING,
  facts: { strips: alongLead },
  defaults: { value: 0 },
  infer(inputs, attrs) {
    const x = requireOne("unfold", inputs);
    const [lead, size] = splitShape("unfold", x, attrs.window.length);
    requireFill("unfold", attrs.value, x.dtype);
    const windows = windowsOver("unfold", size, attrs, typeText(x));
    return [tensorType(x.dtype, [...lead, ...windows, ...attrs.window])];
  },
  // Affine: positions beyond the edge are constant, so tangents read 0 there and cotangents are dropped.
  derivative: {
    kind: "general",
    jvp: (b, { tangents: [t], attrs }) => (t ? b.call(unfold, [t], { ...attrs, value: 0 }) : null),
    vjp(b, { x, ct, attrs: { value: _, ...attrs } }) {
      const { shape } = item(x, 0).type;
      return b.call(fold, [ct], { ...attrs, size: shape.slice(shape.length - attrs.window.length) });
    },
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const { shape, dtype } = item(c.inTypes, 0);
      const { window, stride, lo, dilation, value } = c.attrs;
      const lead = shape.length - window.length;
      const bounds: Bound[] = [];
      const spatial = window.map((_, k): Index => {
        const o = scaleIndex(item(at.idx, lead + k), item(stride, k));
        const w = scaleIndex(item(at.idx, lead + window.length + k), item(dilation, k));
        const index = offsetIndex(addIndex(o, w), -item(lo, k));
        bounds.push({ index, lo: 0, hi: item(shape, lead + k) });
        return index;
      });
      const source = Position.at(shape, [...at.idx.slice(0, lead), ...spatial]);
      return guarded(bounds, () => item(c.inputs, 0)(source), constant(typeOf(dtype).compute, value));
    },
  },
  evaluate({ inputs: [x], inTypes, outTypes, attrs }) {
    const { shape, dtype } = item(inTypes, 0);
    const d = attrs.window.length;
    const lead = shape.length - d;
    const source = (idx: readonly number[]): readonly number[] =>
      shape.map((_, a) => (a < lead ? item(idx, a) : readAt(attrs, a - lead, item(idx, a), item(idx, a + d))));
    return [
      tabulate(item(outTypes, 0).shape, (idx) => {
        const e = elementAt(shape, source(idx));
        return e < 0 ? storedNumber(dtype, attrs.value) : item(x ?? [], e);
      }),
    ];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[2, 7]], attrs: { window: [3], stride: [2], lo: [1], hi: [1], dilation: [1], value: 0 } },
      {
        shapes: [[5, 6]],
        attrs: { window: [2, 3], stride: [1, 2], lo: [0, 0], hi: [0, 0], dilation: [2, 1], value: 1 },
      },
      { shapes: [[0, 4]], attrs: { window: [2], stride: [2], lo: [0], hi: [0], dilation: [1], value: 0 } },
      { shapes: [[0]], attrs: { window: [2], stride: [1], lo: [1], hi: [1], dilation: [1], value: 1 } },
      { shapes: [[]], attrs: { window: [], stride: [], lo: [], hi: [], dilation: [], value: 0 } },
    ]).concat(
      samplesIn(FLOAT_TYPES, [
        {
          shapes: [[1, 4, 4]],
          attrs: { window: [3, 3], stride: [2, 2], lo: [1, 1], hi: [1, 1], dilation: [1, 1], value: -Infinity },
        },
      ]).map((sample) => ({ ...sample, smooth: false })),
    ),
});

/**
 * In how many windows an element may be along an axis, if less than a window has positions: windows further apart than one
 * hold it at positions that follow from its place, (place mod stride) + q · stride in window (place div stride) - q.
 */
function windowsOf({ window, stride, dilation }: WindowAttrs, k: number): number | null {
  const step = item(stride, k);
  return item(dilation, k) === 1 && step > 1 ? Math.ceil(item(window, k) / step) : null;
}

/** windows[…, o₁ … o_d, w₁ … w_d] → x[…, s₁ … s_d], each element the sum of all window positions that read it. */
export const fold: OpDef<FoldAttrs> = defineOp<FoldAttrs>({
  name: "fold",
  batch: LEADING,
  facts: { strips: alongLead },
  infer(inputs, attrs) {
    const x = requireOne("fold", inputs);
    requireDomain("fold", "number", [x]);
    const count = attrs.window.length;
    const [lead, trailing] = splitShape("fold", x, 2 * count);
    requireList("fold", "size", attrs.size, { count, least: 0, of: typeText(x) });
    const expected = [...windowsOver("fold", attrs.size, attrs, `size ${shapeText(attrs.size)}`), ...attrs.window];
    if (sameShape(trailing, expected)) return [tensorType(x.dtype, [...lead, ...attrs.size])];
    const summary = `fold: ${typeText(x)} does not end in the windows ${shapeText(expected)} over ${shapeText(attrs.size)}`;
    throw new TidemarkError("ShapeMismatch", summary, {
      help: "fold takes what unfold with the same attributes gives: [..., windows, window positions]",
    });
  },
  derivative: {
    kind: "multilinear",
    transpose: (b, { ct, attrs: { size: _, ...attrs } }) => b.call(unfold, [ct], { ...attrs, value: 0 }),
  },
  cost: ([x]) => ({ flops: x ? elementsOf(x.shape) : 0 }),
  lower: {
    kind: "reduce",
    combine: "add",
    counters: (_, attrs) => ({ extents: attrs.window.map((n, k) => windowsOf(attrs, k) ?? n), order: "sequential" }),
    body(c, at, r) {
      const { shape, dtype } = item(c.inTypes, 0);
      const { window, stride, lo, dilation } = c.attrs;
      const lead = shape.length - 2 * window.length;
      const bounds: Bound[] = [];
      const windows: Index[] = [];
      const within: Index[] = [];
      window.forEach((extent, k) => {
        const step = item(stride, k);
        const count = item(shape, lead + k);
        const place = offsetIndex(item(at.idx, lead + k), item(lo, k));
        const some = windowsOf(c.attrs, k);
        if (some !== null) {
          const q = item(r, k);
          const window = addIndex(divIndex(place, step), scaleIndex(q, -1));
          const position = addIndex(modIndex(place, step), scaleIndex(q, step));
          bounds.push({ index: window, lo: 0, hi: count });
          if (some * step > extent) bounds.push({ index: position, lo: 0, hi: extent });
          windows.push(window);
          within.push(position);
          return;
        }
        const past = addIndex(place, scaleIndex(item(r, k), -item(dilation, k)));
        // past = o · step for a window o that exists
        bounds.push({ index: past, lo: 0, hi: (count - 1) * step + 1 });
        bounds.push({ index: modIndex(past, step), lo: 0, hi: 1 });
        windows.push(divIndex(past, step));
        within.push(item(r, k));
      });
      const source = Position.at(shape, [...at.idx.slice(0, lead), ...windows, ...within]);
      return guarded(bounds, () => item(c.inputs, 0)(source), constant(typeOf(dtype).compute, 0));
    },
  },
  evaluate({ inputs: [x], inTypes, outTypes, attrs }) {
    const { shape, dtype } = item(outTypes, 0);
    const d = attrs.window.length;
    const lead = shape.length - d;
    const out = new Float64Array(elementsOf(shape));
    forEachIndex(item(inTypes, 0).shape, (idx, e) => {
      const to = shape.map((_, a) =>
        a < lead ? item(idx, a) : readAt(attrs, a - lead, item(idx, a), item(idx, a + d)),
      );
      const target = elementAt(shape, to);
      if (target >= 0) out[target] = addIn(dtype, item(out, target), item(x ?? [], e));
    });
    return [out];
  },
  samples: () =>
    samplesIn(NUMBER_TYPES, [
      { shapes: [[2, 4, 3]], attrs: { window: [3], stride: [2], lo: [1], hi: [1], dilation: [1], size: [7] } },
      {
        shapes: [[3, 2, 2, 3]],
        attrs: { window: [2, 3], stride: [1, 2], lo: [0, 0], hi: [0, 0], dilation: [2, 1], size: [5, 6] },
      },
      { shapes: [[0, 2, 2]], attrs: { window: [2], stride: [2], lo: [0], hi: [0], dilation: [1], size: [4] } },
      { shapes: [[2, 3, 2]], attrs: { window: [2], stride: [3], lo: [1], hi: [0], dilation: [1], size: [8] } },
      {
        shapes: [[3, 2, 9, 2, 2]],
        attrs: { window: [2, 2], stride: [2, 2], lo: [0, 1], hi: [0, 0], dilation: [1, 1], size: [5, 17] },
      },
      { shapes: [[1, 2]], attrs: { window: [2], stride: [1], lo: [1], hi: [1], dilation: [1], size: [0] } },
      { shapes: [[]], attrs: { window: [], stride: [], lo: [], hi: [], dilation: [], size: [] } },
    ]),
});
