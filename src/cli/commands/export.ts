/** @file `tidemark export`: a model as an ONNX file, or its weights as a safetensors file. */
import { writeFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { spec } from "../../api/create.ts";
import { map } from "../../api/tree.ts";
import { formatBytes } from "../../base/bytes.ts";
import { exportOnnx } from "../../exchange/onnx/export.ts";
import { readModel } from "../../node/models.ts";
import { saveFile } from "../../node/weights.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Tree } from "../../trace/tree.ts";
import { type Arguments, type Command, choice, type Io, usageError, writeJson } from "../command.ts";
import { FUNCTION_CONTRACT } from "../contract.ts";
import { loadBuildable } from "../load.ts";
import { isModelFile, requireWeights } from "../model-program.ts";

const FORMATS = ["onnx", "safetensors"] as const;

const DETAILS = [
  "MODEL is an .onnx or a .pt2 file, a module, or a built-in program; of a training program the loss is exported, without its derivative.",
  "Parameters become initializers under the names of their tree, the other arguments become inputs.",
  FUNCTION_CONTRACT,
].join("\n");

interface Forward {
  readonly fn: (...args: never[]) => unknown;
  readonly params: Tree;
  readonly inputs: readonly unknown[];
}

/** `batch=8` → { batch: 8 }. */
function sizesOf(args: Arguments): Record<string, number> {
  const given = args.value("size");
  if (given === undefined) return {};
  return Object.fromEntries(
    given.split(",").map((part) => {
      const [name = "", extent = ""] = part.split("=");
      if (name === "" || !/^\d+$/.test(extent))
        throw usageError(`--size ${part}`, "give NAME=N, or several: batch=8,time=64");
      return [name, Number(extent)];
    }),
  );
}

async function forwardOf(word: string, args: Arguments): Promise<Forward> {
  if (isModelFile(word)) {
    const model = await readModel(word);
    requireWeights(model, word);
    const fn = (params: Record<string, Tensor>, inputs: Record<string, Tensor>) => model.apply(params, inputs);
    return { fn, params: model.params, inputs: [model.specs(sizesOf(args))] };
  }
  const loaded = await loadBuildable(word);
  if (loaded.kind === "graph") throw usageError(`${word} is a graph without values`, "give a module or a model file");
  if (loaded.kind === "function") {
    const { run, params, batch } = loaded.program;
    const inputs = batch();
    if (params) return { fn: run, params: params(), inputs };
    return { fn: (_: object, ...rest: never[]) => run(...rest), params: {}, inputs };
  }
  const { step, init, batch } = loaded.program;
  return { fn: (state: never, ...rest: never[]) => step(state, ...rest)[1], params: init(), inputs: batch() };
}

export const exportCommand: Command = {
  name: "export",
  positionals: ["MODEL"],
  summary: "write a model as an ONNX file, or its weights as a safetensors file",
  details: DETAILS,
  options: {
    to: { value: "FORMAT", help: `${FORMATS.join(" or ")} (default: onnx)` },
    out: { value: "FILE", help: "where it goes (default: the model's name in this folder)" },
    size: { value: "NAME=N", help: "open sizes of a model file, several with commas" },
    json: { help: "print one line of JSON instead of the report" },
  },
  async run(args: Arguments, io: Io) {
    const [word = ""] = args.positionals;
    const format = choice(args, "to", FORMATS);
    const { fn, params, inputs } = await forwardOf(word, args);
    const path = args.value("out") ?? `${basename(word, extname(word))}.${format}`;
    if (path === word) throw usageError(`${path} would be overwritten`, "give another file: --out FILE");
    let bytes = 0;
    if (format === "safetensors") {
      await saveFile(path, params);
    } else {
      const specs = inputs.map((input) => map(({ shape, dtype }) => spec(shape, dtype), input as Tree));
      const file = exportOnnx(fn as (...all: readonly Tree[]) => unknown, params, ...specs);
      bytes = file.length;
      await writeFile(path, file);
    }
    if (args.has("json")) writeJson(io, { file: path, format, ...(bytes > 0 ? { bytes } : {}) });
    else io.out(`${path}${bytes > 0 ? `: ${formatBytes(bytes)}` : ""}\n`);
  },
};
