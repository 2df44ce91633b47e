/**
 * @file What is asked of a program, parsed. The API checks a user's options once (api/request.ts); from there on one request
 * is passed whole, to the planner and to whatever loads and runs the program.
 */
import type { Graph } from "../ir/graph.ts";
import type { Pass } from "../passes/pass.ts";
import type { ResidualForm } from "../passes/residual-forms.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { ExactPlanner } from "../plan/recompute/solver.ts";
import type { StrategyName } from "../plan/recompute/strategy.ts";
import type { CostModel } from "../target/work.ts";
import type { SpilledPlans } from "./spill.ts";

/** Which residuals may be kept in few bits, and in how many. Results are then not those of the program without. */
export interface LossyRequest {
  /** Forms of values that all gradients are linear in, and of the others; null: as they are. */
  readonly linear: ResidualForm | null;
  readonly rest: ResidualForm | null;
  /** Whether without a budget all of them are; otherwise only what a budget needs. */
  readonly everywhere: boolean;
  /** Decides how numbers are rounded. */
  readonly seed: number;
}

/** A slower memory beside the arena. */
export interface SpillRequest {
  /** Bytes a second each way, for predictions. */
  readonly bytesPerSecond: number;
  /** It is the host's, of a device with a memory of its own; default: a file. */
  readonly isHost?: boolean | undefined;
  /** A copy is done where it starts, and the program waits for it; default: they go on at the same time. */
  readonly blocks?: boolean | undefined;
  /** Makes the plans; default: the host. */
  readonly plans?: SpilledPlans | undefined;
  /** Nothing is recomputed, to compare; default: whatever is faster. */
  readonly movesOnly?: boolean | undefined;
}

/** What is asked of memory. */
export interface MemoryRequest {
  /** The arena may not be larger. */
  readonly budgetBytes?: number | undefined;
  /** As small as possible. */
  readonly least?: boolean | undefined;
  /** As small as possible at this multiple of the predicted time of storing everything. */
  readonly maxSlowdown?: number | undefined;
  /** Which strategy decides what is recomputed; default: `auto`. */
  readonly strategy?: StrategyName | undefined;
  /** What segments are made of, for strategies that have segments; default: operations. */
  readonly segments?: Level | undefined;
  /** What may be rounded; default: nothing. */
  readonly lossy?: LossyRequest | undefined;
  /** For a budget: the first good plan will do, where `auto` finds one with little work. */
  readonly quick?: boolean | undefined;
  /** For a budget: values may wait for their next use in a second memory. */
  readonly spill?: SpillRequest | undefined;
}

/** Whether nothing is asked of memory: the program is planned as it was written. */
export const asksNothing = ({ budgetBytes, least = false, maxSlowdown, strategy, lossy }: MemoryRequest): boolean =>
  strategy === undefined && budgetBytes === undefined && !least && maxSlowdown === undefined && !lossy?.everywhere;

/** As data that is equal for requests that mean the same. */
export function memoryKey(request: MemoryRequest): readonly unknown[] {
  const { budgetBytes, least, maxSlowdown, strategy, segments, lossy } = request;
  const asked = [budgetBytes ?? null, least ?? false, maxSlowdown ?? null, strategy ?? null, segments ?? "operation"];
  const rounded = lossy ? [[lossy.linear, lossy.rest, lossy.everywhere, lossy.seed]] : [];
  return isQuick(request) ? [...asked, ...rounded, "quick"] : [...asked, ...rounded];
}

/** Whether the first good plan will do. Where fewer bytes are asked for, or a strategy by name, there is only one answer. */
export const isQuick = ({ quick = false, budgetBytes, maxSlowdown, strategy }: MemoryRequest): boolean =>
  quick && budgetBytes !== undefined && maxSlowdown === undefined && strategy === undefined;

/** A plan that was made on the way to an answer. */
export interface PlanProgress {
  readonly strategy: string;
  readonly arenaBytes: number;
  readonly predictedMs: number;
}

/** How a program is to be planned. */
export interface PlanRequest {
  readonly memory: MemoryRequest;
  /** Speed of the machine; undefined: the rates of the target. */
  readonly costs: CostModel | undefined;
  /** For strategies that need one; undefined: the host's. */
  readonly solver: ExactPlanner | undefined;
  /** Is told of every plan that is made. */
  readonly progress: ((plan: PlanProgress) => void) | undefined;
  /** Whether the plan may come from the host's store of plans, and go into it. */
  readonly cache: boolean;
  /** Check the graph after every pass, and the plan with the independent validator. */
  readonly validate: boolean;
  /** What happens to the graph in place of the usual passes; then everything is stored. */
  readonly passes: readonly Pass[] | undefined;
}

/** What is asked where nothing is said. */
export const PLAIN_REQUEST: PlanRequest = {
  memory: {},
  costs: undefined,
  solver: undefined,
  progress: undefined,
  cache: true,
  validate: false,
  passes: undefined,
};

/** What is planned: a graph as it was traced, and what happens to the storage of its parameters. */
export interface SourceProgram {
  readonly graph: Graph;
  /** Parameters whose storage may be overwritten, with the number of the result that replaces them or -1; default: none. */
  readonly donated?: ReadonlyMap<number, number>;
  /** Parameters that stay in the arena between runs; default: none. */
  readonly persistent?: ReadonlySet<number>;
}
