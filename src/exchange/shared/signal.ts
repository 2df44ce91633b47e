/** @file Windows, and Fourier transforms with real and imaginary parts along a last axis. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";

/** Σ weights_k · cos(2π k i / n). */
export function windowOf(size: number, periodic: boolean, weights: readonly number[]): readonly number[] {
  const n = periodic ? size : size - 1;
  return Array.from({ length: size }, (_, i) =>
    weights.reduce((sum, weight, k) => sum + weight * Math.cos((2 * Math.PI * k * i) / n), 0),
  );
}

export interface FourierOptions {
  readonly axis: number;
  readonly length: number | undefined;
  readonly inverse: boolean;
  readonly oneSided: boolean;
}

/** All n elements of the transform of a real tensor: those behind the middle are the conjugates of those before. */
function wholeOfReal(x: Tensor, n: number, axis: number, oneSided: boolean): t.Complex {
  const half = t.rfft(x, { n, axis });
  if (oneSided) return half;
  const first = Math.floor(n / 2) + 1;
  const places = Int32Array.from({ length: n }, (_, k) => (k < first ? k : n - k));
  const signs = Float64Array.from({ length: n }, (_, k) => (k < first ? 1 : -1));
  const along = x.shape.map((_, a) => (a === axis ? n : 1));
  const [rows, factors] = [t.tensor(places), t.tensor(signs, { dtype: x.dtype, shape: along })];
  return { re: t.take(half.re, rows, axis), im: t.mul(t.take(half.im, rows, axis), factors) };
}

/**
 * x […, 1 or 2] (real, or real and imaginary) transformed along an axis to […, 2]. The parts are transformed as real tensors, so that
 * what is zero for a real input is zero and not a rounding error.
 */
export function discreteFourier(x: Tensor, { axis, length, inverse, oneSided }: FourierOptions): Tensor {
  const n = length ?? at(x.shape, axis);
  const part = (k: number): t.Complex =>
    wholeOfReal(t.slice(x, [...x.shape.slice(0, -1).map(() => null), k]), n, axis, oneSided);
  const a = part(0);
  const b = at(x.shape, x.rank - 1) === 2 ? part(1) : null;
  if (!inverse) return t.stack(b ? [t.sub(a.re, b.im), t.add(a.im, b.re)] : [a.re, a.im], -1);
  // the inverse is the conjugate of the transform of the conjugate, divided by n
  const both = b ? [t.add(a.re, b.im), t.sub(b.re, a.im)] : [a.re, t.neg(a.im)];
  return t.mul(t.stack(both, -1), 1 / n);
}

export interface FrameOptions {
  readonly step: number;
  readonly length: number;
  readonly window: Tensor | null;
  readonly oneSided: boolean;
}

/** x [batch, samples, 1 or 2] in frames, each transformed: [batch, frames, bins, 2]. */
export function shortTimeFourier(x: Tensor, { step, length, window, oneSided }: FrameOptions): Tensor {
  const samples = at(x.shape, 1);
  const count = Math.max(0, Math.floor((samples - length) / step) + 1);
  const places = Int32Array.from({ length: count * length }, (_, k) => Math.floor(k / length) * step + (k % length));
  const wide = t.take(x.rank === 2 ? t.expandDims(x, -1) : x, t.tensor(places, { shape: [count, length] }), 1);
  const seen = window ? t.mul(wide, t.reshape(window, [length, 1])) : wide;
  return discreteFourier(seen, { axis: 2, length, inverse: false, oneSided });
}

const toMel = (hertz: number): number => 2595 * Math.log10(1 + hertz / 700);
const toHertz = (mel: number): number => 700 * (10 ** (mel / 2595) - 1);

/** Triangles over the bins of a spectrum, at equal distances on the mel scale: [bins of the spectrum, mel bins]. */
export function melMatrix([bins, length, rate, low, high]: readonly [
  number,
  number,
  number,
  number,
  number,
]): readonly number[] {
  const rows = Math.floor(length / 2) + 1;
  const [from, to] = [toMel(low), toMel(high)];
  const points = Array.from({ length: bins + 2 }, (_, i) =>
    Math.floor(((length + 1) * toHertz(from + (i * (to - from)) / (bins + 2))) / rate),
  );
  const matrix = new Array<number>(rows * bins).fill(0);
  for (let m = 0; m < bins; m++) {
    const [left, centre, right] = [at(points, m), at(points, m + 1), at(points, m + 2)];
    const put = (row: number, value: number): void => {
      if (row >= 0 && row < rows) matrix[row * bins + m] = value;
    };
    if (centre === left) put(centre, 1);
    else for (let j = left; j <= centre; j++) put(j, (j - left) / (centre - left));
    if (right > centre) for (let j = centre; j < right; j++) put(j, (right - j) / (right - centre));
  }
  return matrix;
}
