/** @file Convolutions over [batch, channels, …space], with weights [out, in / groups, …kernel]. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import * as ops from "../ops/conv.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { type Padding, type PerAxis, paddingOf, perAxis, type SpatialFunction } from "./window.ts";

/** Options of convolutions. */
export interface ConvOptions {
  readonly stride?: PerAxis;
  /** Zeros around the input; 0 by default. */
  readonly padding?: Padding;
  readonly dilation?: PerAxis;
  readonly groups?: number;
}

/** Options of transposed convolutions. */
export interface ConvTransposeOptions extends ConvOptions {
  /** Added to the size of the result on one side, to choose among those a strided convolution would map to the input. */
  readonly outputPadding?: PerAxis;
}

const OPTIONS: OptionKinds<ConvOptions> = {
  stride: "anything",
  padding: "anything",
  dilation: "anything",
  groups: "a number",
};
const TRANSPOSE_OPTIONS: OptionKinds<ConvTransposeOptions> = { ...OPTIONS, outputPadding: "anything" };

function requireRank(name: string, x: Tensor, w: Tensor, axes: number): void {
  requireTensor(name, "x", x);
  requireTensor(name, "w", w);
  if (x.rank === axes + 2 && w.rank === axes + 2) return;
  const space = at(["length", "height, width", "depth, height, width"], axes - 1);
  fail(
    "ShapeMismatch",
    `${name}: takes x [batch, channels, ${space}] and w [out, in, ${space}], got ${typeText(x)}, ${typeText(w)}`,
    "add the missing axes with expandDims",
  );
}

function convolve(of: SpatialFunction, x: Tensor, w: Tensor, options: ConvOptions): Tensor {
  const { name, axes } = of;
  requireOptions(name, options, OPTIONS);
  requireRank(name, x, w, axes);
  const stride = perAxis(of, "stride", options.stride, 1);
  const dilation = perAxis(of, "dilation", options.dilation, 1);
  const { lo, hi } = paddingOf(name, options.padding, x.shape.slice(2), { extent: w.shape.slice(2), stride, dilation });
  return applyOp(ops.conv, [x, w], { stride, lo, hi, dilation, groups: options.groups ?? 1 });
}

/** Of the sizes that a convolution with this stride maps to the input, all but the smallest need it: stride - 1 of them. */
function outputPaddingOf(name: string, options: ConvTransposeOptions, stride: readonly number[]): readonly number[] {
  const extra = perAxis({ name, axes: stride.length }, "outputPadding", options.outputPadding, 0);
  if (options.padding === "same" && extra.some((n) => n !== 0)) {
    const help = 'leave one of them out: with "same" the size is that of the input times the stride';
    fail("InvalidArgument", `${name}: outputPadding [${extra.join(",")}] with padding "same"`, help);
  }
  if (extra.every((n, k) => n >= 0 && n < at(stride, k))) return extra;
  return fail(
    "InvalidArgument",
    `${name}: outputPadding [${extra.join(",")}] with stride [${stride.join(",")}]`,
    "outputPadding is at least 0 and below the stride",
  );
}

function transposed(of: SpatialFunction, x: Tensor, w: Tensor, options: ConvTransposeOptions): Tensor {
  const { name, axes } = of;
  requireOptions(name, options, TRANSPOSE_OPTIONS);
  requireRank(name, x, w, axes);
  const stride = perAxis(of, "stride", options.stride, 1);
  const dilation = perAxis(of, "dilation", options.dilation, 1);
  const extra = outputPaddingOf(name, options, stride);
  const kernel = w.shape.slice(2);
  const input = x.shape.slice(2);
  // the convolution that this is the transpose of maps size to input: input = ⌊(size + lo + hi - span) / stride⌋ + 1
  const sized = input.map((n, k) => n * at(stride, k));
  const { lo, hi } = paddingOf(name, options.padding, sized, { extent: kernel, stride, dilation });
  const size = input.map((n, k) => {
    const span = (at(kernel, k) - 1) * at(dilation, k) + 1;
    return options.padding === "same"
      ? at(sized, k)
      : (n - 1) * at(stride, k) + span - at(lo, k) - at(hi, k) + at(extra, k);
  });
  return applyOp(ops.convInput, [x, w], { stride, lo, hi, dilation, groups: options.groups ?? 1, size });
}

/**
 * Convolution of x [batch, in, length] with w [out, in / groups, kernel].
 *
 * @example
 * import { conv1d, tensor } from "tidemark";
 *
 * const x = tensor([[[1, 2, 3, 4]]]);
 * const w = tensor([[[1, -1]]]);
 * console.log(conv1d(x, w).toArray()); // → [[[-1, -1, -1]]]
 */
export function conv1d(x: Tensor, w: Tensor, options: ConvOptions = {}): Tensor {
  return convolve({ name: "conv1d", axes: 1 }, x, w, options);
}

/**
 * Convolution of x [batch, in, height, width] with w [out, in / groups, kernel height, kernel width].
 *
 * @example
 * import { conv2d, ones } from "tidemark";
 *
 * const y = conv2d(ones([1, 3, 8, 8]), ones([4, 3, 3, 3]), { stride: 2, padding: "same" });
 * console.log(y.shape); // [1, 4, 4, 4]
 */
export function conv2d(x: Tensor, w: Tensor, options: ConvOptions = {}): Tensor {
  return convolve({ name: "conv2d", axes: 2 }, x, w, options);
}

/**
 * Convolution of x [batch, in, depth, height, width] with w [out, in / groups, kernel depth, kernel height, kernel width].
 *
 * @example
 * import { conv3d, ones } from "tidemark";
 *
 * console.log(conv3d(ones([1, 1, 2, 2, 2]), ones([1, 1, 2, 2, 2])).toArray()); // → [[[[[8]]]]]
 */
export function conv3d(x: Tensor, w: Tensor, options: ConvOptions = {}): Tensor {
  return convolve({ name: "conv3d", axes: 3 }, x, w, options);
}

/**
 * Every channel with kernels of its own: conv2d with as many groups as x has channels; w is [channels · kernels, 1, height, width].
 *
 * @example
 * import { depthwiseConv2d, ones } from "tidemark";
 *
 * console.log(depthwiseConv2d(ones([1, 3, 4, 4]), ones([3, 1, 2, 2])).shape); // → [1, 3, 3, 3]
 */
export function depthwiseConv2d(x: Tensor, w: Tensor, options: Omit<ConvOptions, "groups"> = {}): Tensor {
  requireRank("depthwiseConv2d", x, w, 2);
  return convolve({ name: "depthwiseConv2d", axes: 2 }, x, w, { ...options, groups: at(x.shape, 1) });
}

/**
 * Transpose of conv1d: x [batch, in, length] with w [in, out / groups, kernel].
 *
 * @example
 * import { convTranspose1d, tensor } from "tidemark";
 *
 * const x = tensor([[[1, 2]]]);
 * const w = tensor([[[1, 1]]]);
 * console.log(convTranspose1d(x, w, { stride: 2 }).toArray()); // → [[[1, 1, 2, 2]]]
 */
export function convTranspose1d(x: Tensor, w: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed({ name: "convTranspose1d", axes: 1 }, x, w, options);
}

/**
 * Transpose of conv2d: x [batch, in, height, width] with w [in, out / groups, kernel height, kernel width].
 *
 * @example
 * import { convTranspose2d, ones } from "tidemark";
 *
 * console.log(convTranspose2d(ones([1, 1, 2, 2]), ones([1, 1, 2, 2])).toArray()); // → [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]
 */
export function convTranspose2d(x: Tensor, w: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed({ name: "convTranspose2d", axes: 2 }, x, w, options);
}

/**
 * Transpose of conv3d: x [batch, in, depth, height, width] with w [in, out / groups, kernel depth, kernel height, kernel width].
 *
 * @example
 * import { convTranspose3d, ones } from "tidemark";
 *
 * console.log(convTranspose3d(ones([1, 1, 1, 1, 2]), ones([1, 1, 1, 1, 2])).toArray()); // → [[[[[1, 2, 1]]]]]
 */
export function convTranspose3d(x: Tensor, w: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed({ name: "convTranspose3d", axes: 3 }, x, w, options);
}
