/** @file Figures about a second memory: plans that move values to it and back, by prediction. Nothing is written anywhere. */

import { TidemarkError } from "../../../src/base/errors.ts";
import { ProgramPlans } from "../../../src/compiler/assemble.ts";
import { NO_HOST } from "../../../src/compiler/host.ts";
import { PLAIN_REQUEST, type SpillRequest } from "../../../src/compiler/request.ts";
import { spilledPlans } from "../../../src/compiler/spill.ts";
import { chainTraining } from "./models.ts";
import { figuresOf, type PlanFigures, target, tracedPlans } from "./plans.ts";

export interface BudgetFigures {
  readonly stored: PlanFigures;
  readonly budgetBytes: number;
  /** Within the budget, recomputing alone. */
  readonly recomputed: PlanFigures;
}

export interface SpilledFigures {
  /** Within the budget: moving alone, where that is enough, and whichever is faster for each value. */
  readonly moved: PlanFigures | null;
  readonly both: PlanFigures;
}

const CHAIN = { depth: 8, batch: 256, width: 64 } as const;

/** Plans of the chain, with a second memory or without. */
function plansWith(spill: SpillRequest | null): ProgramPlans {
  const { source } = tracedPlans(chainTraining(CHAIN));
  const memory = spill ? { spill } : {};
  return new ProgramPlans(source, target.description, { ...PLAIN_REQUEST, memory }, { ...NO_HOST, spilledPlans });
}

const budgetOf = (plans: ProgramPlans, share: number): number => Math.round(plans.storeAll.arenaBytes * share);

/** The chain within a share of the bytes with everything stored. */
export function recomputedFigures(share: number): BudgetFigures {
  const plans = plansWith(null);
  const budgetBytes = budgetOf(plans, share);
  const recomputed = figuresOf(plans.choose({ budgetBytes, quick: true }));
  return { stored: figuresOf(plans.storeAll), budgetBytes, recomputed };
}

/** The same with a second memory of some bandwidth each way. */
export function spilledFigures(bytesPerSecond: number, share: number): SpilledFigures {
  const within = (movesOnly: boolean): PlanFigures | null => {
    const spill = { bytesPerSecond, movesOnly };
    const plans = plansWith(spill);
    try {
      return figuresOf(plans.choose({ budgetBytes: budgetOf(plans, share), spill }));
    } catch (error) {
      if (error instanceof TidemarkError && error.code === "PlanInfeasible") return null;
      throw error;
    }
  };
  const both = within(false);
  return { moved: within(true), both: both ?? recomputedFigures(share).recomputed };
}
