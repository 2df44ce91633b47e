/**
 * @file Weakly typed tensors: constants that are made from plain numbers without an element type. They are f32, and beside a tensor
 * of another float type they are made once more in that type, from the numbers as they were given:
 *
 *   x: f64      x.add(tensor([0.1, 0.2]))     0.1 and 0.2 with all their digits
 *
 * Weak is the constant alone: whatever is computed from it has the type f32, and so has a constant that was changed in place.
 */
import type { Value } from "../ir/graph.ts";
import { type DType, type FloatType, isFloat } from "../kernel/dtype.ts";
import type { Tensor } from "./tensor.ts";
import { converted, requireActive } from "./trace.ts";

interface Recipe {
  /** What it stood for at first, where it is traced. */
  readonly made: Value | null;
  readonly as: (dtype: FloatType) => Tensor;
}

const recipes = new WeakMap<Tensor, Recipe>();

const currentOf = (tensor: Tensor): Value | null => tensor.traced?.trace.lift(tensor) ?? null;

/** Marks a constant as weakly typed; `as` makes it in another type. */
export function weaklyTyped(tensor: Tensor, as: Recipe["as"]): Tensor {
  recipes.set(tensor, { made: currentOf(tensor), as });
  return tensor;
}

function recipeOf(tensor: Tensor): Recipe | undefined {
  const recipe = recipes.get(tensor);
  if (!recipe || tensor.storage?.isConsumed) return undefined;
  requireActive(tensor);
  return currentOf(tensor) === recipe.made ? recipe : undefined;
}

/** Tensors that meet: weakly typed ones take the float type of the others, where these agree. */
export function agreed(tensors: readonly Tensor[]): readonly Tensor[] {
  const [first] = tensors;
  if (tensors.every(({ dtype }) => dtype === first?.dtype)) return tensors;
  const floats = tensors.filter(({ dtype }) => isFloat(dtype));
  if (floats.every(({ dtype }) => dtype === floats[0]?.dtype)) return tensors;
  const strong = new Set<DType>(floats.filter((x) => !recipeOf(x)).map(({ dtype }) => dtype));
  const [dtype] = strong;
  if (dtype === undefined || strong.size > 1 || !isFloat(dtype)) return tensors;
  return tensors.map((x) => (isFloat(x.dtype) && x.dtype !== dtype ? madeAs(x, dtype) : x));
}

function madeAs(x: Tensor, dtype: FloatType): Tensor {
  const recipe = recipeOf(x);
  return recipe ? converted(x, dtype, () => recipe.as(dtype)) : x;
}
