/**
 * @file Fourier transforms along one axis. Complex numbers are pairs of real tensors: two inputs, two results.
 *
 *   fft    y_j = scale · Σ_k (re + i·im)_k e^(∓2πi·jk/n)
 *   rfft   the first n/2 + 1 elements of that of a real sequence; the others are their conjugates
 *   irfft  real sequences from those: y_j = scale · Σ_k X_k e^(2πi·jk/n) over all n, of which the second half is not given
 *
 * All are linear, and each is the transpose of another, so a backward pass keeps nothing: that of `fft` goes the other way. In `irfft`
 * an element in the middle stands for two, one at an end for itself; in the transpose of `rfft` each stands for one. So both have a
 * factor for the ends alone: 0, and n/2 if n is even.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { axisBehind, leading } from "../ir/batch.ts";
import type { LowerContext, OpDef } from "../ir/op.ts";
import { elementsOf, type Shape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { FLOAT_TYPES } from "../kernel/dtype.ts";
import { requireInputs, requireOne } from "./checks.ts";
import { defineOp, requireAxis, requireDomain, requireSame } from "./define.ts";
import { fftNests } from "./fft/nests.ts";
import { forEachIndex, samplesIn } from "./reference.ts";

export type FftAttrs = { readonly axis: number; readonly inverse: boolean; readonly scale: number };
export type RfftAttrs = { readonly axis: number; readonly scale: number; readonly ends: number };
export type IrfftAttrs = RfftAttrs & { readonly n: number };

/** The longest transform: places on the circles of a convolution of twice its length, and more, are told apart in i32. */
const LONGEST = 2 ** 25;

function requireLength(name: string, n: number, type: TensorType, axis: number): void {
  if (Number.isInteger(n) && n >= 1 && n <= LONGEST) return;
  const what = n === 0 ? "there is nothing to transform" : `length ${String(n)}`;
  throw new TidemarkError("InvalidArgument", `${name}: ${what} along axis ${axis} of ${typeText(type)}`, {
    help: `a transform has from 1 to ${LONGEST} elements`,
  });
}

/** Of a pair of real tensors. */
function requirePair(name: string, inputs: readonly TensorType[], axis: number): TensorType {
  requireInputs(name, ["re", "im"], inputs);
  requireDomain(name, "float", inputs);
  const type = requireSame(name, inputs);
  requireAxis(name, axis, type.shape.length);
  return type;
}

/** Elements of the input along the axis. */
const lengthOf = ({ inTypes, attrs }: LowerContext<{ readonly axis: number }>): number =>
  item(item(inTypes, 0).shape, attrs.axis);

const halfOf = (n: number): number => Math.floor(n / 2) + 1;

/** 5 n log n for a complex transform, as people count it. */
const flopsOf = (shape: Shape, n: number): number => 5 * elementsOf(shape) * Math.log2(n + 1);

/** Σ_k of terms at each place j < count of each line along an axis; `terms` gives both parts. */
function summed(
  shape: Shape,
  axis: number,
  count: number,
  term: (element: (k: number) => number, j: number) => readonly [number, number],
): readonly [Float64Array, Float64Array] {
  const inner = elementsOf(shape.slice(axis + 1));
  const n = item(shape, axis);
  const wanted = shape.with(axis, count);
  const [re, im] = [new Float64Array(elementsOf(wanted)), new Float64Array(elementsOf(wanted))];
  forEachIndex(wanted, (idx, e) => {
    const outer = Math.floor(e / (count * inner));
    const element = (k: number): number => (outer * n + k) * inner + (e % inner);
    [re[e], im[e]] = term(element, item(idx, axis));
  });
  return [re, im];
}

/** Σ_k (re + i·im)_k e^(±2πi·jk/n) in doubles. */
function dft(
  re: (k: number) => number,
  im: (k: number) => number,
  [n, j, sign]: readonly [n: number, j: number, sign: number],
): readonly [number, number] {
  let [x, y] = [0, 0];
  for (let k = 0; k < n; k++) {
    const angle = (2 * Math.PI * ((j * k) % n)) / n;
    const [cos, sin] = [Math.cos(angle), sign * Math.sin(angle)];
    x += re(k) * cos - im(k) * sin;
    y += re(k) * sin + im(k) * cos;
  }
  return [x, y];
}

/** Whether an element stands for itself alone. */
const isEnd = (k: number, n: number): boolean => k === 0 || 2 * k === n;

export const fft: OpDef<FftAttrs> = defineOp<FftAttrs>({
  name: "fft",
  batch: leading(axisBehind),
  defaults: { inverse: false, scale: 1 },
  infer(inputs, { axis }) {
    const type = requirePair("fft", inputs, axis);
    requireLength("fft", item(type.shape, axis), type, axis);
    return [type, type];
  },
  derivative: {
    kind: "linear",
    transpose: (b, { cts, attrs }) => b.callAll(fft, cts, { ...attrs, inverse: !attrs.inverse }),
  },
  cost: ([x], _, { axis }) => ({ flops: x ? flopsOf(x.shape, item(x.shape, axis)) : 0 }),
  lower: {
    kind: "nests",
    nests: (build, c, target) => {
      return fftNests(build, c as never, { form: "complex", ends: 1, n: lengthOf(c), ...c.attrs }, target?.threads);
    },
  },
  evaluate({ inputs, inTypes, attrs: { axis, inverse, scale } }) {
    const [re, im, { shape }] = [item(inputs, 0), item(inputs, 1), item(inTypes, 0)];
    const n = item(shape, axis);
    const found = summed(shape, axis, n, (element, j) => {
      const at = (data: Float64Array) => (k: number) => item(data, element(k));
      return dft(at(re), at(im), [n, j, inverse ? 1 : -1]);
    });
    return found.map((part) => part.map((v) => v * scale));
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: twice([1]), attrs: { axis: 0, inverse: false, scale: 1 } },
      { shapes: twice([2, 3]), attrs: { axis: 0, inverse: true, scale: 0.5 } },
      { shapes: twice([2, 24]), attrs: { axis: 1, inverse: false, scale: 1 } },
      { shapes: twice([9, 20]), attrs: { axis: 1, inverse: false, scale: 1 } },
      { shapes: twice([3, 18, 16]), attrs: { axis: 1, inverse: false, scale: 1 } },
      { shapes: twice([2, 7, 3]), attrs: { axis: 1, inverse: true, scale: 1 / 7 } },
      { shapes: twice([17]), attrs: { axis: 0, inverse: false, scale: 0.25 } },
      { shapes: twice([40, 2]), attrs: { axis: 0, inverse: true, scale: 1 } },
      { shapes: twice([0, 4]), attrs: { axis: 1, inverse: false, scale: 1 } },
    ]),
});

const twice = (shape: Shape): readonly Shape[] => [shape, shape];

export const rfft: OpDef<RfftAttrs> = defineOp<RfftAttrs>({
  name: "rfft",
  batch: leading(axisBehind),
  defaults: { scale: 1, ends: 1 },
  infer(inputs, { axis }) {
    const type = requireOne("rfft", inputs);
    requireDomain("rfft", "float", inputs);
    requireAxis("rfft", axis, type.shape.length);
    const n = item(type.shape, axis);
    requireLength("rfft", n, type, axis);
    const half = tensorType(type.dtype, type.shape.with(axis, halfOf(n)));
    return [half, half];
  },
  derivative: {
    kind: "linear",
    transpose(b, { x, cts, attrs: { axis, scale, ends } }) {
      const n = item(item(x, 0).type.shape, axis);
      return b.callAll(irfft, cts, { axis, n, scale: scale / 2, ends: 2 * ends });
    },
  },
  cost: ([x], _, { axis }) => ({ flops: x ? flopsOf(x.shape, item(x.shape, axis)) / 2 : 0 }),
  lower: {
    kind: "nests",
    nests: (build, c, target) =>
      fftNests(build, c as never, { form: "real", inverse: false, n: lengthOf(c), ...c.attrs }, target?.threads),
  },
  evaluate({ inputs, inTypes, attrs: { axis, scale, ends } }) {
    const [x, { shape }] = [item(inputs, 0), item(inTypes, 0)];
    const n = item(shape, axis);
    const found = summed(shape, axis, halfOf(n), (element, j) => {
      const own = scale * (isEnd(j, n) ? ends : 1);
      const [re, im] = dft(
        (k) => item(x, element(k)),
        () => 0,
        [n, j, -1],
      );
      return [re * own, isEnd(j, n) ? 0 : im * own];
    });
    return found;
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[1, 2]], attrs: { axis: 0, scale: 1, ends: 1 } },
      { shapes: [[2]], attrs: { axis: 0, scale: 1, ends: 0.5 } },
      { shapes: [[2, 40]], attrs: { axis: 1, scale: 0.5, ends: 1 } },
      { shapes: [[2, 9, 2]], attrs: { axis: 1, scale: 1, ends: 0.5 } },
      { shapes: [[34]], attrs: { axis: 0, scale: 1, ends: 1 } },
      { shapes: [[9, 36]], attrs: { axis: 1, scale: 1, ends: 1 } },
      { shapes: [[0, 3]], attrs: { axis: 1, scale: 1, ends: 1 } },
    ]),
});

export const irfft: OpDef<IrfftAttrs> = defineOp<IrfftAttrs>({
  name: "irfft",
  batch: leading(axisBehind),
  defaults: { scale: 1, ends: 1 },
  infer(inputs, { axis, n }) {
    const type = requirePair("irfft", inputs, axis);
    requireLength("irfft", n, type, axis);
    if (item(type.shape, axis) === halfOf(n)) return [tensorType(type.dtype, type.shape.with(axis, n))];
    const summary = `irfft: ${n} real elements need ${halfOf(n)} complex ones along axis ${axis}, got ${typeText(type)}`;
    throw new TidemarkError("ShapeMismatch", summary, { help: "cut or pad the pair to n / 2 + 1 elements" });
  },
  derivative: {
    kind: "linear",
    transpose: (b, { cts, attrs: { axis, scale, ends } }) =>
      b.callAll(rfft, cts, { axis, scale: 2 * scale, ends: ends / 2 }),
  },
  cost: (_, [y], { axis }) => ({ flops: y ? flopsOf(y.shape, item(y.shape, axis)) / 2 : 0 }),
  lower: {
    kind: "nests",
    nests: (build, c, target) =>
      fftNests(build, c as never, { form: "hermitian", inverse: true, ...c.attrs }, target?.threads),
  },
  evaluate({ inputs, inTypes, attrs: { axis, n, scale, ends } }) {
    const [re, im, { shape }] = [item(inputs, 0), item(inputs, 1), item(inTypes, 0)];
    const [found] = summed(shape, axis, n, (element, j) => {
      const part = (data: Float64Array, sign: number) => (k: number) => {
        const own = 2 * k <= n ? k : n - k;
        if (isEnd(own, n)) return sign < 0 ? 0 : ends * item(data, element(own));
        return (own === k ? 1 : sign) * item(data, element(own));
      };
      return dft(part(re, 1), part(im, -1), [n, j, 1]);
    });
    return [found.map((v) => v * scale)];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: twice([1, 2]), attrs: { axis: 0, n: 1, scale: 1, ends: 1 } },
      { shapes: twice([2]), attrs: { axis: 0, n: 2, scale: 0.5, ends: 2 } },
      { shapes: twice([2, 21]), attrs: { axis: 1, n: 40, scale: 1 / 40, ends: 1 } },
      { shapes: twice([2, 5, 2]), attrs: { axis: 1, n: 9, scale: 1, ends: 2 } },
      { shapes: twice([18]), attrs: { axis: 0, n: 34, scale: 1, ends: 1 } },
      { shapes: twice([9, 19]), attrs: { axis: 1, n: 36, scale: 1, ends: 1 } },
      { shapes: twice([0, 3]), attrs: { axis: 1, n: 4, scale: 1, ends: 1 } },
    ]),
});
