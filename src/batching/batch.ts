/**
 * @file A graph over a batch, as a transformation of graphs: parameters marked get a new first axis, and the function is applied to
 * each element along it. A value that depends on none of them has no axis and is computed once. Each node becomes what its
 * operation's rule says (ir/batch.ts), so most become one node of the same operation, one axis larger:
 *
 *   h = matmul(x, w)       x f32[4,8]       h f32[4,2]
 *   h = matmul(x, w)       x f32[5·4,8]     h f32[5·4,2]      over a batch of 5 where w is the same for all
 */

import { at, invariant } from "../base/invariant.ts";
import { batchRule } from "../ir/batch.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import type { RegionRule } from "../ir/op.ts";
import { byteLength, withShape } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { sum } from "../ops/broadcast.ts";
import { full } from "../ops/create.ts";
import {
  all,
  type Batched,
  type BatchedGraph,
  type BatchRequest,
  extended,
  type NodeSite,
  withAxes,
} from "./batched.ts";
import { batchedBranch } from "./branch.ts";
import { overElements } from "./elements.ts";
import { batchedLoop } from "./loops.ts";
import { flowingWhere } from "./masks.ts";

/** What the regions of a node mean; null for a node without any. */
function regionRule(node: Node): RegionRule | null {
  const { derivative } = node.op;
  return derivative.kind === "region" && node.regions.length > 0 ? (derivative.rule?.(node) ?? null) : null;
}

/** A function that is called: its body over a batch. */
function batchedCall({ b, node }: NodeSite, made: BatchedGraph): Batched {
  return { values: b.callAll(node.op, node.inputs, node.attrs, { regions: [made.graph] }), batched: made.batched };
}

/** Bytes of copies, one for each element, of what does not vary. */
const MOST_COPIED = 2 ** 20;

/**
 * A call whose first result says whether the others count. Where that differs between elements, nothing may flow back through those
 * for which it is false; inputs that do not vary need a copy for each element for that. Null if they are too large.
 */
function batchedGate(site: NodeSite, body: Graph): Batched | null {
  const { b, node, batched, size, batch } = site;
  const made = batch(body, { params: batched });
  if (!made.batched[0]) return batchedCall(site, made);
  const needs = node.inputs.map(({ type }, i) => batched[i] || isFloat(type.dtype));
  const copied = node.inputs.filter((_, i) => needs[i] && !batched[i]);
  if (copied.reduce((sum, { type }) => sum + size * byteLength(type), 0) > MOST_COPIED) return null;
  const inputs = withAxes(b, { values: node.inputs, batched }, needs, size);
  const { graph } = batch(body, { params: needs, results: all(node.outputs) });
  // computed twice here, and once when it is compiled
  const [counts] = b.inline(graph, inputs);
  const flowing = inputs.map((value, i) => (needs[i] ? flowingWhere(b, counts as Value, value) : value));
  const values = b.inline(graph, flowing);
  return { values, batched: all(values) };
}

type CustomVjp = Extract<RegionRule, { kind: "custom_vjp" }>;

/** Both regions; the cotangent of an input that does not vary is the sum of those of all elements. */
function batchedVjp({ b, node, batched, batch }: NodeSite, { forward, backward, results }: CustomVjp): Batched {
  const values = node.outputs.slice(0, results);
  const ahead = batch(forward, { params: batched, results: all(values) });
  const cotangents = values.filter(({ type }) => isFloat(type.dtype));
  const params = [...ahead.batched.slice(results), ...all(cotangents)];
  const back = batch(backward, { params, results: all(backward.results) });
  const varies = batched.filter((_, i) => isFloat(at(node.inputs, i).type.dtype));
  const summed = extended(back.graph, (to, cts) =>
    cts.map((ct, i) => (varies[i] ? ct : to.call(sum, [ct], { axes: [0] }))),
  );
  const regions = [ahead.graph, summed];
  return { values: b.callAll(node.op, node.inputs, node.attrs, { regions }), batched: ahead.batched };
}

function batchedJvp({ b, node, batched, batch }: NodeSite, tangent: Graph): Batched {
  const body = batch(at(node.regions, 0), { params: batched, results: all(node.outputs) });
  const tangents = batched.filter((_, i) => isFloat(at(node.inputs, i).type.dtype));
  const along = batch(tangent, { params: [...batched, ...tangents], results: all(tangent.results) });
  const regions = [body.graph, along.graph];
  return { values: b.callAll(node.op, node.inputs, node.attrs, { regions }), batched: body.batched };
}

function batchedRegions(site: NodeSite, rule: RegionRule): Batched | null {
  switch (rule.kind) {
    case "inline":
    case "replay":
      return batchedCall(site, site.batch(rule.body, { params: site.batched }));
    case "gated":
      return batchedGate(site, rule.body);
    case "custom_vjp":
      return batchedVjp(site, rule);
    case "custom_jvp":
      return batchedJvp(site, rule.tangent);
    case "control":
      return rule.control.kind === "branch" ? batchedBranch(site) : batchedLoop(site);
  }
}

/** By the operation's own rule. */
function byRule({ b, node, batched, size }: NodeSite): Batched | null {
  const rule = batchRule(node.op);
  if (!rule) return null;
  const { inputs, attrs } = node;
  if (rule.kind === "general") {
    const values = rule.apply(b, { x: inputs, batched, size, attrs });
    return values && { values, batched: all(values) };
  }
  const operands = withAxes(b, { values: inputs, batched }, all(inputs), size);
  const name = node.outputs[0]?.name;
  const values = b.callAll(node.op, operands, rule.attrs(attrs, size), { name });
  return { values, batched: all(values) };
}

/** Of no elements: nothing is computed. */
function ofNothing({ b, node }: NodeSite): Batched {
  const values = node.outputs.map(({ type: { dtype, shape } }) =>
    b.call(full, [], { dtype, shape: [0, ...shape], value: 0 }),
  );
  return { values, batched: all(values) };
}

function batchedNode(site: NodeSite): Batched {
  if (site.size === 0) return ofNothing(site);
  const rule = regionRule(site.node);
  return (rule ? batchedRegions(site, rule) : byRule(site)) ?? overElements(site);
}

/**
 * The graph over a batch of `size` elements. Results that `request` asks for have the axis even if they do not vary; of others the
 * answer says which do.
 */
export function batch(
  graph: Graph,
  size: number,
  { params: marked, results: wanted = [] }: BatchRequest,
): BatchedGraph {
  const b = new Build(graph.name);
  const now = new Map<Value, Value>();
  const varying = new Set<Value>();
  graph.params.forEach((param, i) => {
    const { type } = param;
    const value = b.param(marked[i] ? withShape(type, [size, ...type.shape]) : type, param.name);
    now.set(param, value);
    if (marked[i]) varying.add(value);
  });
  const resolve = (value: Value): Value => {
    const found = now.get(value);
    invariant(found, () => `value ${value.name ?? value.id} of ${graph.name} is not defined before its use`);
    return found;
  };
  for (const node of graph.nodes) {
    const inputs = node.inputs.map(resolve);
    const batched = inputs.map((value) => varying.has(value));
    if (!batched.includes(true)) {
      const outputs = node.outputs.map(({ type, name }) => newValue(type, name));
      b.append(nodeLike(node, { inputs, outputs }));
      node.outputs.forEach((value, i) => {
        now.set(value, at(outputs, i));
      });
      continue;
    }
    b.phase = node.phase;
    b.where = node.where;
    b.replay = node.replay;
    b.scope = node.scope;
    b.within = node.within;
    const own = (region: Graph, request: BatchRequest): BatchedGraph => batch(region, size, request);
    const made = batchedNode({ b, node: nodeLike(node, { inputs }), batched, size, batch: own });
    node.outputs.forEach((value, i) => {
      now.set(value, at(made.values, i));
      if (made.batched[i]) varying.add(at(made.values, i));
    });
  }
  const values = graph.results.map(resolve);
  const has = values.map((value) => varying.has(value));
  return {
    graph: b.finish(withAxes(b, { values, batched: has }, wanted, size)),
    batched: has.map((one, i) => one || wanted[i] === true),
  };
}
