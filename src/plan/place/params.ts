/**
 * @file The switches of the search (search.ts), as MiniMalloc's SolverParams: one search, and every mechanism of it can be
 * switched off or tuned alone. Each combination gives valid placements, and with `exact` proves small problems optimal.
 */

export interface SearchParams {
  /** Branch and bound (branch.ts). Without it, nothing is proven. */
  readonly exact: boolean;
  /** Local search (repair.ts). */
  readonly repair: boolean;
  /** Exact: parts of time that no unplaced item connects are solved one after the other. */
  readonly decompose: boolean;
  /** Exact: states that have no solution are remembered, also across restarts. */
  readonly memoize: boolean;
  /** Exact: sections that caused dead ends before are branched on first, not only those with the least room. */
  readonly learn: boolean;
  /** Exact: once each order has been tried, restarts perturb it at random. */
  readonly perturb: boolean;
  /** Exact: every other restart aims at a height between the bound and the best, not at the bound. */
  readonly relax: boolean;
  /** Repair: local search starts with nothing placed, close to the bound; without it, from the best placement. */
  readonly emptyStart: boolean;
  /** Repair: weights that items have gained decay. */
  readonly decay: boolean;
  /** Exact: nodes of a run before a restart; at least twice the number of items, up to 2,000 more than it. */
  readonly nodeLimit: number;
  /** Exact: part of an order's logarithm by which it is perturbed. */
  readonly noise: number;
  /** Exact: part of a section's failures that is left after a restart. */
  readonly failureDecay: number;
  /** Exact: states that are remembered, a power of two. */
  readonly memory: number;
  /** Repair: part of a gained weight that is left after a hundred iterations. */
  readonly weightDecay: number;
  /** Repair: exponent e of size in the hardness size^e · length^(1 - e). */
  readonly sizeExponent: number;
  /** Repair: after a success, the target is lowered by this part of its distance to the bound. */
  readonly descent: number;
  /** Repair: iterations without success before the target is raised, or the search restarts; at least two per item. */
  readonly patience: number;
}

export const DEFAULT_PARAMS: SearchParams = {
  exact: true,
  repair: true,
  decompose: true,
  memoize: true,
  learn: true,
  perturb: true,
  relax: true,
  emptyStart: true,
  decay: true,
  nodeLimit: 1500,
  noise: 0.1,
  failureDecay: 0.97,
  memory: 1 << 18,
  weightDecay: 0.985,
  sizeExponent: 0.5,
  descent: 0.1,
  patience: 32_000,
};
