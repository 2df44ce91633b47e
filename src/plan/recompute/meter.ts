/**
 * @file Work, the one currency of the searches: each step, value or operation that is looked at counts once, about 10 ns.
 * A search that ends when its work is done gives the same plan on every machine. Where the caller gives seconds instead, work
 * has no limit, and the clock is a deadline laid over it.
 */

/** How much may be spent on a plan. */
export interface Limits {
  /** Work: 1 is about a second for a hundred operations; with 0 the first plan is taken and not improved. */
  readonly effort?: number | undefined;
  /** Time by the clock, where no effort is given; default: 10. */
  readonly seconds?: number | undefined;
  /** Both, where a caller shares out its own. @internal */
  readonly meter?: Meter | undefined;
}

export interface Meter {
  /** Units of work. */
  left: number;
  /** The time by the clock at which nothing is left either. */
  readonly deadline: number;
}

/** Work that an operation has without any effort, and all of them at most: two seconds or so. */
const [EACH, MOST] = [20_000, 2e8];

/** What the limits of a caller are for a graph of `ops` operations. */
export function meterOf(ops: number, { effort, seconds = 10, meter }: Limits): Meter {
  if (meter) return meter;
  if (effort === undefined) return { left: Number.POSITIVE_INFINITY, deadline: performance.now() + seconds * 1000 };
  return { left: ops * effort * 1e6 + Math.min(ops * EACH, MOST), deadline: Number.POSITIVE_INFINITY };
}

export function unlimited(): Meter {
  return { left: Number.POSITIVE_INFINITY, deadline: Number.POSITIVE_INFINITY };
}

export function isSpent({ left, deadline }: Meter): boolean {
  return left < 0 || isLate(deadline);
}

/** Without a deadline the clock is not read. */
export function isLate(deadline: number): boolean {
  return deadline !== Number.POSITIVE_INFINITY && performance.now() > deadline;
}

/** A meter that is spent in shares of what it held at first. */
export class Allowance {
  readonly #meter: Meter;
  readonly #work: number;
  readonly #ms: number;

  constructor(meter: Meter) {
    this.#meter = meter;
    this.#work = meter.left;
    this.#ms = meter.deadline - performance.now();
  }

  get isSpent(): boolean {
    return isSpent(this.#meter);
  }

  /** Runs `task` with at most `share` of the whole, and with no more than is left. */
  spend<T>(share: number, task: (meter: Meter) => T): T {
    const of = (whole: number): number => (whole === Number.POSITIVE_INFINITY ? whole : share * whole);
    const given = Math.min(this.#meter.left, of(this.#work));
    const part = { left: given, deadline: Math.min(this.#meter.deadline, performance.now() + of(this.#ms)) };
    const result = task(part);
    if (given !== Number.POSITIVE_INFINITY) this.#meter.left -= given - part.left;
    return result;
  }
}
