/**
 * @file `tidemark/plan`: memory planning on its own. Describe a schedule as a `Program`, get a `Plan`, look at it, check
 * it.
 *
 * ```ts
 * const plan = planProgram(program, { budgetBytes: 1 << 20 });
 * console.log(printPlan(plan), memoryMap(plan), reportText(plan));
 * ```
 */
export { assignBuffers } from "./alias.ts";
export { boundOf, liveBytes } from "./bound.ts";
export { type CsvProblem, parseCsv, printCsv } from "./csv.ts";
export { type Explanation, explainAll, explainText, explainValue } from "./explain.ts";
export { gradientBytes } from "./gradients.ts";
export { PLAN_JSON_VERSION, type PlanJson, type PlanJsonOptions, planJson, type SpaceJson } from "./json.ts";
export { type LiveBuffer, liveAt } from "./live.ts";
export { liveness } from "./liveness.ts";
export { memoryChart } from "./memory-chart.ts";
export { type MapOptions, memoryMap, type Paint } from "./memory-map.ts";
export { type MoveOptions, movableValues, moveValues } from "./move.ts";
export { orderSteps } from "./order.ts";
export { type SearchOptions, type SearchResult, searchPlacement } from "./place/search.ts";
export { greedyStrategies, type Placement, place, type Strategy } from "./place.ts";
export { type PlanOptions, planProgram, withinBudget } from "./plan.ts";
export { printPlan } from "./print.ts";
export {
  type Assignment,
  addressOf,
  type Bound,
  BUFFER_KINDS,
  type Buffer,
  type BufferId,
  type BufferKind,
  type Copy,
  heightOf,
  type Layout,
  type Lifespan,
  layoutIn,
  type Plan,
  type Problem,
  type ProgramBuffer,
  type ProgramProblem,
  problemIn,
  rangeOf,
  type Step,
} from "./problem.ts";
export { type CopyStep, checkProgram, type PlanStep, type Program, replacementOf, returnStepOf } from "./program.ts";
export { checkedPlan, readPlanJson } from "./read-json.ts";
export type { Answer } from "./recompute/auto.ts";
export {
  baseSequence,
  checkProblem,
  leastBytes,
  type RecomputeOp,
  type RecomputeProblem,
  type Sequence,
} from "./recompute/problem.ts";
export { readGraph } from "./recompute/read-graph.ts";
export { type Simulation, simulate } from "./recompute/simulate.ts";
export type { ExactPlanner, IntegerSolver, SolverAnswer, SolverLimits } from "./recompute/solver.ts";
export { PLAIN_STRATEGIES, planRecompute } from "./recompute/strategies.ts";
export type { RecomputeOptions, Strategy as RecomputeStrategy, StrategyName } from "./recompute/strategy.ts";
export { type KindReport, type PlanReport, reportPlan, reportText, type SpaceReport } from "./report.ts";
export type { Rule, Violation } from "./rules.ts";
export { type MemorySpace, memorySpace, type SpaceId, type Spaces, spaceOf } from "./space.ts";
export { formatStatement, type Statement, type StatementFormat } from "./statement.ts";
export { terminalPaint, wantsColour } from "./terminal.ts";
export { planTrace, predictedStepMs, type TraceEvent, type TraceFile } from "./trace-events.ts";
export { validate } from "./validate.ts";
