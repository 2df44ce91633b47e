/**
 * @file Which types `autocast` gives an operation, decided when it is recorded. Types of the narrow float come from products and
 * go as far as operations on elements follow them:
 *
 *   x f32 ─ norm ─ f32 ─┐ cast                          ┌ + b, cast ─ bf16 ─ gelu ─ bf16 ─ …
 *                       ├─ bf16 ─ matmul ─ bf16 ────────┤
 *   w f32 ──────────────┘ cast                          └ + x, same size ─ f32
 *
 * Where floats of both types meet, the smaller tensor takes the type of the larger (a bias that of what it is added to); of equal sizes
 * both become f32, or the narrow type if the stream of residuals is to have it.
 */
import type { AnyOp } from "../ir/op.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import { type DType, type FloatType, isComputed, isFloat } from "../kernel/dtype.ts";

/** The floats that are computed in f32. */
export type HalfType = "bf16" | "f16";

export const isHalf = (dtype: DType): dtype is HalfType => isFloat(dtype) && !isComputed(dtype);

/** What halves are computed in. */
export const FULL: FloatType = "f32";

export interface AutocastMode {
  /** Of operands and results of products. */
  readonly products: HalfType;
  /** Of the sum of an f32 tensor and a half of the same size: the residual stream. */
  readonly stream: FloatType;
}

/** Of the functions that are running, the innermost last. */
const modes: AutocastMode[] = [];

export const autocastMode = (): AutocastMode | null => modes.at(-1) ?? null;

/** Runs `body` in a mode. */
export function inMode<T>(wanted: AutocastMode, body: () => T): T {
  modes.push(wanted);
  try {
    return body();
  } finally {
    modes.pop();
  }
}

/** Takes part in automatic casts: f64 does not. */
const isCast = ({ dtype }: Pick<TensorType, "dtype">): boolean => isHalf(dtype) || dtype === FULL;

/** The type that f32 and halves which meet should have; null if all have one. */
export function metType(inputs: readonly TensorType[], { stream }: AutocastMode): DType | null {
  const floats = inputs.filter(({ dtype }) => isFloat(dtype));
  const [first] = floats;
  if (!first || floats.every(({ dtype }) => dtype === first.dtype) || !floats.every(isCast)) return null;
  const sizes = floats.map(({ shape }) => elementsOf(shape));
  const most = Math.max(...sizes);
  const largest = new Set(floats.filter((_, i) => sizes[i] === most).map(({ dtype }) => dtype));
  const [only = stream] = largest;
  return largest.size === 1 ? only : stream;
}

/** Operations on elements or their places, in whatever type: their lowering says so where they do not. */
const FOLLOW: ReadonlySet<AnyOp["lower"]["kind"]> = new Set(["map", "concat", "update", "sort"]);
/** Loops and calls: what is inside has its types. */
const REGIONS: ReadonlySet<AnyOp["lower"]["kind"]> = new Set(["region", "control"]);

/** The type in which an operation gets its floats; null: as they are. */
export function typeFor(op: AnyOp, inputs: readonly TensorType[], current: AutocastMode): DType | null {
  const { kind } = op.lower;
  if (REGIONS.has(kind) || !inputs.some(isCast)) return null;
  const rule = op.facts?.autocast ?? (FOLLOW.has(kind) ? "follow" : "f32");
  if (rule === "follow") return metType(inputs, current);
  return rule === "product" ? current.products : FULL;
}

/** Whether an input of an operation is converted to that type. */
export const isConverted = (input: Pick<TensorType, "dtype">, type: DType): boolean =>
  isCast(input) && input.dtype !== type;

/** Whether a tensor is converted to the type that its place has: a loop's state, what a branch returns, a cotangent. */
export const isPlaced = (tensor: Pick<TensorType, "dtype">, type: DType): boolean =>
  autocastMode() !== null && isCast({ dtype: type }) && isConverted(tensor, type);
