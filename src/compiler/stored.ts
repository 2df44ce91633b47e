/**
 * @file From a traced graph to the plan in which everything is stored, which is all that a program without a budget needs.
 * Plans for budgets begin with it (assemble.ts); they are another part of the library, since they are as large as the
 * rest of the planner (docs/decisions/0035-core-entry.md).
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import type { Graph } from "../ir/graph.ts";
import { mergeReplays } from "../passes/merge-replays.ts";
import { pipelineFor, runPasses } from "../passes/pipeline.ts";
import { smallerResiduals } from "../passes/smaller-residuals.ts";
import type { Candidate, Proof } from "../plan/budget/budget-levels.ts";
import { withinBudget } from "../plan/plan.ts";
import { arenaSpace, type TargetDescription } from "../target/description.ts";
import { Assembler, type PlannedProgram } from "./assembler.ts";
import { placedProgram } from "./bind.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import type { Planner, PlannerHost, PlanningHost } from "./host.ts";
import type { LoopSupport } from "./loops.ts";
import { TargetCosts } from "./node-costs.ts";
import { asksNothing, type PlanRequest, type SourceProgram } from "./request.ts";
import { requireCollectives, requireTypes } from "./types.ts";

/** A placed program, and the figures of the plans that it was chosen from. */
export interface ChosenProgram extends PlacedProgram {
  readonly strategy: string;
  readonly predictedMs: number;
  readonly storeAll: { readonly arenaBytes: number; readonly predictedMs: number };
  /** Where a solver was asked: how far the plan is from the cheapest. */
  readonly proof?: Proof | undefined;
  /** Whether the plan came from a cache. */
  readonly planCached: boolean;
}

/** Plans that all requests of a program share. */
export interface StoredPlans {
  /** Everything stored but what loops do that users named a reversal for. */
  readonly storeAll: Candidate<PlannedProgram>;
  /** That is stored too: what plans are compared with. */
  readonly baseline: Candidate<PlannedProgram>;
  readonly asWritten: Candidate<PlannedProgram>;
  /** The graph of `storeAll`, before fusion. */
  readonly graph: Graph;
  /** The same before it was decided what loops hold. */
  readonly merged: Graph;
}

export function storedPlans(graph: Graph, tools: PlanTools): StoredPlans {
  const { assembler, costs, request, loops } = tools;
  const { passes, validate } = request;
  const cleaned = runPasses(graph, passes ?? pipelineFor(assembler.target), { verify: validate });
  requireTypes(cleaned, assembler.target, assembler.lower);
  requireCollectives(cleaned, assembler.target);
  let named = 0;
  const rewound = passes || !loops ? cleaned : loops.rewindLoops(cleaned, loops.userDecisions, () => named++);
  const written = passes ? cleaned : smallerResiduals.run(rewound);
  const bare = passes ? cleaned : mergeReplays.run(rewound);
  const merged = bare === rewound ? written : smallerResiduals.run(bare);
  const asked = merged === written ? "store-all" : "checkpoint";
  const withoutChoice = (chosen: Graph): Graph => loops?.withoutChoice(chosen, costs) ?? chosen;
  const decided = passes ? written : withoutChoice(written);
  const asWritten = candidateOf(assembler.make(decided, passes ? [] : [assembler.fuse]), asked, tools);
  const stored = merged === written ? decided : withoutChoice(merged);
  const storeAll =
    stored === decided ? asWritten : candidateOf(assembler.make(stored, [assembler.fuse]), "store-all", tools);
  const baseline = named === 0 || !loops ? storeAll : loopsStored(cleaned, tools, loops);
  return { storeAll, baseline, asWritten, graph: stored, merged };
}

/** The program whose loops keep what their reverses read, whatever reversal was named for them. */
function loopsStored(cleaned: Graph, tools: PlanTools, loops: LoopSupport): Candidate<PlannedProgram> {
  const { rewindLoops, userDecisions, withoutChoice } = loops;
  const bare = mergeReplays.run(rewindLoops(cleaned, { ...userDecisions, counted: () => null }));
  const merged = smallerResiduals.run(bare);
  return candidateOf(
    tools.assembler.make(withoutChoice(merged, tools.costs), [tools.assembler.fuse]),
    "store-all",
    tools,
  );
}

/** What makes the plans of a program. */
export function planTools(
  source: SourceProgram,
  target: TargetDescription,
  request: PlanRequest,
  host: PlannerHost & Pick<PlanningHost, "loops">,
): PlanTools {
  const { loops } = host;
  const assembler = new Assembler(target, source, { validate: request.validate, loops });
  const { spill } = request.memory;
  const own = request.costs ?? target.rates;
  const rates = spill ? { ...own, linkRate: spill.bytesPerSecond } : own;
  const costs = new TargetCosts(target, { rates, lower: assembler.lower, copiesBlock: spill?.blocks });
  return { assembler, costs, request, host, loops };
}

/** A plan with its kernels bound to addresses, and what is known about it. */
export function placedPlan(
  { result, strategy, predictedMs, proof }: Candidate<PlannedProgram>,
  about: Pick<ChosenProgram, "storeAll" | "planCached" | "planMs">,
  base = 0,
): ChosenProgram {
  return { ...placedProgram(result, about.planMs, base), strategy, predictedMs, proof, ...about };
}

const BUDGET_HELP = 'import "tidemark/core/budget", or await import("tidemark/core/budget") when it is needed';

/** Plans programs of whose memory nothing is asked; says what to import for others. */
export const storedPlanner: Planner = {
  assemble(source, target, request, host) {
    const started = performance.now();
    if (!asksNothing(request.memory) || request.validate) {
      const asked = request.validate ? "validate" : "a budget (memory, maxSlowdown, strategy, lossy)";
      const summary = `${asked} needs the planner of budgets, which is not imported`;
      throw new TidemarkError("InvalidArgument", summary, { help: BUDGET_HELP });
    }
    const tools = planTools(source, target, request, host);
    const { asWritten, baseline } = storedPlans(source.graph, tools);
    const { arenaBytes, predictedMs } = baseline;
    const { capacity } = arenaSpace(target);
    if (asWritten.arenaBytes > capacity) {
      const summary = `${source.graph.name} needs ${grouped(asWritten.arenaBytes)} bytes with everything stored, ${target.name} has ${grouped(capacity)}`;
      throw new TidemarkError("PlanInfeasible", summary, { help: `${BUDGET_HELP}: values are then recomputed` });
    }
    withinBudget(asWritten.result.plan, Number.POSITIVE_INFINITY);
    const planMs = performance.now() - started;
    const chosen = tools.host.overlappedPlan?.(asWritten, capacity, tools) ?? asWritten;
    return placedPlan(chosen, { storeAll: { arenaBytes, predictedMs }, planCached: false, planMs });
  },
};
