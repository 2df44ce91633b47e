/** @file Models that PyTorch exported, with what it recorded of them; the files are beside the checkout, not in it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { compile, load, type Tensor, valueAndGrad } from "../../src/api/index.ts";
import { checkModel } from "../../src/cli/model-check.ts";
import { readModel } from "../../src/node/index.ts";

export const MODELS: string = join(import.meta.dirname, "../../../shared/bench/models");
export const hasModels: boolean = existsSync(join(MODELS, "mlp"));
if (!hasModels) console.warn(`SKIPPED: models exported by PyTorch are not at ${MODELS}`);

export const NAMES: readonly string[] = ["mlp", "cnn", "unet", "lstm", "gpt2", "vit", "mobilenet_v2"];
/** How many gradients the ONNX file has under the names of the module: exporters fold and merge the others. */
const IN_ONNX: Readonly<Record<string, number>> = {
  mlp: 4,
  cnn: 6,
  unet: 20,
  lstm: 2,
  gpt2: 10,
  vit: 6,
  mobilenet_v2: 53,
};
const read = (name: string, file: string): Record<string, Tensor> => load(readFileSync(join(MODELS, name, file)));

/** Outputs and gradients of a file, beside those that were recorded. */
export async function expectRecorded(name: string, file: string): Promise<void> {
  const model = await readModel(join(MODELS, name, file), { untie: true });
  const recorded = read(name, "grads.safetensors");
  const { outputs, grads } = checkModel(model, read(name, "io.safetensors"), recorded);
  expect(outputs.maxRel).toBeLessThan(1e-4);
  expect(grads?.maxRel).toBeLessThan(1e-4);
  const all = Object.keys(recorded).length;
  expect(grads?.compared).toBe(file.endsWith(".onnx") ? IN_ONNX[name] : all);
}

/** The same bits without a budget and at the smallest one. */
export async function expectSameBits(name: string, file: string): Promise<void> {
  const model = await readModel(join(MODELS, name, file));
  const { input, weight } = read(name, "io.safetensors") as { input: Tensor; weight: Tensor };
  const [result] = model.outputs as [string];
  const loss = (params: typeof model.params, x: Tensor, w: Tensor): Tensor =>
    (model.apply(params, [x])[result] as Tensor).mul(w).mean();
  const step = (params: typeof model.params, x: Tensor, w: Tensor) => valueAndGrad(loss)(params, x, w);
  const [all, least] = [compile(step), compile(step, { memory: "min" })].map((run) => run(model.params, input, weight));
  for (const key of Object.keys(model.params)) expect(least?.[1][key]?.data()).toEqual(all?.[1][key]?.data());
  expect(least?.[0].item()).toBe(all?.[0].item());
}
