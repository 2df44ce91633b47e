/**
 * @file Follows an ONNX graph: node by node, each operator applied to the values of its inputs. What is known is folded (fold.ts); the
 * rest are operations of this library, which a trace records. Only nodes that results depend on are followed. Functions of the model
 * are followed where they are called.
 */
import * as t from "../../api/functions.ts";
import { grouped, TidemarkError, withLocation } from "../../base/errors.ts";
import type { OnnxAttribute, OnnxFunction, OnnxGraph, OnnxNode } from "../../formats/onnx-file.ts";
import { type DecodedTensor, decodeTensor, type ReadExternal } from "../../formats/onnx-tensor.ts";
import { Tensor } from "../../trace/tensor.ts";
import { Call, type Followed, type Result, type Surroundings } from "./call.ts";
import { canFold, FOLDS } from "./fold.ts";
import { operatorOf } from "./operators.ts";
import { type Rebatch, rebatched } from "./rebatch.ts";
import { elementFor, type FloatChoice, isWholeElement, type Known, Value } from "./value.ts";

/** Functions that call functions: more is a circle. */
const MOST_DEPTH = 100;
/** Functions that call others twice, and loops in loops, multiply: more than these nodes is no model. */
const MOST_NODES = 500_000;

/** What all graphs of a model share. */
export interface Program {
  readonly opsets: ReadonlyMap<string, number>;
  readonly functions: ReadonlyMap<string, OnnxFunction>;
  readonly floats: FloatChoice;
  readonly external: ReadExternal | undefined;
  /** Is told of every node that was followed and not folded. */
  readonly observe?: ((followed: Followed) => void) | undefined;
  /** Another batch than the one that fixed sizes were recorded with. */
  readonly rebatch?: Rebatch | undefined;
}

/** Functions are told apart by their domain, their name, and which of that name. */
export const functionKey = (domain: string, name: string, overload: string): string =>
  `${domain}::${name}::${overload}`;

/** Values by name; a graph inside of another sees those around it. */
class Scope {
  readonly #own = new Map<string, Value>();
  readonly #outer: Scope | null;

  constructor(outer: Scope | null) {
    this.#outer = outer;
  }

  get(name: string): Value | undefined {
    return this.#own.get(name) ?? this.#outer?.get(name);
  }

  set(name: string, value: Value): void {
    this.#own.set(name, value);
  }
}

/** Where a list of nodes is followed: its versions, and attributes that stand for those of a call. */
interface Frame {
  readonly opsets: ReadonlyMap<string, number>;
  readonly attributes: ReadonlyMap<string, OnnxAttribute> | null;
  readonly depth: number;
  /** How often this list is followed, in loops that are followed iteration by iteration. */
  readonly times: number;
}

export class Interpreter {
  readonly #program: Program;
  readonly #key: Tensor;
  #draws = 0;
  #nodesFollowed = 0;
  #operatorsFollowed = 0;

  constructor(program: Program, key: Tensor) {
    this.#program = program;
    this.#key = key;
  }

  /** The results of a whole graph, whose inputs and initializers are given. */
  run(graph: OnnxGraph, given: ReadonlyMap<string, Value>): readonly Value[] {
    const scope = new Scope(null);
    for (const [name, value] of given) scope.set(name, value);
    return this.#graph(graph, scope, { opsets: this.#program.opsets, attributes: null, depth: 0, times: 1 });
  }

  #graph(graph: OnnxGraph, scope: Scope, frame: Frame): readonly Value[] {
    const names = graph.outputs.map(({ name }) => name);
    this.#nodes(graph.nodes, names, scope, frame);
    return names.map((name) => required(scope, name, "the graph's results"));
  }

  #nodes(nodes: readonly OnnxNode[], results: readonly string[], scope: Scope, frame: Frame): void {
    for (const node of neededNodes(nodes, results)) {
      try {
        this.#node(node, scope, frame);
      } catch (error) {
        throw atNode(error, node);
      }
    }
  }

  #node(given: OnnxNode, scope: Scope, frame: Frame): void {
    this.#nodesFollowed += 1;
    if (this.#nodesFollowed > MOST_NODES) {
      throw new TidemarkError(
        "InvalidFile",
        `the model has more than ${grouped(MOST_NODES)} nodes, functions and loops written out`,
        {
          help: "functions that call others several times multiply; export the model with fewer of them",
        },
      );
    }
    const node = withAttributes(given, frame.attributes);
    const inputs = node.inputs.map((name) => (name === "" ? null : required(scope, name, `${node.kind} ${node.name}`)));
    const called = this.#program.functions.get(functionKey(node.domain, node.kind, node.overload));
    const results = called ? this.#function(called, node, inputs, frame) : this.#operator(node, inputs, scope, frame);
    node.outputs.forEach((name, i) => {
      const value = results[i];
      if (name === "") return;
      if (!value) throw new TidemarkError("InvalidFile", `${node.kind} has no result ${i}, ${name}`, { help: BROKEN });
      scope.set(name, value);
    });
  }

  #operator(node: OnnxNode, given: readonly (Value | null)[], scope: Scope, frame: Frame): readonly (Value | null)[] {
    const opset = frame.opsets.get(node.domain) ?? this.#program.opsets.get(node.domain) ?? 1;
    const folded = fold(new Call(node, opset, given, this.#around(scope, frame)));
    if (folded) return folded.map((known, i) => Value.known(node.outputs[i] ?? "", known, this.#program.floats));
    const { rebatch } = this.#program;
    const inputs = rebatch ? rebatched(node, given, this.#operatorsFollowed, rebatch) : given;
    this.#operatorsFollowed += 1;
    const call = new Call(node, opset, inputs, this.#around(scope, frame));
    const operator = operatorOf(node.domain, node.kind);
    if (!operator) return call.fail("there is no such operator", "the message on reading lists all that are missing");
    const made = operator(call);
    const list = Array.isArray(made) ? (made as readonly Result[]) : [made as Result];
    const results = list.map((one, i) => valueFrom(call, one, node.outputs[i] ?? ""));
    this.#program.observe?.({ node, inputs, results });
    return results;
  }

  #around(scope: Scope, frame: Frame): Surroundings {
    return {
      floats: this.#program.floats,
      key: () => t.random.foldIn(this.#key, this.#draws++),
      decode: (attribute) => this.#decode(attribute),
      times: frame.times,
      follow: (graph, inputs, times = 1) => {
        const inner = new Scope(scope);
        for (const tensor of graph.initializers)
          inner.set(tensor.name, this.constant(decodeTensor(tensor, this.#program.external)));
        graph.inputs.forEach(({ name }, i) => {
          const value = inputs[i];
          if (value) inner.set(name, value);
        });
        return this.#graph(graph, inner, { ...frame, depth: frame.depth + 1, times: frame.times * times });
      },
    };
  }

  #decode(attribute: OnnxAttribute): Known {
    if (!attribute.tensor)
      throw new TidemarkError("InvalidFile", `the attribute ${attribute.name} has no tensor`, { help: BROKEN });
    return decodeTensor(attribute.tensor, this.#program.external);
  }

  /** An initializer that is no parameter. */
  constant(decoded: DecodedTensor): Value {
    return Value.known(decoded.name, decoded, this.#program.floats);
  }

  #function(called: OnnxFunction, node: OnnxNode, inputs: readonly (Value | null)[], frame: Frame): readonly Value[] {
    if (frame.depth > MOST_DEPTH) {
      throw new TidemarkError("InvalidFile", `functions call each other more than ${MOST_DEPTH} deep`, {
        help: BROKEN,
      });
    }
    const scope = new Scope(null);
    called.inputs.forEach((name, i) => {
      const value = inputs[i];
      if (value) scope.set(name, value);
    });
    const attributes = new Map([...called.defaults, ...node.attributes]);
    const { times } = frame;
    this.#nodes(called.nodes, called.outputs, scope, {
      ...{ opsets: called.opsets, attributes, depth: frame.depth + 1, times },
    });
    return called.outputs.map((name) => required(scope, name, `the results of ${called.name}`));
  }
}

const BROKEN = "the model is damaged; export it again";

function required(scope: Scope, name: string, user: string): Value {
  const value = scope.get(name);
  if (value) return value;
  throw new TidemarkError("InvalidFile", `${user} needs ${name}, which nothing before it computes`, {
    help: "a node comes after the nodes that it depends on; the graph has a circle or lacks a node",
  });
}

/** Errors of operations, with the node that they come from. */
function atNode(error: unknown, node: OnnxNode): unknown {
  const title = `${node.kind} ${node.name || node.outputs[0] || ""}`.trim();
  if (
    !(error instanceof TidemarkError) ||
    error.summary.startsWith(node.kind) ||
    error.summary.includes(" in the node ")
  ) {
    return error;
  }
  const made = new TidemarkError(error.code, `${error.summary} in the node ${title}`, { help: error.help });
  return withLocation(made, error.where);
}

/** A node with the attributes of a call in the places that stand for them. */
function withAttributes(node: OnnxNode, given: ReadonlyMap<string, OnnxAttribute> | null): OnnxNode {
  if (![...node.attributes.values()].some(({ reference }) => reference !== "")) return node;
  const entries = [...node.attributes].flatMap(([name, attribute]) => {
    if (attribute.reference === "") return [[name, attribute] as const];
    const value = given?.get(attribute.reference);
    return value ? [[name, { ...value, name }] as const] : [];
  });
  return { ...node, attributes: new Map(entries) };
}

/** Those that results depend on, in order. Graphs inside of nodes may use any name around them. */
function neededNodes(nodes: readonly OnnxNode[], results: readonly string[]): readonly OnnxNode[] {
  const wanted = new Set(results);
  const needed: OnnxNode[] = [];
  for (const node of [...nodes].reverse()) {
    if (!node.outputs.some((name) => wanted.has(name))) continue;
    needed.push(node);
    for (const name of namesUsed(node)) wanted.add(name);
  }
  return needed.reverse();
}

function namesUsed(node: OnnxNode): readonly string[] {
  const inner = [...node.attributes.values()].flatMap(({ graph }) => {
    return graph ? [...graph.nodes.flatMap(namesUsed), ...graph.outputs.map(({ name }) => name)] : [];
  });
  return [...node.inputs, ...inner];
}

function fold(call: Call): readonly Known[] | null {
  const { kind, domain } = call.node;
  const of = domain === "" && Object.hasOwn(FOLDS, kind) ? FOLDS[kind] : undefined;
  const given = call.inputs.filter((value) => value !== null);
  const known = given.flatMap((value) => value.known ?? []);
  if (!of || known.length !== given.length || known.length === 0 || !canFold(known)) return null;
  const made = of(call, known);
  if (made === null) return null;
  return Array.isArray(made) ? (made as readonly Known[]) : [made as Known];
}

/** What an operator gave, as a value: whole numbers keep the type of the first whole-number input. */
function valueFrom(call: Call, made: Result, name: string): Value | null {
  if (!(made instanceof Tensor)) return made;
  const integers = call.inputs.find((value) => value && isWholeElement(value.type));
  return Value.tensor(name, elementFor(made.dtype, integers?.type ?? "int64"), made);
}
