/**
 * @file What stays on a device between steps: parameters, gradients and the state of the optimizer, each shared out among devices of
 * the data axis from a stage of ZeRO on (S. Rajbhandari and others, SC 2020).
 */

/** Bytes of each parameter. */
export interface Recipe {
  readonly parameter: number;
  readonly gradient: number;
  /** Moments, and a copy of the parameters in f32 where those are of 16 bits. */
  readonly optimizer: number;
}

export const RECIPES = {
  /** Parameters and gradients of 16 bits; Adam on a copy in f32. */
  mixed: { parameter: 2, gradient: 2, optimizer: 12 },
  /** Everything in f32, with products on copies of 16 bits that are made where they are used. */
  f32: { parameter: 4, gradient: 4, optimizer: 8 },
} as const satisfies Readonly<Record<string, Recipe>>;

export type RecipeName = keyof typeof RECIPES;

/** 0: nothing is shared out. 1: the optimizer's state. 2: gradients too. 3: parameters too. */
export type ZeroStage = 0 | 1 | 2 | 3;

export interface StateBytes {
  readonly parameters: number;
  readonly gradients: number;
  readonly optimizer: number;
}

/** Of `count` parameters whose states are shared out among `shards` devices. */
export function stateBytes(count: number, recipe: Recipe, stage: ZeroStage, shards: number): StateBytes {
  const share = (bytes: number, from: ZeroStage): number => (count * bytes) / (stage >= from ? shards : 1);
  return {
    parameters: share(recipe.parameter, 3),
    gradients: share(recipe.gradient, 2),
    optimizer: share(recipe.optimizer, 1),
  };
}

export const totalOf = ({ parameters, gradients, optimizer }: StateBytes): number => parameters + gradients + optimizer;
