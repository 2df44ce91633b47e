/**
 * @file The program of a `.pt2` archive: nodes with named arguments, and which values are parameters, buffers, inputs and results. JSON of
 * PyTorch's export schema, major version 8; fields that are not known are ignored.
 */
import { badArchive } from "./zip-error.ts";

/** One argument: an object with one key, which says what it is. */
export type Pt2Argument = Readonly<Record<string, unknown>>;

export interface Pt2Node {
  readonly target: string;
  readonly inputs: readonly { readonly name: string; readonly arg: Pt2Argument }[];
  readonly outputs: readonly Pt2Argument[];
  readonly metadata?: { readonly nn_module_stack?: string; readonly stack_trace?: string };
}

/** A size: a number, or the name of one. */
export type Pt2Size = number | string;

export interface Pt2TensorType {
  readonly dtype: number;
  readonly sizes: readonly Pt2Size[];
  /** Of its storage in PyTorch, in elements; null where one is open. */
  readonly strides: readonly number[] | null;
}

/** A graph inside of a node. */
export interface Pt2Region {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly nodes: readonly Pt2Node[];
}

export type InputKind = "parameter" | "buffer" | "tensor_constant" | "user_input";

export interface Pt2Input {
  readonly kind: InputKind;
  /** In the graph. */
  readonly value: string;
  /** Of a parameter, buffer or constant in the model. */
  readonly name: string;
}

export interface Pt2Output {
  /** `user_output`, `loss_output`, `gradient_to_parameter`, `buffer_mutation`, … */
  readonly kind: string;
  readonly argument: Pt2Argument;
  /** Of the parameter or buffer that it belongs to. */
  readonly name: string;
}

export interface Pt2Program {
  readonly torch: string;
  readonly nodes: readonly Pt2Node[];
  readonly inputs: readonly Pt2Input[];
  readonly outputs: readonly Pt2Output[];
  readonly types: ReadonlyMap<string, Pt2TensorType>;
  /** Least and most of sizes by name. */
  readonly ranges: ReadonlyMap<string, readonly [least: number, most: number]>;
}

const MAJOR = 8;

type Json = Readonly<Record<string, unknown>>;

const objectOf = (value: unknown, what: string): Json => {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw badArchive(`${what} of the program is missing or no object`);
};

const listOf = (value: unknown, what: string): readonly Json[] => {
  if (Array.isArray(value)) return value.map((one) => objectOf(one, what));
  throw badArchive(`${what} of the program is missing or no list`);
};

export function parsePt2(json: unknown): Pt2Program {
  const root = objectOf(json, "the root");
  const { major } = objectOf(root.schema_version, "the schema version");
  if (major !== MAJOR) {
    const help = "export it with PyTorch 2.9 or newer, or wait for a newer version of this library";
    throw badArchive(`the program has schema version ${String(major)}, version ${MAJOR} is known`, help);
  }
  const module = objectOf(root.graph_module, "the graph module");
  const graph = objectOf(module.graph, "the graph");
  const signature = objectOf(module.signature, "the signature");
  const values = objectOf(graph.tensor_values, "tensor_values");
  return {
    torch: typeof root.torch_version === "string" ? root.torch_version : "unknown",
    nodes: listOf(graph.nodes, "nodes").map(nodeOf),
    inputs: listOf(signature.input_specs, "input_specs").flatMap(inputOf),
    outputs: listOf(signature.output_specs, "output_specs").map(outputOf),
    types: new Map(Object.entries(values).map(([name, value]) => [name, typeFrom(objectOf(value, name))])),
    ranges: rangesOf(root.range_constraints),
  };
}

/** What a node was recorded with, as far as it is text. */
const textsOf = (json: Json): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(json).filter((entry): entry is [string, string] => typeof entry[1] === "string"));

function nodeOf(json: Json): Pt2Node {
  if (typeof json.target !== "string") throw badArchive("a node of the program has no target");
  const inputs = listOf(json.inputs, "inputs of a node").map(({ name, arg }) => {
    return { name: String(name), arg: objectOf(arg, "an argument") };
  });
  return {
    target: json.target,
    inputs,
    outputs: listOf(json.outputs, "outputs of a node"),
    metadata: textsOf((json.metadata ?? {}) as Json),
  };
}

/** The graph of an argument. */
export function regionOf(argument: unknown): Pt2Region {
  const graph = objectOf((argument as Json | null)?.graph, "a graph inside of a node");
  const names = (list: unknown): readonly string[] =>
    listOf(list, "values of a graph").map((one) => {
      const name = tensorName(one);
      if (name === null) throw badArchive("a graph inside of a node has a value that is no tensor");
      return name;
    });
  return {
    inputs: names(graph.inputs),
    outputs: names(graph.outputs),
    nodes: listOf(graph.nodes, "nodes").map(nodeOf),
  };
}

const onlyEntry = (json: Json): readonly [string, Json] => {
  const [entry] = Object.entries(json);
  if (!entry) throw badArchive("the signature has an empty entry");
  return [entry[0], objectOf(entry[1], "an entry of the signature")];
};

/** A value by name, in either of the two forms of arguments. */
export function tensorName(argument: unknown): string | null {
  const json = (argument ?? {}) as Json;
  const inner = (json.as_tensor ?? json) as Json;
  return typeof inner.name === "string" ? inner.name : null;
}

function inputOf(json: Json): readonly Pt2Input[] {
  const [kind, spec] = onlyEntry(json);
  if (kind === "token") return [];
  const value = tensorName(spec.arg);
  const known: readonly string[] = ["parameter", "buffer", "tensor_constant", "user_input"];
  if (!known.includes(kind) || value === null) {
    throw badArchive(`the program has an input of the kind ${kind}`, "inputs, parameters and buffers must be tensors");
  }
  const name = spec.parameter_name ?? spec.buffer_name ?? spec.tensor_constant_name ?? value;
  return [{ kind: kind as InputKind, value, name: String(name) }];
}

function outputOf(json: Json): Pt2Output {
  const [kind, spec] = onlyEntry(json);
  const argument = objectOf(spec.arg, "a result");
  const name = spec.parameter_name ?? spec.buffer_name ?? spec.user_input_name ?? tensorName(argument) ?? "";
  return { kind, argument, name: String(name) };
}

/** Sizes that are expressions are known by their text. */
export function sizeOf(json: unknown): Pt2Size {
  const size = (json ?? {}) as Json;
  if (Number.isSafeInteger(size.as_int)) return size.as_int as number;
  const expression = (size.as_expr ?? {}) as Json;
  if (typeof expression.expr_str === "string") return expression.expr_str;
  throw badArchive(`the program has the size ${JSON.stringify(json)}`);
}

function typeFrom(json: Json): Pt2TensorType {
  if (!Array.isArray(json.sizes)) throw badArchive(`the program has a tensor of sizes ${JSON.stringify(json.sizes)}`);
  const strides = (Array.isArray(json.strides) ? json.strides : []).map(sizeOf);
  const isKnown = strides.every((stride) => typeof stride === "number");
  return { dtype: Number(json.dtype), sizes: json.sizes.map(sizeOf), strides: isKnown ? strides : null };
}

function rangesOf(json: unknown): Pt2Program["ranges"] {
  const entries = Object.entries((json ?? {}) as Json).map(([name, range]) => {
    const { min_val: least, max_val: most } = (range ?? {}) as Json;
    const bound = (value: unknown, open: number): number => (typeof value === "number" ? value : open);
    return [name, [bound(least, 0), bound(most, Number.POSITIVE_INFINITY)] as const] as const;
  });
  return new Map(entries);
}
