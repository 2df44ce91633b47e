/** @file Models of other frameworks from files. */
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { TidemarkError } from "../base/errors.ts";
import type { OnnxOptions } from "../exchange/onnx/read.ts";
import type { Pt2Options } from "../exchange/pt2/read.ts";
import type { ImportedModel } from "../exchange/shared/model.ts";
import { requirePath } from "../trace/arguments.ts";
import { externalFiles, unreadable } from "./external-files.ts";

/** Options of {@link readModel}. */
export interface ReadModelOptions extends OnnxOptions, Pick<Pt2Options, "unknown"> {}

/**
 * A model from an ONNX file (`.onnx`) or an exported PyTorch program (`.pt2`), as a function with its parameters as a tree; weights of ONNX
 * models in files beside them are found.
 *
 * @throws StorageError where the file cannot be read; InvalidFile where it is damaged; InvalidArgument for
 * another ending
 *
 * @example
 * import { readModel } from "tidemark/node";
 *
 * try {
 *   await readModel("missing.onnx");
 * } catch (error) {
 *   console.log(String(error).includes("missing.onnx")); // true
 * }
 */
export async function readModel(path: string, options: ReadModelOptions = {}): Promise<ImportedModel> {
  requirePath("readModel", path);
  const kind = extname(path).toLowerCase();
  const file = await bytesOf(path);
  try {
    if (kind === ".onnx") {
      const { unknown: _, ...onnx } = options;
      const { readOnnx } = await import("../exchange/onnx/read.ts");
      return readOnnx(file, { external: externalFiles(path), ...onnx });
    }
    if (kind === ".pt2") {
      const { readPt2 } = await import("../exchange/pt2/read.ts");
      const { floats, unknown } = options;
      return readPt2(file, { ...(floats ? { floats: "f32" } : {}), ...(unknown ? { unknown } : {}) });
    }
  } catch (error) {
    throw withPath(path, error);
  }
  throw new TidemarkError("InvalidArgument", `${path} is no model that can be read`, {
    help: HELP[kind] ?? "give an .onnx or a .pt2 file",
  });
}

/** By extensions of files that people have in place of a model. */
const HELP: Readonly<Record<string, string>> = {
  ".safetensors": "it has weights and no program: loadFile(path) reads them for a model that is written here",
  ".pt": "it is a pickle: give a program, torch.export.save(torch.export.export(model, args), 'model.pt2')",
  ".pth": "it is a pickle: give a program, torch.export.save(torch.export.export(model, args), 'model.pt2')",
  ".json": "tidemark fit reads the config.json of a model; to run one, give an .onnx or a .pt2 file",
};

async function bytesOf(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function withPath(path: string, error: unknown): unknown {
  if (!(error instanceof TidemarkError) || error.code !== "InvalidFile") return error;
  return new TidemarkError(error.code, `${path}: ${error.summary}`, { where: error.where, help: error.help });
}
