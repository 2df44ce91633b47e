/**
 * @file `tidemark/pt2`: programs of `torch.export`, as functions with their parameters as a tree.
 *
 * ```ts
 * const model = readPt2(bytes);
 * const step = compile((params, x) => model.apply(params, [x]));
 * ```
 */
export type { ApplyModelOptions, Extent, ImportedModel, ModelInput, ModelInputs } from "../shared/model.ts";
export { type Pt2Model, type Pt2Options, readPt2 } from "./read.ts";
