/**
 * @file Loop-invariant code motion: values that a body computes only from constants of the loop are computed once, before the
 * loop, and become further constants. Only those that are worth storing: operations with loops of their own, and costly
 * functions whose results are no larger than their operands; cheap maps cost nothing where they are fused.
 *
 *   scan(c, k) { body(i, c, k) { w = matmul(k, k); … } }      →      w = matmul(k, k);  scan(c, w) { body(i, c, w) { … } }
 */

import { at } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import { wiringOf } from "../ir/control.ts";
import { type Graph, type Node, newValue, nodeLike, type Value } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import { rewriteGraph, type Visit } from "../ir/walk.ts";
import { hasControl } from "./control-nodes.ts";
import type { Pass } from "./pass.ts";

/** Work an element from which a map is not cheap. */
const COSTLY_FLOPS = 8;

const bytesOf = (values: readonly Value[]): number => values.reduce((sum, { type }) => sum + byteLength(type), 0);

/** `sources`: the values in memory that the node depends on. */
function isWorthwhile({ op, inputs, outputs, attrs, regions }: Node, sources: ReadonlySet<Value>): boolean {
  const { lower } = op;
  if (lower.kind !== "map") return true;
  if (lower.fusion === "always" || bytesOf(outputs) > bytesOf([...sources])) return false;
  const types = outputs.map((value) => value.type);
  const { flops } = op.cost(
    inputs.map((value) => value.type),
    types,
    attrs,
    regions,
  );
  return flops >= COSTLY_FLOPS * elementsOf(at(types, 0).shape);
}

/** A region whose last parameters are constants; those after `first`. */
interface Place {
  readonly region: Graph;
  readonly first: number;
}

/** Nodes that depend only on constants and are worth storing. */
function worthMoving({ region, first }: Place): ReadonlySet<Node> {
  /** Loop-invariant values, with the values in memory that they depend on. */
  const sources = new Map(region.params.slice(first).map((param) => [param, new Set([param])]));
  const found = new Set<Node>();
  for (const node of region.nodes) {
    if (!node.inputs.every((value) => sources.has(value))) continue;
    const from = new Set(node.inputs.flatMap((value) => [...(sources.get(value) ?? [])]));
    const moves = isWorthwhile(node, from);
    if (moves) found.add(node);
    for (const value of node.outputs) sources.set(value, moves ? new Set([value]) : from);
  }
  return found;
}

/** Values of a region that move out: computed by nodes worth it, and read by nodes that stay (or are results). */
function movedValues({ region, first }: Place): readonly Value[] {
  const worth = worthMoving({ region, first });
  const made = new Set([...worth].flatMap((node) => node.outputs));
  const read = new Set(region.results);
  // A cheap node that reads hoisted values stays; a costly one moves along.
  for (const node of region.nodes) if (!worth.has(node)) for (const value of node.inputs) read.add(value);
  return [...made].filter((value) => read.has(value));
}

/** Appends the nodes of a region that compute some values, from the outer values of its constants. */
function computeOutside(b: Build, { region, first }: Place, consts: readonly Value[], values: readonly Value[]) {
  const now = new Map<Value, Value>();
  region.params.slice(first).forEach((param, i) => {
    now.set(param, at(consts, i));
  });
  const wanted = new Set(values);
  const needed = [...region.nodes].reverse().filter((node) => {
    if (!node.outputs.some((value) => wanted.has(value))) return false;
    for (const value of node.inputs) wanted.add(value);
    return true;
  });
  for (const node of needed.reverse()) {
    const outputs = node.outputs.map((value) => newValue(value.type, value.name));
    const inputs = node.inputs.map((value) => now.get(value) as Value);
    b.append(nodeLike(node, { inputs, outputs, phase: b.phase, replay: b.replay, where: node.where ?? b.where }));
    node.outputs.forEach((value, i) => {
      now.set(value, at(outputs, i));
    });
  }
  return values.map((value) => now.get(value) as Value);
}

/** The region with more constants at the end, some of which are values it computed. */
function withConstants(region: Graph, total: readonly Value[], own: readonly Value[], from: number): Graph {
  const params = total.map((value) => newValue(value.type, value.name));
  const now = new Map(own.map((value, i) => [value, at(params, from + i)]));
  const resolve = (value: Value): Value => now.get(value) ?? value;
  const nodes = region.nodes
    .filter((node) => !node.outputs.every((value) => now.has(value)))
    .map((node) => (node.inputs.some((v) => now.has(v)) ? nodeLike(node, { inputs: node.inputs.map(resolve) }) : node));
  return { ...region, params: [...region.params, ...params], nodes, results: region.results.map(resolve) };
}

/** The regions of a loop with the number of their first constant. */
function placesOf(node: Node): { readonly places: readonly Place[]; readonly consts: readonly Value[] } {
  const wiring = wiringOf(node);
  const size = wiring?.inputs.find(({ kind }) => kind === "const")?.size ?? 0;
  if (!wiring?.repeats || size === 0) return { places: [], consts: [] };
  const places = node.regions.map((region) => ({ region, first: region.params.length - size }));
  return { places, consts: node.inputs.slice(-size) };
}

const visit: Visit = (b, node) => {
  const { places, consts } = placesOf(node);
  const moved = places.map(movedValues);
  const total = moved.flat();
  if (total.length === 0) return null;
  const outside = places.flatMap((place, n) => computeOutside(b, place, consts, at(moved, n)));
  let from = 0;
  const regions = places.map(({ region }, n) => {
    const own = at(moved, n);
    from += own.length;
    return withConstants(region, total, own, from - own.length);
  });
  b.append(nodeLike(node, { inputs: [...node.inputs, ...outside], regions }));
  return node.outputs;
};

/** Computes loop-invariant values once, before the loop. */
export const hoist: Pass = {
  name: "hoist",
  after: ["inline"],
  run: (graph) => (hasControl(graph) ? rewriteGraph(graph, () => visit) : graph),
};
