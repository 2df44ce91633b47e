/**
 * @file `tidemark/core`: the functions of `tidemark` without methods on tensors, for programs that are bundled. A method brings
 * every operation along; of functions a bundler keeps those that are used. Plans within budgets are in `tidemark/core/budget`, and
 * `compileAsync` loads them when it is called. Why: docs/decisions/0035-core-entry.md.
 */
export * from "../api/functions.ts";
export { Tensor } from "../trace/tensor.ts";
export { compileAsync } from "./compile-async.ts";
