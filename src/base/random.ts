/**
 * @file Random numbers as a function of a key and a counter: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", 2011). There is no state to store or to replay. This is the plain
 * version, which says what kernels compute; the host draws initial weights from it too.
 *
 * Invariant: words are kept as signed 32-bit integers; only their bits have a meaning.
 */

/** Keeps an all-zero key from being a fixed point. */
const PARITY = 0x1bd11bda;

export type Words = readonly [number, number];

const rotateLeft = (x: number, by: number): number => (x << by) | (x >>> (32 - by));

/** Two random words for a key and a counter of two words each. Plain locals, no arrays: initial weights are drawn here. */
export function threefry(key: Words, counter: Words): Words {
  let k0 = key[0] | 0;
  let k1 = key[1] | 0;
  let k2 = k0 ^ k1 ^ PARITY;
  let a = (counter[0] + k0) | 0;
  let b = (counter[1] + k1) | 0;
  for (let group = 1; group <= 5; group++) {
    const odd = group % 2 === 1;
    a = (a + b) | 0;
    b = rotateLeft(b, odd ? 13 : 17) ^ a;
    a = (a + b) | 0;
    b = rotateLeft(b, odd ? 15 : 29) ^ a;
    a = (a + b) | 0;
    b = rotateLeft(b, odd ? 26 : 16) ^ a;
    a = (a + b) | 0;
    b = rotateLeft(b, odd ? 6 : 24) ^ a;
    // the three words of the key alternate
    a = (a + k1) | 0;
    b = (b + k2 + group) | 0;
    const first = k0;
    k0 = k1;
    k1 = k2;
    k2 = first;
  }
  return [a, b];
}

/** Significant bits of a float: single or double precision. */
export type Significand = 24 | 53;

/** Uniform in [0, 1): a multiple of 2⁻²⁴ from the first word for 24 bits, of 2⁻⁵³ from both for 53. */
export function uniformFromBits([a, b]: Words, significand: Significand): number {
  if (significand === 24) return (a >>> 8) / 2 ** 24;
  return ((a >>> 5) * 2 ** 26 + (b >>> 6)) / 2 ** 53;
}

/** Standard normal by Box and Muller, √(-2 ln u) · cos 2πv: u in (0, 1] and v in [0, 1) have 24 or 32 bits. */
export function normalFromBits([a, b]: Words, significand: Significand): number {
  const drop = significand === 24 ? 8 : 0;
  const scale = 2 ** (32 - drop);
  const u = ((a >>> drop) + 1) / scale;
  const v = (b >>> drop) / scale;
  return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v);
}

/** ⌊u · n / 2³²⌋ of a word read as unsigned, exact for n up to 2³¹: an integer below n. */
export function belowFromBits(bits: number, n: number): number {
  const high = (bits >>> 16) * n;
  const low = (bits & 0xffff) * n;
  return Math.floor((high + Math.floor(low / 0x10000)) / 0x10000);
}

export interface HostRandom {
  /** Uniform in [0, 1), with 53 random bits. */
  next(): number;
  /** Standard normal. */
  normal(): number;
}

/** A sequence that depends on the seed alone. */
export function hostRandom(seed: number): HostRandom {
  const key: Words = [seed | 0, Math.floor(seed / 2 ** 32) | 0];
  let drawn = 0;
  const words = (): Words => {
    const counter: Words = [drawn | 0, Math.floor(drawn / 2 ** 32) | 0];
    drawn++;
    return threefry(key, counter);
  };
  return { next: () => uniformFromBits(words(), 53), normal: () => normalFromBits(words(), 53) };
}
