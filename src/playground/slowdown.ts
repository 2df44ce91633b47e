/**
 * @file How much slower a run is than the one beside it, from measured steps. A single step says little: other work on
 * the machine comes and goes. Both runs take every step one after the other, so their ratio at each step is
 * comparable, and the middle half of the ratios says how sure the median is.
 */
import type { StepReport } from "./trainer.ts";

/** Fewer steps than this say nothing; of more than this, the latest count. */
const [LEAST_STEPS, MOST_STEPS] = [8, 100] as const;

export interface Slowdown {
  readonly median: number;
  /** The quartiles. */
  readonly low: number;
  readonly high: number;
}

/**
 * @param since the step after which the current plan runs
 * @returns null while there are too few steps
 */
export function slowdownOf(reports: readonly StepReport[], since: number): Slowdown | null {
  // The first step of a plan warms up its memory.
  const first = Math.max(since + 1, reports.length - MOST_STEPS);
  const ratios = reports.slice(first).flatMap(({ ms, storedMs }) => (ms > 0 && storedMs > 0 ? [ms / storedMs] : []));
  if (ratios.length < LEAST_STEPS) return null;
  ratios.sort((a, b) => a - b);
  const at = (share: number): number => ratios[Math.round(share * (ratios.length - 1))] ?? 0;
  return { median: at(0.5), low: at(0.25), high: at(0.75) };
}
