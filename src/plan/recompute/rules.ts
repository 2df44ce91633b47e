/**
 * @file The plans of rules with a number that can be chosen: the length of segments, or what must be kept by what it costs
 * per byte. They know no budget; of these plans the cheapest that fits is taken.
 */
import { at } from "../../base/invariant.ts";
import type { Level } from "./levels.ts";
import { minCut } from "./min-cut.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";
import { everyK, intensity, keepOnly, selective, unitCount } from "./segments.ts";

/** Ratio of one length of segments to the next. */
const LONGER = 1.15;

/** Thresholds that split what operations cost per byte into `steps` parts of equal count. */
function thresholds(problem: RecomputeProblem, steps: number): readonly number[] {
  const sorted = [...intensity(problem)].sort((a, b) => a - b);
  const picks = Array.from({ length: steps }, (_, i) => at(sorted, Math.floor((i * (sorted.length - 1)) / steps)));
  return [...new Set([...picks, Number.POSITIVE_INFINITY])];
}

/** Segments of every length, at ratios of at least `ratio`. */
export function* segmentPlans(
  problem: RecomputeProblem,
  level: Level = "operation",
  ratio = LONGER,
): Generator<Sequence> {
  const most = unitCount(problem, level);
  for (let k = level === "operation" ? 2 : 1; k <= most; k = Math.max(k + 1, Math.ceil(k * ratio))) {
    yield everyK(problem, k, level);
  }
}

/** Keeps what costs at least so much per byte. */
export function* selectivePlans(problem: RecomputeProblem): Generator<Sequence> {
  const worth = intensity(problem);
  for (const limit of thresholds(problem, 24)) yield selective(problem, (op) => at(worth, op) >= limit);
}

/** Keeps the fewest bytes that everything which costs less per byte can be computed from. */
export function* minCutPlans(problem: RecomputeProblem): Generator<Sequence> {
  const worth = intensity(problem);
  for (const limit of thresholds(problem, 12))
    yield keepOnly(
      problem,
      minCut(problem, (op) => at(worth, op) < limit),
    );
}
