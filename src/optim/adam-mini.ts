/**
 * @file Adam-mini (Y. Zhang and others, ICLR 2025): one average of squared gradients for a block of a parameter in place of one for each
 * element. Blocks are those of neurons: a column of a weight [in, out] is one; a vector is one block.
 *
 *   m ← β₁·m + (1-β₁)·g      v ← β₂·v + (1-β₂)·mean over the block of g²
 *   p ← p·(1 - lr·λ) - lr/(1-β₁ᵗ) · m / (√v/√(1-β₂ᵗ) + ε)
 */
import { add, div, mul, sqrt, square, sub } from "../api/elementwise.ts";
import { mean } from "../api/reduce.ts";
import { broadcastTo, reshape } from "../api/shape.ts";
import { type Shape, shapeText, type TensorType, tensorType } from "../ir/type.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type AdamScalars, adamScalars, MOMENT_OPTIONS, type MomentOptions, momentSettings } from "./adam.ts";
import { type Leaf, type Optimizer, optimizer } from "./optimizer.ts";

/** Options of {@link adamMini}. */
export interface AdamMiniOptions extends MomentOptions {
  /**
   * How many blocks a parameter has along each axis, by path and shape. By default one for each index of the last axis (output
   * neurons), and a single one for vectors: `[1, heads]` for queries and keys, `[tokens, 1]` for embeddings.
   */
  readonly blocks?: (path: string, shape: Shape) => Shape;
}

const OPTIONS: OptionKinds<AdamMiniOptions> = { ...MOMENT_OPTIONS, blocks: "a function" };

const byNeuron = (_: string, shape: Shape): Shape =>
  shape.map((extent, axis) => (shape.length > 1 && axis === shape.length - 1 ? extent : 1));

function requireBlocks(path: string, shape: Shape, blocks: Shape): Shape {
  const fits =
    Array.isArray(blocks) &&
    blocks.length === shape.length &&
    blocks.every((n, axis) => Number.isInteger(n) && n >= 1 && (shape[axis] ?? 0) % n === 0);
  if (fits) return blocks;
  const got = Array.isArray(blocks) ? shapeText(blocks) : String(blocks);
  const help = "give for each axis a number that divides its extent: [1, heads]";
  return fail("InvalidArgument", `adamMini: blocks ${got} of ${path}, whose shape is ${shapeText(shape)}`, help);
}

/** Each axis as two: the block, and the place in it. */
const apart = (shape: Shape, blocks: Shape): Shape =>
  shape.flatMap((extent, axis) => [blocks[axis] ?? 1, extent / (blocks[axis] ?? 1)]);

const meanOfBlocks = (x: Tensor, blocks: Shape): Tensor =>
  x.rank === 0
    ? x
    : mean(
        reshape(x, apart(x.shape, blocks)),
        blocks.map((_, axis) => 2 * axis + 1),
      );

function spread(v: Tensor, shape: Shape): Tensor {
  const wide = apart(shape, v.shape);
  const narrow = wide.map((extent, axis) => (axis % 2 === 0 ? extent : 1));
  return reshape(broadcastTo(reshape(v, narrow), wide), shape);
}

/**
 * Adam with one average of squares for a block: about 4 bytes of state for each element of a parameter where Adam has 8. Weight decay
 * is apart from the gradient, 0 by default. The rate is 0.001 by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { adamMini } from "tidemark/optim";
 *
 * const optimizer = adamMini({ lr: 0.1 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.936754, -1.87351]
 */
export function adamMini(options: AdamMiniOptions = {}): Optimizer {
  requireOptions("adamMini", options, OPTIONS);
  const settings = momentSettings("adamMini", options);
  const { beta1, beta2, eps, weightDecay } = settings;
  const blocksOf = (path: string, shape: Shape): Shape =>
    requireBlocks(path, shape, (options.blocks ?? byNeuron)(path, shape));
  const update = ({ path, param, grad, slots }: Leaf, { stepSize, inverse, shrink }: AdamScalars) => {
    const m = add(mul(slots.m as Tensor, beta1), mul(grad, 1 - beta1));
    const squares = meanOfBlocks(square(grad), blocksOf(path, param.shape));
    const v = add(mul(slots.v as Tensor, beta2), mul(squares, 1 - beta2));
    const denominator = spread(add(mul(sqrt(v), inverse), eps), param.shape);
    const decayed = weightDecay > 0 && options.decays?.(path) !== false ? mul(param, shrink) : param;
    return { param: sub(decayed, mul(div(m, denominator), stepSize)), slots: { m, v } };
  };
  const slotType = (slot: string, param: TensorType, path: string): TensorType =>
    slot === "v" ? tensorType(param.dtype, blocksOf(path, param.shape)) : param;
  const rule = {
    name: "adamMini",
    slots: { m: 0, v: 0 },
    slotType,
    scalars: (rate: Tensor | number, t: Tensor) => adamScalars(settings, rate, t),
    update,
  };
  return optimizer(rule, options.lr ?? 0.001, options);
}
