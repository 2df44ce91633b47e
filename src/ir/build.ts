/**
 * @file The builder that appends nodes to a graph under construction. Shape rules run here, so a graph that was built is
 * typed. Used by tracing, by derivative rules and by passes.
 */

import { grouped, TidemarkError, withLocation } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import type { Graph, Node, Phase, Value } from "./graph.ts";
import { newValue, nodeLike } from "./graph.ts";
import type { AnyOp, Attrs, OpDef } from "./op.ts";
import { elementsOf, MOST_ELEMENTS, type TensorType, typeText } from "./type.ts";
import { rulesFor, type VaryingSite } from "./variance.ts";

/** What a node is besides its operation and operands. */
export interface NodeOptions {
  readonly name?: string | undefined;
  readonly regions?: readonly Graph[];
  readonly phase?: Phase;
  readonly where?: string | undefined;
  readonly replay?: number;
}

const NO_REGIONS: readonly Graph[] = [];

function typesOfResults({ op, inputs, attrs, regions }: VaryingSite): readonly TensorType[] {
  return op.infer(
    inputs.map(({ type }) => type),
    attrs,
    regions,
  );
}

/** Elements are numbered with 32-bit integers in kernels, whether a tensor is stored or not. */
function requireAddressable(name: string, type: TensorType): void {
  const elements = elementsOf(type.shape);
  if (elements <= MOST_ELEMENTS) return;
  throw new TidemarkError("ShapeMismatch", `${name}: ${typeText(type)} would have ${grouped(elements)} elements`, {
    help: `a tensor has at most ${grouped(MOST_ELEMENTS)}; work on parts of it`,
  });
}

/** A graph for inputs that vary over other axes than its parameters do; null where they agree. */
function reboundTo(graph: Graph, inputs: readonly Value[]): Graph | null {
  const rules = rulesFor(graph.params, []) ?? rulesFor(inputs, []);
  const types = inputs.map(({ type }) => type);
  return rules && graph.params.some(({ type }, i) => type.varies?.over.join() !== types[i]?.varies?.over.join())
    ? rules.rebound(graph, types)
    : null;
}

/**
 * Builds a graph node by node.
 *
 * @throws ShapeMismatch for more elements than a tensor may have, and whatever an operation says of operands that do not fit it
 *
 * @example
 * import { allOps } from "tidemark";
 * import { Build, tensorType } from "tidemark/ir";
 *
 * const b = new Build("f");
 * const x = b.param(tensorType("f32", [2]), "x");
 * const find = (name: string) => allOps.find((op) => op.name === name);
 * const tanh = find("tanh");
 * const graph = tanh ? b.finish([b.call(tanh, [x], {})]) : null;
 * console.log(graph?.nodes.length); // → 1
 */
export class Build {
  readonly name: string;
  readonly params: Value[] = [];
  readonly nodes: Node[] = [];
  /** Defaults for nodes appended from here on. */
  phase: Phase = "forward";
  where: string | undefined;
  replay = 0;
  scope: string | undefined;
  within: string | undefined;
  /** Of the first `#indexed` nodes: made when it is asked for, which few builders are. */
  readonly #producer = new Map<Value, Node>();
  #indexed = 0;

  constructor(name: string) {
    this.name = name;
  }

  param(type: TensorType, name?: string): Value {
    const value = newValue(type, name);
    this.params.push(value);
    return value;
  }

  /** Appends a node with one result. */
  call<A>(op: OpDef<A>, inputs: readonly Value[], attrs: A, options: NodeOptions = {}): Value {
    const [value] = this.callAll(op, inputs, attrs, options);
    invariant(value, () => `${op.name} has no result`);
    return value;
  }

  /** Appends a node and returns all its results. */
  callAll<A>(op: OpDef<A>, given: readonly Value[], attrs: A, options: NodeOptions = {}): readonly Value[] {
    const where = options.where ?? this.where;
    const regions = options.regions ?? NO_REGIONS;
    const asked: VaryingSite = { op: op as AnyOp, inputs: given, attrs: attrs as Attrs, regions };
    const rules = rulesFor(given, regions);
    try {
      const site = rules?.fitted(this, asked) ?? asked;
      const inferred = typesOfResults(site);
      const types = rules?.results(site, inferred) ?? inferred;
      const outputs: Value[] = [];
      for (let i = 0; i < types.length; i++) {
        const type = types[i] as TensorType;
        requireAddressable(op.name, type);
        outputs.push(newValue(type, options.name));
      }
      this.append({
        op: op as AnyOp,
        inputs: site.inputs,
        attrs: attrs as Attrs,
        outputs,
        regions: site.regions,
        phase: options.phase ?? this.phase,
        where,
        replay: options.replay ?? this.replay,
        scope: this.scope,
        within: this.within,
      });
      return outputs;
    } catch (error) {
      throw withLocation(error, where);
    }
  }

  /** Appends a finished node as it is. */
  append(node: Node): void {
    this.nodes.push(node);
    // A node that was removed and replaced is indexed again.
    this.#indexed = Math.min(this.#indexed, this.nodes.length - 1);
  }

  /** The node that made a value in this builder, or undefined for parameters. */
  producer(value: Value): Node | undefined {
    for (; this.#indexed < this.nodes.length; this.#indexed++) {
      const node = this.nodes[this.#indexed] as Node;
      for (const output of node.outputs) this.#producer.set(output, node);
    }
    return this.#producer.get(value);
  }

  finish(results: readonly Value[]): Graph {
    return { name: this.name, params: [...this.params], nodes: [...this.nodes], results };
  }

  /** `inline` for a graph without other users: its values and most of its nodes are reused. */
  absorb(graph: Graph, inputs: readonly Value[], where: string | undefined): readonly Value[] {
    const other = reboundTo(graph, inputs);
    if (other) return this.inline(other, inputs, { where });
    const bound = new Map(graph.params.map((param, i) => [param, inputs[i] ?? param]));
    const resolve = (value: Value): Value => bound.get(value) ?? value;
    for (const node of graph.nodes) {
      const same = node.where !== undefined && !node.inputs.some((input) => bound.has(input));
      this.append(same ? node : nodeLike(node, { inputs: node.inputs.map(resolve), where: node.where ?? where }));
    }
    return graph.results.map(resolve);
  }

  /** Appends a graph's nodes with its parameters bound to `inputs`; returns what its results became. */
  inline(given: Graph, inputs: readonly Value[], override: NodeOptions = {}): readonly Value[] {
    const graph = reboundTo(given, inputs) ?? given;
    const map = new Map<Value, Value>();
    graph.params.forEach((param, i) => {
      const input = inputs[i];
      if (input) map.set(param, input);
    });
    const resolve = (value: Value): Value => {
      const found = map.get(value);
      invariant(found, () => `value ${value.name ?? value.id} of ${graph.name} is not defined before its use`);
      return found;
    };
    for (const node of graph.nodes) {
      const outputs = node.outputs.map((v) => newValue(v.type, v.name));
      this.append(
        nodeLike(node, {
          inputs: node.inputs.map(resolve),
          outputs,
          phase: override.phase ?? node.phase,
          where: node.where ?? override.where,
          replay: override.replay ?? node.replay,
        }),
      );
      node.outputs.forEach((v, i) => {
        const made = outputs[i];
        if (made) map.set(v, made);
      });
    }
    return graph.results.map(resolve);
  }
}
