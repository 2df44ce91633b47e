/**
 * @file `linearize`: a function near a point, as its value there and a linear function of tangents. Forward mode gives one graph for
 * both; what depends on the point alone runs once, and what it leaves for tangents is kept (autodiff/split.ts).
 */
import { jvp as jvpGraph } from "../autodiff/jvp.ts";
import { splitGraph } from "../autodiff/split.ts";
import { loopSupport } from "../compiler/loops.ts";
import type { Graph } from "../ir/graph.ts";
import { withLiveNodes } from "../ir/walk.ts";
import { requireFunction } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";
import { activeParams, bind } from "./grad.ts";
import { installPart } from "./host.ts";
import { floatsBeside, withZeros } from "./modes.ts";

/** What depends on the first `params` parameters, then what it leaves; and the results after the first `results` from that. */
function parts(graph: Graph, params: number, results: number): readonly [Graph, Graph] {
  const [values, slopes] = [graph.results.slice(0, results), graph.results.slice(results)];
  const isFirst = graph.params.map((_, i) => i < params);
  const { known, rest, isKnown, residuals } = splitGraph(graph, isFirst, slopes);
  // a tangent of zero is known
  const kept = [...new Set([...residuals, ...slopes.filter((value) => isKnown.has(value))])];
  const first = { ...graph, params: graph.params.slice(0, params), nodes: known, results: [...values, ...kept] };
  const others = graph.params.slice(params);
  return [withLiveNodes(first), { ...graph, params: [...kept, ...others], nodes: rest, results: slopes }];
}

/**
 * The value of a function at a point, and the function from tangents of the arguments (of their structure) to the tangent of the
 * value there. Unlike `jvp`, what depends on the point alone is computed once, however many tangents follow.
 *
 * @memory What tangents need of the point is kept for as long as the returned function is.
 *
 * @example
 * import { linearize, tensor } from "tidemark";
 *
 * const [y, along] = linearize((x) => x.square(), tensor([1, 2]));
 * console.log(y.toArray(), along(tensor([1, 0])).toArray(), along(tensor([0, 10])).toArray()); // [1, 4] [2, 0] [0, 40]
 */
export function linearize<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  fn: (...args: Args) => R,
  ...primals: Args
): [R, (...tangents: Args) => R] {
  requireFunction("linearize", "its first argument", fn, "linearize((x) => x.sin(), x)");
  installPart("loops", loopSupport);
  const bound = bind(fn as AnyFunction, primals);
  const { traced, flat, inputs } = bound;
  const all = primals.map((_, i) => i);
  const joint = jvpGraph(traced.graph, activeParams(bound, all));
  const count = traced.graph.results.length;
  const [first, rest] = parts(joint, traced.graph.params.length, count);
  const made = applyGraph(first, inputs);
  const [values, kept] = [made.slice(0, count), made.slice(count)];
  const along = (...tangents: Args): R => {
    const given = flat.trees.flatMap((tree, n) => flattenLike(tree, tangents[n], `tangents[${n}]`));
    const slopes = applyGraph(rest, [...kept, ...floatsBeside("linearize", "tangent", given, flat.tensors)]);
    return unflatten(traced.resultTree, withZeros(values, slopes)) as R;
  };
  return [unflatten(traced.resultTree, values) as R, along];
}
