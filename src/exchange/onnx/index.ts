/**
 * @file `tidemark/onnx`: models in ONNX files, as functions with their parameters as a tree, and functions as models.
 *
 * ```ts
 * const model = readOnnx(bytes);
 * const step = compile((params, x) => model.apply(params, [x]));
 * ```
 */

export type { ApplyModelOptions, Extent, ImportedModel, ModelInput, ModelInputs } from "../shared/model.ts";
export { exportOnnx } from "./export.ts";
export { type OnnxOptions, readOnnx } from "./read.ts";
