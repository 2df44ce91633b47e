/** @file `tidemark/parallel`: programs that run on several devices, each of which has its own plan. */
export { type ChooseFormOptions, type ChosenForm, chooseForm, type FormFigures, type ParallelForm } from "./choose.ts";
export {
  type AllGatherOptions,
  type AllReduceOptions,
  type AllToAllOptions,
  allGather,
  allReduce,
  allToAll,
  type BroadcastOptions,
  broadcast,
  deviceIndex,
  type OverOptions,
  type PermuteOptions,
  permute,
  type ReduceScatterOptions,
  reduceScatter,
  vary,
} from "./collectives.ts";
export {
  type DataParallel,
  type DataParallelOptions,
  dataParallel,
  type LossWithGradients,
  type ParallelState,
} from "./data-parallel.ts";
export { type ParallelExperts, type ParallelExpertsOptions, parallelExperts } from "./experts.ts";
export {
  type AutoFormOptions,
  autoForm,
  type FormSettings,
  type FormsOptions,
  type MeshForm,
  type MeshModel,
  type ModelOnMesh,
  parallelForms,
} from "./forms.ts";
export { type Mesh, type MeshAxes, mesh, type Over, type Spec } from "./mesh.ts";
export { type Device, onDevice } from "./on-device.ts";
export { type PipelineModel, type PipelineOptions, type PipelineParams, pipeline } from "./pipeline/pipeline.ts";
export {
  type PipelineAction,
  type PipelineSchedule,
  type PipelineScheduleName,
  type PipelineShape,
  pipelineSchedule,
} from "./pipeline/schedule.ts";
export { type DeviceModule, type RunDevicesOptions, runDevices } from "./run-devices.ts";
export { type ShardOptions, shard } from "./shard.ts";
export type { StateLayout, StateTensor } from "./state-layout.ts";
export {
  columnLinear,
  type HeadsParams,
  type LinearParams,
  type MlpParams,
  type ParallelAttentionOptions,
  type PartOptions,
  parallelAttention,
  parallelCrossEntropy,
  parallelEmbedding,
  parallelMlp,
  part,
  rowLinear,
  type TensorParallelOptions,
} from "./tensor.ts";
