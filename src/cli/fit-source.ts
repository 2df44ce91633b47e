/** @file What `tidemark fit` is asked about, at any batch: the program as PyTorch runs it, and a training step to plan. */
import { readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { TidemarkError } from "../base/errors.ts";
import { atBatch } from "../exchange/onnx/at-batch.ts";
import type { OnnxFunctionModel } from "../exchange/onnx/read.ts";
import { type ExportedModel, readExported } from "../exchange/pt2/read.ts";
import { type ImportedModel, openSizes } from "../exchange/shared/model.ts";
import { type ConfigSizes, modelOfConfig } from "../fit/sources/configs.ts";
import { eagerProgram } from "../fit/sources/exported.ts";
import { graphProgram } from "../fit/sources/graph.ts";
import { onnxProgram } from "../fit/sources/onnx.ts";
import type { OptimizerName } from "../fit/torch/optimizer.ts";
import type { EagerProgram, Loss } from "../fit/torch/step.ts";
import { readModel } from "../node/models.ts";
import { traceFunction } from "../trace/function.ts";
import { type Arguments, usageError } from "./command.ts";
import { requireFile } from "./files.ts";
import { type Loaded, loadProgram } from "./load.ts";
import { programOf, standInsOf } from "./model-program.ts";
import type { AnyProgram } from "./programs/built-in.ts";
import { argumentsOf } from "./target-settings.ts";

export interface FitSettings {
  readonly optimizer: OptimizerName;
  readonly sizes: Readonly<Record<string, number>>;
  /** Bytes of a float in PyTorch; undefined: as the model has them. */
  readonly floatBytes: number | undefined;
  readonly dropout: boolean;
}

export interface FitCase {
  /** As PyTorch runs it. */
  readonly eager: EagerProgram;
  /** To be planned here. */
  readonly loaded: Loaded;
  /** Operations that only stand for what they read and write. */
  readonly unknown: readonly string[];
  /** For policies: the exported program; null where there is none. */
  readonly model: ExportedModel | null;
}

export interface FitSource {
  readonly name: string;
  /** The batch that it has by itself; null where none can be told. */
  readonly batch: number | null;
  /** The open size that is its batch; null where it has none. */
  readonly openBatch: string | null;
  /** Undefined: as it is. */
  at(batch: number | undefined): FitCase;
}

export async function fitSource(path: string, settings: FitSettings): Promise<FitSource> {
  const kind = extname(path).toLowerCase();
  if (kind === ".pt2") return exportedSource(path, settings);
  if (kind === ".json") return configSource(path, settings);
  if (kind === ".onnx") return onnxSource(path, settings);
  return programSource(path);
}

const trainingCase = (model: ExportedModel, path: string, settings: FitSettings, loss: Loss): FitCase => {
  const { optimizer, sizes, floatBytes } = settings;
  const program = programOf(model, path, { optimizer, sizes, loss }) as AnyProgram;
  return {
    eager: eagerProgram(model, { sizes, floatBytes, loss }),
    loaded: { kind: "training", name: program.name, program },
    unknown: standInsOf(model),
    model,
  };
};

function exportedSource(path: string, settings: FitSettings): FitSource {
  const file = bytesOf(path);
  const open = readExported(file, { floats: "f32", unknown: "plan" });
  requireSizes(settings.sizes, open);
  const first = firstExtent(open);
  return {
    name: basename(path),
    batch: typeof first === "number" ? first : (settings.sizes[String(first)] ?? null),
    openBatch: typeof first === "string" ? first : null,
    at(batch) {
      if (batch === undefined) return trainingCase(open, path, settings, "squares");
      if (typeof first === "string") {
        return trainingCase(open, path, { ...settings, sizes: { ...settings.sizes, [first]: batch } }, "squares");
      }
      const model = readExported(file, { floats: "f32", unknown: "plan", batch });
      return trainingCase(model, path, settings, "squares");
    },
  };
}

/** Throws where the batch is given twice. */
export function requireOneBatch(args: Arguments, { openBatch }: FitSource, { sizes }: FitSettings): void {
  if (!args.has("batch") || openBatch === null || sizes[openBatch] === undefined) return;
  throw usageError(`--batch with --size ${openBatch}=…`, "give one of them");
}

function bytesOf(path: string): Uint8Array {
  requireFile(path, ".pt2");
  return readFileSync(path);
}

function configSource(path: string, settings: FitSettings): FitSource {
  const json = jsonOf(path);
  const { batch: usual = 1, T: tokens, ...others } = settings.sizes;
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw usageError(`--size ${other}`, "a config has the sizes batch and T, tokens of a sequence");
  const sizesAt = (batch: number): ConfigSizes => ({ batch, tokens, dropout: settings.dropout });
  return {
    name: path,
    batch: usual,
    openBatch: "batch",
    at: (batch = usual) =>
      trainingCase(modelOfConfig(json, sizesAt(batch)), path, { ...settings, sizes: {} }, "cross-entropy"),
  };
}

/** The value in a JSON file. */
export function jsonOf(path: string): unknown {
  requireFile(path, ".json");
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TidemarkError("InvalidFile", `${path} is not JSON: ${why}`, { help: "give the config.json of a model" });
  }
}

/** A graph of this library, followed operation by operation. */
function graphCase(loaded: Loaded, sizes: Pick<FitSettings, "floatBytes">, unknown: readonly string[]): FitCase {
  if (loaded.kind === "graph") {
    throw usageError(`${loaded.name} is a graph without a training step`, "give a module with `program`, or a model");
  }
  const { step } = loaded.program;
  const { graph, leaves } = traceFunction(
    step as (...args: unknown[]) => unknown,
    argumentsOf(loaded.program) as never,
  );
  const paths = leaves.map(({ argument, path }) => (argument === 0 ? path : null));
  return { eager: graphProgram(graph, sizes, paths), loaded, unknown, model: null };
}

async function onnxSource(path: string, settings: FitSettings): Promise<FitSource> {
  const model = (await readModel(path)) as OnnxFunctionModel;
  requireSizes(settings.sizes, model);
  const first = firstExtent(model);
  return {
    name: basename(path),
    batch: typeof first === "string" ? (settings.sizes[first] ?? null) : first,
    openBatch: typeof first === "string" ? first : null,
    at(batch) {
      const isOpen = typeof first === "string";
      const sizes = batch === undefined || !isOpen ? settings.sizes : { ...settings.sizes, [first]: batch };
      const own = batch === undefined || isOpen ? model : atBatch(model, batch, sizes);
      const program = programOf(own, path, { optimizer: settings.optimizer, sizes }) as AnyProgram;
      return {
        eager: onnxProgram(own, { sizes, floatBytes: settings.floatBytes }),
        loaded: { kind: "training", name: program.name, program },
        unknown: [],
        model: null,
      };
    },
  };
}

/** The first extent of the first input that has one: the batch, or its name where it is open. */
function firstExtent({ inputs }: ImportedModel): number | string | null {
  return inputs.map(({ shape }) => shape?.[0]).find((extent) => extent !== undefined && extent !== null) ?? null;
}

/** Throws where a size is given that the model does not have. */
function requireSizes(sizes: Readonly<Record<string, number>>, model: ImportedModel): void {
  const open = [...new Set(openSizes(model.inputs))];
  const other = Object.keys(sizes).find((name) => !open.includes(name));
  if (other === undefined) return;
  const batch = firstExtent(model);
  const help = open.length > 0 ? `open sizes of the model are ${open.join(", ")}` : "all sizes of the model are fixed";
  throw usageError(`--size ${other}`, typeof batch === "number" ? `${help}; --batch N changes its batch` : help);
}

async function programSource(word: string): Promise<FitSource> {
  const loaded = await loadProgram(word);
  return {
    name: loaded.name,
    batch: null,
    openBatch: null,
    at(batch) {
      if (batch !== undefined) {
        throw usageError(`--batch: ${word} has the batch that it is written with`, "change it in the module");
      }
      return graphCase(loaded, { floatBytes: undefined }, []);
    },
  };
}
