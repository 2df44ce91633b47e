/**
 * @file Binomial schedules: Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000). With s snapshots, the one
 * of x₀ counted, and no step run more than r times before it is taped, exactly β(s, r) = C(s + r, s) steps can be reversed.
 * The least number of advances for l steps is
 *
 * ```
 *   t(l, s) = r·l - β(s+1, r-1)       with β(s, r-1) < l ≤ β(s, r)
 *           = min over k of  k + t(k, s) + t(l-k, s-1)
 *
 *     ├──────── k ────────┼──── l-k ────┤     x_k is kept; the right part goes first, with one snapshot less
 *    x₀ kept             x_k kept       x_l
 * ```
 *
 * Many k are best; the one of the paper also takes the fewest snapshots.
 */

/** β(s, r) = C(s + r, s), the steps that s snapshots reverse in r repetitions; 0 for negative r; inexact beyond 2⁵³. */
export function reach(s: number, r: number): number {
  if (r < 0 || s < 0) return 0;
  const few = Math.min(s, r);
  let product = 1;
  // stays an integer: after i factors it is C(s + r - few + i, i)
  for (let i = 1; i <= few; i++) {
    product = (product * (s + r - few + i)) / i;
    if (product > Number.MAX_SAFE_INTEGER) return Number.POSITIVE_INFINITY;
  }
  return product;
}

/** The r with β(s, r-1) < l ≤ β(s, r): how often a step is run, at most, before it is taped. */
export function repetitions(l: number, s: number): number {
  if (l <= 1) return 0;
  if (s === 1) return l - 1;
  let high = 1;
  while (reach(s, high) < l) high *= 2;
  let low = high >> 1; // β(s, low) < l, or low is 0 and l > 1 = β(s, 0)
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (reach(s, middle) < l) low = middle;
    else high = middle;
  }
  return high;
}

/** t(l, s): the least number of advances, taped evaluations not counted. Infinite without a snapshot. */
export function leastAdvances(l: number, s: number): number {
  if (l <= 1) return 0;
  if (s < 1) return Number.POSITIVE_INFINITY;
  const r = repetitions(l, s);
  return r * l - reach(s + 1, r - 1);
}

/** How far to advance from a kept state, with l > 1 steps left and s > 1 snapshots, that state's counted. */
export function binomialSplit(l: number, s: number): number {
  const r = repetitions(l, s);
  const right = reach(s - 1, r - 1);
  const next = reach(s - 2, r - 1);
  if (l <= reach(s, r - 1) + next) return Math.max(1, reach(s, r - 2));
  if (l >= reach(s, r) - reach(s - 3, r)) return reach(s, r - 1);
  return l - right - next;
}
