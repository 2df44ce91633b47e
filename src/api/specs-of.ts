/** @file The types of a function's results, without running it. */
import { requireFunction } from "../trace/arguments.ts";
import { type AnyFunction, flattenArguments, traceFlat } from "../trace/function.ts";
import { type Tree, unflatten } from "../trace/tree.ts";
import { spec } from "./create.ts";

/**
 * What a function returns, as specs: it is traced and not run, so that the state of a model can be planned with before
 * there is memory for it. Constants of the function are specs of their types as well.
 *
 * @memory None of the results': specs have no elements.
 *
 * @example
 * import { spec, specsOf } from "tidemark";
 * import { adam } from "tidemark/optim";
 *
 * const state = specsOf(() => adam().init({ w: spec([50257, 768]) }))();
 * console.log(state.slots.m?.w.shape); // [50257, 768]
 */
export function specsOf<A extends readonly Tree[], R>(fn: (...args: A) => R): (...args: A) => R {
  requireFunction("specsOf", "its argument", fn);
  return (...args) => {
    const { graph, resultTree } = traceFlat(fn as AnyFunction, flattenArguments(fn as AnyFunction, args));
    return unflatten(
      resultTree,
      graph.results.map(({ type }) => spec(type.shape, type.dtype)),
    ) as R;
  };
}
