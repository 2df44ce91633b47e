/** @file Random numbers for searches that draw several times a move: cheaper than `hostRandom`, and reproducible. */

function mixed(x: number): number {
  let z = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return z ^ (z >>> 15);
}

/**
 * Uniform in [0, 1): two multiplicative mixes of a counter (splitmix32). The counter starts at a mix of the seed: if the
 * starts of two seeds were a few draws apart, two searches would sooner or later meet at the same position of the same
 * stream, and be one search from there on.
 */
export function seededRandom(seed: number): () => number {
  let x = mixed(Math.imul(seed + 1, 0x85ebca6b) ^ 0x3c6ef372);
  return () => {
    x = (x + 0x9e3779b9) | 0;
    return (mixed(x) >>> 0) / 2 ** 32;
  };
}
