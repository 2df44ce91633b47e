/**
 * @file The plans of one graph, before fusion, under one way to fuse it: everything in it stored, and the families of plans
 * that recompute some of it, by strategy. Loops are as they are in the graph; the forms that differ in their loops are
 * loops/plans.ts.
 */
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import type { Pass } from "../passes/pass.ts";
import {
  type Candidate,
  type FamilyOptions,
  type Realise,
  RuleLevels,
  TargetLevels,
  UNREACHED,
} from "../plan/budget/budget-levels.ts";
import { planConflicts } from "../plan/budget/conflicts.ts";
import { PlanFamily } from "../plan/budget/family.ts";
import { replayGraph } from "../plan/budget/replay.ts";
import { type SlicedProgram, sliceProgram } from "../plan/budget/slices.ts";
import { planLowArea } from "../plan/plan.ts";
import type { Realised } from "../plan/recompute/arena.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { Sequence } from "../plan/recompute/problem.ts";
import type { ExactPlanner } from "../plan/recompute/solver.ts";
import { auto, noSolver } from "../plan/recompute/strategies.ts";
import type { Strategy } from "../plan/recompute/strategy.ts";
import { arenaSpace } from "../target/description.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";

/** Work of a plan of recomputation: about as long as fusing and placing the program takes. */
const effortFor = (ops: number): number => Math.min(0.025, 8 / Math.max(1, ops));

export const familyKey = ({ name }: Strategy, segments: Level): string => `${name} of ${segments}s`;

export class GraphPlans {
  /** Everything stored. */
  readonly base: Candidate<PlannedProgram>;
  readonly #graph: Graph;
  readonly #tools: PlanTools;
  readonly #fusion: Pass;
  readonly #families = new Map<string, PlanFamily<PlannedProgram>>();
  /** By sequence and budget: strategies have plans in common. */
  readonly #realised = new Map<string, Realised<Candidate<PlannedProgram>>>();
  #sliced: SlicedProgram | undefined;
  /** The graphs of plans before fusion. */
  readonly #sources = new WeakMap<PlannedProgram, Graph>();

  /** `graph` is before fusion, `base` its plan after `fusion`. */
  constructor(graph: Graph, base: Candidate<PlannedProgram>, tools: PlanTools, fusion: Pass = tools.assembler.fuse) {
    this.#graph = graph;
    this.base = base;
    this.#tools = tools;
    this.#fusion = fusion;
  }

  /** The same graph fused in another way: a variant, so little is spent on the order of its steps. */
  #fusedBy(fusion: Pass): GraphPlans {
    const planned = this.#tools.assembler.make(this.#graph, [fusion], { budgetBytes: UNREACHED, quick: true });
    return new GraphPlans(this.#graph, candidateOf(planned, this.base.strategy, this.#tools), this.#tools, fusion);
  }

  /** The same graph in smaller kernels. */
  lean(): readonly GraphPlans[] {
    return this.#tools.assembler.leanFusions.map((fusion) => this.#fusedBy(fusion));
  }

  /** Whether the program has loops or branches. */
  get hasLoops(): boolean {
    return this.base.result.controls.size > 0;
  }

  /** Steps of the program in which everything is stored. */
  get steps(): number {
    return this.base.result.program.steps.length;
  }

  #slices(): SlicedProgram {
    // The order with the lowest peak may hold much at other steps, where replays would need room.
    const { program, plan } = this.base.result;
    this.#sliced ??= sliceProgram(this.#graph, planLowArea(program, plan), this.#tools.costs);
    return this.#sliced;
  }

  /** Below this no choice of what is recomputed helps, as long as kernels are these. */
  get floorBytes(): number {
    return this.#slices().floorBytes;
  }

  /** The graph of one of its plans, before fusion. */
  sourceOf({ result }: Candidate<PlannedProgram>): Graph | null {
    return result === this.base.result ? this.#graph : (this.#sources.get(result) ?? null);
  }

  /** A plan of `auto` within a budget, for little work; a program that fits as it is is not sliced. */
  quickWithin(budgetBytes: number, segments: Level): Candidate<PlannedProgram> | null {
    return this.base.arenaBytes <= budgetBytes ? this.base : this.family(auto, segments).quickWithin(budgetBytes);
  }

  #exactPlanner(): ExactPlanner {
    const { request, host } = this.#tools;
    const planner = request.solver ?? host.findSolver();
    if (!planner) throw noSolver();
    return planner;
  }

  /** The plans of one strategy. */
  family(strategy: Strategy, segments: Level = "operation"): PlanFamily<PlannedProgram> {
    const key = familyKey(strategy, segments);
    const earlier = this.#families.get(key);
    if (earlier) return earlier;
    const sliced = this.#slices();
    const { problem } = sliced;
    const options: FamilyOptions = {
      floorBytes: sliced.floorBytes,
      persistentBytes: sliced.persistentBytes,
      alignment: arenaSpace(this.#tools.assembler.target).alignment,
      strategy,
      effort: effortFor(problem.ops.length),
      segments,
    };
    const realise: Realise<PlannedProgram> = (sequence, target) => {
      const realised = this.#realise(sliced, sequence, target);
      return { ...realised, result: { ...realised.result, strategy: strategy.name } };
    };
    const { aims, solver: needs } = strategy;
    const rules = (strategy.rules?.(problem.ops.length) ?? []).map((rule) => this.family(rule, segments));
    const Levels = aims ? TargetLevels : RuleLevels;
    const family =
      needs === "required"
        ? this.#exactPlanner().family(problem, this.base, realise, { ...options, others: rules })
        : new PlanFamily(this.base, new Levels(problem, this.base, realise, options), rules);
    this.#families.set(key, family);
    return family;
  }

  #realise(sliced: SlicedProgram, sequence: Sequence, budgetBytes: number): Realised<Candidate<PlannedProgram>> {
    const key = `${budgetBytes}: ${sequence.join()}`;
    const earlier = this.#realised.get(key);
    if (earlier) return earlier;
    const replayed = replayGraph(sliced, sequence);
    const quick = this.#fusion !== this.#tools.assembler.fuse;
    const planned = this.#tools.assembler.make(replayed.graph, [this.#fusion], { budgetBytes, quick });
    this.#sources.set(planned, replayed.graph);
    const cost = sequence.reduce((sum, op) => sum + at(sliced.problem.ops, op).cost, 0);
    const result = { ...candidateOf(planned, this.base.strategy, this.#tools), cost };
    const conflicts = planConflicts(planned.plan, budgetBytes, sliced, replayed);
    const realised = { arenaBytes: result.arenaBytes, result, conflicts };
    this.#realised.set(key, realised);
    return realised;
  }
}
