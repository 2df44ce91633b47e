/**
 * @file `tidemark/remat`: recomputation in graphs of operations with given costs and bytes, without a program to run, and the
 * strategy `optimal`, which asks a solver of integer programs.
 */
export { ALL_STRATEGIES, exactPlanner } from "./exact-planner.ts";
export { type Highs, highsSolver } from "./highs.ts";
export { planGraph } from "./plan-graph.ts";
