/**
 * @file Pooling as other frameworks have it: padding of any width on either side, windows that hang over the end (`ceil`), averages with or
 * without the padding, positions of maxima.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import { fail } from "../../trace/arguments.ts";
import type { Tensor } from "../../trace/tensor.ts";

export interface Pooling {
  readonly window: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  /** Before and after each axis. */
  readonly lo: readonly number[];
  readonly hi: readonly number[];
  /** Whether a last window that is not whole counts. */
  readonly ceil: boolean;
}

/** What hangs over the end of an axis in the last window. */
function overhang(extent: number, of: Pooling, k: number): number {
  const [stride, lo, hi] = [at(of.stride, k), at(of.lo, k), at(of.hi, k)];
  const span = (at(of.window, k) - 1) * at(of.dilation, k) + 1;
  const room = extent + lo + hi - span;
  if (!of.ceil) return 0;
  let last = Math.ceil(room / stride);
  // a window that begins in the padding behind is none
  if (last * stride >= extent + lo) last--;
  return Math.max(0, last * stride - room);
}

const MAX = [t.maxPool1d, t.maxPool2d, t.maxPool3d] as const;
const AVERAGE = [t.avgPool1d, t.avgPool2d, t.avgPool3d] as const;

function requireAxes(name: string, of: Pooling): void {
  if (of.window.length >= 1 && of.window.length <= 3) return;
  fail("ShapeMismatch", `${name}: windows over ${of.window.length} axes`, "one, two and three axes are supported");
}

/** x with what windows find around it. */
function padded(x: Tensor, of: Pooling, value: number): Tensor {
  const axes = of.window.length;
  const size = x.shape.slice(-axes);
  const widths = size.map((extent, k) => [at(of.lo, k), at(of.hi, k) + overhang(extent, of, k)] as const);
  if (widths.every(([lo, hi]) => lo === 0 && hi === 0)) return x;
  return t.pad(x, [...x.shape.slice(0, -axes).map(() => [0, 0] as const), ...widths], value);
}

const options = ({ stride, dilation }: Pooling) => ({ stride, dilation });

export function maxPool(x: Tensor, of: Pooling): Tensor {
  requireAxes("max pooling", of);
  const { window } = of;
  const axes = window.length;
  const isPlain = !of.ceil && of.lo.every((n, k) => 2 * Math.max(n, at(of.hi, k)) <= at(window, k));
  const pool = at(MAX, axes - 1);
  if (!isPlain) return pool(padded(x, of, Number.NEGATIVE_INFINITY), window, options(of));
  return pool(x, window, { ...options(of), padding: of.lo.map((n, k) => [n, at(of.hi, k)] as const) });
}

/** How many elements each window along one axis has: within x, or with the padding that was asked for. */
function counts(extent: number, of: Pooling, k: number, withPadding: boolean): readonly number[] {
  const [window, stride, dilation] = [at(of.window, k), at(of.stride, k), at(of.dilation, k)];
  const [lo, hi] = [at(of.lo, k), at(of.hi, k)];
  const all = extent + lo + hi + overhang(extent, of, k);
  const windows = Math.floor((all - ((window - 1) * dilation + 1)) / stride) + 1;
  const [first, end] = withPadding ? [-lo, extent + hi] : [0, extent];
  return Array.from({ length: windows }, (_, i) => {
    const from = i * stride - lo;
    return Array.from({ length: window }, (__, j) => from + j * dilation).filter((p) => p >= first && p < end).length;
  });
}

export function averagePool(x: Tensor, of: Pooling, withPadding: boolean, divisor?: number): Tensor {
  requireAxes("average pooling", of);
  const axes = of.window.length;
  const size = x.shape.slice(-axes);
  const y = at(AVERAGE, axes - 1)(padded(x, of, 0), of.window, options(of));
  const whole = elementsOf(of.window);
  if (divisor !== undefined) return t.mul(y, whole / divisor);
  const along = size.map((extent, k) => counts(extent, of, k, withPadding));
  const all = along.reduce<readonly number[]>((list, one) => list.flatMap((a) => one.map((b) => a * b)), [1]);
  if (all.every((count) => count === whole)) return y;
  const scale = Float64Array.from(all, (count) => whole / Math.max(1, count));
  const shape = along.map((one) => one.length);
  return t.mul(y, t.tensor(scale, { dtype: x.dtype, shape }));
}

/** Maxima and where they are, counted over the last axes of x row by row. */
export function maxPoolWithPositions(x: Tensor, of: Pooling): readonly [Tensor, Tensor] {
  const axes = of.window.length;
  const size = x.shape.slice(-axes);
  const lead = x.shape.slice(0, -axes);
  const along = size.map((extent, k) => windowPositions(extent, of, k));
  const outside = elementsOf(size);
  // for each window the numbers of its elements; one behind the last stands for padding
  const rows = product(along.map((list) => list.map((_, i) => i))).map((place) => {
    return product(of.window.map((n) => Array.from({ length: n }, (_, j) => j))).map((step) => {
      const position = step.map((j, k) => at(at(at(along, k), at(place, k)), j));
      if (position.some((p, k) => p < 0 || p >= at(size, k))) return outside;
      return position.reduce((sum, p, k) => sum * at(size, k) + p, 0);
    });
  });
  const table = t.tensor(Int32Array.from(rows.flat()), { shape: [rows.length, elementsOf(of.window)] });
  const flat = t.reshape(x, [elementsOf(lead), outside]);
  const wide = t.pad(
    flat,
    [
      [0, 0],
      [0, 1],
    ],
    Number.NEGATIVE_INFINITY,
  );
  const windows = t.take(wide, table, 1);
  const best = t.argmax(windows, 2);
  const shape = [...lead, ...along.map((list) => list.length)];
  const number = t.add(t.mul(t.arange(rows.length), elementsOf(of.window)), best);
  return [t.reshape(t.max(windows, 2), shape), t.reshape(t.take(t.reshape(table, [-1]), number), shape)];
}

function windowPositions(extent: number, of: Pooling, k: number): readonly (readonly number[])[] {
  const [window, stride, dilation, lo] = [at(of.window, k), at(of.stride, k), at(of.dilation, k), at(of.lo, k)];
  const all = extent + lo + at(of.hi, k) + overhang(extent, of, k);
  const count = Math.floor((all - ((window - 1) * dilation + 1)) / stride) + 1;
  return Array.from({ length: count }, (_, i) =>
    Array.from({ length: window }, (__, j) => i * stride - lo + j * dilation),
  );
}

function product(lists: readonly (readonly number[])[]): readonly (readonly number[])[] {
  return lists.reduce<readonly (readonly number[])[]>(
    (rows, list) => rows.flatMap((row) => list.map((x) => [...row, x])),
    [[]],
  );
}
