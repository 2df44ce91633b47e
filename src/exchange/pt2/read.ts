/** @file An exported PyTorch program as a model: parameters by their names in the module, buffers and constants, inputs with open sizes. */
import * as t from "../../api/functions.ts";
import { TidemarkError } from "../../base/errors.ts";
import { type Pt2Weight, readPt2 as readArchive } from "../../formats/pt2-archive.ts";
import { type Pt2Input, type Pt2Program, parsePt2, tensorName } from "../../formats/pt2-program.ts";
import { evaluateSize, parseSize } from "../../formats/size-expression.ts";
import { fail, type OptionKinds, requireOptions } from "../../trace/arguments.ts";
import { ArrayStorage } from "../../trace/storage.ts";
import { Tensor } from "../../trace/tensor.ts";
import { refuseHalves } from "../shared/half-weights.ts";
import {
  type ApplyModelOptions,
  boundInputs,
  type Extent,
  type ImportedModel,
  type ModelInput,
  type ModelInputs,
  requireParams,
  specsFor,
} from "../shared/model.ts";
import { type Rebinding, rebindingOf, withBatch } from "../shared/rebatch.ts";
import { dtypeOfCode, type Value } from "./args.ts";
import { follow } from "./interpret.ts";
import { operatorOf } from "./operators.ts";

/** Options of {@link readPt2}. */
export interface Pt2Options {
  /** Half floats are computed in f32. Without it, weights of such types are an error. */
  readonly floats?: "f32";
  /** What operations that are not known become: an error that lists all of them, or stand-ins to plan with. Default: "error". */
  readonly unknown?: "error" | "plan";
  /** The batch, for a program with fixed sizes: the first axis of its inputs, and what follows from it. Default: as it was exported. */
  readonly batch?: number;
}

/** A program of `torch.export`, as a function with its parameters as a tree. */
export interface Pt2Model extends ImportedModel {
  /** Running statistics and constants of the module. */
  readonly buffers: Readonly<Record<string, Tensor>>;
  /** Operations that only stand for what they read and write, with their number of nodes. */
  readonly unknown: Readonly<Record<string, number>>;
}

const OPTIONS: OptionKinds<Pt2Options> = { floats: "a text", unknown: "a text", batch: "a number" };

/**
 * A model from a `.pt2` file of `torch.export.save` (PyTorch 2.9 or newer). An archive without the bytes of its weights has specs in their
 * place: it can be planned, not run.
 *
 * @memory The weights, beside the file.
 *
 * @example
 * import { TidemarkError } from "tidemark";
 * import { readPt2 } from "tidemark/pt2";
 *
 * try {
 *   readPt2(new Uint8Array(4)); // a file that torch.export.save has written
 * } catch (error) {
 *   if (error instanceof TidemarkError) console.log(error.code); // → InvalidFile
 * }
 */
export function readPt2(file: Uint8Array, options: Pt2Options = {}): Pt2Model {
  return readExported(file, options);
}

/** The same, with its program to look at. */
export function readExported(file: Uint8Array, options: Pt2Options = {}): ExportedModel {
  requireOptions("readPt2", options, OPTIONS);
  if (!(file instanceof Uint8Array))
    fail("InvalidArgument", "readPt2: the file must be a Uint8Array", "pass its bytes");
  const archive = readArchive(file);
  const program = parsePt2(archive.program);
  const missing = unknownOperations(program);
  if (missing.size > 0 && options.unknown !== "plan") {
    const list = [...missing].map(([name, count]) => (count > 1 ? `${name} (${count} times)` : name));
    throw new TidemarkError(
      "InvalidFile",
      `the program uses operations that are not known: ${list.sort().join(", ")}`,
      {
        help: 'export it after run_decompositions(); to plan it all the same, give { unknown: "plan" }',
      },
    );
  }
  requireTypes(archive.weights, options);
  return new ExportedModel(program, archive.weights, { missing, batch: options.batch });
}

/** Operations that are not known, with their number of nodes. */
export function unknownOperations({ nodes }: Pt2Program): ReadonlyMap<string, number> {
  const missing = new Map<string, number>();
  for (const { target } of nodes) if (!operatorOf(target)) missing.set(target, (missing.get(target) ?? 0) + 1);
  return missing;
}

function requireTypes(weights: ReadonlyMap<string, Pt2Weight>, { floats }: Pt2Options): void {
  if (floats !== undefined) return;
  refuseHalves([...weights.values()].filter(({ type }) => type === "F16" || type === "BF16"));
}

const tensorOf = ({ dtype, shape, elements }: Pt2Weight): Tensor =>
  elements ? new Tensor(new ArrayStorage(dtype, shape, elements())) : t.spec(shape, dtype);

interface ExportedOptions {
  /** Operations that are not known. */
  readonly missing?: ReadonlyMap<string, number>;
  /** Another batch than the recorded one. */
  readonly batch?: number | undefined;
}

export class ExportedModel implements Pt2Model {
  readonly params: Record<string, Tensor>;
  readonly buffers: Readonly<Record<string, Tensor>>;
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly string[];
  readonly unknown: Readonly<Record<string, number>>;
  readonly program: Pt2Program;
  readonly #batch: Rebinding | undefined;
  /** Parameters and buffers in the graph, by the name that they have in `params` or `buffers`. */
  readonly #owned: ReadonlyMap<string, string>;

  constructor(program: Pt2Program, weights: ReadonlyMap<string, Pt2Weight>, options: ExportedOptions = {}) {
    this.program = program;
    this.unknown = Object.fromEntries(options.missing ?? []);
    const [params, buffers] = [new Map<string, Tensor>(), new Map<string, Tensor>()];
    const firstAt = new Map<string, string>();
    const owned = new Map<string, string>();
    for (const input of program.inputs.filter(({ kind }) => kind !== "user_input")) {
      const weight = weightOf(input, program, weights);
      const name = firstAt.get(weight.path) ?? input.name;
      firstAt.set(weight.path, name);
      owned.set(input.value, name);
      if (params.has(name) || buffers.has(name)) continue;
      (input.kind === "parameter" ? params : buffers).set(name, tensorOf(weight));
    }
    this.params = Object.fromEntries(params);
    this.buffers = Object.fromEntries(buffers);
    this.#owned = owned;
    const recorded = program.inputs.filter(({ kind }) => kind === "user_input").map((input) => inputOf(input, program));
    this.#batch = rebindingOf(recorded, options.batch, "readPt2");
    this.inputs = recorded.map((input) => withBatch(input, this.#batch));
    this.outputs = results(program).map(({ name }) => name);
  }

  apply(...[params, inputs, options]: Parameters<ImportedModel["apply"]>): Record<string, Tensor> {
    const values = this.values(params, inputs, options);
    const made = results(this.program).map(({ name, value }) => {
      const found = values(value);
      if (found instanceof Tensor) return [name, found] as const;
      if (typeof found === "number") return [name, t.tensor(found)] as const;
      throw new TidemarkError("InvalidFile", `nothing computes the result ${name}`, { help: "the program is damaged" });
    });
    return Object.fromEntries(made);
  }

  /** All values of the program, by their names in the graph; the program need not run where only shapes are wanted. */
  values(
    params: Readonly<Record<string, Tensor>>,
    inputs: ModelInputs,
    options?: ApplyModelOptions & { readonly shapesOnly?: boolean },
  ): (name: string) => Value | undefined {
    requireParams(this.params, params);
    const bound = boundInputs(this.inputs, inputs);
    const given = new Map(bound);
    for (const [value, name] of this.#owned) given.set(value, (params[name] ?? this.buffers[name]) as Tensor);
    return follow({
      program: this.program,
      given,
      sizes: this.#sizes(bound),
      key: options?.key ?? t.random.key(0),
      opaque: Object.keys(this.unknown).length > 0,
      batch: this.#batch,
      shapesOnly: options?.shapesOnly,
    });
  }

  /** The parameter or buffer that an input of the graph is; shared ones have one name. */
  ownerOf(value: string): string | undefined {
    return this.#owned.get(value);
  }

  /** Open sizes from the extents of inputs, within the ranges that the program allows. */
  #sizes(bound: ReadonlyMap<string, Tensor>): ReadonlyMap<string, number> {
    const sizes = new Map<string, number>();
    for (const { name, shape } of this.inputs) {
      shape?.forEach((extent, axis) => {
        if (typeof extent === "string") sizes.set(extent, bound.get(name)?.shape[axis] as number);
      });
    }
    for (const [name, [least, most]] of this.program.ranges) {
      const size = sizes.get(name);
      if (size === undefined || (size >= least && size <= most)) continue;
      fail(
        "ShapeMismatch",
        `${name} is ${size}, the program was exported for ${least} to ${most}`,
        "export it for other sizes",
      );
    }
    return sizes;
  }

  specs(sizes: Readonly<Record<string, number>> = {}): Record<string, Tensor> {
    return specsFor(this.inputs, sizes);
  }
}

/** User's results and losses; changed buffers and gradients by the names of what they belong to. */
function results({ outputs }: Pt2Program): readonly { readonly name: string; readonly value: string }[] {
  return outputs.flatMap(({ kind, argument, name }) => {
    const value = tensorName(argument) ?? (argument.as_sym_int as { as_name?: string } | undefined)?.as_name ?? null;
    if (value === null) return [];
    if (kind === "user_output" || kind === "loss_output") return [{ name: value, value }];
    return [{ name: `${kind}.${name}`, value }];
  });
}

function weightOf(input: Pt2Input, program: Pt2Program, weights: ReadonlyMap<string, Pt2Weight>): Pt2Weight {
  const weight = weights.get(input.name);
  if (weight) return weight;
  const type = program.types.get(input.value);
  if (!type || type.sizes.some((size) => typeof size !== "number")) {
    throw new TidemarkError("InvalidFile", `the archive does not describe ${input.name}`, {
      help: "export the model again",
    });
  }
  const shape = type.sizes as readonly number[];
  return {
    name: input.name,
    path: input.name,
    isParam: true,
    type: "F32",
    dtype: dtypeOfCode(type.dtype),
    shape,
    elements: null,
  };
}

function inputOf(input: Pt2Input, program: Pt2Program): ModelInput {
  const type = program.types.get(input.value);
  if (!type)
    throw new TidemarkError("InvalidFile", `the type of the input ${input.value} is not recorded`, {
      help: "export it again",
    });
  const shape = type.sizes.map((size): Extent => {
    if (typeof size === "number") return size;
    const parsed = parseSize(size);
    return parsed.kind === "symbol" ? parsed.name : (evaluateSize(parsed, new Map()) ?? null);
  });
  return { name: input.value, dtype: dtypeOfCode(type.dtype), shape };
}
