/**
 * @file How long transforms are cut into short ones: a function of the length alone, since it is the order of arithmetic.
 *
 *   1024 = 16 · 8 · 8        three stages
 *   1000 = 10 · 10 · 10
 *   1009 is prime            a convolution, by transforms of a length that is not (Bluestein)
 */

/** The longest transform that is one expression. */
const MOST = 16;

/** Of one element in one stage: reading and writing it, and arithmetic for each of the primes. Fitted to bench/fft.ts. */
const PASS = 10;

const primesOf = (r: number): readonly number[] => {
  for (let p = 2; p * p <= r; p++) if (r % p === 0) return [p, ...primesOf(r / p)];
  return r > 1 ? [r] : [];
};

/** Of transforms of so many numbers, for one of them: their arithmetic, and that they take turns in registers. */
const workOf = (r: number): number =>
  PASS + primesOf(r).reduce((sum, p) => sum + (p === 2 ? 2.5 : 2 + p), 0) + (r > 8 ? (r - 8) / 2 : 0);

const RADICES: readonly number[] = Array.from({ length: MOST - 1 }, (_, i) => MOST - i);

interface Cut {
  readonly radices: readonly number[];
  readonly work: number;
}

function cut(n: number, most: number, known: Map<string, Cut | null>): Cut | null {
  if (n === 1) return { radices: [], work: 0 };
  const key = `${n} ${most}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  let best: Cut | null = null;
  for (const r of RADICES) {
    if (r > most || n % r !== 0) continue;
    const rest = cut(n / r, r, known);
    const work = rest ? rest.work + workOf(r) : Number.POSITIVE_INFINITY;
    if (rest && work < (best?.work ?? Number.POSITIVE_INFINITY)) best = { radices: [r, ...rest.radices], work };
  }
  known.set(key, best);
  return best;
}

/** The lengths of the stages of a transform of length n, the longest first; null where a prime is too great. */
export function radicesOf(n: number): readonly number[] | null {
  return n === 1 ? [1] : (cut(n, MOST, new Map())?.radices ?? null);
}

/** The cheapest length, at least as long as a convolution of two sequences of n numbers, that has only small factors. */
export function convolutionLength(n: number): number {
  const least = 2 * n - 1;
  let [best, work] = [0, Number.POSITIVE_INFINITY];
  for (const odd of [1, 3, 5, 9, 15, 25, 27, 45, 75, 81, 125]) {
    let length = odd;
    while (length < least) length *= 2;
    if (workFor(length) >= work) continue;
    [best, work] = [length, workFor(length)];
  }
  return best;
}

const workFor = (n: number): number => n * (cut(n, MOST, new Map())?.work ?? Number.POSITIVE_INFINITY);

/** Factors of a table that has more than so many elements are found as products of two. */
const LONG_TABLE = 1024;

/** The length of the rows that a counter is cut into, so that two short tables stand for a long one; all of it where it is short. */
export function tableRow(extent: number): number {
  if (extent <= LONG_TABLE) return extent;
  let best = extent;
  for (let row = 1; row * row <= extent; row++) {
    if (extent % row !== 0) continue;
    // the longer of the two is the inner one
    if (extent / row + row < extent / best + best) best = extent / row;
  }
  return best;
}
