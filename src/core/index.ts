/**
 * @file `tidemark/core`: the functions of `tidemark` without methods on tensors, for programs that are bundled. A method brings
 * every operation along; of functions a bundler keeps those that are used. Plans within budgets are in `tidemark/core/budget`, and
 * `compileAsync` loads them when it is called. Why: docs/decisions/0035-core-entry.md.
 */
export * from "../api/activations.ts";
export * from "../api/aliases.ts";
export * from "../api/arithmetic.ts";
export * from "../api/arrange.ts";
export * from "../api/attention.ts";
export type {
  BlobLike,
  ByteSink,
  ByteSource,
  ByteStream,
  ByteWriter,
  FileToRead,
  FileToWrite,
  ResponseLike,
  WritableLike,
} from "../api/byte-streams.ts";
export { type Compiled, compile, type ProgramInfo } from "../api/compile.ts";
export type { CompileAsyncOptions } from "../api/compile-async.ts";
export type { CompileProgress, CompileStage } from "../api/compile-progress.ts";
export {
  cond,
  type ForOptions,
  forLoop,
  type ScanOptions,
  scan,
  switchCase,
  type WhileOptions,
  whileLoop,
} from "../api/control.ts";
export * from "../api/conv.ts";
export * from "../api/coupling.ts";
export * from "../api/create.ts";
export * from "../api/ctc.ts";
export * from "../api/cumulative.ts";
export { type CustomJvpRule, type CustomVjpRule, checkpoint, customJvp, customVjp } from "../api/custom.ts";
export * from "../api/distance-loss.ts";
export * from "../api/einsum.ts";
export * from "../api/elementwise.ts";
export type { AbortSignalLike } from "../api/event-loop.ts";
export { type ArgNums, type AuxOptions, type GradOf, type GradOptions, grad, valueAndGrad } from "../api/grad.ts";
export * from "../api/image.ts";
export {
  diagonal,
  dynamicSlice,
  dynamicUpdate,
  gather,
  oneHot,
  type Starts,
  scatterAdd,
  scatterAddAlong,
  take,
} from "../api/indexing.ts";
export * from "../api/jacobian.ts";
export * from "../api/join.ts";
export type { Usage } from "../api/kept-programs.ts";
export * from "../api/linear.ts";
export * from "../api/linear-loss.ts";
export { logsumexp } from "../api/log-sum.ts";
export * from "../api/loss.ts";
export { fromMessage, type TreeMessage, toMessage } from "../api/message.ts";
export * from "../api/modes.ts";
export type { Place } from "../api/mutation.ts";
export * from "../api/normalize.ts";
export type { Axes, TensorLike } from "../api/operands.ts";
export type { PlanInfo } from "../api/plan-info.ts";
export * from "../api/pool.ts";
export { type DrawOptions, dropout, random, type Tensors } from "../api/random.ts";
export { type FileInfo, fileInfo } from "../api/read-tensors.ts";
export * from "../api/reduce.ts";
export type { CompileOptions, PlanningOptions, PlanProgress } from "../api/request.ts";
export * from "../api/reversible.ts";
export { type LoadOptions as LoadFileOptions, load, loadFrom, type SaveOptions, save, saveTo } from "../api/save.ts";
export {
  maskedFill,
  scatterMax,
  scatterMaxAlong,
  scatterMin,
  scatterMinAlong,
  scatterMul,
  scatterMulAlong,
  scatterSet,
  scatterSetAlong,
  segmentMax,
  segmentMean,
  segmentMin,
  segmentSum,
} from "../api/scatter.ts";
export { scope } from "../api/scope.ts";
export * from "../api/search.ts";
export * from "../api/shape.ts";
export {
  argsort,
  median,
  type QuantileOptions,
  quantile,
  type SortOptions,
  sort,
  type TopK,
  type TopKOptions,
  topK,
} from "../api/sort.ts";
export * from "../api/special.ts";
export { specsOf } from "../api/specs-of.ts";
export { type TrainLoopOptions, type TrainLoopResult, trainLoop } from "../api/train-loop.ts";
export type { TreeStructure, WithLeaves } from "../api/tree.ts";
export * as tree from "../api/tree.ts";
export { type WebgpuTargetOptions, webgpu } from "../api/webgpu.ts";
export type { Padding, PerAxis } from "../api/window.ts";
export { type ErrorCode, TidemarkError } from "../base/errors.ts";
export type { Shape, TensorType } from "../ir/type.ts";
export type { DType } from "../kernel/dtype.ts";
export type { DeviceMemory, LoadOptions, Machine, Target } from "../runtime/device.ts";
export type { TargetDescription } from "../target/description.ts";
export { type TensorOptions, tensor } from "../trace/literal.ts";
export type { TensorStorage, TypedArray } from "../trace/storage.ts";
export { type NestedArray, Tensor } from "../trace/tensor.ts";
export type { Tree } from "../trace/tree.ts";
export { compileAsync } from "./compile-async.ts";
