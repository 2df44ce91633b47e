/**
 * @file Branches over a batch. If all elements take the same branch it is a branch of batches. Else all branches are computed for all
 * elements, and each element gets the results of its own.
 */
import { at } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { full, fullAttrs } from "../ops/create.ts";
import { apply } from "../ops/define.ts";
import { eq, ge, le } from "../ops/elementwise.ts";
import { type CastAttrs, cast } from "../ops/select.ts";
import { all, type Batched, type NodeSite, withAxes } from "./batched.ts";
import { choose, flowingWhere } from "./masks.ts";

export function batchedBranch(site: NodeSite): Batched {
  return site.batched[0] ? everyBranch(site) : oneBranch(site);
}

function oneBranch({ b, node, batched, batch }: NodeSite): Batched {
  const params = batched.slice(1);
  const made = node.regions.map((region) => batch(region, { params }));
  const results = node.outputs.map((_, r) => made.some((one) => one.batched[r]));
  const regions = node.regions.map((region) => batch(region, { params, results }).graph);
  return { values: b.callAll(node.op, node.inputs, node.attrs, { regions }), batched: results };
}

/** By region, which elements it is for; numbers beyond the regions count as the nearest. */
function chosen(b: Build, index: Value, regions: readonly Graph[]): readonly Value[] {
  const number = b.call<CastAttrs>(cast, [index], { dtype: "i32" });
  return regions.map((_, k) => {
    const own = b.call(full, [], fullAttrs(number.type, k));
    if (k === 0) return apply(b, le, number, own);
    return apply(b, k === regions.length - 1 ? ge : eq, number, own);
  });
}

function everyBranch({ b, node, batched, size, batch }: NodeSite): Batched {
  const [index, ...operands] = node.inputs;
  const params = batched.slice(1);
  const masks = chosen(b, index as Value, node.regions);
  const made = node.regions.map((region, k) => {
    const own = operands.map((value, i) => (params[i] ? flowingWhere(b, at(masks, k), value) : value));
    const { graph, batched: has } = batch(region, { params });
    const values = b.inline(graph, own, { where: node.where });
    return withAxes(b, { values, batched: has }, all(values), size);
  });
  const [first = [], ...others] = made;
  const values = first.map((value, r) =>
    others.reduce((so, results, k) => choose(b, at(masks, k + 1), at(results, r), so), value),
  );
  return { values, batched: all(values) };
}
