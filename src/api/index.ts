/**
 * @file `tidemark`: tensors and functions of them, derivatives, and `compile`, which plans the memory of a function before it runs.
 * What most programs import: with methods on tensors, and the planner of budgets.
 */
import "./budgets.ts";

export { allOps } from "../ops/all.ts";
export { compileAsync } from "./compile-async.ts";
export { type Deviation, lossyDeviation, type ResultDeviation, type ValueDeviation } from "./deviation.ts";
export * from "./functions.ts";
export type { LossyOptions, ResidualBits } from "./lossy-options.ts";
export { Tensor } from "./methods.ts";
export { pageFile, type SpillFile } from "./page-file.ts";
export { plan } from "./plan.ts";
