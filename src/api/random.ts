/**
 * @file `random`: everything that is drawn from keys. A key is a tensor of two words; each element of what is drawn is a function of the
 * key and of its place, so the same key gives the same bits on every target, in any order, as often as asked.
 */
import { categorical, choice, exponential, gumbel, multinomial, randint, shuffle } from "./choices.ts";
import { bernoulli, normal, permutation, uniform } from "./draws.ts";
import { foldIn, key, keys, split } from "./keys.ts";
import { beta, gamma, poisson, truncatedNormal } from "./rejection.ts";

/**
 * Random numbers from keys. Draws have no derivatives: integers have none, and parameters of `gamma`, `beta`, `categorical` … count as
 * constants. Numbers that are scaled or shifted by tensors are differentiated like any product or sum.
 *
 * @throws InvalidArgument for seeds, shapes, bounds and options that are none; ShapeMismatch for what is no key,
 * and for parameters that do not fit the shape; DtypeMismatch for parameters that are no floats, or of several
 * types
 *
 * @example
 * import { random } from "tidemark";
 *
 * const [a, b] = random.split(random.key(0), 2);
 * const x = random.normal(a, [2, 3]);
 * const order = random.permutation(b, 5);
 * console.log(x.shape, order.sum().item()); // [2, 3] 10
 */
export const random = {
  key,
  keys,
  split,
  foldIn,
  uniform,
  normal,
  bernoulli,
  permutation,
  randint,
  categorical,
  multinomial,
  choice,
  shuffle,
  exponential,
  gumbel,
  truncatedNormal,
  gamma,
  beta,
  poisson,
} as const;
