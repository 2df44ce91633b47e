/**
 * @file Moves constants and broadcasts into loops and branches: a constant is created where it is used, and a loop over a
 * stack of equal rows reads one row. Neither is then stored for the loop, which can
 * only read memory.
 *
 *   v = full {shape=[100,4], value=1}                         the rows are full {shape=[4], value=1}
 *   w = broadcast(k) {axes=[1], shape=[100,4]}                the rows are k: a constant of the loop
 *   … = scan(c, v, w)                                         … = scan(c, k)
 */

import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { type Group, wiringOf, withSizes } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { nodeLike } from "../ir/graph.ts";
import { type Shape, sameShape } from "../ir/type.ts";
import { rewriteGraph, type Visit } from "../ir/walk.ts";
import { type BroadcastAttrs, broadcast } from "../ops/broadcast.ts";
import { type FullAttrs, full } from "../ops/create.ts";
import { hasControl } from "./control-nodes.ts";
import type { Pass } from "./pass.ts";

/** The replacement of a region's parameter: a constant, or a broadcast of another operand. */
type Inside = { readonly full: FullAttrs } | { readonly of: Value; readonly broadcast: BroadcastAttrs | null };

/** A value whose every element is one number, with a shape. */
function constantOf(b: Build, value: Value, shape: Shape): Inside | null {
  const producer = b.producer(value);
  const number = producer?.op.facts?.constant?.(producer.attrs);
  return number === undefined ? null : { full: { dtype: value.type.dtype, shape, value: number } };
}

/** A stack whose rows are all the same: a constant, or a view with no axis of its input for the rows. */
function equalRows(b: Build, stack: Value): Inside | null {
  const shape = stack.type.shape.slice(1);
  const constant = constantOf(b, stack, shape);
  const producer = b.producer(stack);
  const of = producer?.inputs[0];
  const axes = of && producer.op.facts?.viewAxes?.(producer.attrs, of.type.shape, stack.type.shape);
  if (constant || !axes) return constant;
  const own = axes.flatMap((axis) => (axis === null || axis === 0 ? [] : [axis - 1]));
  if (own.length < axes.length) return null;
  const isRow = sameShape(of.type.shape, shape) && own.every((axis, i) => axis === i);
  return { of, broadcast: isRow ? null : { axes: own, shape } };
}

/** A region whose parameters in `inside` are computed in it; the operands for them come last. */
function rebound(region: Graph, inside: ReadonlyMap<number, Inside>): Graph {
  const b = new Build(region.name);
  const extra: Value[] = [];
  const params = region.params.map((param, i) => (inside.has(i) ? null : b.param(param.type, param.name)));
  for (const how of inside.values()) if ("of" in how) extra.push(b.param(how.of.type, how.of.name));
  let next = 0;
  const bound = region.params.map((_, i) => {
    const how = inside.get(i);
    if (!how) return params[i] as Value;
    if ("full" in how) return b.call(full, [], how.full);
    const of = at(extra, next++);
    return how.broadcast ? b.call(broadcast, [of], how.broadcast) : of;
  });
  return b.finish(b.inline(region, bound));
}

/** The replacement of an input of a group, if it has one. */
function insideOf(b: Build, input: Value, { kind }: Group): Inside | null {
  if (kind === "row") return equalRows(b, input);
  return kind === "const" ? constantOf(b, input, input.type.shape) : null;
}

/** The members of the groups of a list of values, by group and number. */
const places = (groups: readonly Group[]): readonly { readonly group: Group; readonly i: number }[] =>
  groups.flatMap((group) => Array.from({ length: group.size }, (_, i) => ({ group, i })));

/** The node with inputs replaced. */
function sinkInto(b: Build, node: Node): Node | null {
  const wiring = wiringOf(node);
  if (!wiring) return null;
  const inside = new Map<number, Inside>();
  const inputs = places(wiring.inputs);
  inputs.forEach(({ group }, n) => {
    const how = insideOf(b, at(node.inputs, n), group);
    if (how) inside.set(n, how);
  });
  if (inside.size === 0) return null;
  const extra = [...inside.values()].flatMap((how) => ("of" in how ? [how.of] : []));
  const regions = node.regions.map((region, r) => {
    const params = places(at(wiring.regions, r).params);
    const own = [...inside].flatMap(([n, how]): (readonly [number, Inside])[] => {
      const place = params.findIndex(({ group, i }) => group === at(inputs, n).group && i === at(inputs, n).i);
      return place < 0 ? [] : [[place, how]];
    });
    return rebound(region, new Map(own));
  });
  const left = (group: Group): number => inputs.filter((own, n) => own.group === group && !inside.has(n)).length;
  return nodeLike(node, {
    inputs: [...node.inputs.filter((_, n) => !inside.has(n)), ...extra],
    attrs: withSizes(node.attrs, wiring, left),
    regions,
  });
}

const visit: Visit = (b, node) => {
  const made = sinkInto(b, node);
  if (!made) return null;
  b.append(made);
  return made.outputs;
};

/** Creates constants inside of loops and branches, and lets loops read one row of stacks with equal rows. */
export const sink: Pass = {
  name: "sink",
  after: ["inline"],
  run: (graph) => (hasControl(graph) ? rewriteGraph(graph, () => visit) : graph),
};
