/** @file What a strategy of recomputation is: a name, the facts that others need to know about it, and its plans. */
import type { Answer, AutoOptions } from "./auto.ts";
import type { Level } from "./levels.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";
import type { IntegerSolver } from "./solver.ts";

/** Of all strategies, in the order in which they are listed. */
export const STRATEGY_NAMES = [
  "store-all",
  "recompute-all",
  "every-k",
  "sqrt",
  "selective",
  "min-cut",
  "calls",
  "chain",
  "look-ahead",
  "binomial",
  "optimal",
  "auto",
] as const;

/** Names of strategies. */
export type StrategyName = (typeof STRATEGY_NAMES)[number];

/** Options of {@link planRecompute}. */
export interface RecomputeOptions extends AutoOptions {
  /** The unit of segments; default: operations. */
  readonly segments?: Level | undefined;
  readonly solver?: IntegerSolver | undefined;
}

/** How a strategy cuts loops, of which graphs of operations have none: what they hold is decided in loops/strategies.ts. */
export interface LoopCut {
  readonly schedule: "binomial" | "periodic";
  /** Whether one number of states is tried, the square root of the iterations, instead of many. */
  readonly isSingle: boolean;
  /** Whether loops are cut at every level of segments, and not only where segments are made of iterations. */
  readonly isAlways: boolean;
}

/** How its plans are drawn. */
export interface StrategyLook {
  readonly colour: number;
  readonly mark: "circle" | "triangle" | "square" | "diamond" | "cross" | "ring";
  readonly line: "bold" | "thin" | "dashed" | "none";
}

/** A method that chooses what to recompute. */
export interface Strategy {
  readonly name: StrategyName;
  /** Makes plans for a number of bytes; the others are rules that do not know it. */
  readonly aims: boolean;
  /** Whether it asks a solver of integer programs: has to have one, or is better with one. */
  readonly solver?: "required" | "optional";
  /** Decides everything: about loops, about kernels, and about the user's checkpoints too. */
  readonly isFree?: true;
  /** Stores everything, so that nothing can be said against a budget but that it is too small. */
  readonly recomputesNothing?: true;
  readonly loops?: LoopCut;
  /** Is about loops alone. */
  readonly loopsOnly?: true;
  /** Strategies whose plans are this one's too, by the number of operations. */
  readonly rules?: (ops: number) => readonly Strategy[];
  readonly plan: (problem: RecomputeProblem, budget: number, options: RecomputeOptions) => Answer;
  /** All plans of a rule of which `plan` takes the cheapest that fits, or everything stored where none does. */
  readonly plans?: (problem: RecomputeProblem, segments?: Level) => Iterable<Sequence>;
  readonly look?: StrategyLook;
}
