/**
 * @file Work instead of time: searches that must give the same plan on every machine count what they look at, each step,
 * value or operation once, and stop when an allowance is used up. One unit is about 10 ns.
 */
export interface Meter {
  left: number;
  /** The time by the clock at which nothing is left either, for searches that have one. */
  readonly deadline?: number;
}

export function exhausted({ left, deadline }: Meter): boolean {
  return left < 0 || (deadline !== undefined && performance.now() > deadline);
}

/** Without effort, for each operation, and for all of them: two seconds or so. */
const [EACH, MOST] = [20_000, 2e8];

/** For a graph of `ops` operations: an effort of 1 is about a second for a hundred; some for each even without effort. */
export function allowanceOf(ops: number, effort: number | undefined): number {
  return effort === undefined ? Number.POSITIVE_INFINITY : ops * effort * 1e6 + Math.min(ops * EACH, MOST);
}

/** An allowance that never ends. */
export function unmetered(): Meter {
  return { left: Number.POSITIVE_INFINITY };
}

/** Does `task` with at most `most` of what is left, and takes what it used from `meter`. */
export function metered<T>(meter: Meter, most: number, task: (part: Meter) => T): T {
  const given = Math.min(meter.left, most);
  const part = { ...meter, left: given };
  const done = task(part);
  if (Number.isFinite(given)) meter.left -= given - part.left;
  return done;
}
