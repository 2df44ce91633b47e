/**
 * @file Which inputs of a node carry a derivative. A value is active when it is a float that depends on an active
 * parameter through operations that have derivatives; partials are built only for active inputs. Integers, comparisons
 * and stop_gradient end activity because their declarations say so (`derivative: none`, a partial of "zero").
 */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { isFloat } from "../kernel/dtype.ts";

/** Whether the declaration lets a derivative through from input `i`. */
function passes(node: Node, i: number): boolean {
  const { derivative } = node.op;
  switch (derivative.kind) {
    case "none":
      return false;
    case "elementwise":
      return (derivative.partials[i] ?? "zero") !== "zero";
    case "multilinear":
      return derivative.linear?.includes(i) ?? true;
    case "linear":
    case "general":
    case "region":
      return true;
  }
}

/** The inputs of a node through which a derivative flows, in order; none when no result is a float. */
export function activeInputs(
  node: Node,
  inputs: readonly Value[],
  isActive: (value: Value) => boolean,
): readonly number[] {
  if (!node.outputs.some((value) => isFloat(value.type.dtype))) return [];
  const found: number[] = [];
  inputs.forEach((value, i) => {
    if (isFloat(value.type.dtype) && passes(node, i) && isActive(value)) found.push(i);
  });
  return found;
}

/** Nodes whose results reach a float result of the graph; a tangent elsewhere would be dead. */
export function usefulNodes(graph: Graph): ReadonlySet<Node> {
  const wanted = new Set<Value>(graph.results.filter((value) => isFloat(value.type.dtype)));
  const useful = new Set<Node>();
  for (const node of [...graph.nodes].reverse()) {
    if (!node.outputs.some((value) => wanted.has(value))) continue;
    useful.add(node);
    for (const value of node.inputs) if (isFloat(value.type.dtype)) wanted.add(value);
  }
  return useful;
}

/** Which results of a graph may depend on the parameters marked active. */
export function reached(graph: Graph, active: readonly boolean[]): readonly boolean[] {
  const found = new Set(graph.params.filter((param, i) => active[i] && isFloat(param.type.dtype)));
  for (const node of graph.nodes) {
    if (activeInputs(node, node.inputs, (value) => found.has(value)).length === 0) continue;
    for (const value of node.outputs) if (isFloat(value.type.dtype)) found.add(value);
  }
  return graph.results.map((value) => found.has(value));
}

/**
 * The parameters of a loop's body that are active in some iteration: those marked, and carries that depend on them. `first` is
 * the number of the first carry among the parameters; results begin with the carries.
 */
export function activeInLoop(
  body: Graph,
  active: readonly boolean[],
  first: number,
  carries: number,
): readonly boolean[] {
  const now = [...active];
  for (let grown = true; grown; ) {
    grown = false;
    const results = reached(body, now);
    for (let k = 0; k < carries; k++) {
      if (!results[k] || now[first + k]) continue;
      now[first + k] = true;
      grown = true;
    }
  }
  return now;
}
