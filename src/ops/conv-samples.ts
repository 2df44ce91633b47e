/** @file Cases of the three convolution operations: one list of geometries, read in three ways. */
import type { Sample } from "../ir/op.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import { type ConvAttrs, type ConvInputAttrs, type ConvWeightAttrs, outputExtents } from "./conv-geometry.ts";

/** x, w and the attributes; y follows. */
interface ConvCase {
  readonly dtype: "f32" | "f64";
  readonly x: readonly number[];
  readonly w: readonly number[];
  readonly attrs: ConvAttrs;
}

function plain(axes: number, changes: Partial<ConvAttrs> = {}): ConvAttrs {
  const each = (value: number): readonly number[] => new Array<number>(axes).fill(value);
  return { stride: each(1), lo: each(0), hi: each(0), dilation: each(1), groups: 1, ...changes };
}

const CASES: readonly ConvCase[] = [
  // one axis
  { dtype: "f32", x: [2, 3, 7], w: [4, 3, 3], attrs: plain(1) },
  { dtype: "f64", x: [1, 2, 8], w: [3, 2, 3], attrs: plain(1, { stride: [2], lo: [1], hi: [0] }) },
  { dtype: "f64", x: [2, 1, 9], w: [2, 1, 3], attrs: plain(1, { dilation: [2], lo: [3], hi: [1] }) },
  // two axes: plain, padded alike, 1 × 1 without and with padding behind, strided, everything at once
  { dtype: "f32", x: [1, 2, 5, 4], w: [3, 2, 3, 2], attrs: plain(2) },
  { dtype: "f32", x: [2, 3, 6, 5], w: [4, 3, 3, 3], attrs: plain(2, { lo: [1, 1], hi: [1, 1] }) },
  { dtype: "f64", x: [2, 3, 4, 5], w: [5, 3, 1, 1], attrs: plain(2) },
  { dtype: "f64", x: [2, 2, 3, 4], w: [3, 2, 1, 1], attrs: plain(2, { hi: [1, 2] }) },
  { dtype: "f64", x: [2, 2, 7, 6], w: [3, 2, 3, 2], attrs: plain(2, { stride: [2, 3] }) },
  {
    dtype: "f64",
    x: [2, 4, 8, 7],
    w: [6, 2, 2, 3],
    attrs: { stride: [2, 1], lo: [1, 0], hi: [0, 2], dilation: [3, 2], groups: 2 },
  },
  // one group for each channel, and a stride that skips the last column
  {
    dtype: "f32",
    x: [1, 4, 5, 6],
    w: [4, 1, 3, 3],
    attrs: plain(2, { stride: [2, 2], lo: [1, 1], hi: [1, 1], groups: 4 }),
  },
  { dtype: "f32", x: [1, 1, 1, 1], w: [1, 1, 1, 1], attrs: plain(2) },
  // three axes
  { dtype: "f64", x: [1, 2, 3, 4, 3], w: [2, 2, 2, 2, 3], attrs: plain(3, { lo: [0, 1, 1], hi: [1, 0, 1] }) },
  // nothing in the batch, no channels in, none out, an input that is all padding
  { dtype: "f32", x: [0, 2, 5], w: [3, 2, 2], attrs: plain(1) },
  { dtype: "f32", x: [2, 0, 5], w: [3, 0, 2], attrs: plain(1, { lo: [1] }) },
  { dtype: "f32", x: [2, 2, 5], w: [0, 2, 2], attrs: plain(1) },
  { dtype: "f64", x: [1, 2, 0, 3], w: [2, 2, 2, 2], attrs: plain(2, { lo: [1, 0], hi: [1, 0] }) },
];

interface Types extends ConvCase {
  readonly tx: TensorType;
  readonly tw: TensorType;
  readonly ty: TensorType;
}

function samples<A>(read: (types: Types) => Sample<A>): readonly Sample<A>[] {
  return CASES.map((one) => {
    const places = outputExtents("conv", one.x.slice(2), one.w.slice(2), one.attrs);
    const y = [one.x[0] ?? 0, one.w[0] ?? 0, ...places];
    const [tx, tw, ty] = [one.x, one.w, y].map((shape) => tensorType(one.dtype, shape)) as [
      TensorType,
      TensorType,
      TensorType,
    ];
    return read({ ...one, tx, tw, ty });
  });
}

export const convSamples = (): readonly Sample<ConvAttrs>[] =>
  samples(({ tx, tw, attrs }) => ({ inputs: [tx, tw], attrs }));

export const convInputSamples = (): readonly Sample<ConvInputAttrs>[] =>
  samples(({ tx, tw, ty, attrs }) => ({
    inputs: [ty, tw],
    attrs: { ...attrs, size: tx.shape.slice(2) },
  }));

export const convWeightSamples = (): readonly Sample<ConvWeightAttrs>[] =>
  samples(({ tx, tw, ty, attrs }) => ({
    inputs: [tx, ty],
    attrs: { ...attrs, kernel: tw.shape.slice(2) },
  }));
