/**
 * @file Random numbers as a function of a key and a counter: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", 2011). There is no state to store or to replay. This is the plain
 * version, which says what kernels compute; the host draws initial weights from it too.
 *
 * Invariant: words are kept as signed 32-bit integers; only their bits have a meaning.
 */
import { at } from "./invariant.ts";

const ROTATIONS: readonly number[] = [13, 15, 26, 6, 17, 29, 16, 24];
/** Keeps an all-zero key from being a fixed point. */
const PARITY = 0x1bd11bda;

export type Words = readonly [number, number];

/** Two random words for a key and a counter of two words each. */
export function threefry(key: Words, counter: Words): Words {
  const keys = [key[0] | 0, key[1] | 0, key[0] ^ key[1] ^ PARITY];
  let a = (counter[0] + key[0]) | 0;
  let b = (counter[1] + key[1]) | 0;
  for (let round = 0; round < 20; round++) {
    const turn = at(ROTATIONS, round % 8);
    a = (a + b) | 0;
    b = ((b << turn) | (b >>> (32 - turn))) ^ a;
    if (round % 4 !== 3) continue;
    const step = (round + 1) / 4;
    a = (a + at(keys, step % 3)) | 0;
    b = (b + at(keys, (step + 1) % 3) + step) | 0;
  }
  return [a, b];
}

/** Uniform in [0, 1): a multiple of 2⁻²⁴ from the first word for f32, of 2⁻⁵³ from both for f64. */
export function uniformFromBits([a, b]: Words, dtype: "f32" | "f64"): number {
  if (dtype === "f32") return (a >>> 8) / 2 ** 24;
  return ((a >>> 5) * 2 ** 26 + (b >>> 6)) / 2 ** 53;
}

/** Standard normal by Box and Muller, √(-2 ln u) · cos 2πv: u in (0, 1] and v in [0, 1) have 24 bits for f32, 32 for f64. */
export function normalFromBits([a, b]: Words, dtype: "f32" | "f64"): number {
  const drop = dtype === "f32" ? 8 : 0;
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
  return { next: () => uniformFromBits(words(), "f64"), normal: () => normalFromBits(words(), "f64") };
}
