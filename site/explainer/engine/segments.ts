/** @file Figures of the page about segments: a chain of residual blocks, every k of them in a `checkpoint`. */
import type { ViewEntry } from "../../../src/view/data.ts";
import { type ChainSize, chainTraining, segmentedTraining } from "./models.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";
import { figuresOf, type PlanFigures, plansFor, viewEntry } from "./plans.ts";

export interface SegmentPlan extends PlanFigures {
  readonly every: number;
  readonly entry: ViewEntry;
}

/** The plan with a state kept every so many blocks; 0: everything is kept. */
export function segmentPlan(size: ChainSize, every: number): SegmentPlan {
  const plans = plansFor(every === 0 ? chainTraining(size) : segmentedTraining(size, every));
  const label = every === 0 ? "everything stored" : `every ${every} blocks`;
  const chosen = plans.choose();
  return { ...figuresOf(chosen), every, entry: viewEntry(plans, chosen, label) };
}

export interface RootGrowth {
  readonly depth: number;
  readonly storedBytes: number;
  readonly rootBytes: number;
}

/** Bytes with everything stored, and with segments of √n. */
export function rootGrowth(size: ChainSize): RootGrowth {
  const { depth } = size;
  const every = Math.max(1, Math.round(Math.sqrt(depth)));
  return {
    depth,
    storedBytes: plansFor(chainTraining(size)).storeAll.arenaBytes,
    rootBytes: plansFor(segmentedTraining(size, every)).choose().arenaBytes,
  };
}

export interface RootAndAuto {
  readonly stored: PlanFigures;
  /** The strategy of segments of √n operations. */
  readonly root: PlanFigures;
  /** The planner's own plan within the bytes of that. */
  readonly auto: PlanFigures;
}

/** Segments of √n on a network whose layers differ, and the plan that is chosen value by value in the same bytes. */
export function rootAndAuto(name: NetworkName): RootAndAuto {
  const plans = plansFor(NETWORKS[name]());
  const root = figuresOf(plans.choose({ strategy: "sqrt" }));
  const auto = figuresOf(plans.choose({ budgetBytes: root.arenaBytes, quick: true }));
  return { stored: figuresOf(plans.storeAll), root, auto };
}
