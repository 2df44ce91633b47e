/** @file `compileAsync` of `tidemark/core`: what it needs besides, among it the planner of budgets, is loaded when it is called. */
import type { compileAsync as loadedCompileAsync } from "../api/compile-async.ts";

/**
 * Compiles a function over tensors for arguments like these, without keeping the thread busy: the function is traced, and a
 * worker plans it and generates its code. The result is that of `compile`, whose program for these arguments is ready.
 *
 * @throws As `compileAsync` of `tidemark`: InvalidArgument for options that are none, PlanInfeasible where no plan
 * fits `memory`
 *
 * @memory That of `compile`. The worker that plans has memory of its own.
 *
 * @example
 * ```ts
 * import { add, compileAsync, mul, spec, tensor } from "tidemark/core";
 *
 * const scale = await compileAsync((x) => add(mul(x, 2), 1), [spec([3])]);
 * console.log(scale(tensor([1, 2, 3])).toArray()); // [3, 5, 7]
 * ```
 */
export const compileAsync = (async (...given: Parameters<typeof loadedCompileAsync>) => {
  const [loaded] = await Promise.all([import("../api/compile-async.ts"), import("../api/budgets.ts")]);
  return loaded.compileAsync(...given);
}) as typeof loadedCompileAsync;
