/** @file `tidemark/nn`: layers as pairs of functions over plain trees of parameters. */
export {
  avgPool2d,
  celu,
  channelDropout,
  dropout,
  elu,
  flatten,
  gelu,
  geluExact,
  glu,
  hardShrink,
  hardSigmoid,
  hardSwish,
  hardTanh,
  lambda,
  leakyRelu,
  logSigmoid,
  maxPool2d,
  mish,
  type PreluParams,
  prelu,
  relu,
  relu6,
  selu,
  sigmoid,
  silu,
  softmax,
  softplus,
  softShrink,
  softsign,
  tanh,
  tanhShrink,
} from "./activation.ts";
export { type AttentionParams, type MultiHeadAttentionOptions, multiHeadAttention } from "./attention.ts";
export { type BatchNormLayerOptions, type BatchNormState, batchNorm } from "./batch-norm.ts";
export {
  type ConvLayerOptions,
  type ConvTransposeLayerOptions,
  conv1d,
  conv2d,
  convTranspose1d,
  convTranspose2d,
} from "./conv.ts";
export type { Fans, Initializer, ParamDType } from "./distributions.ts";
export {
  type GenerateOptions,
  type GeneratorOptions,
  generator,
  type LanguageModel,
  type PrepareOptions,
  type TextGenerator,
} from "./generate.ts";
export { initializers } from "./initializers.ts";
export type { Key } from "./key.ts";
export type {
  AnyLayer,
  AnyPlainLayer,
  AnyStatefulLayer,
  ApplyOptions,
  CachedLayer,
  KeyValueCache,
  Layer,
  NoParams,
  ParamsOf,
  StatefulLayer,
  StateOf,
  WeightOptions,
  Weights,
} from "./layer.ts";
export {
  type BagMode,
  type EmbeddingBagOptions,
  type EmbeddingOptions,
  type EmbeddingParams,
  embedding,
  embeddingBag,
  linear,
} from "./linear.ts";
export {
  type AdaptableModel,
  type LoraModel,
  type LoraOptions,
  type LoraParams,
  type LowRank,
  lora,
} from "./lora.ts";
export { type LoraConfig, loraOptions, type Target as LoraTarget } from "./lora-files.ts";
export type { Use as WeightUse } from "./low-rank.ts";
export {
  type Activation,
  type Mixture,
  type MixtureLayer,
  type MixtureOptions,
  type MixtureParams,
  mixtureOfExperts,
} from "./mixture.ts";
export { frozen, module } from "./module.ts";
export {
  type AffineParams,
  groupNorm,
  instanceNorm,
  layerNorm,
  type NormOptions,
  rmsNorm,
  type ScaleParams,
} from "./norm.ts";
export {
  type Cell,
  type CellOptions,
  type GruParams,
  type GruState,
  gruCell,
  type LstmParams,
  type LstmState,
  lstmCell,
  type Scanned,
  scanCell,
  type Unrolled,
  unroll,
} from "./recurrent.ts";
export { type Bidirectional, type BothWays, bidirectional, stackedCell } from "./recurrent-layers.ts";
export { type ReversibleParts, type ReversibleSequenceOptions, reversibleSequence } from "./reversible.ts";
export type { SamplingOptions } from "./sampling.ts";
export { sequential } from "./sequential.ts";
export { type TransformerBlockOptions, type TransformerBlockParams, transformerBlock } from "./transformer.ts";
