/**
 * @file Rows of matrices in bodies of loops at multiples of some bytes, for targets whose products read matrices by a copy engine
 * that asks for it: a strip of logits, 512 × 50,257, has rows of 50,260 elements in memory, of which the last three are never
 * read. Only values that live inside of a body, between kernels that find elements by their positions, have gaps; parameters,
 * results and everything that shares storage have none. It runs on the fused graph. Values outside of bodies are left as they are:
 * recomputation knows them by their identity.
 */

import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import { elementsOf } from "../ir/type.ts";
import { bytesOf } from "../kernel/dtype.ts";
import { isControl, readsStored } from "./control-nodes.ts";

/** Elements of a row, and of a matrix, from which gaps of less than 16 bytes do not count. */
const LONG_ROW = 256;
const LARGE = 2 ** 20;

/** What a kernel consists of. */
const nodesOf = (node: Node): readonly Node[] =>
  node.op.lower.kind === "region" ? (node.regions[0]?.nodes ?? []) : [node];

const isProduct = (node: Node): boolean => nodesOf(node).some(({ op }) => op.lower.kind === "contract");

/** Kernels that store elements by their positions; others store by numbers. */
const BY_POSITION: ReadonlySet<string> = new Set(["map", "contract", "reduce", "scan"]);

const storesByPosition = (node: Node): boolean => nodesOf(node).every(({ op }) => BY_POSITION.has(op.lower.kind));

/** Elements from row to row, where they are more than a row has. */
function pitchOf({ type: { dtype, shape } }: Value, rowBytes: number): number | null {
  const row = shape.at(-1) ?? 1;
  const unit = rowBytes / bytesOf(dtype);
  if (shape.length < 2 || row % unit === 0 || row < LONG_ROW || elementsOf(shape) < LARGE) return null;
  return Math.ceil(row / unit) * unit;
}

/** Cache of a pure function: variants of a program share bodies of loops, which are planned once. By bytes. */
const alignedBefore = new Map<number, WeakMap<Graph, Graph>>();

/** The graph with rows at multiples of so many bytes in bodies of loops. */
export function alignRows(graph: Graph, rowBytes: number): Graph {
  if (!graph.nodes.some(isControl)) return graph;
  const nodes = graph.nodes.map((node): Node => {
    if (!isControl(node)) return node;
    return nodeLike(node, { regions: node.regions.map((region) => alignedBody(region, rowBytes)) });
  });
  return { ...graph, nodes };
}

function alignedBody(body: Graph, rowBytes: number): Graph {
  const known = alignedBefore.get(rowBytes) ?? new WeakMap<Graph, Graph>();
  alignedBefore.set(rowBytes, known);
  const made = known.get(body) ?? alignRows(withPitches(body, rowBytes), rowBytes);
  known.set(body, made);
  known.set(made, made);
  return made;
}

/** Values that get gaps, with the values that have them. */
function pitched(graph: Graph, rowBytes: number): ReadonlyMap<Value, Value> {
  const readers = new Map<Value, Node[]>();
  for (const node of graph.nodes) {
    for (const value of new Set(node.inputs)) readers.set(value, [...(readers.get(value) ?? []), node]);
  }
  const results = new Set(graph.results);
  const found = new Map<Value, Value>();
  for (const node of graph.nodes) {
    if (isControl(node) || node.op.alias !== null || !storesByPosition(node)) continue;
    for (const value of node.outputs) {
      const pitch = pitchOf(value, rowBytes);
      const reading = readers.get(value) ?? [];
      if (pitch === null || results.has(value) || ![node, ...reading].some(isProduct)) continue;
      if (reading.some((reader) => readsStored(reader) || reader.op.alias !== null)) continue;
      found.set(value, newValue({ ...value.type, pitch }, value.name));
    }
  }
  return found;
}

function withPitches(graph: Graph, rowBytes: number): Graph {
  const replaced = pitched(graph, rowBytes);
  if (replaced.size === 0) return graph;
  const now = (value: Value): Value => replaced.get(value) ?? value;
  const nodes = graph.nodes.map((node): Node => {
    if (![...node.inputs, ...node.outputs].some((value) => replaced.has(value))) return node;
    return nodeLike(node, { inputs: node.inputs.map(now), outputs: node.outputs.map(now) });
  });
  return { ...graph, nodes };
}
