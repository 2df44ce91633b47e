/**
 * @file An ONNX model as its file says: graphs, nodes, attributes, types, tensors with their bytes still packed. Field numbers are those of
 * the published schema (onnx.proto). Fields that are not listed are ignored, as the format asks for; training information is not read.
 */
import { badMessage, Message } from "./protobuf.ts";

export interface OnnxModel {
  readonly irVersion: number;
  readonly producer: string;
  /** Versions of the sets of operators, by domain; the usual one is "". */
  readonly opsets: ReadonlyMap<string, number>;
  readonly graph: OnnxGraph;
  readonly functions: readonly OnnxFunction[];
}

export interface OnnxGraph {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly initializers: readonly OnnxTensor[];
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly sparseInitializers: number;
}

export interface OnnxNode {
  readonly name: string;
  /** `Conv`, `Gemm`, … */
  readonly kind: string;
  readonly domain: string;
  /** Of a call: which of several functions of one name. */
  readonly overload: string;
  /** "" is an input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, OnnxAttribute>;
}

export interface OnnxAttribute {
  readonly name: string;
  readonly int: bigint;
  readonly ints: readonly bigint[];
  readonly float: number;
  readonly floats: readonly number[];
  readonly text: Uint8Array | undefined;
  readonly texts: readonly string[];
  readonly tensor: OnnxTensor | undefined;
  readonly graph: OnnxGraph | undefined;
  /** In the body of a function: the attribute of the call that this one stands for. */
  readonly reference: string;
}

export interface OnnxFunction {
  readonly name: string;
  readonly domain: string;
  /** Tells functions of one name apart. */
  readonly overload: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly nodes: readonly OnnxNode[];
  readonly defaults: ReadonlyMap<string, OnnxAttribute>;
  readonly opsets: ReadonlyMap<string, number>;
}

export interface OnnxTensor {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
  /** Where elements may be; one of them is used. */
  readonly raw: Uint8Array | undefined;
  readonly message: Message;
  /** Of elements in another file: `location`, `offset`, `length`. */
  readonly external: ReadonlyMap<string, string> | null;
}

/** An extent: a number, a name that stands for one, or nothing. */
export type OnnxExtent = number | string | null;

export interface OnnxValueInfo {
  readonly name: string;
  /** 0 where it is no tensor. */
  readonly type: number;
  /** Null where the rank is open. */
  readonly shape: readonly OnnxExtent[] | null;
}

/** Graphs in attributes of nodes in graphs: more is not a model. */
const MOST_DEPTH = 50;

const byKey = (message: Message): readonly [string, string] => [message.text(1), message.text(2)];

const opsetsOf = (message: Message, field: number): ReadonlyMap<string, number> =>
  new Map(message.messages(field, (one) => [normalDomain(one.text(1)), one.int(2)] as const));

/** The usual domain has two names. */
export const normalDomain = (domain: string): string => (domain === "ai.onnx" ? "" : domain);

export function parseOnnx(file: Uint8Array): OnnxModel {
  const message = new Message(file);
  const graph = message.message(7, (one) => graphOf(one, 0));
  if (!graph) throw badMessage("there is no graph in the file", "the file is damaged or not an ONNX model");
  return {
    irVersion: message.int(1),
    producer: message.text(2),
    opsets: opsetsOf(message, 8),
    graph,
    functions: message.messages(25, functionOf),
  };
}

function graphOf(message: Message, depth: number): OnnxGraph {
  if (depth > MOST_DEPTH) throw badMessage(`graphs are nested more than ${MOST_DEPTH} deep`);
  return {
    name: message.text(2),
    nodes: message.messages(1, (one) => nodeOf(one, depth)),
    initializers: message.messages(5, tensorOf),
    inputs: message.messages(11, valueInfoOf),
    outputs: message.messages(12, valueInfoOf),
    sparseInitializers: message.messages(15, () => null).length,
  };
}

function nodeOf(message: Message, depth: number): OnnxNode {
  const attributes = message.messages(5, (one) => attributeOf(one, depth));
  return {
    name: message.text(3),
    kind: message.text(4),
    domain: normalDomain(message.text(7)),
    overload: message.text(8),
    inputs: message.texts(1),
    outputs: message.texts(2),
    attributes: new Map(attributes.map((attribute) => [attribute.name, attribute])),
  };
}

function attributeOf(message: Message, depth: number): OnnxAttribute {
  return {
    name: message.text(1),
    float: message.float(2),
    int: message.ints(3).at(-1) ?? 0n,
    text: message.bytes(4),
    tensor: message.message(5, tensorOf),
    graph: message.message(6, (one) => graphOf(one, depth + 1)),
    floats: message.floats(7),
    ints: message.ints(8),
    texts: message.texts(9),
    reference: message.text(21),
  };
}

function functionOf(message: Message): OnnxFunction {
  const defaults = message.messages(11, (one) => attributeOf(one, 0));
  return {
    name: message.text(1),
    domain: normalDomain(message.text(10)),
    overload: message.text(13),
    inputs: message.texts(4),
    outputs: message.texts(5),
    nodes: message.messages(7, (one) => nodeOf(one, 0)),
    defaults: new Map(defaults.map((attribute) => [attribute.name, attribute])),
    opsets: opsetsOf(message, 9),
  };
}

/** A tensor alone in its file, as the operator tests of ONNX have them. */
export const parseOnnxTensor = (file: Uint8Array): OnnxTensor => tensorOf(new Message(file));

function tensorOf(message: Message): OnnxTensor {
  const shape = message.ints(1).map(Number);
  const name = message.text(8);
  if (!shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
    throw badMessage(`the tensor ${name} has the shape [${shape.join(",")}]`);
  }
  return {
    name,
    type: message.int(2),
    shape,
    raw: message.bytes(9),
    message,
    external: message.int(14) === 1 ? new Map(message.messages(13, byKey)) : null,
  };
}

function valueInfoOf(message: Message): OnnxValueInfo {
  const tensor = message.message(2, (type) => type.message(1, (one) => one));
  const shape = tensor?.message(2, (one) => one.messages(1, extentOf));
  return { name: message.text(1), type: tensor?.int(1) ?? 0, shape: shape ?? null };
}

function extentOf(message: Message): OnnxExtent {
  if (message.has(1)) return message.int(1);
  const name = message.text(2);
  return name === "" ? null : name;
}
