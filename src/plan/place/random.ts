/** @file Random numbers for search: small, fast, and the same on every machine (xorshift with 32 bits, Marsaglia 2003). */

/** Uniform in [0, 1). */
export type Random = () => number;

export function randomFrom(seed: number): Random {
  let state = Math.imul(seed | 0, 0x9e3779b1) ^ 0x6d2b79f5;
  if (state === 0) state = 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 4294967296;
  };
}
