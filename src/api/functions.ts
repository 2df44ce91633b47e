/**
 * @file What `tidemark` and `tidemark/core` both export: operations, derivatives, compilation, files. A function that is added here is
 * in both; the two differ in the methods of tensors, in how `compileAsync` gets the planner of budgets, and in what needs it at once.
 */
export { type ErrorCode, TidemarkError } from "../base/errors.ts";
export type { Shape, TensorType } from "../ir/type.ts";
export type { DType } from "../kernel/dtype.ts";
export type { DeviceMemory, LoadOptions, Machine, Target } from "../runtime/device.ts";
export type { TargetDescription } from "../target/description.ts";
export { type TensorOptions, tensor } from "../trace/literal.ts";
export type { TensorStorage, TypedArray } from "../trace/storage.ts";
export type { NestedArray } from "../trace/tensor.ts";
export type { Tree } from "../trace/tree.ts";
export * from "./activations.ts";
export * from "./aliases.ts";
export * from "./arithmetic.ts";
export * from "./arrange.ts";
export { type AssociativeScanOptions, associativeScan } from "./associative.ts";
export * from "./attention.ts";
export { type AutocastOptions, autocast } from "./autocast.ts";
export type { BatchAxes, BatchAxis } from "./batch-axes.ts";
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
} from "./byte-streams.ts";
export type { ChoiceOptions } from "./choices.ts";
export { type Compiled, compile, type ProgramInfo } from "./compile.ts";
export type { CompileAsyncOptions } from "./compile-async.ts";
export type { CompileProgress, CompileStage } from "./compile-progress.ts";
export {
  cond,
  type ForOptions,
  forLoop,
  type ScanOptions,
  scan,
  switchCase,
  type WhileOptions,
  whileLoop,
} from "./control.ts";
export * from "./conv.ts";
export * from "./coupling.ts";
export * from "./create.ts";
export * from "./ctc.ts";
export * from "./cumulative.ts";
export { type CustomJvpRule, type CustomVjpRule, checkpoint, customJvp, customVjp } from "./custom.ts";
export * from "./distance-loss.ts";
export type { DrawOptions } from "./draws.ts";
export { dropout } from "./dropout.ts";
export * from "./einsum.ts";
export * from "./elementwise.ts";
export type { AbortSignalLike } from "./event-loop.ts";
export { type Complex, complexMul, type FftNorm, type FftOptions, fft, ifft, irfft, rfft } from "./fft.ts";
export * from "./fft-axes.ts";
export { type FileBytes, loadBytes, type SaveBytesOptions, saveBytes } from "./file-bytes.ts";
export { type ArgNums, type AuxOptions, type GradOf, type GradOptions, grad, valueAndGrad } from "./grad.ts";
export { type GroupedMatmulOptions, groupedMatmul } from "./grouped.ts";
export * from "./image.ts";
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
} from "./indexing.ts";
export * from "./jacobian.ts";
export * from "./join.ts";
export type { Stats, Usage } from "./kept-programs.ts";
export type { Tensors } from "./keys.ts";
export type {
  CholeskyOptions,
  Eigh,
  PinvOptions,
  Qr,
  Slogdet,
  SolveTriangularOptions,
  Svd,
} from "./linalg.ts";
/** Linear algebra: decompositions and what follows from them, of matrices along the last two axes. */
export * as linalg from "./linalg.ts";
export * from "./linear.ts";
export * from "./linear-loss.ts";
export { linearize } from "./linearize.ts";
export { logsumexp } from "./log-sum.ts";
export * from "./loss.ts";
export * from "./math.ts";
export { fromMessage, type TreeMessage, toMessage } from "./message.ts";
export { hvp, jvp, vjp } from "./modes.ts";
export type { Place } from "./mutation.ts";
export * from "./normalize.ts";
export { loadNpy, loadNpz, saveNpy, saveNpz } from "./numpy-files.ts";
export type { Axes, TensorLike } from "./operands.ts";
export type { PlanInfo } from "./plan-info.ts";
export * from "./pool.ts";
export { random } from "./random.ts";
export { type FileInfo, fileInfo } from "./read-tensors.ts";
export * from "./reduce.ts";
export type { ShapedOptions, TruncatedOptions } from "./rejection.ts";
export type { CompileOptions, PaddedOptions, PlanEffort, PlanningOptions, PlanProgress } from "./request.ts";
export * from "./reversible.ts";
export { type LoadOptions as LoadFileOptions, load, loadFrom, type SaveOptions, save, saveTo } from "./save.ts";
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
} from "./scatter.ts";
export { scope } from "./scope.ts";
export * from "./search.ts";
export * from "./shape.ts";
export type { AxisNames, Extents, Lengths, NamedAxes, NamedShapes } from "./shape-axes.ts";
export type { ShapeFamilyInfo, ShapeMember } from "./shape-family.ts";
export { loadShards, type OpenShard } from "./shards.ts";
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
} from "./sort.ts";
export * from "./special.ts";
export { specsOf } from "./specs-of.ts";
export { type TrainLoopOptions, type TrainLoopResult, trainLoop } from "./train-loop.ts";
export type { TreeStructure, WithLeaves } from "./tree.ts";
/** Trees of tensors: objects and lists whose leaves are tensors. */
export * as tree from "./tree.ts";
export { type VmapOptions, vmap } from "./vmap.ts";
export { type WebgpuTargetOptions, webgpu } from "./webgpu.ts";
export type { Padding, PerAxis } from "./window.ts";
