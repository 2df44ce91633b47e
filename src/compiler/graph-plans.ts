/**
 * @file The plans of one graph, before fusion, under one way to fuse it: everything in it stored, and the families of plans
 * that compute some of it again, by strategy. Loops are as they are in the graph; the forms that differ in their loops are
 * loops/plans.ts.
 */
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import type { Pass } from "../passes/pass.ts";
import { planConflicts } from "../plan/budget/conflicts.ts";
import { PlanFamily } from "../plan/budget/family.ts";
import { replayGraph } from "../plan/budget/replay.ts";
import {
  type Candidate,
  type FamilyOptions,
  Front,
  LARGE_OPS,
  Ladder,
  type Realise,
  UNREACHED,
} from "../plan/budget/rungs.ts";
import { type SlicedProgram, sliceProgram } from "../plan/budget/slices.ts";
import { SolvedFamily } from "../plan/budget/solved-family.ts";
import { planMs } from "../plan/cost/model.ts";
import { planCalmly } from "../plan/plan.ts";
import type { Realised } from "../plan/recompute/arena.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import type { Sequence } from "../plan/recompute/problem.ts";
import { noSolver, STRATEGY, type StrategyName } from "../plan/recompute/strategies.ts";
import type { Assembler, Made } from "./assembler.ts";
import type { TargetCosts } from "./node-costs.ts";
import { knownSolver } from "./solver.ts";

/** Work of a plan of recomputation: about as long as fusing and placing the program takes. */
const effortFor = (ops: number): number => Math.min(0.025, 8 / Math.max(1, ops));

/** What makes plans, for all forms of a program. */
export interface PlanTools {
  readonly assembler: Assembler;
  readonly costs: TargetCosts;
  readonly solver: IntegerSolver | undefined;
  /** Is told of every plan that is made. */
  readonly progress?: ((made: PlanProgress) => void) | undefined;
}

/** A plan that was made on the way to an answer. */
export interface PlanProgress {
  readonly strategy: string;
  readonly arenaBytes: number;
  readonly predictedMs: number;
}

/** A real plan with its numbers. */
export function candidateOf(result: Made, strategy: string, { costs, progress }: PlanTools): Candidate<Made> {
  const predictedMs = planMs(result.plan, costs);
  progress?.({ strategy, arenaBytes: result.plan.height, predictedMs });
  return { strategy, arenaBytes: result.plan.height, predictedMs, result };
}

const familyKey = (strategy: string, segments: Level): string => `${strategy} of ${segments}s`;

export class GraphPlans {
  /** Everything stored. */
  readonly base: Candidate<Made>;
  readonly #graph: Graph;
  readonly #tools: PlanTools;
  readonly #fusion: Pass;
  readonly #families = new Map<string, PlanFamily<Made>>();
  /** By sequence and target: strategies have plans in common. */
  readonly #realised = new Map<string, Realised<Candidate<Made>>>();
  #sliced: SlicedProgram | undefined;

  /** `graph` is before fusion, `base` its plan after `fusion`. */
  constructor(graph: Graph, base: Candidate<Made>, tools: PlanTools, fusion: Pass = tools.assembler.fuse) {
    this.#graph = graph;
    this.base = base;
    this.#tools = tools;
    this.#fusion = fusion;
  }

  /** The same graph fused in another way: a variant, so little is spent on the order of its steps. */
  #fusedBy(fusion: Pass): GraphPlans {
    const made = this.#tools.assembler.make(this.#graph, [fusion], UNREACHED, true);
    return new GraphPlans(this.#graph, candidateOf(made, this.base.strategy, this.#tools), this.#tools, fusion);
  }

  /** The same graph in smaller kernels. */
  lean(): readonly GraphPlans[] {
    return this.#tools.assembler.leanFusions.map((fusion) => this.#fusedBy(fusion));
  }

  /** Whether something runs programs of its own. */
  get hasLoops(): boolean {
    return this.base.result.controls.size > 0;
  }

  /** Steps of the program in which everything is stored. */
  get steps(): number {
    return this.base.result.program.steps.length;
  }

  #slices(): SlicedProgram {
    // The order with the lowest peak may hold much elsewhere, which replays would have to work around.
    const { program, plan } = this.base.result;
    this.#sliced ??= sliceProgram(this.#graph, planCalmly(program, plan), this.#tools.costs);
    return this.#sliced;
  }

  /** The smallest plan of a strategy; of a large program the smallest of those that were made so far. */
  leastKnown(strategy: StrategyName, segments: Level = "operation"): Candidate<Made> {
    // to slice a large program just to find that no plan was made takes a fifth of its planning time
    if (this.steps > LARGE_OPS && !this.#families.has(familyKey(strategy, segments))) return this.base;
    return this.family(strategy, segments).leastKnown();
  }

  #solver(): IntegerSolver {
    const solver = this.#tools.solver ?? knownSolver();
    if (!solver) throw noSolver();
    return solver;
  }

  /** The plans of one strategy. */
  family(strategy: StrategyName, segments: Level = "operation"): PlanFamily<Made> {
    const key = familyKey(strategy, segments);
    const known = this.#families.get(key);
    if (known) return known;
    const sliced = this.#slices();
    const { problem } = sliced;
    const options: FamilyOptions = {
      floorBytes: sliced.floorBytes,
      persistentBytes: sliced.persistentBytes,
      strategy,
      effort: effortFor(problem.ops.length),
      level: segments,
    };
    const realise: Realise<Made> = (sequence, target) => {
      const made = this.#realise(sliced, sequence, target);
      return { ...made, result: { ...made.result, strategy } };
    };
    const { aims, solver: needs, rules: names } = STRATEGY[strategy];
    const rules = (names?.(problem.ops.length) ?? []).map((rule) => this.family(rule, segments));
    const Rungs = aims ? Ladder : Front;
    const family =
      needs === "required"
        ? new SolvedFamily(problem, this.base, realise, { ...options, solver: this.#solver(), others: rules })
        : new PlanFamily(this.base, new Rungs(problem, this.base, realise, options), rules);
    this.#families.set(key, family);
    return family;
  }

  #realise(sliced: SlicedProgram, sequence: Sequence, target: number): Realised<Candidate<Made>> {
    const key = `${target}: ${sequence.join()}`;
    const known = this.#realised.get(key);
    if (known) return known;
    const replayed = replayGraph(sliced, sequence);
    const made = this.#tools.assembler.make(
      replayed.graph,
      [this.#fusion],
      target,
      this.#fusion !== this.#tools.assembler.fuse,
    );
    const cost = sequence.reduce((sum, op) => sum + at(sliced.problem.ops, op).cost, 0);
    const result = { ...candidateOf(made, this.base.strategy, this.#tools), cost };
    const conflicts = planConflicts(made.plan, target, sliced, replayed);
    const realised = { arenaBytes: result.arenaBytes, result, conflicts };
    this.#realised.set(key, realised);
    return realised;
  }
}
