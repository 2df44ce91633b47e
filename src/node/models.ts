/**
 * @file Models of other frameworks from files. Weights in further files are read only from the folder of the model: links that lead
 * out of it are refused like paths that do.
 */
import { readFileSync, realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, extname, join, sep } from "node:path";
import { TidemarkError } from "../base/errors.ts";
import type { OnnxOptions } from "../exchange/onnx/read.ts";
import type { Pt2Options } from "../exchange/pt2/read.ts";
import type { ImportedModel } from "../exchange/shared/model.ts";

/** Options of {@link readModel}. */
export interface ReadModelOptions extends OnnxOptions, Pick<Pt2Options, "unknown"> {}

/**
 * A model from an ONNX file (`.onnx`) or an exported PyTorch program (`.pt2`), as a function with its parameters as a tree; weights of ONNX
 * models in files beside them are found.
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
  const kind = extname(path).toLowerCase();
  const file = await bytesOf(path);
  try {
    if (kind === ".onnx") {
      const { unknown: _, ...onnx } = options;
      const { readOnnx } = await import("../exchange/onnx/read.ts");
      return readOnnx(file, { external: (location) => besideModel(path, location), ...onnx });
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
    help: "give an .onnx or a .pt2 file",
  });
}

async function bytesOf(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): TidemarkError {
  const help = "check the path and its permissions";
  return new TidemarkError("StorageError", `${path} cannot be read: ${(error as Error).message}`, { help });
}

/** A file in the folder of a model, with links resolved. */
function besideModel(path: string, location: string): Uint8Array {
  const folder = realpathSync(dirname(path));
  const wanted = join(folder, location);
  let real: string;
  try {
    real = realpathSync(wanted);
  } catch (error) {
    throw unreadable(wanted, error);
  }
  if (!real.startsWith(`${folder}${sep}`)) {
    const help = "external data must lie beside the model; copy the file there";
    throw new TidemarkError("InvalidFile", `${location} leads out of the folder of ${path}`, { help });
  }
  return readFileSync(real);
}

function withPath(path: string, error: unknown): unknown {
  if (!(error instanceof TidemarkError) || error.code !== "InvalidFile") return error;
  return new TidemarkError(error.code, `${path}: ${error.summary}`, { where: error.where, help: error.help });
}
