/** @file Plans of several strategies on the axes of memory and time: equal ones as one, and those that no other beats. */

export interface StrategyPlan {
  readonly strategy: string;
  readonly arenaBytes: number;
  readonly predictedMs: number;
}

/** Equal plans. */
export interface MergedPlan<P extends StrategyPlan> {
  readonly arenaBytes: number;
  readonly predictedMs: number;
  /** The strategies that found it, each once. */
  readonly strategies: readonly string[];
  /** No other plan is smaller and as fast, or faster and as small. */
  readonly isBest: boolean;
  readonly plans: readonly [P, ...P[]];
}

/** Times that differ by less are equal: sums of the same costs in another order. */
const SAME = 1e-9;

/** From the largest to the smallest arena, faster plans first. */
export function mergedPlans<P extends StrategyPlan>(plans: readonly P[]): readonly MergedPlan<P>[] {
  const sorted = [...plans].sort((a, b) => b.arenaBytes - a.arenaBytes || a.predictedMs - b.predictedMs);
  const groups: [P, ...P[]][] = [];
  for (const plan of sorted) {
    const last = groups.at(-1);
    if (last && isSame(last[0], plan)) last.push(plan);
    else groups.push([plan]);
  }
  // From the smallest on, a plan is among the best if it is faster than all smaller ones.
  let fastest = Number.POSITIVE_INFINITY;
  const best = new Set<[P, ...P[]]>();
  for (const group of [...groups].reverse()) {
    const { predictedMs, arenaBytes } = group[0];
    const faster = groups.some(([p]) => p.arenaBytes === arenaBytes && p.predictedMs < predictedMs * (1 - SAME));
    if (faster || predictedMs >= fastest * (1 - SAME)) continue;
    best.add(group);
    fastest = predictedMs;
  }
  return groups.map((group) => ({
    arenaBytes: group[0].arenaBytes,
    predictedMs: group[0].predictedMs,
    strategies: [...new Set(group.map(({ strategy }) => strategy))],
    isBest: best.has(group),
    plans: group,
  }));
}

const isSame = (a: StrategyPlan, b: StrategyPlan): boolean =>
  a.arenaBytes === b.arenaBytes && Math.abs(a.predictedMs - b.predictedMs) <= SAME * a.predictedMs;
