/**
 * @file Checks that a graph is well-formed, without prior assumptions: every value is defined once and before its use, every
 * type is what the operation infers, attributes are plain data, regions are closed. It shares no code with the builder
 * and the parser beyond the shape rules themselves, and it returns every violation, not the first.
 */
import { TidemarkError } from "../base/errors.ts";
import { isAttr, NAME } from "./attrs.ts";
import type { Graph, Node, Value } from "./graph.ts";
import { namer, nodeText } from "./print.ts";
import { type Shape, sameType, type TensorType, typeText } from "./type.ts";
import { varianceProblem } from "./variance.ts";

/** A way in which a graph is malformed. */
export interface Violation {
  /** The graph it is in; regions as `outer/inner`. */
  readonly graph: string;
  /** The statement, or undefined when it concerns the graph as a whole. */
  readonly node: Node | undefined;
  readonly message: string;
}

function isShape(shape: Shape): boolean {
  return shape.every((extent) => Number.isInteger(extent) && extent >= 0);
}

function attrViolations(node: Node): string[] {
  const found: string[] = [];
  for (const [key, value] of Object.entries(node.attrs)) {
    if (!NAME.test(key)) found.push(`attribute key ${JSON.stringify(key)} is not a name`);
    if (!isAttr(value)) found.push(`attribute ${key} is not a number, string, boolean or list of them`);
  }
  return found;
}

function typeViolations(node: Node, nameOf: (value: Value) => string): string[] {
  let inferred: readonly TensorType[];
  try {
    inferred = node.op.infer(
      node.inputs.map((v) => v.type),
      node.attrs,
      node.regions,
    );
  } catch (error) {
    return [error instanceof TidemarkError ? `${error.code}: ${error.summary}` : String(error)];
  }
  if (inferred.length !== node.outputs.length) {
    return [`has ${node.outputs.length} results, ${node.op.name} infers ${inferred.length}`];
  }
  const found: string[] = [];
  node.outputs.forEach((output, i) => {
    const type = inferred[i] as TensorType;
    if (sameType(type, output.type)) return;
    found.push(`${nameOf(output)} is ${typeText(output.type)}, ${node.op.name} infers ${typeText(type)}`);
  });
  return found;
}

/**
 * Every way in which a graph is malformed; empty when it is well-formed.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, violations } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log(violations(graph)); // → []
 */
export function violations(graph: Graph, path: string = graph.name): readonly Violation[] {
  // names are computed for messages alone
  let names: ((value: Value) => string) | undefined;
  const nameOf = (value: Value): string => {
    names ??= namer(graph);
    return names(value);
  };
  const found: Violation[] = [];
  const report = (node: Node | undefined, message: string): void => {
    found.push({ graph: path, node, message });
  };
  const defined = new Set<Value>();
  const define = (value: Value, node: Node | undefined): void => {
    if (defined.has(value)) report(node, `${nameOf(value)} is defined twice`);
    if (!isShape(value.type.shape)) report(node, `${nameOf(value)} has the shape [${value.type.shape.join(",")}]`);
    defined.add(value);
  };
  for (const param of graph.params) define(param, undefined);
  for (const node of graph.nodes) {
    for (const input of node.inputs) {
      if (!defined.has(input)) report(node, `${nameOf(input)} is used before it is defined`);
    }
    if (node.outputs.length === 0) report(node, "has no result");
    if (!Number.isInteger(node.replay) || node.replay < 0)
      report(node, `replay ${node.replay} is not a whole number ≥ 0`);
    for (const message of [...attrViolations(node), ...typeViolations(node, nameOf)]) report(node, message);
    const problem = varianceProblem(node);
    if (problem) report(node, problem);
    for (const region of node.regions) found.push(...violations(region, `${path}/${region.name}`));
    for (const output of node.outputs) define(output, node);
  }
  for (const result of graph.results) {
    if (!defined.has(result)) report(undefined, `result ${nameOf(result)} is not defined`);
  }
  return found;
}

/** Violations as lines, `name: message, in z = add(x, y)`. */
export function violationText(graph: Graph, found: readonly Violation[]): string {
  const nameOf = namer(graph);
  const nodes = new Set(graph.nodes);
  return found
    .map(({ graph: path, node, message }) => {
      if (!node) return `${path}: ${message}`;
      const place = nodes.has(node) ? nodeText(node, nameOf) : node.op.name;
      return `${path}: ${message}, in ${place}${node.where ? ` (${node.where})` : ""}`;
    })
    .join("\n  ");
}

/**
 * Throws `InvalidGraph` with every violation.
 *
 * @throws InvalidGraph where a rule is violated, with all violations
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, verify } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) verify(graph); // throws InvalidGraph where it is malformed
 */
export function verify(graph: Graph): void {
  const found = violations(graph);
  if (found.length === 0) return;
  const count = found.length === 1 ? "1 violation" : `${found.length} violations`;
  throw new TidemarkError("InvalidGraph", `${graph.name} has ${count}\n  ${violationText(graph, found)}`, {
    help: "values are defined once and before their use, with the types that their operations infer",
  });
}
