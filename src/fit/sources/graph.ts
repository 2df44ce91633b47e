/**
 * @file The forward pass of a graph of this library as a program that PyTorch runs: operation by operation, where each derivative keeps
 * what PyTorch's names of it read, and views share storage. What is fused here is not fused there.
 */
import type { Pt2Input, Pt2Node, Pt2Program, Pt2TensorType } from "../../formats/pt2-program.ts";
import type { OpFacts } from "../../ir/facts.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { isFloat } from "../../kernel/dtype.ts";
import { inputBit, Signatures } from "../../tape/signatures.ts";
import type { EagerType } from "../torch/call.ts";
import { elementsOf } from "../torch/layout.ts";
import type { EagerProgram } from "../torch/step.ts";

interface GraphSettings {
  /** Bytes of a float in PyTorch; undefined: as in the graph. */
  readonly floatBytes: number | undefined;
}

/** `paths`: where in the state each parameter is; null for other arguments. */
export function graphProgram(graph: Graph, settings: GraphSettings, paths: readonly (string | null)[]): EagerProgram {
  const names = new Map<Value, string>();
  const nameOf = (value: Value): string => {
    const known = names.get(value);
    if (known !== undefined) return known;
    const made = `v${names.size}`;
    names.set(value, made);
    return made;
  };
  const forward = graph.nodes.filter(({ phase }) => phase === "forward");
  const types = new Map<string, EagerType>();
  const note = (value: Value, isHeld = true): void => {
    types.set(nameOf(value), typeOf(value, isHeld, settings.floatBytes));
  };
  for (const param of graph.params) note(param);
  for (const node of forward) for (const output of node.outputs) note(output, node.inputs.length > 0);
  const program: Pt2Program = {
    ...{ torch: "none", ranges: new Map(), types: new Map<string, Pt2TensorType>() },
    inputs: inputsOf(graph, paths, nameOf),
    nodes: forward.map((node) => nodeOf(node, nameOf)),
    outputs: [{ kind: "loss_output", argument: { as_tensor: { name: nameOf(lossOf(graph)) } }, name: "loss" }],
  };
  return {
    program,
    type: (name) => types.get(name),
    number: () => undefined,
    storageOf: (value) => value,
    loss: "result",
  };
}

/** The last scalar float that the forward pass makes and the graph returns. */
function lossOf({ results, nodes }: Graph): Value {
  const made = new Set(nodes.filter(({ phase }) => phase === "forward").flatMap(({ outputs }) => outputs));
  const isLoss = (value: Value): boolean =>
    made.has(value) && value.type.shape.length === 0 && isFloat(value.type.dtype);
  return results.findLast(isLoss) ?? (results.at(-1) as Value);
}

function typeOf({ type }: Value, isHeld: boolean, floatBytes: number | undefined): EagerType {
  const { shape } = type;
  const float = isFloat(type.dtype);
  const own = byteLength(type) / Math.max(elementsOf(shape), 1);
  const item = float ? (floatBytes ?? own) : own;
  // numbers that operations are given are no tensors there
  return { shape, isFloat: float, item: isHeld ? item : 0 };
}

function inputsOf(
  graph: Graph,
  paths: readonly (string | null)[],
  nameOf: (value: Value) => string,
): readonly Pt2Input[] {
  const isParameter = (path: string | null | undefined): boolean => path != null && /^\w+\.params\b/.test(path);
  const hasNames = paths.some(isParameter);
  return graph.params.flatMap((param, i): readonly Pt2Input[] => {
    const path = paths[i];
    const value = nameOf(param);
    const isTrained = isFloat(param.type.dtype) && (hasNames ? isParameter(path) : path != null);
    if (isTrained) return [{ kind: "parameter", value, name: path ?? value }];
    // state of the optimizer is that of PyTorch's
    if (path != null) return [];
    return [{ kind: "user_input", value, name: value }];
  });
}

function nodeOf(node: Node, nameOf: (value: Value) => string): Pt2Node {
  const { op, inputs, outputs } = node;
  const isView = op.alias !== null || op.view !== undefined;
  const tensors = (values: readonly Value[]) => values.map((value) => ({ name: nameOf(value) }));
  return {
    target: `tidemark.${isView && inputs.length > 0 ? "view" : "operation"}`,
    inputs: [
      { name: "inputs", arg: { as_tensors: tensors(inputs) } },
      { name: "saved", arg: { as_ints: savedBy(node) } },
    ],
    outputs: [{ as_tensors: tensors(outputs) }],
    metadata: { stack_trace: "" },
  };
}

/** What its derivative reads: inputs by their position, outputs as -1, -2, … */
function savedBy(node: Node): readonly number[] {
  const { torchReads } = (node.op.facts ?? {}) as OpFacts<unknown>;
  if (torchReads) return [...new Set(torchReads.flat())];
  const all = new Signatures();
  const active = node.inputs.reduce((mask, { type }, i) => (isFloat(type.dtype) ? mask | inputBit(i) : mask), 0);
  const { inputs, outputs } = all.at(all.of(node)).saved(active);
  return [...inputs, ...outputs.map((i) => -1 - i)];
}
