/**
 * @file Adam whose moments take a byte each (T. Dettmers and others, 8-bit optimizers via block-wise quantization, ICLR 2022). Of 2048
 * neighbouring elements the largest absolute value is kept, and of each element one of 256 numbers in [-1, 1], or in [0, 1] for
 * squares, that it is times that value (kernel/dynamic-code.ts). An update reads both, computes in full, updates the parameter, and
 * rounds the new moments to the nearest codes:
 *
 *   m codes ─ × largest ─→ m ← β₁·m + (1-β₁)·g ─→ p ← p - …
 *                               └─ largest of each block ─→ codes
 *
 * Four codes are in a word (ops/codes.ts). Small parameters keep their moments in full, as the publication does.
 */
import { applyOp } from "../api/apply.ts";
import { abs, add, cast, div, equal, mul, sqrt, square, sub, where } from "../api/elementwise.ts";
import { max } from "../api/reduce.ts";
import { expandDims, pad, reshape, slice } from "../api/shape.ts";
import { elementsOf, type Shape, type TensorType, tensorType } from "../ir/type.ts";
import { dynamicCode, dynamicValue, packCodes, unpackCodes, wordsType } from "../ops/codes.ts";
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type AdamScalars, adamScalars, MOMENT_OPTIONS, type MomentOptions, momentSettings } from "./adam.ts";
import { type Leaf, type Optimizer, optimizer, penalized, type Rule } from "./optimizer.ts";

/** Options of {@link adam8bit} and {@link adamw8bit}. */
export interface Adam8bitOptions extends MomentOptions {
  /** Parameters of fewer elements keep their moments in full; 4096 by default. */
  readonly leastElements?: number;
  /** Which parameters keep their moments in full, by path: embeddings, for example; none by default. */
  readonly exact?: (path: string) => boolean;
}

const OPTIONS: OptionKinds<Adam8bitOptions> = {
  ...MOMENT_OPTIONS,
  leastElements: "a number",
  exact: "a function",
};

/** Elements that are scaled together. */
const BLOCK = 2048;
const BITS = 8;

const blocksOf = (shape: Shape): number => Math.ceil(elementsOf(shape) / BLOCK);

/** Elements in blocks, the last one filled up with zeros. */
function inBlocks(x: Tensor): Tensor {
  const blocks = blocksOf(x.shape);
  const flat = reshape(x, [x.elements]);
  const missing = blocks * BLOCK - x.elements;
  return reshape(missing === 0 ? flat : pad(flat, [[0, missing]]), [blocks, BLOCK]);
}

/** The reverse: the tensor that was cut into blocks. */
function fromBlocks(blocks: Tensor, shape: Shape): Tensor {
  const flat = reshape(blocks, [blocks.elements]);
  const elements = elementsOf(shape);
  return reshape(elements === blocks.elements ? flat : slice(flat, [[0, elements]]), shape);
}

/** A moment as it is kept: words of codes, and the largest absolute value of each block. */
interface Coded {
  readonly codes: Tensor;
  readonly scale: Tensor;
}

function decoded({ codes, scale }: Coded, param: Tensor, signed: boolean): Tensor {
  const shape = [blocksOf(param.shape), BLOCK];
  const parts = applyOp(dynamicValue, [applyOp(unpackCodes, [codes], { bits: BITS, shape })], { signed });
  return fromBlocks(mul(cast(parts, param.dtype), expandDims(scale, -1)), param.shape);
}

function coded(moment: Tensor, signed: boolean): Coded {
  const blocks = inBlocks(moment);
  const scale = max(signed ? abs(blocks) : blocks, -1);
  const parts = div(blocks, expandDims(where(equal(scale, 0), 1, scale), -1));
  return { codes: applyOp(packCodes, [applyOp(dynamicCode, [parts], { signed })], { bits: BITS }), scale };
}

function rule8bit(name: string, options: Adam8bitOptions, decoupled: boolean): Rule<AdamScalars> {
  requireOptions(name, options, OPTIONS);
  const settings = momentSettings(name, options);
  const { beta1, beta2, eps, weightDecay } = settings;
  const { leastElements = 4096, exact } = options;
  const isExact = (shape: Shape, path: string): boolean => elementsOf(shape) < leastElements || exact?.(path) === true;
  const slotType = (slot: string, param: TensorType, path: string): TensorType => {
    const isScale = slot.endsWith("Scale");
    if (isExact(param.shape, path)) return isScale ? tensorType(param.dtype, [0]) : param;
    if (isScale) return tensorType(param.dtype, [blocksOf(param.shape)]);
    return wordsType(blocksOf(param.shape) * BLOCK, BITS);
  };
  const update = (leaf: Leaf, { stepSize, inverse, shrink }: AdamScalars) => {
    const { param, path, slots } = leaf;
    const whole = isExact(param.shape, path);
    const past = (slot: "m" | "v"): Tensor => {
      const codes = slots[slot] as Tensor;
      return whole ? codes : decoded({ codes, scale: slots[`${slot}Scale`] as Tensor }, param, slot === "m");
    };
    const g = decoupled ? leaf.grad : penalized(leaf, options);
    const m = add(mul(past("m"), beta1), mul(g, 1 - beta1));
    const v = add(mul(past("v"), beta2), mul(square(g), 1 - beta2));
    const denominator = add(mul(sqrt(v), inverse), eps);
    const shrinks = decoupled && weightDecay > 0 && options.decays?.(path) !== false;
    const next = sub(shrinks ? mul(param, shrink) : param, mul(div(m, denominator), stepSize));
    if (whole) return { param: next, slots: { ...slots, m, v } };
    const [first, second] = [coded(m, true), coded(v, false)];
    return {
      param: next,
      slots: { m: first.codes, mScale: first.scale, v: second.codes, vScale: second.scale },
    };
  };
  return {
    name,
    slots: { m: 0, mScale: 0, v: 0, vScale: 0 },
    slotType,
    scalars: (rate, t) => adamScalars(settings, rate, t),
    update,
  };
}

/**
 * Adam with moments of 8 bits: 2 bytes of state for each element of a parameter, and 8 for every 2048. The rate is 0.001 by default.
 *
 * @example
 * import { grad, random } from "tidemark";
 * import { adam8bit } from "tidemark/optim";
 *
 * const optimizer = adam8bit({ lr: 0.1 });
 * let state = optimizer.init({ w: random.normal(random.key(1), [64, 64]) });
 * const slope = grad((p: typeof state.params) => p.w.square().mean());
 * for (let i = 0; i < 3; i++) state = optimizer.update(state, slope(state.params));
 * console.log(state.slots.m?.w.shape, state.slots.mScale?.w.shape); // [64, 16] [2]
 */
export function adam8bit(options: Adam8bitOptions = {}): Optimizer {
  return optimizer(rule8bit("adam8bit", options, false), options.lr ?? 0.001, options);
}

/**
 * The same with weight decay apart from the gradient, as `adamw`; 0.01 by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { adamw8bit } from "tidemark/optim";
 *
 * const optimizer = adamw8bit({ lr: 0.1 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.899, -1.898]
 */
export function adamw8bit(options: Adam8bitOptions = {}): Optimizer {
  requireOptions("adamw8bit", options, OPTIONS);
  const weightDecay = options.weightDecay ?? 0.01;
  return optimizer(rule8bit("adamw8bit", { ...options, weightDecay }, true), options.lr ?? 0.001, options);
}
