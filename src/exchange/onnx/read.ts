/**
 * @file An ONNX file as a model: what of it is a parameter, what an input, and whether all of its operators are known.
 */
import * as t from "../../api/functions.ts";
import { TidemarkError } from "../../base/errors.ts";
import { type OnnxGraph, type OnnxModel, type OnnxNode, type OnnxTensor, parseOnnx } from "../../formats/onnx-file.ts";
import {
  type DecodedTensor,
  decodeTensor,
  elementOf,
  elementText,
  type OnnxElement,
  type ReadExternal,
} from "../../formats/onnx-tensor.ts";
import { FLOAT_TYPES, type FloatType } from "../../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions } from "../../trace/arguments.ts";
import type { Tensor } from "../../trace/tensor.ts";
import {
  type ApplyModelOptions,
  boundInputs,
  type ImportedModel,
  type ModelInput,
  type ModelInputs,
  requireParams,
  specsFor,
} from "../shared/model.ts";
import { withBatch } from "../shared/rebatch.ts";
import { functionKey, Interpreter, type Program } from "./interpret.ts";
import { isSetting, operatorOf } from "./operators.ts";
import { namesOfSizes } from "./sizes.ts";
import { dtypeFor, type FloatChoice, isFloatElement, tensorFrom, Value } from "./value.ts";

/** Options of {@link readOnnx}. */
export interface OnnxOptions {
  /** Convert all floats of the model to one type. Default: each as it is. */
  readonly floats?: FloatType;
  /** Inputs that are constants: what shapes, axes and counts are computed from. */
  readonly constants?: Readonly<Record<string, Tensor>>;
  /** Reads a file beside the model that has some of its weights. */
  readonly external?: ReadExternal;
  /** Which weights can be trained; others are constants. Default: floats with at least one axis that are not settings of an operator. */
  readonly parameters?: (name: string) => boolean;
  /**
   * Exporters merge weights of equal values. With this, every use of a weight is a parameter of its own, `NAME` and then `NAME#2`, `NAME#3`
   * in the order of nodes. Default: false.
   */
  readonly untie?: boolean;
}

const OPTIONS: OptionKinds<OnnxOptions> = {
  floats: "a text",
  constants: "anything",
  external: "a function",
  parameters: "a function",
  untie: "a boolean",
};

/** The sets of operators that are known. */
const NEWEST_OPSET = 25;

/**
 * A model from an ONNX file. `apply` follows its graph with operations of this library.
 *
 * @example
 * import { grad, tensor } from "tidemark";
 * import { readOnnx } from "tidemark/onnx";
 *
 * // y = w · x with w = [3]
 * const text = "CAg6TAoQCgF4CgF3EgF5IgNNdWw6ABIFZ3JhcGgqDQgBEAFCAXdKBAAAQEBaEAoBeBILCgkIARIFCgMSAW5iEAoBeRILCgkIARIFCgMSAW5CBAoAEBI=";
 * const model = readOnnx(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
 * console.log(model.apply(model.params, [tensor([1, 2])]).y?.toArray()); // [3, 6]
 * const g = grad((params: typeof model.params) => model.apply(params, [tensor([1, 2])]).y!.sum())(model.params);
 * console.log(g.w?.toArray()); // [3]
 */
export function readOnnx(file: Uint8Array, options: OnnxOptions = {}): ImportedModel {
  requireOptions("readOnnx", options, OPTIONS);
  if (!(file instanceof Uint8Array))
    fail("InvalidArgument", "readOnnx: the file must be a Uint8Array", "pass its bytes");
  const { floats = null } = options;
  if (floats !== null && !FLOAT_TYPES.some((type) => type === floats)) {
    fail("InvalidArgument", `readOnnx: floats is ${String(floats)}`, `give one of ${FLOAT_TYPES.join(", ")}`);
  }
  const parsed = parseOnnx(file);
  requireKnown(parsed);
  const model = options.untie ? untied(parsed) : parsed;
  return new OnnxFunctionModel(model, { ...options, floats });
}

interface Settings extends Omit<OnnxOptions, "floats"> {
  readonly floats: FloatChoice;
}

/** How a model is followed. */
export interface FollowOptions extends ApplyModelOptions {
  readonly observe?: Program["observe"];
  readonly rebatch?: Program["rebatch"];
}

export class OnnxFunctionModel implements ImportedModel {
  readonly params: Record<string, Tensor>;
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly string[];
  readonly #graph: OnnxGraph;
  readonly #program: Program;
  /** Everything that is known without parameters and inputs. */
  readonly #constants: ReadonlyMap<string, Value>;
  readonly #types: ReadonlyMap<string, OnnxElement>;

  constructor(model: OnnxModel, settings: Settings) {
    const { graph, opsets } = model;
    const { floats, external } = settings;
    const functions = new Map(model.functions.map((one) => [functionKey(one.domain, one.name, one.overload), one]));
    this.#graph = graph;
    this.#program = { opsets, functions, floats, external };
    const decoded = new Map(graph.initializers.map((tensor) => [tensor.name, decodeTensor(tensor, external)]));
    const isParam = paramTest(graph, settings);
    const entries = [...decoded.values()].filter(isParam);
    this.params = Object.fromEntries(entries.map((one) => [one.name, tensorFrom(one, floats, one.name)]));
    const bound = settings.constants ?? {};
    const constants = new Map<string, Value>();
    for (const one of decoded.values()) {
      if (!Object.hasOwn(this.params, one.name)) constants.set(one.name, Value.known(one.name, one, floats));
    }
    const open = graph.inputs.filter(({ name }) => !decoded.has(name));
    for (const { name, type } of open) {
      const given = bound[name];
      if (given) constants.set(name, knownInput(name, elementOf(type) ?? "float", given, floats));
    }
    const unknown = Object.keys(bound).find((name) => !open.some((input) => input.name === name));
    if (unknown !== undefined) fail("InvalidArgument", `readOnnx: the model has no input ${unknown} to bind`);
    this.#constants = constants;
    const inputs = open.filter(({ name }) => !constants.has(name));
    this.#types = new Map([...decoded.values()].map(({ name, type }) => [name, type]));
    this.inputs = inputs.map(({ name, type, shape }) => {
      return { name, dtype: dtypeFor(requireElement(name, type), floats, `the input ${name}`), shape };
    });
    this.#types = new Map([
      ...this.#types,
      ...inputs.map(({ name, type }) => [name, requireElement(name, type)] as const),
    ]);
    this.outputs = graph.outputs.map(({ name }) => name);
  }

  apply(...[params, inputs, options]: Parameters<ImportedModel["apply"]>): Record<string, Tensor> {
    const results = this.follow(params, inputs, options);
    return Object.fromEntries(results.map((value, i) => [this.outputs[i] as string, value.tensor]));
  }

  /** The results; `observe` is told of every node. */
  follow(params: Readonly<Record<string, Tensor>>, inputs: ModelInputs, options?: FollowOptions): readonly Value[] {
    requireParams(this.params, params);
    const given = new Map(this.#constants);
    const put = (name: string, value: Tensor): void => {
      given.set(name, Value.tensor(name, this.#types.get(name) ?? "float", value));
    };
    const { observe, rebatch } = options ?? {};
    const declared = this.inputs.map((input) => withBatch(input, rebatch?.change));
    for (const [name, value] of boundInputs(declared, inputs)) put(name, value);
    for (const name of Object.keys(this.params)) put(name, params[name] as Tensor);
    const program = { ...this.#program, observe, rebatch };
    return new Interpreter(program, options?.key ?? t.random.key(0)).run(this.#graph, given);
  }

  specs(sizes: Readonly<Record<string, number>> = {}): Record<string, Tensor> {
    return specsFor(this.inputs, sizes);
  }
}

function requireElement(name: string, code: number): OnnxElement {
  const type = elementOf(code);
  if (type) return type;
  const what = code === 0 ? "no tensor (a sequence, a map or an optional)" : `of type ${elementText(code)}`;
  return fail("DtypeMismatch", `the input ${name} is ${what}`, "export the model with tensors of numbers");
}

/** An input that is given when the model is read, as exact numbers. */
function knownInput(name: string, type: OnnxElement, given: Tensor, floats: FloatChoice): Value {
  const data = given.data();
  const isLong = type === "int64";
  const values = isLong ? BigInt64Array.from(data, (x) => BigInt(x)) : (data as ArrayLike<number>);
  return Value.known(name, { type, shape: given.shape, values }, floats);
}

/** Which weights are parameters. */
function paramTest(graph: OnnxGraph, { parameters }: Settings): (tensor: DecodedTensor) => boolean {
  if (parameters) return ({ name, type }) => isFloatElement(type) && parameters(name);
  const used = new Set<string>();
  const visit = (nodes: readonly OnnxNode[]): void => {
    for (const node of nodes) {
      node.inputs.forEach((name, i) => {
        if (!isSetting(node.kind, i)) used.add(name);
      });
      for (const { graph: inner } of node.attributes.values()) if (inner) visit(inner.nodes);
    }
  };
  visit(graph.nodes);
  const sizes = namesOfSizes(graph);
  return ({ name, type, shape }) => isFloatElement(type) && shape.length > 0 && used.has(name) && !sizes.has(name);
}

/** Throws one error with everything that is not known: versions, operators. */
function requireKnown({ opsets, graph, functions }: OnnxModel): void {
  const version = opsets.get("") ?? 1;
  if (version > NEWEST_OPSET) {
    const help = `export it with opset ${NEWEST_OPSET} or older`;
    throw new TidemarkError(
      "InvalidFile",
      `the model has opset ${version}; ${NEWEST_OPSET} is the newest that is known`,
      { help },
    );
  }
  if (graph.sparseInitializers > 0) {
    throw new TidemarkError("InvalidFile", "the model has sparse weights", { help: "export it with dense ones" });
  }
  const own = new Set(functions.map(({ domain, name, overload }) => functionKey(domain, name, overload)));
  const missing = new Map<string, number>();
  const visit = (nodes: readonly OnnxNode[]): void => {
    for (const { domain, kind, overload, attributes } of nodes) {
      if (!own.has(functionKey(domain, kind, overload)) && !operatorOf(domain, kind)) {
        const name = domain === "" ? kind : `${domain}.${kind}`;
        missing.set(name, (missing.get(name) ?? 0) + 1);
      }
      for (const { graph: inner } of attributes.values()) if (inner) visit(inner.nodes);
    }
  };
  visit(graph.nodes);
  for (const { nodes } of functions) visit(nodes);
  if (missing.size === 0) return;
  const list = [...missing].map(([name, count]) => (count > 1 ? `${name} (${count} times)` : name));
  throw new TidemarkError("InvalidFile", `the model uses operators that are not known: ${list.sort().join(", ")}`, {
    help: "docs/onnx-results.md lists those that are; export the model with others",
  });
}

/** Every further use of a weight has a copy of its own. */
function untied(model: OnnxModel): OnnxModel {
  const uses = new Map(model.graph.initializers.map(({ name }) => [name, 0]));
  const copies: OnnxTensor[] = [];
  const byName = new Map(model.graph.initializers.map((tensor) => [tensor.name, tensor]));
  const nodes = model.graph.nodes.map((node) => {
    const inputs = node.inputs.map((name, i) => {
      const before = uses.get(name);
      if (before === undefined || isSetting(node.kind, i)) return name;
      uses.set(name, before + 1);
      if (before === 0) return name;
      const copy = `${name}#${before + 1}`;
      copies.push({ ...(byName.get(name) as OnnxTensor), name: copy });
      return copy;
    });
    return { ...node, inputs };
  });
  return { ...model, graph: { ...model.graph, nodes, initializers: [...model.graph.initializers, ...copies] } };
}
