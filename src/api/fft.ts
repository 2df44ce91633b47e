/** @file Fourier transforms along one axis. Complex numbers are pairs of real tensors. */
import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import * as ops from "../ops/fft.ts";
import { describe, fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyAll, applyOp } from "./apply.ts";
import { add, mul, sub } from "./elementwise.ts";
import { fullOf, normalAxis, requireFloat } from "./operands.ts";
import { pad, slice } from "./shape.ts";

/** Complex numbers: two tensors of one shape and type. */
export interface Complex {
  readonly re: Tensor;
  readonly im: Tensor;
}

/**
 * Which direction divides by the number of elements n: "backward" the inverse, "forward" the other one, "ortho" both, by √n each, so that
 * the transform is unitary.
 */
export type FftNorm = "backward" | "ortho" | "forward";

/** Options of Fourier transforms over one axis. */
export interface FftOptions {
  /** Elements of the transform: longer inputs are cut off, shorter ones are filled up with zeros. Default: those of the input. */
  readonly n?: number;
  /** Default: the last. */
  readonly axis?: number;
  /** Default: "backward". */
  readonly norm?: FftNorm;
}

const OPTIONS: OptionKinds<FftOptions> = { n: "a number", axis: "a number", norm: "a text" };

type Direction = "forward" | "inverse";

/** The factor of a transform of n elements. @internal */
export function factorOf(name: string, n: number, norm: FftNorm, direction: Direction): number {
  if (norm === "ortho") return 1 / Math.sqrt(n);
  if (norm === "backward") return direction === "inverse" ? 1 / n : 1;
  if (norm === "forward") return direction === "forward" ? 1 / n : 1;
  return fail("InvalidArgument", `${name}: norm ${describe(norm)}`, 'use "backward", "ortho" or "forward"');
}

/** A pair; a real tensor is one without imaginary parts. @internal */
export function pairOf(name: string, x: Tensor | Complex): Complex {
  if (x instanceof Tensor) {
    requireFloat(name, x);
    return { re: x, im: fullOf(x.dtype, x.shape, 0) };
  }
  const { re, im } = (x ?? {}) as Partial<Complex>;
  if (!(re instanceof Tensor && im instanceof Tensor)) {
    fail("InvalidArgument", `${name}: takes a tensor or a pair { re, im }, got ${describe(x)}`, `${name}({ re, im })`);
  }
  requireFloat(name, re);
  if (re.dtype === im.dtype && sameShape(re.shape, im.shape)) return { re, im };
  const summary = `${name}: re is ${typeText(re)}, im is ${typeText(im)}`;
  return fail("ShapeMismatch", summary, "the parts of a pair have one shape and type");
}

const asPair = (parts: readonly Tensor[]): Complex => ({ re: at(parts, 0), im: at(parts, 1) });

/** Cut off or filled up with zeros to n elements along an axis. */
function resized(x: Tensor, axis: number, n: number): Tensor {
  const has = at(x.shape, axis);
  const only = <T>(own: T, other: T): readonly T[] => x.shape.map((_, a) => (a === axis ? own : other));
  if (n === has) return x;
  if (n < has) return slice(x, only<readonly [number, number] | null>([0, n], null));
  return pad(x, only<readonly [number, number]>([0, n - has], [0, 0]));
}

/** The length of a transform: given, or that of the input, of which there is something. */
function lengthOf(x: Tensor, { name, n, axis }: Along, own: number): number {
  const length = n ?? own;
  if (Number.isInteger(length) && length >= 1) return length;
  const summary = `${name}: a transform of ${String(length)} elements along axis ${axis} of ${typeText(x)}`;
  return fail("InvalidArgument", summary, "give n, a whole number from 1 on");
}

/** One transform along one axis. @internal */
export interface Along {
  readonly name: string;
  readonly axis: number;
  readonly n: number | undefined;
  readonly norm: FftNorm;
}

/** @internal */
export function transformPair(x: Complex, along: Along, direction: Direction): Complex {
  const { name, axis, norm } = along;
  const length = lengthOf(x.re, along, at(x.re.shape, axis));
  const attrs = { axis, inverse: direction === "inverse", scale: factorOf(name, length, norm, direction) };
  return asPair(applyAll(ops.fft, [resized(x.re, axis, length), resized(x.im, axis, length)], attrs));
}

/** @internal */
export function transformReal(x: Tensor, along: Along): Complex {
  const { name, axis, norm } = along;
  const length = lengthOf(x, along, at(x.shape, axis));
  const scale = factorOf(name, length, norm, "forward");
  return asPair(applyAll(ops.rfft, [resized(x, axis, length)], { axis, scale, ends: 1 }));
}

/** @internal */
export function transformToReal(x: Complex, along: Along): Tensor {
  const { name, axis, norm } = along;
  const length = lengthOf(x.re, along, 2 * (at(x.re.shape, axis) - 1));
  const half = Math.floor(length / 2) + 1;
  const attrs = { axis, n: length, scale: factorOf(name, length, norm, "inverse"), ends: 1 };
  return applyOp(ops.irfft, [resized(x.re, axis, half), resized(x.im, axis, half)], attrs);
}

function alongOf(name: string, x: Tensor, options: FftOptions): Along {
  requireOptions(name, options, OPTIONS);
  return { name, axis: normalAxis(name, options.axis ?? -1, x), n: options.n, norm: options.norm ?? "backward" };
}

/**
 * The discrete Fourier transform along an axis, the last by default: y_j = Σ_k x_k e^(-2πi·jk/n) for a pair { re, im }, or for a real
 * tensor, of which `rfft` computes half in half the time and memory. Transforms of any length take time in proportion to n log n. It is
 * linear: a backward pass keeps nothing.
 *
 * @example
 * import { fft, tensor } from "tidemark";
 *
 * const { re, im } = fft({ re: tensor([1, 2, 3, 4]), im: tensor([0, 0, 0, 0]) });
 * console.log(re.toArray(), im.toArray()); // [10, -2, -2, -2] [0, 2, 0, -2]
 */
export function fft(x: Tensor | Complex, options: FftOptions = {}): Complex {
  return asFunction("fft", () => {
    const pair = pairOf("fft", x);
    return transformPair(pair, alongOf("fft", pair.re, options), "forward");
  });
}

/**
 * The inverse of `fft`: x_k = 1/n Σ_j y_j e^(2πi·jk/n).
 *
 * @example
 * import { fft, ifft, tensor } from "tidemark";
 *
 * console.log(ifft(fft(tensor([1, 2, 3, 4]))).re.toArray()); // [1, 2, 3, 4]
 */
export function ifft(x: Tensor | Complex, options: FftOptions = {}): Complex {
  return asFunction("ifft", () => {
    const pair = pairOf("ifft", x);
    return transformPair(pair, alongOf("ifft", pair.re, options), "inverse");
  });
}

/**
 * The Fourier transform of a real tensor along an axis, the last by default: its first n/2 + 1 elements, rounded down. The others are
 * their conjugates.
 *
 * @example
 * import { rfft, tensor } from "tidemark";
 *
 * const { re, im } = rfft(tensor([1, 2, 3, 4]));
 * console.log(re.toArray(), im.toArray()); // [10, -2, -2] [0, 2, 0]
 */
export function rfft(x: Tensor, options: FftOptions = {}): Complex {
  return asFunction("rfft", () => {
    requireFloat("rfft", x);
    return transformReal(x, alongOf("rfft", x, options));
  });
}

/**
 * The inverse of `rfft`: n real elements, by default 2(m - 1) for m complex ones; say n where it is odd. Imaginary parts that a real
 * sequence cannot have, of element 0 and, for even n, n/2, are not read.
 *
 * @example
 * import { irfft, rfft, tensor } from "tidemark";
 *
 * console.log(irfft(rfft(tensor([1, 2, 3])), { n: 3 }).toArray()); // [1, 2, 3]
 */
export function irfft(x: Tensor | Complex, options: FftOptions = {}): Tensor {
  return asFunction("irfft", () => {
    const pair = pairOf("irfft", x);
    return transformToReal(pair, alongOf("irfft", pair.re, options));
  });
}

/**
 * The product of complex numbers, element by element; shapes are broadcast.
 *
 * @example
 * import { complexMul, tensor } from "tidemark";
 *
 * const i = { re: tensor([0]), im: tensor([1]) };
 * console.log(complexMul(i, i).re.toArray()); // [-1]
 */
export function complexMul(a: Tensor | Complex, b: Tensor | Complex): Complex {
  if (a instanceof Tensor) return b instanceof Tensor ? pairOf("complexMul", mul(a, b)) : complexMul(b, a);
  const x = pairOf("complexMul", a);
  if (b instanceof Tensor) return { re: mul(x.re, b), im: mul(x.im, b) };
  const y = pairOf("complexMul", b);
  return asFunction("complexMul", () => ({
    re: sub(mul(x.re, y.re), mul(x.im, y.im)),
    im: add(mul(x.re, y.im), mul(x.im, y.re)),
  }));
}
