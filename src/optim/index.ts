/** @file `tidemark/optim`: optimizers as pure functions over one state, learning rates over steps, gradient clipping. */

export { type AdafactorOptions, adafactor } from "./adafactor.ts";
export { type AdagradOptions, adagrad } from "./adagrad.ts";
export { type AdamOptions, adam, adamw, type MomentOptions } from "./adam.ts";
export { type AdamMiniOptions, adamMini } from "./adam-mini.ts";
export { type Adam8bitOptions, adam8bit, adamw8bit } from "./adam8bit.ts";
export { accumulate, ema } from "./average.ts";
export { chain, clipByGlobalNorm, clipByValue, type GradientTransform, globalNorm } from "./clip.ts";
export { type GaloreOptions, galore } from "./galore.ts";
export { lamb } from "./lamb.ts";
export { type LbfgsOptions, lbfgs } from "./lbfgs.ts";
export { type LionOptions, lion } from "./lion.ts";
export { dynamicLossScale, type LossScaleOptions, type ScaledOptimizer, type ScaledState } from "./loss-scale.ts";
export type { DecayOptions, LazyOptions, Optimizer, OptimizerOptions, OptimizerState } from "./optimizer.ts";
export { type RmspropOptions, rmsprop } from "./rmsprop.ts";
export {
  constant,
  cosine,
  exponential,
  type LearningRate,
  linear,
  linearWarmup,
  piecewise,
  type Schedule,
  stepDecay,
  type WarmupOptions,
  warmupCosine,
} from "./schedules.ts";
export { type SgdOptions, sgd } from "./sgd.ts";
