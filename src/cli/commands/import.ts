/** @file `tidemark import`: what is in a model of another framework, and whether it computes here what was recorded there. */
import { formatBytes } from "../../base/bytes.ts";
import { grouped } from "../../base/errors.ts";
import type { ImportedModel } from "../../exchange/shared/model.ts";
import { typeText } from "../../ir/type.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import { readModel } from "../../node/models.ts";
import { loadFile } from "../../node/weights.ts";
import { type Arguments, type Command, type Io, sizeOf, usageError, writeJson } from "../command.ts";
import { checkModel, type ModelCheck } from "../model-check.ts";
import { requireWeights } from "../model-program.ts";

const DETAILS = [
  "MODEL is an .onnx or a .pt2 file. Without --io it lists inputs, results and parameters.",
  "With --io it runs the model on recorded inputs, as safetensors: `input` (or one for each input by its name), `output`, and",
  "optionally `weight` and `loss`, where loss = mean(output * weight) + 0.1 * mean(output * output); without a weight the loss is",
  "mean(output * output). With --grads it compares gradients of that loss by the names of the parameters.",
  "Differences are the largest over the largest magnitude of a tensor; the worst tensor counts.",
].join("\n");

function listing(model: ImportedModel): object {
  const params = Object.values(model.params);
  const parameterBytes = params.reduce((sum, { elements, dtype }) => sum + elements * bytesOf(dtype), 0);
  return {
    inputs: model.inputs,
    outputs: model.outputs,
    parameters: params.length,
    parameterElements: params.reduce((sum, { elements }) => sum + elements, 0),
    parameterBytes,
  };
}

function listText(model: ImportedModel): string {
  const inputs = model.inputs.map(
    ({ name, dtype, shape }) => `${name}: ${dtype}[${(shape ?? ["any"]).map((e) => e ?? "?").join(",")}]`,
  );
  const params = Object.entries(model.params);
  const elements = params.reduce((sum, [, tensor]) => sum + tensor.elements, 0);
  const bytes = params.reduce((sum, [, tensor]) => sum + tensor.elements * bytesOf(tensor.dtype), 0);
  return [
    `inputs:     ${inputs.join(", ") || "none"}`,
    `results:    ${model.outputs.join(", ")}`,
    `parameters: ${params.length} with ${grouped(elements)} elements, ${formatBytes(bytes)}`,
    ...params.map(([name, tensor]) => `  ${name}: ${typeText(tensor)}`),
    "",
  ].join("\n");
}

function checkText({ outputs, loss, recordedLoss, grads, arenaBytes }: ModelCheck): string {
  const lines = [
    `outputs differ by at most ${outputs.maxRel.toExponential(2)}`,
    `the loss is ${loss}${recordedLoss === null ? "" : `, recorded ${recordedLoss}`}`,
  ];
  if (grads) {
    const at = grads.worst === null ? "" : ` (${grads.worst})`;
    lines.push(`${grads.compared} gradients differ by at most ${grads.maxRel.toExponential(2)}${at}`);
    if (grads.rounding.length > 0) lines.push(`zero up to rounding: ${grads.rounding.join(", ")}`);
    if (grads.missing.length > 0) lines.push(`not in the model: ${grads.missing.join(", ")}`);
  }
  return `${lines.join("\n")}\nthe arena has ${formatBytes(arenaBytes)}\n`;
}

async function check(model: ImportedModel, args: Arguments, io: string): Promise<ModelCheck> {
  const grads = args.value("grads");
  const budget = args.value("budget") === "min" ? "min" : (sizeOf(args, "budget") ?? undefined);
  return checkModel(model, await loadFile(io), grads === undefined ? null : await loadFile(grads), budget);
}

export const importCommand: Command = {
  name: "import",
  positionals: ["MODEL"],
  summary: "read a model of another framework, and check it against recorded outputs and gradients",
  details: DETAILS,
  options: {
    io: { value: "FILE", help: "recorded input, output, weight and loss, as safetensors" },
    grads: { value: "FILE", help: "recorded gradients by the names of the parameters, as safetensors" },
    budget: { value: "SIZE", help: "the memory of the step, or `min` for the smallest plan" },
    json: { help: "print one line of JSON instead of the report" },
  },
  async run(args: Arguments, io: Io) {
    const recorded = args.value("io");
    if (recorded === undefined && args.has("grads")) {
      throw usageError("--grads without --io", "gradients are of the loss of recorded inputs: give both");
    }
    const model = await readModel(args.positionals[0] as string, { untie: recorded !== undefined });
    if (recorded === undefined) {
      if (args.has("json")) writeJson(io, listing(model));
      else io.out(listText(model));
      return;
    }
    requireWeights(model, args.positionals[0] as string);
    const found = await check(model, args, recorded);
    if (args.has("json")) writeJson(io, found);
    else io.out(checkText(found));
  },
};
