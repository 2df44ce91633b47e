/** @file The library's entry point: functions.ts, tensors with methods, and the planner of budgets. */
import "./budgets.ts";

export { allOps } from "../ops/all.ts";
export { compileAsync } from "./compile-async.ts";
export * from "./functions.ts";
export { Tensor } from "./methods.ts";
export { plan } from "./plan.ts";
