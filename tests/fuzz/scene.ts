/**
 * @file What one step of a random program sees: a tensor to work on, the other tensors that are there, and randomness of its
 * own, so that a program with some of its steps left out still draws the others as before (minimise.ts).
 */
import { arange, type Tensor } from "../../src/api/index.ts";
import { elementsOf } from "../../src/ir/type.ts";
import type { Random } from "../support/random.ts";

export const FLOATS = ["f32", "f64", "bf16", "f16"] as const;
export type FloatType = (typeof FLOATS)[number];

export interface Scene {
  readonly x: Tensor;
  readonly random: Random;
  readonly dtype: FloatType;
  /** Whether the program is differentiated in forward mode, which rules for reverse mode alone do not have. */
  readonly forwardMode: boolean;
  /** No tensor has more elements. */
  readonly largest: number;
  /** Row numbers, i32[5]; some repeat, and some may be out of range. */
  readonly indices: Tensor;
  /** Another tensor that is there. */
  other(fits: (x: Tensor) => boolean): Tensor | null;
  /** Randomness of the program's. */
  key(): Tensor;
  /** An extent. */
  extent(): number;
}

/** What a step makes; null where it has no meaning for its operand. */
export type Step = (scene: Scene) => Tensor | readonly Tensor[] | null;

/** Keeps values between -1 and 1: programs are long, and infinities would hide mistakes. */
export const tame = (x: Tensor): Tensor => x.sin();

/** Weights of any shape that depend on a tensor which is there, so that they have a derivative. */
export function weights(x: Tensor, shape: readonly number[], dtype: FloatType): Tensor {
  const numbers = arange(elementsOf(shape)).cast(dtype).mul(0.7).sin().reshape(shape);
  const scale = x.elements > 0 ? tame(x).mean().add(0.5) : 0.5;
  return numbers.mul(scale).mul(0.4);
}

/** The axes in random order. */
export function someAxes({ x, random }: Scene): readonly number[] {
  const axes = random.shuffled(x.shape.map((_, axis) => axis));
  return axes.slice(0, 1 + random.int(Math.max(1, axes.length))).sort((a, b) => a - b);
}

/** The sizes of all axes but one. */
export const rowsOf = (x: Tensor): number => x.elements / (x.shape.at(-1) as number);
