/**
 * @file The reference meaning of a graph: every operation by its own `evaluate`, in doubles, one after the other. Passes,
 * derivatives and targets are compared with it, so it is kept simple and shares no code with them. Floats are not rounded unless asked for: the result is then closer to the exact one than any target's.
 */

import { TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { isFloat, storedNumber } from "../kernel/dtype.ts";
import type { Graph, Node, Value } from "./graph.ts";
import type { EvaluateContext, Reference } from "./op.ts";
import { namer, nodeText } from "./print.ts";
import { elementsOf, typeText } from "./type.ts";

/** Options of {@link evaluate}. */
export interface EvaluateOptions {
  /** Round inputs and results to their types after every operation, as a target would. */
  readonly round?: boolean;
}

function rounded(value: Value, data: Reference, options: EvaluateOptions): Reference {
  const { dtype } = value.type;
  if (!options.round || !isFloat(dtype)) return data;
  return data.map((x) => storedNumber(dtype, x));
}

function bindInputs(graph: Graph, inputs: readonly Reference[], options: EvaluateOptions): Map<Value, Reference> {
  if (inputs.length !== graph.params.length) {
    throw new TidemarkError(
      "InvalidArgument",
      `${graph.name} takes ${graph.params.length} inputs, got ${inputs.length}`,
    );
  }
  const nameOf = namer(graph);
  const data = new Map<Value, Reference>();
  graph.params.forEach((param, i) => {
    const input = inputs[i] as Reference;
    if (input.length !== elementsOf(param.type.shape)) {
      const expected = `${elementsOf(param.type.shape)} elements for ${nameOf(param)}: ${typeText(param.type)}`;
      throw new TidemarkError("InvalidArgument", `${graph.name}: expected ${expected}, got ${input.length}`);
    }
    data.set(param, rounded(param, input, options));
  });
  return data;
}

/** Number of the last node that reads each value; results are read by the end. */
function lastUses(graph: Graph): Map<Value, number> {
  const last = new Map<Value, number>();
  graph.nodes.forEach((node, step) => {
    for (const input of node.inputs) last.set(input, step);
  });
  for (const result of graph.results) last.set(result, graph.nodes.length);
  return last;
}

/** The results of a node by its own meaning. */
export function applied(
  node: Node,
  inputs: readonly Reference[],
  run: EvaluateContext<unknown>["run"],
): readonly Reference[] {
  return node.op.evaluate({
    inputs,
    inTypes: node.inputs.map((v) => v.type),
    outTypes: node.outputs.map((v) => v.type),
    attrs: node.attrs,
    regions: node.regions,
    run,
  });
}

/**
 * Runs a graph on doubles, row-major; bools are 0 and 1.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { evaluate, parse } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log(evaluate(graph, [Float64Array.of(0, 1)]).map((row) => [...row])); // → [[0, 0.761594]]
 */
export function evaluate(
  graph: Graph,
  inputs: readonly Reference[],
  options: EvaluateOptions = {},
): readonly Reference[] {
  const apply = (node: Node, own: readonly Reference[]): readonly Reference[] =>
    applied(node, own, (region, given) => evaluateWith(apply, region, given, options));
  return evaluateWith(apply, graph, inputs, options);
}

/** The same with another meaning of single nodes. */
export function evaluateWith(
  apply: (node: Node, inputs: readonly Reference[]) => readonly Reference[],
  graph: Graph,
  inputs: readonly Reference[],
  options: EvaluateOptions,
): readonly Reference[] {
  const data = bindInputs(graph, inputs, options);
  const last = lastUses(graph);
  const read = (value: Value): Reference => {
    const found = data.get(value);
    invariant(found, () => `${namer(graph)(value)} of ${graph.name} is read before it is computed`);
    return found;
  };
  graph.nodes.forEach((node, step) => {
    const results = apply(node, node.inputs.map(read));
    node.outputs.forEach((output, i) => {
      const result = results[i];
      const expected = elementsOf(output.type.shape);
      invariant(result?.length === expected, () => {
        return `${nodeText(node, namer(graph))} gave ${result?.length} elements, ${typeText(output.type)} has ${expected}`;
      });
      data.set(output, rounded(output, result, options));
    });
    for (const input of node.inputs) if (last.get(input) === step) data.delete(input);
  });
  return graph.results.map(read);
}
