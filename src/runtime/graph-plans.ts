/**
 * @file The plans of one form of a program: everything in it stored, and the families of plans that compute some of it
 * again, by strategy. Loops are as they are in the graph; the forms that differ in their loops are plan/budget/loop-plans.ts.
 */
import type { Graph } from "../ir/graph.ts";
import { fuse } from "../passes/fuse.ts";
import { planConflicts } from "../plan/budget/conflicts.ts";
import { PlanFamily } from "../plan/budget/family.ts";
import { replayGraph } from "../plan/budget/replay.ts";
import { type Candidate, type FamilyOptions, Front, LARGE_OPS, Ladder, type Realise } from "../plan/budget/rungs.ts";
import { type SlicedProgram, sliceProgram } from "../plan/budget/slices.ts";
import { type CostModel, planMs } from "../plan/cost/model.ts";
import { planCalmly } from "../plan/plan.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import type { Assembler, Made } from "./assembler.ts";

/** Strategies that aim at a number of bytes; the others are rules that do not know it. */
export const AIMING: ReadonlySet<string> = new Set(["auto", "look-ahead", "chain", "optimal"]);

/**
 * Rules whose plans `auto` has to choose from too: in small programs the bytes that a planner counts differ from those of a
 * real plan by more than plans differ from each other. `sqrt` is one plan, `every-k` are many.
 */
function rulesFor(ops: number): readonly string[] {
  if (ops > 1000) return [];
  return ops > 200 ? ["sqrt"] : ["sqrt", "every-k"];
}

/** Work of a plan of recomputation: about as long as fusing and placing the program takes. */
const effortFor = (ops: number): number => Math.min(0.025, 8 / Math.max(1, ops));

/** What makes plans, for all forms of a program. */
export interface PlanTools {
  readonly assembler: Assembler;
  readonly model: CostModel;
  readonly solver: IntegerSolver | undefined;
}

/** A real plan with its numbers. */
export function candidateOf(result: Made, strategy: string, { model }: PlanTools): Candidate<Made> {
  const predictedMs = planMs(result.plan, model, result.lowered);
  return { strategy, arenaBytes: result.plan.height, predictedMs, result };
}

const familyKey = (strategy: string, segments: Level): string => `${strategy} of ${segments}s`;

export class GraphPlans {
  /** Everything stored. */
  readonly base: Candidate<Made>;
  readonly #graph: Graph;
  readonly #tools: PlanTools;
  readonly #families = new Map<string, PlanFamily<Made>>();
  #sliced: SlicedProgram | undefined;

  /** `graph` is before fusion, `base` its plan. */
  constructor(graph: Graph, base: Candidate<Made>, tools: PlanTools) {
    this.#graph = graph;
    this.base = base;
    this.#tools = tools;
  }

  /** What the operation with the largest operands needs: no plan is smaller. */
  floorBytes(): number {
    return this.#slices().floorBytes;
  }

  #slices(): SlicedProgram {
    // The order with the lowest peak may hold much elsewhere, which replays would have to work around.
    const { program, plan } = this.base.result;
    this.#sliced ??= sliceProgram(this.#graph, planCalmly(program, plan), this.#tools.model);
    return this.#sliced;
  }

  /** The smallest plan of a strategy; of a large program the smallest of those that were made so far. */
  leastKnown(strategy: string, segments: Level = "operation"): Candidate<Made> {
    const isLarge = this.base.result.program.steps.length > LARGE_OPS;
    // to slice a large program just to find that no plan was made takes a fifth of its planning time
    if (isLarge && !this.#families.has(familyKey(strategy, segments))) return this.base;
    return this.family(strategy, segments).leastKnown();
  }

  /** The plans of one strategy. */
  family(strategy: string, segments: Level = "operation"): PlanFamily<Made> {
    const key = familyKey(strategy, segments);
    const known = this.#families.get(key);
    if (known) return known;
    const sliced = this.#slices();
    const { problem } = sliced;
    const realise: Realise<Made> = (sequence, target) => {
      const replayed = replayGraph(sliced, sequence);
      const made = this.#tools.assembler.make(replayed.graph, [fuse], target);
      const result = candidateOf(made, strategy, this.#tools);
      return { arenaBytes: result.arenaBytes, result, conflicts: planConflicts(made.plan, target, sliced, replayed) };
    };
    const options: FamilyOptions = {
      floorBytes: sliced.floorBytes,
      persistentBytes: sliced.persistentBytes,
      strategy,
      effort: effortFor(problem.ops.length),
      solver: this.#tools.solver,
      level: segments,
    };
    const Rungs = AIMING.has(strategy) ? Ladder : Front;
    const names = strategy === "auto" ? rulesFor(problem.ops.length) : [];
    const rules = names.map((rule) => this.family(rule, segments));
    const family = new PlanFamily(this.base, new Rungs(problem, this.base, realise, options), rules);
    this.#families.set(key, family);
    return family;
  }
}
