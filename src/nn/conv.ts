/** @file Convolution layers over [batch, channels, …space]. Weights start uniform in ±√(1 / fan in), like offsets. */
import * as api from "../api/conv.ts";
import { add } from "../api/elementwise.ts";
import { reshape } from "../api/shape.ts";
import { type PerAxis, perAxis } from "../api/window.ts";
import { elementsOf } from "../ir/type.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { fanInUniform } from "./distributions.ts";
import { partKey } from "./key.ts";
import { type Layer, requireCounts, requireExtent, WEIGHT_OPTIONS, type WeightOptions, type Weights } from "./layer.ts";

/** Options of convolution layers. */
export interface ConvLayerOptions<B extends boolean = true> extends WeightOptions<B>, api.ConvOptions {}
/** Options of transposed convolution layers. */
export interface ConvTransposeLayerOptions<B extends boolean = true>
  extends WeightOptions<B>,
    api.ConvTransposeOptions {}

const OPTIONS: OptionKinds<ConvLayerOptions> = {
  ...WEIGHT_OPTIONS,
  stride: "anything",
  padding: "anything",
  dilation: "anything",
  groups: "a number",
};
const TRANSPOSE_OPTIONS: OptionKinds<ConvTransposeLayerOptions> = { ...OPTIONS, outputPadding: "anything" };

/** The differences between the four convolutions. */
interface Kind {
  readonly name: string;
  readonly axes: number;
  /** Weights are [in, out / groups, …] in place of [out, in / groups, …]. */
  readonly transposed: boolean;
  apply(x: Tensor, w: Tensor, options: api.ConvTransposeOptions): Tensor;
}

/** The options that the operation takes, without those that make parameters. */
function operationOptions(options: api.ConvTransposeOptions): api.ConvTransposeOptions {
  const { stride, padding, dilation, groups, outputPadding } = options;
  const given = Object.entries({ stride, padding, dilation, groups, outputPadding });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function convolution<B extends boolean>(
  kind: Kind,
  channels: { readonly inChannels: number; readonly outChannels: number },
  kernel: PerAxis,
  options: ConvTransposeLayerOptions<B>,
): Layer<Weights<B>> {
  const { name, axes, transposed } = kind;
  const kinds = transposed ? TRANSPOSE_OPTIONS : (OPTIONS as typeof TRANSPOSE_OPTIONS);
  requireOptions<ConvTransposeLayerOptions<boolean>>(name, options, kinds);
  const { inChannels, outChannels } = channels;
  const { groups = 1, bias = true, dtype = "f32" } = options;
  requireCounts(name, { inChannels, outChannels, groups });
  if (inChannels % groups !== 0 || outChannels % groups !== 0) {
    const message = `${name}: ${inChannels} and ${outChannels} channels in ${groups} groups`;
    fail("InvalidArgument", message, "the groups must divide both numbers of channels");
  }
  const window = perAxis({ name, axes }, "kernel", kernel, 1);
  requireCounts(name, Object.fromEntries(window.map((extent, axis) => [`kernel extent ${axis}`, extent])));
  const [first, second] = transposed ? [inChannels, outChannels] : [outChannels, inChannels];
  const shape = [first, second / groups, ...window];
  // both layouts as PyTorch counts them: what one output of the plain convolution sums over
  const fans = { fanIn: (second / groups) * elementsOf(window), fanOut: first * elementsOf(window) };
  const weight = options.weight ?? fanInUniform(fans);
  const offset = options.offset ?? fanInUniform(fans);
  const attrs = operationOptions(options);
  return {
    init: (key) => {
      const w = weight(partKey(key, 0), shape, dtype);
      return (bias ? { w, b: offset(partKey(key, 1), [outChannels], dtype) } : { w }) as Weights<B>;
    },
    apply: (params, x) => {
      requireExtent(name, x, 1, ["channels", inChannels]);
      const { w, b } = params as { readonly w: Tensor; readonly b?: Tensor };
      const y = kind.apply(x, w, attrs);
      return b ? add(y, reshape(b, [-1, ...window.map(() => 1)])) : y;
    },
  };
}

const CONV1D: Kind = { name: "conv1d", axes: 1, transposed: false, apply: api.conv1d };
const CONV2D: Kind = { name: "conv2d", axes: 2, transposed: false, apply: api.conv2d };
const TRANSPOSE1D: Kind = { name: "convTranspose1d", axes: 1, transposed: true, apply: api.convTranspose1d };
const TRANSPOSE2D: Kind = { name: "convTranspose2d", axes: 2, transposed: true, apply: api.convTranspose2d };

/**
 * Convolution of [batch, channels, length]; w is [out, in / groups, kernel].
 *
 * @example
 * import { ones } from "tidemark";
 * import { conv1d } from "tidemark/nn";
 *
 * const layer = conv1d(3, 8, 3, { padding: "same" });
 * console.log(layer.apply(layer.init(0), ones([2, 3, 16])).shape); // → [2, 8, 16]
 */
export function conv1d<B extends boolean = true>(
  inChannels: number,
  outChannels: number,
  kernel: number,
  options: ConvLayerOptions<B> = {},
): Layer<Weights<B>> {
  return convolution(CONV1D, { inChannels, outChannels }, kernel, options);
}

/**
 * Convolution of [batch, channels, height, width]; w is [out, in / groups, kernel height, kernel width].
 *
 * @example
 * import { ones } from "tidemark";
 * import { conv2d } from "tidemark/nn";
 *
 * const layer = conv2d(3, 8, 3, { stride: 2, padding: "same" });
 * console.log(layer.apply(layer.init(0), ones([1, 3, 6, 6])).shape); // [1, 8, 3, 3]
 */
export function conv2d<B extends boolean = true>(
  inChannels: number,
  outChannels: number,
  kernel: PerAxis,
  options: ConvLayerOptions<B> = {},
): Layer<Weights<B>> {
  return convolution(CONV2D, { inChannels, outChannels }, kernel, options);
}

/**
 * Transposed convolution of [batch, channels, length]; w is [in, out / groups, kernel].
 *
 * @example
 * import { ones } from "tidemark";
 * import { convTranspose1d } from "tidemark/nn";
 *
 * const layer = convTranspose1d(8, 3, 2, { stride: 2 });
 * console.log(layer.apply(layer.init(0), ones([2, 8, 16])).shape); // → [2, 3, 32]
 */
export function convTranspose1d<B extends boolean = true>(
  inChannels: number,
  outChannels: number,
  kernel: number,
  options: ConvTransposeLayerOptions<B> = {},
): Layer<Weights<B>> {
  return convolution(TRANSPOSE1D, { inChannels, outChannels }, kernel, options);
}

/**
 * Transposed convolution of [batch, channels, height, width]; w is [in, out / groups, kernel height, kernel width].
 *
 * @example
 * import { ones } from "tidemark";
 * import { convTranspose2d } from "tidemark/nn";
 *
 * const layer = convTranspose2d(8, 3, 2, { stride: 2 });
 * console.log(layer.apply(layer.init(0), ones([2, 8, 4, 4])).shape); // → [2, 3, 8, 8]
 */
export function convTranspose2d<B extends boolean = true>(
  inChannels: number,
  outChannels: number,
  kernel: PerAxis,
  options: ConvTransposeLayerOptions<B> = {},
): Layer<Weights<B>> {
  return convolution(TRANSPOSE2D, { inChannels, outChannels }, kernel, options);
}
