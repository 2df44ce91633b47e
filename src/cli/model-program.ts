/**
 * @file A model file as a program of the command line: a training step with Adam on the mean of its squared results, which is enough to plan
 * and to measure. Inputs are random numbers, whole ones zeros.
 */
import { basename, extname } from "node:path";
import { TidemarkError } from "../base/errors.ts";
import type { ImportedModel } from "../exchange/shared/model.ts";
import { type ModelTraining, type TrainingSettings, trainingOf } from "../fit/training.ts";
import { readModel } from "../node/models.ts";
import { type Arguments, type OptionSpec, usageError } from "./command.ts";
import type { TrainingProgram } from "./programs/program.ts";

const EXTENSIONS: readonly string[] = [".onnx", ".pt2"];
export const isModelFile = (word: string): boolean => EXTENSIONS.includes(extname(word).toLowerCase());

type State = ReturnType<ModelTraining["init"]>;

export const SIZE_OPTION = {
  size: { value: "NAME=N,…", help: "open sizes of a model's inputs: batch=8 or batch=8,T=512" },
} as const satisfies Record<string, OptionSpec>;

/** `batch=8,T=512` → `{ batch: 8, T: 512 }`. */
export function sizesOf(args: Arguments): Readonly<Record<string, number>> {
  const text = args.value("size");
  if (text === undefined) return {};
  return Object.fromEntries(
    text.split(",").map((part) => {
      const [, name, extent] = /^\s*([^=\s]+)=(\d+)\s*$/.exec(part) ?? [];
      if (name === undefined || !(Number(extent) > 0)) {
        throw usageError(`--size ${text}`, "give sizes by name: batch=8, or batch=8,T=512");
      }
      return [name, Number(extent)];
    }),
  );
}

/** Operations that only stand for what they read and write, by name. */
export const standInsOf = (model: ImportedModel): readonly string[] =>
  Object.keys((model as ImportedModel & { readonly unknown?: Readonly<Record<string, number>> }).unknown ?? {});

export interface ModelProgram extends TrainingProgram<State> {
  readonly standIns: readonly string[];
}

/** A training step of a model. */
export function programOf(model: ImportedModel, path: string, settings: TrainingSettings): ModelProgram {
  return {
    name: basename(path, extname(path)),
    title: `${basename(path)}, mean of squared results, ${settings.optimizer}`,
    standIns: standInsOf(model),
    ...trainingOf(model, settings),
  };
}

export async function modelProgram(path: string, sizes: Readonly<Record<string, number>> = {}): Promise<ModelProgram> {
  return programOf(await readModel(path, { unknown: "plan" }), path, { optimizer: "adam", sizes });
}

/** Names in a message. */
const MOST_NAMES = 5;

/** A model can be listed and planned without the bytes of its weights, but not run. */
export function requireWeights({ params }: ImportedModel, path: string): void {
  const missing = Object.entries(params).flatMap(([name, tensor]) => (tensor.storage?.abstract ? [name] : []));
  if (missing.length === 0) return;
  const names = missing.length > MOST_NAMES ? [...missing.slice(0, MOST_NAMES), "…"] : missing;
  const summary = `${path} lacks the bytes of ${missing.length} of ${Object.keys(params).length} weights: ${names.join(", ")}`;
  throw new TidemarkError("InvalidFile", summary, {
    help: "export it with its weights; without them it can be planned: tidemark fit, tidemark plan",
  });
}
