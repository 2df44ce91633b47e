/** @file An ONNX model with another batch than the fixed one of its file, to be planned. */
import { traceFunction } from "../../trace/function.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { type ImportedModel, type ModelInput, type ModelInputs, specsFor } from "../shared/model.ts";
import { rebindingOf, withBatch } from "../shared/rebatch.ts";
import type { Followed } from "./call.ts";
import type { FollowOptions, OnnxFunctionModel } from "./read.ts";
import type { Rebatch } from "./rebatch.ts";
import type { Value } from "./value.ts";

/** A model whose nodes can be observed. */
export type FollowedModel = ImportedModel & Pick<OnnxFunctionModel, "follow">;

/** The model with a batch; the same where it has that. Open sizes are those of `sizes`. */
export function atBatch(
  model: OnnxFunctionModel,
  batch: number,
  sizes: Readonly<Record<string, number>>,
): FollowedModel {
  const change = rebindingOf(model.inputs, batch, "the model");
  return change ? new OnnxAtBatch(model, { change, recorded: recordedNodes(model, sizes) }) : model;
}

/** Every node as it is followed with the model's own batch. */
function recordedNodes(model: OnnxFunctionModel, sizes: Readonly<Record<string, number>>): readonly Followed[] {
  const specs = model.specs(sizes);
  const recorded: Followed[] = [];
  traceFunction(
    (params: Record<string, Tensor>, ...inputs: Tensor[]) => {
      model.follow(params, inputs, { observe: (one) => recorded.push(one) });
      return inputs[0] as Tensor;
    },
    [model.params, ...model.inputs.map(({ name }) => specs[name] as Tensor)],
  );
  return recorded;
}

class OnnxAtBatch implements FollowedModel {
  readonly params: Record<string, Tensor>;
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly string[];
  readonly #model: OnnxFunctionModel;
  readonly #rebatch: Rebatch;

  constructor(model: OnnxFunctionModel, rebatch: Rebatch) {
    this.params = model.params;
    this.outputs = model.outputs;
    this.inputs = model.inputs.map((input) => withBatch(input, rebatch.change));
    this.#model = model;
    this.#rebatch = rebatch;
  }

  follow(params: Readonly<Record<string, Tensor>>, inputs: ModelInputs, options?: FollowOptions): readonly Value[] {
    return this.#model.follow(params, inputs, { ...options, rebatch: this.#rebatch });
  }

  apply(...[params, inputs, options]: Parameters<ImportedModel["apply"]>): Record<string, Tensor> {
    const results = this.follow(params, inputs, options);
    return Object.fromEntries(results.map((value, i) => [this.outputs[i] as string, value.tensor]));
  }

  specs(sizes: Readonly<Record<string, number>> = {}): Record<string, Tensor> {
    return specsFor(this.inputs, sizes);
  }
}
