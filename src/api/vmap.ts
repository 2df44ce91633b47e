/**
 * @file `vmap`: a function of single elements applied to a batch of them. The function is traced on one element, its graph is
 * transformed into one over the batch (batching/), and that takes the place of the call; so it nests with itself and with
 * derivatives in any order.
 */

import { at } from "../base/invariant.ts";
import { batch } from "../batching/batch.ts";
import { loopSupport } from "../compiler/loops.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { tensorType, typeText, withShape } from "../ir/type.ts";
import { movedAxis, repeated } from "../ops/batch.ts";
import { fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import { type AnyFunction, type FlatArguments, flattenArguments, traceFlat } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { outsideOfTraces } from "../trace/trace.ts";
import { leafPaths, type Tree, type TreeDef, unflatten } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";
import {
  axesOf,
  type BatchAxes,
  type BatchAxis,
  type BatchLeaf,
  batchSize,
  placeOf,
  placeWithin,
} from "./batch-axes.ts";
import { concreteOf } from "./concrete.ts";
import { installPart } from "./host.ts";
import { slice } from "./shape.ts";

/** Options of {@link vmap}. */
export interface VmapOptions {
  /** The batch's axis of the arguments: one for all, or a list with an axis or a tree of axes for each; 0 by default. */
  readonly in?: BatchAxis | readonly BatchAxes[];
  /** Where results have it: one for all, or a tree of axes; 0 by default, null for what does not vary. */
  readonly out?: BatchAxes;
}

const OPTIONS: OptionKinds<VmapOptions> = { in: "anything", out: "anything" };

/** Axes of all tensors among arguments. */
function inAxes(spec: unknown, { trees, leaves }: FlatArguments): readonly BatchLeaf[] {
  if (Array.isArray(spec) && spec.length !== trees.length) {
    const summary = `vmap: in has axes for ${spec.length} arguments, the call has ${trees.length}`;
    fail("InvalidArgument", summary, "give one for each argument, null for those that do not vary");
  }
  const axes = trees.flatMap((tree, n) => axesOf("the axis", tree, Array.isArray(spec) ? spec[n] : spec));
  return leaves.map(({ path, type }, i) => ({ path, type, axis: at(axes, i) }));
}

/** The first element of a batch, where it is known. */
function firstElement(tensor: Tensor, axis: number): Tensor | null {
  const [known] = concreteOf([tensor]) ?? [];
  if (!known || known.shape[axis] === 0) return null;
  return outsideOfTraces(() => slice(known, [...new Array<null>(axis).fill(null), 0]));
}

interface Result {
  readonly path: string;
  readonly axis: BatchAxis;
}

/** A result with the axis where it is wanted. */
function placed(b: Build, value: Value, { path, axis }: Result, size: number | null): Value {
  const { dtype, shape } = value.type;
  const type = tensorType(dtype, size === null ? shape.slice(1) : shape);
  if (axis === null) {
    if (size !== null) return value;
    const help = "give the axis along which results are stacked, or return what does not depend on the batch";
    return fail("InvalidAxis", `vmap: the axis of ${path} is null, but it differs between elements`, help);
  }
  const what = `${path}, which is ${typeText(type)} for each element and has one more axis`;
  const to = placeWithin(axis, type.shape.length + 1, what);
  return movedAxis(b, size === null ? value : repeated(b, value, size), 0, to);
}

/** The graph of a function of one element, over a batch: parameters and results have the axis where users have it. */
function overBatch(graph: Graph, size: number, leaves: readonly BatchLeaf[], results: readonly Result[]): Graph {
  const params = graph.params.map((_, i) => (leaves[i]?.axis ?? null) !== null);
  const made = batch(graph, size, { params });
  const b = new Build(graph.name);
  const inputs = made.graph.params.map((param, i) => {
    const leaf = leaves[i];
    if (!leaf || leaf.axis === null) return b.param(param.type, param.name);
    return movedAxis(b, b.param(leaf.type, param.name), placeOf(leaf, leaf.axis), 0);
  });
  const values = b.absorb(made.graph, inputs, undefined);
  b.where = undefined;
  return b.finish(values.map((value, r) => placed(b, value, at(results, r), made.batched[r] ? null : size)));
}

const resultsOf = (tree: TreeDef, spec: unknown): readonly Result[] => {
  const axes = axesOf("the axis", tree, spec);
  return leafPaths(tree).map((path, i) => ({ path, axis: at(axes, i) }));
};

/**
 * A function of batches from a function of single elements: along an axis of the arguments (`in`) it is applied to each element, and
 * results are stacked along an axis (`out`). It is one program over the whole batch, not a loop: products of matrices become one
 * product. What the function closes over, and arguments whose axis is null, are the same for all elements.
 *
 * @memory That of the function on the whole batch; what does not depend on the batch is there once.
 *
 * @example
 * import { grad, tensor, vmap } from "tidemark";
 *
 * const dots = vmap((a, b) => a.mul(b).sum(), { in: [0, null] });
 * const rows = dots(tensor([[1, 2], [3, 4]]), tensor([10, 1]));
 * console.log(rows.toArray()); // [12, 34]
 * const slopes = vmap(grad((x) => x.pow(3)))(tensor([1, 2, 3]));
 * console.log(slopes.toArray()); // [3, 12, 27]
 */
export function vmap<Args extends readonly Tree[] = Tensor[], R extends Tree = Tensor>(
  fn: (...args: Args) => R,
  options: VmapOptions = {},
): (...args: Args) => R {
  requireFunction("vmap", "its argument", fn, "vmap((x) => x.sum())");
  requireOptions("vmap", options, OPTIONS);
  const { in: inSpec = 0, out = 0 } = options;
  return (...args) => {
    installPart("loops", loopSupport);
    const flat = flattenArguments(fn as AnyFunction, args);
    const leaves = inAxes(inSpec, flat);
    const size = batchSize(leaves);
    const ofElement = leaves.map((leaf, i) => {
      const { type, axis } = leaf;
      if (axis === null) return at(flat.leaves, i);
      const place = placeOf(leaf, axis);
      return { ...at(flat.leaves, i), type: withShape(type, type.shape.toSpliced(place, 1)) };
    });
    const sample = (i: number): Tensor | null => {
      const leaf = at(leaves, i);
      const tensor = at(flat.tensors, i);
      return leaf.axis === null ? tensor : firstElement(tensor, placeOf(leaf, leaf.axis));
    };
    const traced = traceFlat(fn as AnyFunction, { ...flat, leaves: ofElement }, "local", sample);
    const graph = overBatch(traced.graph, size, leaves, resultsOf(traced.resultTree, out));
    const inputs = [...flat.tensors, ...traced.captures.map(({ tensor }) => tensor)];
    return unflatten(traced.resultTree, applyGraph(graph, inputs, "once")) as R;
  };
}
