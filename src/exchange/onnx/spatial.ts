/** @file Convolutions, pooling and normalisation over neighbours. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { averagePool, maxPool, maxPoolWithPositions, type Pooling } from "../shared/pooling.ts";
import type { Call, Operator } from "./call.ts";

/** Where windows go, as attributes say. */
export function windowsOf(call: Call, x: Tensor, window: readonly number[]): Pooling {
  const axes = window.length;
  const stride = call.ints("strides") ?? window.map(() => 1);
  const dilation = call.ints("dilations") ?? window.map(() => 1);
  const pads = call.ints("pads") ?? new Array<number>(2 * axes).fill(0);
  const ceil = call.flag("ceil_mode");
  const mode = call.text("auto_pad", "NOTSET");
  if (mode === "NOTSET" || mode === "VALID") {
    const given = mode === "VALID" ? pads.map(() => 0) : pads;
    return { window, stride, dilation, lo: given.slice(0, axes), hi: given.slice(axes), ceil };
  }
  const total = x.shape.slice(2).map((extent, k) => {
    const span = (at(window, k) - 1) * at(dilation, k) + 1;
    return Math.max(0, (Math.ceil(extent / at(stride, k)) - 1) * at(stride, k) + span - extent);
  });
  const [small, large] = [total.map((n) => Math.floor(n / 2)), total.map((n) => Math.ceil(n / 2))];
  const [lo, hi] = mode === "SAME_LOWER" ? [large, small] : [small, large];
  return { window, stride, dilation, lo, hi, ceil: false };
}

const CONV = [t.conv1d, t.conv2d, t.conv3d] as const;
const TRANSPOSED = [t.convTranspose1d, t.convTranspose2d, t.convTranspose3d] as const;

function biased(call: Call, y: Tensor, i: number): Tensor {
  return call.has(i) ? t.add(y, t.reshape(call.x(i), [-1, ...y.shape.slice(2).map(() => 1)])) : y;
}

function conv(call: Call): Tensor {
  const [x, w] = [call.x(0), call.x(1)];
  const { stride, dilation, lo, hi } = windowsOf(call, x, w.shape.slice(2));
  const of = CONV[x.rank - 3] ?? call.fail(`a convolution over ${x.rank - 2} axes`, "one, two and three are supported");
  const padding = lo.map((n, k) => [n, at(hi, k)] as const);
  return biased(call, of(x, w, { stride, dilation, padding, groups: call.int("group", 1) }), 2);
}

/** What a transposed convolution loses at both ends, and what is added at the second. */
function transposedEnds(call: Call, full: readonly number[], size: readonly number[]) {
  const axes = full.length;
  const stride = call.ints("strides") ?? full.map(() => 1);
  const extra = call.ints("output_padding") ?? full.map(() => 0);
  const mode = call.text("auto_pad", "NOTSET");
  const wanted =
    call.ints("output_shape")?.slice(-axes) ?? (mode.startsWith("SAME") ? size.map((n, k) => n * at(stride, k)) : null);
  if (!wanted) {
    const pads = mode === "VALID" ? [] : (call.ints("pads") ?? []);
    return full.map((_, k) => [pads[k] ?? 0, (pads[k + axes] ?? 0) - at(extra, k)] as const);
  }
  return wanted.map((extent, k) => {
    const total = at(full, k) + at(extra, k) - extent;
    const half = Math.floor(total / 2);
    const lo = mode === "SAME_UPPER" ? half : total - half;
    return [lo, total - lo - at(extra, k)] as const;
  });
}

function convTranspose(call: Call): Tensor {
  const [x, w] = [call.x(0), call.x(1)];
  const window = w.shape.slice(2);
  const stride = call.ints("strides") ?? window.map(() => 1);
  const dilation = call.ints("dilations") ?? window.map(() => 1);
  const of =
    TRANSPOSED[x.rank - 3] ?? call.fail(`a convolution over ${x.rank - 2} axes`, "one, two and three are supported");
  const full = window.map((n, k) => (at(x.shape, k + 2) - 1) * at(stride, k) + (n - 1) * at(dilation, k) + 1);
  const ends = transposedEnds(call, full, x.shape.slice(2));
  const options = { stride, dilation, groups: call.int("group", 1) };
  if (ends.every(([lo, hi]) => lo >= 0 && hi >= 0)) return biased(call, of(x, w, { ...options, padding: ends }), 2);
  const whole = of(x, w, options);
  const cut = t.slice(whole, [
    null,
    null,
    ...ends.map(([lo, hi], k) => [Math.max(0, lo), at(full, k) - Math.max(0, hi)] as const),
  ]);
  const widths = [
    [0, 0] as const,
    [0, 0] as const,
    ...ends.map(([lo, hi]) => [Math.max(0, -lo), Math.max(0, -hi)] as const),
  ];
  return biased(call, t.pad(cut, widths), 2);
}

function poolingOf(call: Call): Pooling {
  return windowsOf(call, call.x(0), call.ints("kernel_shape") ?? []);
}

function maximumPool(call: Call): readonly Tensor[] {
  const of = poolingOf(call);
  if (call.node.outputs.length < 2 || call.node.outputs[1] === "") return [maxPool(call.x(0), of)];
  const x = call.x(0);
  const [values, positions] = maxPoolWithPositions(x, of);
  const size = x.shape.slice(2);
  // positions count over the whole tensor, and in columns where the order of storage is 1
  const inPlace = call.int("storage_order", 0) === 1 ? byColumns(positions, size) : positions;
  const lead = elementsOf(x.shape.slice(0, 2));
  const start = t.reshape(t.mul(t.arange(lead), elementsOf(size)), [...x.shape.slice(0, 2), ...size.map(() => 1)]);
  return [values, t.add(inPlace, start)];
}

function byColumns(positions: Tensor, size: readonly number[]): Tensor {
  let rest = positions;
  let made = t.zerosLike(positions);
  for (const [k, extent] of [...size.entries()].reverse()) {
    const along = t.remainder(rest, extent);
    rest = t.floorDiv(rest, extent);
    made = t.add(made, t.mul(along, elementsOf(size.slice(0, k))));
  }
  return made;
}

function maxUnpool(call: Call): Tensor {
  const [x, positions] = [call.x(0), call.x(1)];
  const window = call.ints("kernel_shape") ?? [];
  const { stride, lo, hi } = windowsOf(call, x, window);
  const least = window.map((n, k) => (at(x.shape, k + 2) - 1) * at(stride, k) + n - at(lo, k) - at(hi, k));
  const wanted = call.maybeNumbers(2, "output shape");
  const shape = [...x.shape.slice(0, 2), ...least];
  const flat = t.zeros([elementsOf(shape)], x.dtype);
  const written = t.scatterSet(flat, t.reshape(positions, [-1]), t.reshape(x, [-1]));
  const made = t.reshape(written, shape);
  // positions count in the smallest tensor that fits; a larger one has zeros behind
  return wanted
    ? t.pad(
        made,
        shape.map((extent, axis) => [0, at(wanted, axis) - extent] as const),
      )
    : made;
}

const space = (x: Tensor): readonly number[] => x.shape.slice(2).map((_, k) => k + 2);

/** x / (bias + alpha/size · Σ x²)^beta over neighbouring channels. */
function localResponse(call: Call): Tensor {
  const x = call.x(0);
  const size = call.int("size", 1);
  const [before, after] = [Math.floor((size - 1) / 2), Math.ceil((size - 1) / 2)];
  const squares = t.pad(
    t.square(x),
    x.shape.map((_, axis) => (axis === 1 ? ([before, after] as const) : ([0, 0] as const))),
  );
  const channels = at(x.shape, 1);
  const parts = Array.from({ length: size }, (_, i) => t.slice(squares, [null, [i, i + channels]]));
  const total = parts.reduce((sum, part) => t.add(sum, part));
  const scale = t.add(t.mul(total, call.float("alpha", 1e-4) / size), call.float("bias", 1));
  return t.div(x, t.pow(scale, call.float("beta", 0.75)));
}

const globalLp: Operator = (call) => {
  const x = call.x(0);
  const p = call.int("p", 2);
  return t.pow(t.sum(t.pow(t.abs(x), p), space(x), { keepDims: true }), 1 / p);
};

export const SPATIAL: Readonly<Record<string, Operator>> = {
  Conv: conv,
  ConvTranspose: convTranspose,
  MaxPool: maximumPool,
  MaxUnpool: maxUnpool,
  AveragePool: (call) => averagePool(call.x(0), poolingOf(call), call.flag("count_include_pad")),
  GlobalAveragePool: (call) => t.mean(call.x(0), space(call.x(0)), { keepDims: true }),
  GlobalMaxPool: (call) => t.max(call.x(0), space(call.x(0)), { keepDims: true }),
  GlobalLpPool: globalLp,
  LRN: localResponse,
};
