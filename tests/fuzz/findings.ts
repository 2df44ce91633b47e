/** @file What can be found about a random program, by kind; kinds are in groups that can be asked for. */

export const GROUPS = {
  /** The same bits whatever the plan, the threads, earlier runs, and donation; numbers near the reference. */
  bits: ["rerun", "bits", "donation", "inputs", "reference", "tape"],
  /** Plans that hold: no arena above its budget or below its bound, the validator clean, the same plan each time. */
  plans: ["validator", "budget", "bound", "repeat", "cache"],
  /** `min` is a minimum: no budget from there up is refused, what a refusal advises is accepted, and nothing is smaller. */
  least: ["refused", "advice", "min"],
  /** A smaller budget is never a larger arena, a larger one never slower, and `auto` never slower than another strategy. */
  order: ["order-bytes", "order-time", "strategy-time", "slowdown"],
  /** Neither errors nor the ends of processes. */
  process: ["threw", "crash", "slow", "memory"],
} as const;

export type Group = keyof typeof GROUPS;
export type Kind = (typeof GROUPS)[Group][number];

export const GROUP_NAMES = Object.keys(GROUPS) as readonly Group[];

export const kindsOf = (groups: readonly Group[]): ReadonlySet<Kind> =>
  new Set<Kind>(groups.flatMap((group) => GROUPS[group] as readonly Kind[]));

export interface Finding {
  readonly kind: Kind;
  readonly what: string;
}

/** How much was done. */
export interface Counts {
  plans: number;
  runs: number;
  refusals: number;
  references: number;
}

export const noCounts = (): Counts => ({ plans: 0, runs: 0, refusals: 0, references: 0 });

/** What came of one program. */
export interface Outcome {
  readonly seed: number;
  readonly target: string;
  readonly about: string;
  readonly findings: readonly Finding[];
  readonly counts: Readonly<Counts>;
  readonly cpuSeconds: number;
}
