/** @file References for convolution, its transpose, pooling and attention: loops over output, channel and window. */
import { build, get, type Index, indices, type Plain, softmaxOf, total } from "./plain.ts";

export interface Geometry {
  readonly stride?: number;
  readonly dilation?: number;
  readonly groups?: number;
  /** Zeros before and after every spatial axis, or what makes the output ⌈size / stride⌉ long. */
  readonly pad?: readonly [number, number] | "same";
}

const reachOf = (kernel: number, dilation: number): number => (kernel - 1) * dilation + 1;

/** Padding and number of windows along one axis. */
function axisOf(size: number, kernel: number, { stride = 1, dilation = 1, pad = [0, 0] }: Geometry): readonly number[] {
  const reach = reachOf(kernel, dilation);
  if (pad === "same") {
    const count = Math.ceil(size / stride);
    const missing = Math.max(0, (count - 1) * stride + reach - size);
    return [Math.floor(missing / 2), count];
  }
  return [pad[0], Math.floor((size + pad[0] + pad[1] - reach) / stride) + 1];
}

/** y[n, o, p…] = Σ x[n, c, p·stride + r·dilation - lo …] · w[o, c, r…] over c in o's group and r. */
export function convOf(x: Plain, w: Plain, geometry: Geometry = {}): Plain {
  const { stride = 1, dilation = 1, groups = 1 } = geometry;
  const [size, kernel] = [x.shape.slice(2), w.shape.slice(2)];
  const axes = size.map((n, k) => axisOf(n, kernel[k]!, geometry));
  const [inGroup, outGroup] = [w.shape[1]!, w.shape[0]! / groups];
  return build([x.shape[0]!, w.shape[0]!, ...axes.map((a) => a[1]!)], ([n, o, ...p]) => {
    let sum = 0;
    for (const [c, ...r] of indices([inGroup, ...kernel])) {
      const at = p.map((q, k) => q * stride + r[k]! * dilation - axes[k]![0]!);
      if (at.some((i, k) => i < 0 || i >= size[k]!)) continue;
      sum += get(x, [n!, Math.floor(o! / outGroup) * inGroup + c!, ...at]) * get(w, [o!, c!, ...r]);
    }
    return sum;
  });
}

/** Every input element adds its multiple of the kernel to the output: y[n, o, i·stride + r·dilation - lo] += x · w. */
export function convTransposeOf(x: Plain, w: Plain, geometry: Geometry = {}, extra = 0): Plain {
  const { stride = 1, dilation = 1, groups = 1, pad = [0, 0] } = geometry;
  const kernel = w.shape.slice(2);
  const axes = x.shape.slice(2).map((n, k) => {
    const reach = reachOf(kernel[k]!, dilation);
    if (pad === "same") return [axisOf(n * stride, kernel[k]!, geometry)[0]!, n * stride] as const;
    return [pad[0], (n - 1) * stride + reach - pad[0] - pad[1] + extra] as const;
  });
  const [inGroup, outGroup] = [x.shape[1]! / groups, w.shape[1]!];
  const shape = [x.shape[0]!, outGroup * groups, ...axes.map((a) => a[1])];
  const data = new Float64Array(shape.reduce((n, e) => n * e, 1));
  for (const [n, c, ...i] of indices(x.shape)) {
    for (const [o, ...r] of indices([outGroup, ...kernel])) {
      const at = i.map((p, k) => p * stride + r[k]! * dilation - axes[k]![0]);
      if (at.some((q, k) => q < 0 || q >= axes[k]![1])) continue;
      const index: Index = [n!, Math.floor(c! / inGroup) * outGroup + o!, ...at];
      const number = index.reduce((s, e, axis) => s * shape[axis]! + e, 0);
      data[number]! += get(x, [n!, c!, ...i]) * get(w, [c!, o!, ...r]);
    }
  }
  return { shape, data };
}

/** One number for what each window over the last axes holds; places outside are not held. */
export function poolOf(
  x: Plain,
  window: readonly number[],
  f: (held: readonly number[]) => number,
  geometry: Geometry = {},
): Plain {
  const { dilation = 1 } = geometry;
  const lead = x.shape.length - window.length;
  const size = x.shape.slice(lead);
  const strides = window.map((n) => geometry.stride ?? n);
  const axes = size.map((n, k) => axisOf(n, window[k]!, { ...geometry, stride: strides[k]! }));
  return build([...x.shape.slice(0, lead), ...axes.map((a) => a[1]!)], (index) => {
    const held: number[] = [];
    for (const r of indices(window)) {
      const at = index.slice(lead).map((p, k) => p * strides[k]! + r[k]! * dilation - axes[k]![0]!);
      if (at.every((i, k) => i >= 0 && i < size[k]!)) held.push(get(x, [...index.slice(0, lead), ...at]));
    }
    return f(held);
  });
}

/** softmax over visible keys of q·k·scale + bias, then the mean of values under it. */
export function attentionOf(
  [q, k, v]: readonly [Plain, Plain, Plain],
  sees: (query: number, key: number) => boolean,
  scale?: number,
  bias: (outer: readonly number[], query: number, key: number) => number = () => 0,
): Plain {
  const [queries, depth] = q.shape.slice(-2) as [number, number];
  const [keys, width] = v.shape.slice(-2) as [number, number];
  return build([...q.shape.slice(0, -2), queries, width], (index) => {
    const [outer, i, c] = [index.slice(0, -2), index.at(-2)!, index.at(-1)!];
    const scores = Array.from({ length: keys }, (_, j) => {
      const dots = Array.from({ length: depth }, (_, d) => get(q, [...outer, i, d]) * get(k, [...outer, j, d]));
      const score = total(dots) * (scale ?? 1 / Math.sqrt(depth)) + bias(outer, i, j);
      return sees(i, j) ? score : Number.NEGATIVE_INFINITY;
    });
    return total(softmaxOf(scores).map((p, j) => p * get(v, [...outer, j, c])));
  });
}
