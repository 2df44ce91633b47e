/**
 * @file The forms of a program in which residuals are kept in few bits (passes/rounded-residuals.ts), and which of them is chosen.
 *
 * Residuals are in one order, those first that save the largest share of their bytes and then the largest; form n rounds the first n
 * of them. Each form is a base for the same families of plans as the program itself, so a value is kept, rounded or recomputed:
 *
 * ```
 *   form 0      form n/2        form n                    form of all
 *   recomputed  n/2 rounded,    the least n that fits,    recomputed too,
 *               the rest        nothing recomputed        where the budget is below
 *               recomputed
 * ```
 *
 * Within a budget the fastest of these is chosen by predicted time. Without one, all residuals are rounded if bits were given.
 */
import type { Graph } from "../ir/graph.ts";
import { nodeNames } from "../ir/node-names.ts";
import { bytesInForm } from "../passes/residual-forms.ts";
import {
  type RoundedGraph,
  type RoundedResidual,
  residualKey,
  residualsOf,
  withRounded,
} from "../passes/rounded-residuals.ts";
import { type Candidate, UNREACHED } from "../plan/budget/budget-levels.ts";
import { isSmaller, type PlanFamily } from "../plan/budget/family.ts";
import { auto, strategyNamed } from "../plan/recompute/strategies.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import { GraphPlans } from "./graph-plans.ts";
import type { LossyRequest, MemoryRequest } from "./request.ts";
import { fastestOf } from "./wide-search.ts";

type PlanCandidate = Candidate<PlannedProgram>;

/** Plans of the program as it is. */
export interface LosslessPlans {
  /** Everything stored: its graph, its plans, and what would be chosen without a budget. */
  readonly graph: Graph;
  readonly stored: GraphPlans;
  /** The plan within the budget of a request; null where there is none, or a quick search found none. */
  within(request: MemoryRequest): PlanCandidate | null;
  /** The smallest plan that takes at most so long. */
  underMs(limitMs: number, request: MemoryRequest): PlanCandidate;
  least(request: MemoryRequest): PlanCandidate;
}

/** The residuals of a graph in the bits that are asked for, in the order in which they are rounded. */
export function roundedResiduals(graph: Graph, { linear, rest }: LossyRequest): readonly RoundedResidual[] {
  const params = new Map(graph.params.map((param) => [param, param.name]));
  const names = nodeNames(graph.nodes, (value) => params.get(value));
  const found = residualsOf(graph).flatMap((residual): readonly RoundedResidual[] => {
    const form = residual.linear ? linear : rest;
    const roundedBytes = form === null ? null : bytesInForm(residual.value.type, form);
    if (form === null || roundedBytes === null) return [];
    const name = residual.value.name ?? names.value(residual.value) ?? `v${residual.id}`;
    return [{ ...residual, form, roundedBytes, name }];
  });
  const share = (one: RoundedResidual): number => one.roundedBytes / one.bytes;
  return found.sort((a, b) => share(a) - share(b) || b.bytes - a.bytes || a.id - b.id);
}

export class LossyForms {
  readonly #plans: LosslessPlans;
  readonly #lossy: LossyRequest;
  readonly #tools: PlanTools;
  readonly #residuals: readonly RoundedResidual[];
  readonly #forms = new Map<number, GraphPlans>();

  constructor(plans: LosslessPlans, lossy: LossyRequest, tools: PlanTools) {
    this.#plans = plans;
    this.#lossy = lossy;
    this.#tools = tools;
    this.#residuals = tools.request.passes ? [] : roundedResiduals(plans.graph, lossy);
  }

  /** With the first residuals rounded. */
  #form(count: number): GraphPlans {
    const known = count === 0 ? this.#plans.stored : this.#forms.get(count);
    if (known) return known;
    const { assembler } = this.#tools;
    const { graph } = withRounded(this.#plans.graph, this.#residuals.slice(0, count), this.#lossy.seed);
    const isAll = count === this.#residuals.length;
    const made = assembler.make(graph, [assembler.fuse], isAll ? {} : { budgetBytes: UNREACHED });
    const form = new GraphPlans(graph, candidateOf(made, auto.name, this.#tools), this.#tools);
    this.#forms.set(count, form);
    return form;
  }

  /** Every residual rounded. */
  get all(): GraphPlans {
    return this.#form(this.#residuals.length);
  }

  /** Plans from nothing rounded to everything, and with everything rounded those that recompute too. */
  curve(points: number): ReturnType<PlanFamily<PlannedProgram>["curve"]> {
    const counts = Array.from({ length: points }, (_, i) => Math.round((i * this.#residuals.length) / (points - 1)));
    const forms = [...new Set(counts)].map((count) => ({ budgetBytes: null, plan: this.#form(count).base }));
    return [...forms, ...this.all.family(auto).curve(points)];
  }

  /** The plan of a request; where there is none, the smallest. */
  choose(request: MemoryRequest): PlanCandidate {
    const { budgetBytes, least, maxSlowdown, segments } = request;
    const strategy = strategyNamed(request.strategy);
    if (least) return this.smallest(request);
    if (maxSlowdown !== undefined) return this.#underMs(maxSlowdown * this.#plans.stored.base.predictedMs, request);
    if (budgetBytes === undefined) return strategy.isFree ? this.all.base : this.all.family(strategy, segments).least();
    const within = strategy.isFree
      ? this.#within(budgetBytes, request)
      : this.all.family(strategy, segments).within(budgetBytes);
    return within ?? this.smallest(request);
  }

  #within(budgetBytes: number, request: MemoryRequest): PlanCandidate | null {
    const { segments = "operation" } = request;
    const lossless = this.#plans.within(request);
    const count = this.#leastCount(budgetBytes);
    if (count === null) return fastestOf([lossless, this.all.family(auto, segments).within(budgetBytes)]);
    const half = count > 1 ? this.#form(Math.floor(count / 2)).quickWithin(budgetBytes, segments) : null;
    return fastestOf([lossless, half, this.#form(count).base]);
  }

  /** How many residuals have to be rounded for a budget with nothing recomputed; null where all are too few. */
  #leastCount(budgetBytes: number): number | null {
    let [below, most] = [-1, this.#residuals.length];
    if (this.all.base.arenaBytes > budgetBytes) return null;
    while (most - below > 1) {
      const middle = (below + most) >> 1;
      if (this.#form(middle).base.arenaBytes <= budgetBytes) most = middle;
      else below = middle;
    }
    return most;
  }

  #underMs(limitMs: number, request: MemoryRequest): PlanCandidate {
    const lossless = this.#plans.underMs(limitMs, request);
    const { base } = this.all;
    if (base.predictedMs > limitMs) return lossless;
    const rounded = this.all.family(auto, request.segments).slowedBy(limitMs / base.predictedMs);
    return isSmaller(rounded, lossless) ? rounded : lossless;
  }

  /** The smallest plan, rounded or not. */
  smallest(request: MemoryRequest): PlanCandidate {
    const [lossless, rounded] = [this.#plans.least(request), this.all.family(auto, request.segments).least()];
    return isSmaller(rounded, lossless) ? rounded : lossless;
  }

  /** The graph in which residuals with these keys are rounded and nothing is recomputed. */
  rounded(keys: ReadonlySet<number>): RoundedGraph {
    const { seed } = this.#lossy;
    return withRounded(
      this.#plans.graph,
      this.#residuals.filter(({ id }) => keys.has(residualKey(seed, id))),
      seed,
    );
  }
}
