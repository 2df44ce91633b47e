/** @file Fourier transforms along several axes, and what is used beside them: frequencies, and zero in the middle. */
import { at } from "../base/invariant.ts";
import { shapeText, typeText } from "../ir/type.ts";
import { FLOAT_TYPES, type FloatType, isFloat } from "../kernel/dtype.ts";
import {
  fail,
  type OptionKinds,
  requireArray,
  requireOptions,
  requireTypeOption,
  type TypeOption,
} from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { roll } from "./arrange.ts";
import { arange } from "./create.ts";
import { greaterEqual, mul, sub, where } from "./elementwise.ts";
import {
  type Along,
  type Complex,
  type FftNorm,
  pairOf,
  transformPair,
  transformReal,
  transformToReal,
} from "./fft.ts";
import { type Axes, normalAxes, normalAxis, requireFloat } from "./operands.ts";

/** Options of Fourier transforms over several axes. */
export interface FftnOptions {
  /** Elements of the transform along each of the axes, as `n` of `fft`; without `axes` along the last ones. */
  readonly s?: readonly number[];
  /** Default: all; of `fft2` and the like the last two. */
  readonly axes?: readonly number[];
  /** Default: "backward". */
  readonly norm?: FftNorm;
}

const OPTIONS: OptionKinds<FftnOptions> = { s: "anything", axes: "anything", norm: "a text" };

/** What a function is called, and how many axes it takes by default; null: all. */
interface Form {
  readonly name: string;
  readonly most: number | null;
}

/** The axes in the order that they are given in, each with its length. */
function allAlong(x: Tensor, options: FftnOptions, { name, most }: Form): readonly Along[] {
  requireOptions(name, options, OPTIONS);
  const { s, norm = "backward" } = options;
  if (s !== undefined) requireArray(name, "s", s, `${name}(x, { s: [4, 8] })`);
  if (options.axes !== undefined) requireArray(name, "axes", options.axes, `${name}(x, { axes: [0, 1] })`);
  const count = most ?? s?.length ?? x.rank;
  const given = options.axes ?? Array.from({ length: count }, (_, i) => i - count);
  const axes = given.map((axis) => normalAxis(name, axis, x));
  if (new Set(axes).size !== axes.length || axes.length === 0) {
    fail("InvalidAxis", `${name}: axes ${shapeText(given)} of ${typeText(x)}`, "name at least one axis, each once");
  }
  if (s !== undefined && s.length !== axes.length) {
    fail("InvalidArgument", `${name}: s has ${s.length} numbers for ${axes.length} axes`, "give one for each axis");
  }
  return axes.map((axis, i) => ({ name, axis, n: s?.[i], norm }));
}

type Direction = "forward" | "inverse";

function overAxes(x: Tensor | Complex, options: FftnOptions, { name, most }: Form, direction: Direction): Complex {
  return asFunction(name, () => {
    const pair = pairOf(name, x);
    const all = allAlong(pair.re, options, { name, most });
    return all.reduceRight((y, along) => transformPair(y, along, direction), pair);
  });
}

function realOverAxes(x: Tensor, options: FftnOptions, { name, most }: Form): Complex {
  return asFunction(name, () => {
    requireFloat(name, x);
    const all = allAlong(x, options, { name, most });
    const half = transformReal(x, at(all, all.length - 1));
    return all.slice(0, -1).reduceRight((y, along) => transformPair(y, along, "forward"), half);
  });
}

function toRealOverAxes(x: Tensor | Complex, options: FftnOptions, { name, most }: Form): Tensor {
  return asFunction(name, () => {
    const pair = pairOf(name, x);
    const all = allAlong(pair.re, options, { name, most });
    const rest = all.slice(0, -1).reduce((y, along) => transformPair(y, along, "inverse"), pair);
    return transformToReal(rest, at(all, all.length - 1));
  });
}

/**
 * The Fourier transform along several axes, all by default: `fft` along each.
 *
 * @example
 * import { fftn, ones } from "tidemark";
 *
 * console.log(fftn(ones([2, 2])).re.toArray()); // [[4, 0], [0, 0]]
 */
export function fftn(x: Tensor | Complex, options: FftnOptions = {}): Complex {
  return overAxes(x, options, { name: "fftn", most: null }, "forward");
}

/**
 * The inverse of `fftn`.
 *
 * @example
 * import { fftn, ifftn, tensor } from "tidemark";
 *
 * const { re } = ifftn(fftn(tensor([[1, 2], [3, 4]])));
 * console.log(re.toArray()); // → [[1, 2], [3, 4]]
 */
export function ifftn(x: Tensor | Complex, options: FftnOptions = {}): Complex {
  return overAxes(x, options, { name: "ifftn", most: null }, "inverse");
}

/**
 * The Fourier transform along the last two axes, or two others.
 *
 * @example
 * import { fft2, ones } from "tidemark";
 *
 * const { re } = fft2(ones([2, 2]));
 * console.log(re.toArray()); // → [[4, 0], [0, 0]]
 */
export function fft2(x: Tensor | Complex, options: FftnOptions = {}): Complex {
  return overAxes(x, options, { name: "fft2", most: 2 }, "forward");
}

/**
 * The inverse of `fft2`.
 *
 * @example
 * import { fft2, ifft2, tensor } from "tidemark";
 *
 * const { re } = ifft2(fft2(tensor([[1, 2], [3, 4]])));
 * console.log(re.toArray()); // → [[1, 2], [3, 4]]
 */
export function ifft2(x: Tensor | Complex, options: FftnOptions = {}): Complex {
  return overAxes(x, options, { name: "ifft2", most: 2 }, "inverse");
}

/**
 * The Fourier transform of a real tensor along several axes, all by default: `rfft` along the last of them, then `fft` along the others.
 *
 * @example
 * import { ones, rfftn } from "tidemark";
 *
 * console.log(rfftn(ones([2, 4])).re.toArray()); // [[8, 0, 0], [0, 0, 0]]
 */
export function rfftn(x: Tensor, options: FftnOptions = {}): Complex {
  return realOverAxes(x, options, { name: "rfftn", most: null });
}

/**
 * The inverse of `rfftn`; the length along the last of the axes is as in `irfft`.
 *
 * @example
 * import { irfftn, rfftn, tensor } from "tidemark";
 *
 * console.log(irfftn(rfftn(tensor([[1, 2], [3, 4]]))).toArray()); // → [[1, 2], [3, 4]]
 */
export function irfftn(x: Tensor | Complex, options: FftnOptions = {}): Tensor {
  return toRealOverAxes(x, options, { name: "irfftn", most: null });
}

/**
 * The Fourier transform of a real tensor along the last two axes, or two others.
 *
 * @example
 * import { ones, rfft2 } from "tidemark";
 *
 * console.log(rfft2(ones([4, 4])).re.shape); // → [4, 3]
 */
export function rfft2(x: Tensor, options: FftnOptions = {}): Complex {
  return realOverAxes(x, options, { name: "rfft2", most: 2 });
}

/**
 * The inverse of `rfft2`.
 *
 * @example
 * import { irfft2, rfft2, tensor } from "tidemark";
 *
 * console.log(irfft2(rfft2(tensor([[1, 2], [3, 4]]))).toArray()); // → [[1, 2], [3, 4]]
 */
export function irfft2(x: Tensor | Complex, options: FftnOptions = {}): Tensor {
  return toRealOverAxes(x, options, { name: "irfft2", most: 2 });
}

function shifted<T extends Tensor | Complex>(name: string, x: T, axes: Axes | undefined, towards: 1 | -1): T {
  const move = (part: Tensor): Tensor => {
    const along = normalAxes(name, axes, part);
    const by = along.map((axis) => towards * Math.floor(at(part.shape, axis) / 2));
    return along.length === 0 ? part : roll(part, by, along);
  };
  if (x instanceof Tensor) return move(x) as T;
  const { re, im } = pairOf(name, x);
  return { re: move(re), im: move(im) } as unknown as T;
}

/**
 * Frequency zero moved from the beginning to the middle, along all axes or some, of a tensor or a pair.
 *
 * @example
 * import { fftfreq, fftshift } from "tidemark";
 *
 * console.log(fftshift(fftfreq(4, 0.25)).toArray()); // [-2, -1, 0, 1]
 */
export function fftshift<T extends Tensor | Complex>(x: T, axes?: Axes): T {
  return asFunction("fftshift", () => shifted("fftshift", x, axes, 1));
}

/**
 * The inverse of `fftshift`.
 *
 * @example
 * import { fftshift, ifftshift, tensor } from "tidemark";
 *
 * console.log(ifftshift(fftshift(tensor([0, 1, 2, 3]))).toArray()); // → [0, 1, 2, 3]
 */
export function ifftshift<T extends Tensor | Complex>(x: T, axes?: Axes): T {
  return asFunction("ifftshift", () => shifted("ifftshift", x, axes, -1));
}

/** 1 / (n · spacing), both checked. */
function stepOf(name: string, n: number, spacing: number): number {
  if (!Number.isInteger(n) || n < 1)
    fail("InvalidArgument", `${name}: n is ${String(n)}`, "give a whole number from 1 on");
  const step = 1 / (n * spacing);
  if (typeof spacing === "number" && Number.isFinite(step)) return step;
  return fail("InvalidArgument", `${name}: spacing ${String(spacing)}`, "give a number that is not 0");
}

function floatTypeOf(name: string, type: TypeOption<FloatType> | undefined): FloatType {
  const dtype = requireTypeOption(name, type, "f32");
  if (isFloat(dtype)) return dtype;
  return fail("DtypeMismatch", `${name}: frequencies in ${dtype}`, `use one of ${FLOAT_TYPES.join(", ")}`);
}

/**
 * The frequencies of the elements of `fft`, in cycles per unit of the spacing of samples: 0, 1, …, then the negative ones, over
 * n · spacing.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { fftfreq } from "tidemark";
 *
 * console.log(fftfreq(5, 0.2).toArray()); // [0, 1, 2, -2, -1]
 */
export function fftfreq(n: number, spacing = 1, type?: TypeOption<FloatType>): Tensor {
  const step = stepOf("fftfreq", n, spacing);
  const dtype = floatTypeOf("fftfreq", type);
  return asFunction("fftfreq", () => {
    const k = arange(n, { dtype });
    return mul(where(greaterEqual(k, Math.ceil(n / 2)), sub(k, n), k), step);
  });
}

/**
 * The frequencies of the elements of `rfft`: 0, 1, …, n/2 rounded down, over n · spacing.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { rfftfreq } from "tidemark";
 *
 * console.log(rfftfreq(4).toArray()); // → [0, 0.25, 0.5]
 */
export function rfftfreq(n: number, spacing = 1, type?: TypeOption<FloatType>): Tensor {
  const step = stepOf("rfftfreq", n, spacing);
  const dtype = floatTypeOf("rfftfreq", type);
  return asFunction("rfftfreq", () => mul(arange(Math.floor(n / 2) + 1, { dtype }), step));
}
