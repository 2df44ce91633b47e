/**
 * @file Whole numbers that the backward pass reads, of operations that say how large they can be: positions of a sort among 256 elements
 * take 8 bits, not 32. They are packed after they are made and unpacked where they are read; nothing is lost.
 *
 *   p = argsort(x);  y = gather(x, p)              p = argsort(x);  y = gather(x, p);  w = pack_codes(p) {bits=8}
 *   ─────────────────────────────────── kept: p    ────────────────────────────────────────────────────── kept: w, a quarter of p
 *   d_x = scatter_add(0, p, d_y)                   d_x = scatter_add(0, unpack_codes(w), d_y)
 */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, resultOf } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { producersOf } from "../ir/walk.ts";
import { CODE_BITS, packCodes, unpackCodes } from "../ops/codes.ts";
import { isForward, LateReaders } from "./late-readers.ts";
import { LateReads } from "./late-reads.ts";
import { placeOf } from "./packing.ts";
import { isView, LEAST_SAVED } from "./predicates.ts";

/** Bits of the numbers that a node makes; null if they are as many as it stores, or not known. */
function bitsOf({ op, inputs, attrs }: Node): number | null {
  const types = inputs.map(({ type }) => type);
  const limit = op.facts?.below?.(attrs, types);
  if (limit === undefined) return null;
  return CODE_BITS.find((bits) => limit <= 2 ** bits) ?? null;
}

/** The graph with such numbers in few bits. */
export function withFewBits(graph: Graph): Graph {
  if (!graph.nodes.some(({ op }) => op.facts?.below !== undefined)) return graph;
  const readers = new LateReaders(graph);
  const returned = new Set(graph.results);
  const instead = new Map<Value, Node>();
  const behind = new Map<Node, Node>();
  for (const node of graph.nodes) {
    const bits = bitsOf(node);
    if (bits === null || !isForward(node) || isView(node)) continue;
    const value = resultOf(node);
    const { type } = value;
    const place = placeOf(node);
    const [words] = packCodes.infer([type], { bits }, []);
    if (!words || returned.has(value) || byteLength(type) - byteLength(words) < LEAST_SAVED) continue;
    if ((readers.of(value, node.replay) ?? []).length === 0) continue;
    const packed: Node = {
      ...place,
      op: packCodes,
      inputs: [value],
      attrs: { bits },
      outputs: [newValue(words)],
      regions: [],
    };
    const attrs = { bits, shape: type.shape };
    behind.set(node, packed);
    instead.set(value, {
      ...place,
      op: unpackCodes,
      inputs: packed.outputs,
      attrs,
      outputs: [newValue(type)],
      regions: [],
    });
  }
  if (instead.size === 0) return graph;
  const late = new LateReads(producersOf(graph), {
    instead: (value) => instead.get(value),
    isShared: (node) => isForward(node) && isView(node),
  });
  const nodes: Node[] = [];
  for (const node of graph.nodes) {
    nodes.push(isForward(node) || node.phase === "update" ? node : late.reading(node, nodes));
    const packed = behind.get(node);
    if (packed) nodes.push(packed);
  }
  return { ...graph, nodes };
}
