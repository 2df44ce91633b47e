/** @file The two modes themselves, on functions of any structure: vjp (reverse), jvp (forward), and one on the other. */
import { jvp as jvpGraph } from "../autodiff/jvp.ts";
import { vjp as vjpGraph } from "../autodiff/vjp.ts";
import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { fail, requireArray, requireFunction } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import { applyGraph, placed } from "./apply.ts";
import { activeParams, bind, grad } from "./grad.ts";
import { fullOf } from "./operands.ts";

/** Tensors that stand beside others, one for each float among them: checked, and without those beside integers. @internal */
export function floatsBeside(
  name: string,
  what: string,
  given: readonly Tensor[],
  beside: readonly Tensor[],
): readonly Tensor[] {
  return beside.flatMap((x, i) => {
    if (!isFloat(x.dtype)) return [];
    const t = placed(at(given, i), x);
    if (t.dtype === x.dtype && sameShape(t.shape, x.shape)) return [t];
    return fail(
      "ShapeMismatch",
      `${name}: a ${what} is ${typeText(t)} for ${typeText(x)}`,
      "both must have the same type",
    );
  });
}

/** One tensor for each of `like`: the given ones for floats, zeros for others. @internal */
export function withZeros(like: readonly Tensor[], floats: readonly Tensor[]): readonly Tensor[] {
  let next = 0;
  return like.map((x) => (isFloat(x.dtype) ? at(floats, next++) : fullOf(x.dtype, x.shape, 0)));
}

/**
 * Reverse mode: the value, and a function from a cotangent of the value (of its structure) to cotangents of all
 * arguments. Cotangents of integers are zero.
 *
 * @memory As for `grad`, inside of a program. Outside, the returned function keeps the arguments alone, and runs the forward pass again
 * when it is called.
 *
 * @example
 * import { tensor, vjp } from "tidemark";
 *
 * const [y, pullback] = vjp((x) => x.square(), tensor([1, 2]));
 * const [dx] = pullback(tensor([1, 10]));
 * console.log(y.toArray(), dx.toArray()); // [1, 4] [2, 40]
 */
export function vjp<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  fn: (...args: Args) => R,
  ...args: Args
): [R, (cotangent: R) => Args] {
  requireFunction("vjp", "its first argument", fn);
  const bound = bind(fn as AnyFunction, args);
  const { traced, flat, inputs } = bound;
  const results = applyGraph(traced.graph, inputs);
  const joint = vjpGraph(
    traced.graph,
    activeParams(
      bound,
      args.map((_, i) => i),
    ),
  );
  const pullback = (cotangent: R): Args => {
    // the forward part stands in both graphs; inside a trace equal nodes are merged
    const given = floatsBeside("vjp", "cotangent", flattenLike(traced.resultTree, cotangent, "cotangent"), results);
    const made = applyGraph(joint, [...inputs, ...given]).slice(results.length);
    const all = withZeros(flat.tensors, made);
    return flat.trees.map((tree, n) =>
      unflatten(
        tree,
        all.filter((_, i) => flat.leaves[i]?.argument === n),
      ),
    ) as unknown as Args;
  };
  return [unflatten(traced.resultTree, results) as R, pullback];
}

/**
 * Forward mode: the value, and its derivative along tangents of the arguments (of their structure).
 *
 * @memory Nothing is kept: each value and its tangent live until the last step that reads them.
 *
 * @example
 * import { jvp, tensor } from "tidemark";
 *
 * const [y, t] = jvp((x) => x.square(), [tensor([1, 2])], [tensor([1, 10])]);
 * console.log(y.toArray(), t.toArray()); // [1, 4] [2, 40]
 */
export function jvp<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  fn: (...args: Args) => R,
  primals: Args,
  tangents: NoInfer<Args>,
): [R, R] {
  requireFunction("jvp", "its first argument", fn);
  requireArray("jvp", "the arguments", primals, "jvp(f, [x], [t])");
  requireArray("jvp", "the tangents", tangents, "jvp(f, [x], [t])");
  if (tangents.length !== primals.length) {
    const summary = `jvp: ${tangents.length} tangents for ${primals.length} arguments`;
    fail("InvalidArgument", summary, "give one tangent for each argument: jvp(f, [x, y], [tx, ty])");
  }
  const bound = bind(fn as AnyFunction, primals);
  const { traced, flat, inputs } = bound;
  const given = flat.trees.flatMap((tree, n) => flattenLike(tree, tangents[n], `tangents[${n}]`));
  const active = activeParams(
    bound,
    primals.map((_, i) => i),
  );
  const made = applyGraph(jvpGraph(traced.graph, active), [
    ...inputs,
    ...floatsBeside("jvp", "tangent", given, flat.tensors),
  ]);
  const results = made.slice(0, traced.graph.results.length);
  const along = withZeros(results, made.slice(results.length));
  return [unflatten(traced.resultTree, results) as R, unflatten(traced.resultTree, along) as R];
}

/**
 * The Hessian of a scalar function with respect to its first argument, applied to a vector, without forming it: the
 * derivative of the gradient along the vector.
 *
 * @memory That of the program of the gradient, with a tangent beside each of its values that depend on the vector.
 *
 * @example
 * import { hvp, tensor } from "tidemark";
 *
 * const product = hvp((x) => x.pow(3).sum(), [tensor([1, 2])], tensor([1, 1]));
 * console.log(product.toArray()); // [6, 12]
 */
export function hvp<A extends Tree = Tensor, Rest extends readonly Tree[] = []>(
  fn: (arg0: A, ...rest: Rest) => Tensor,
  args: readonly [A, ...Rest],
  vector: NoInfer<A>,
): A {
  requireFunction("hvp", "its first argument", fn);
  requireArray("hvp", "the arguments", args, "hvp(f, [x], v)");
  const [x, ...rest] = args;
  const gradient = grad(fn as (...args: readonly [A, ...Rest]) => Tensor);
  const along = (arg0: A): A => gradient(...([arg0, ...rest] as unknown as readonly [A, ...Rest])) as A;
  return jvp<[A], A>(along, [x], [vector])[1];
}
