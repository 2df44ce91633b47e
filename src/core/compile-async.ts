/** @file `compileAsync` of `tidemark/core`: what it needs besides, among it the planner of budgets, is loaded when it is called. */
import type { Compiled } from "../api/compile.ts";
import type { CompileAsyncOptions } from "../api/compile-async.ts";
import type { PaddedOptions } from "../api/request.ts";
import type { Lengths } from "../api/shape-axes.ts";
import type { Tree } from "../trace/tree.ts";

/**
 * Compiles a function over tensors for arguments like these, without keeping the thread busy: the function is traced, and a
 * worker plans it and generates its code. The result is that of `compile`, whose program for these arguments is ready.
 *
 * @example
 * ```ts
 * import { add, compileAsync, mul, spec, tensor } from "tidemark/core";
 *
 * const scale = await compileAsync((x) => add(mul(x, 2), 1), [spec([3])]);
 * console.log(scale(tensor([1, 2, 3])).toArray()); // [3, 5, 7]
 * ```
 */
export async function compileAsync<A extends readonly (Tree | undefined)[], R = unknown, N extends string = string>(
  fn: (...args: [...A, Lengths<N>]) => R,
  args: Readonly<A>,
  options: CompileAsyncOptions & PaddedOptions<N>,
): Promise<Compiled<A, R>>;
export async function compileAsync<A extends readonly (Tree | undefined)[], R = unknown>(
  fn: (...args: A) => R,
  args: Readonly<A>,
  options?: CompileAsyncOptions,
): Promise<Compiled<A, R>>;
export async function compileAsync<A extends readonly (Tree | undefined)[], R = unknown>(
  fn: (...args: A) => R,
  args: Readonly<A>,
  options: CompileAsyncOptions = {},
): Promise<Compiled<A, R>> {
  const [loaded] = await Promise.all([import("../api/compile-async.ts"), import("../api/budgets.ts")]);
  return loaded.compileAsync(fn, args, options);
}
