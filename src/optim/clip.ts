/** @file Functions from gradients to gradients, applied before an optimizer uses them. */
import { add, cast, clamp, div, minimum, mul, sqrt, square } from "../api/elementwise.ts";
import { inTypeOf, wide } from "../api/full-precision.ts";
import { sum } from "../api/reduce.ts";
import { widestFloat } from "../kernel/dtype.ts";
import { describe, fail, requireFunction } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { numberOf, type Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";

/** Gradients to gradients of the same structure. */
export type GradientTransform = <P extends Tree>(grads: P) => P;

function requirePositive(name: string, limit: number): void {
  if (numberOf(limit) || (typeof limit === "number" && limit > 0)) return;
  fail("InvalidArgument", `${name}: limit ${describe(limit)}`, "give a number above 0");
}

/**
 * The Euclidean norm of all gradients taken together.
 *
 * @memory One number for each gradient.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { globalNorm } from "tidemark/optim";
 *
 * console.log(globalNorm({ w: tensor([3]), b: tensor([4]) }).item()); // → 5
 */
export function globalNorm(grads: Tree): Tensor {
  const leaves = flatten(grads, "grads").leaves.map(wide);
  const dtype = widestFloat(leaves.map((leaf) => leaf.dtype));
  const squares = leaves.map((leaf) => cast(sum(square(leaf)), dtype));
  return squares.length === 0 ? tensor(0) : sqrt(squares.reduce((total, part) => add(total, part)));
}

/**
 * Scales all gradients down together if their common norm exceeds a limit: g · min(1, limit / (‖g‖ + 10⁻⁶)). All
 * gradients are live until the last one is computed, so a plan needs memory for all of them.
 *
 * @memory All gradients are live until the last one is computed.
 *
 * @example import { tensor } from "tidemark"; import { clipByGlobalNorm } from "tidemark/optim";
 *
 * const grads = clipByGlobalNorm(1)({ w: tensor([3, 4]) }); console.log(grads.w.norm().item().toFixed(3)); // "1.000"
 */
export function clipByGlobalNorm(limit: number): GradientTransform {
  requirePositive("clipByGlobalNorm", limit);
  return <P extends Tree>(grads: P): P => {
    const { leaves, def } = flatten(grads, "grads");
    const scale = minimum(div(limit, add(globalNorm(grads), 1e-6)), 1);
    return unflatten(
      def,
      leaves.map((leaf) => inTypeOf(mul(wide(leaf), cast(scale, wide(leaf).dtype)), leaf)),
    ) as P;
  };
}

/**
 * Clips every element to ±limit.
 *
 * @memory None besides the gradients: each is clipped by itself.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { clipByValue } from "tidemark/optim";
 *
 * console.log(clipByValue(1)({ w: tensor([3, -0.5]) }).w.toArray()); // → [1, -0.5]
 */
export function clipByValue(limit: number): GradientTransform {
  requirePositive("clipByValue", limit);
  return <P extends Tree>(grads: P): P => {
    const { leaves, def } = flatten(grads, "grads");
    return unflatten(
      def,
      leaves.map((leaf) => clamp(leaf, -limit, limit)),
    ) as P;
  };
}

/**
 * Transforms one after the other.
 *
 * @memory That of the transforms.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { chain, clipByGlobalNorm, clipByValue } from "tidemark/optim";
 *
 * const transform = chain(clipByValue(1), clipByGlobalNorm(0.5));
 * console.log(transform({ w: tensor([3, -4]) }).w.toArray()); // → [0.353553, -0.353553]
 */
export function chain(...transforms: readonly GradientTransform[]): GradientTransform {
  for (const transform of transforms) requireFunction("chain", "a transform", transform);
  return (grads) => transforms.reduce((g, transform) => transform(g), grads);
}
