/** @file The largest batch whose peak is within a budget; peaks grow with the batch, nearly in proportion. */

const MOST = 2 ** 20;

/** 0 where not even one item fits. */
export function largestBatch(peakAt: (batch: number) => number, budget: number): number {
  const known = new Map<number, number>();
  const peak = (batch: number): number => {
    const found = known.get(batch) ?? peakAt(batch);
    known.set(batch, found);
    return found;
  };
  if (peak(1) > budget) return 0;
  let [fits, fails] = [1, MOST + 1];
  while (fails - fits > 1) {
    const next = Math.min(Math.max(guess(fits, fails, peak, budget), fits + 1), fails - 1);
    if (peak(next) <= budget) fits = next;
    else fails = next;
  }
  return fits;
}

/** Where a line through what is known would reach the budget. */
function guess(fits: number, fails: number, peak: (batch: number) => number, budget: number): number {
  const other = fails > MOST ? fits + 1 : fails;
  const slope = (peak(other) - peak(fits)) / (other - fits);
  if (!(slope > 0)) return fails > MOST ? fits * 2 : (fits + fails) >> 1;
  return fits + Math.floor((budget - peak(fits)) / slope);
}
