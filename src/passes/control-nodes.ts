/** @file Finds loops and branches. Most programs have none, so passes for them can return early. */
import type { Graph, Node } from "../ir/graph.ts";

/** Loops and branches: they run regions, read memory, and are in no kernel. */
export const isControl = (node: Node): boolean => node.op.lower.kind === "control";

/** They read values where these are stored, and never compute them from others: loops, branches, and exchanges of devices. */
export const readsStored = (node: Node): boolean => isControl(node) || isAlone(node);

/** In a kernel of its own, always. */
export const isAlone = ({ op: { lower } }: Node): boolean => lower.kind === "nests" && lower.alone === true;

/** Whether there is one in a graph or in its regions. */
export function hasControl(graph: Graph): boolean {
  return graph.nodes.some((node) => isControl(node) || (node.regions.length > 0 && node.regions.some(hasControl)));
}
