/**
 * @file A checksum of bytes that detects accidents: files that were cut off, changed or mixed. Every change within one 32-bit
 * word changes it. It is computed at about the speed of a copy, and it is no protection against an author of collisions.
 */

/** Odd multipliers of the four lanes: bits of the square roots of 2, 3, 5 and 7. */
const MULTIPLIERS = [0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b] as const;

/** Each lane takes every fourth word, little-endian. */
const BLOCK_BYTES = 16;

/** Multiplication carries upwards only; rotations bring the high bits back down. */
const rotated = (x: number, by: number): number => (x << by) | (x >>> (32 - by));

/** Bijective in the lane and in the word, which is spread over all bits before it meets the lane. */
function mixed(lane: number, word: number, multiplier: number): number {
  const spread = Math.imul(rotated(Math.imul(word, multiplier), 15), 0x9e3779b1);
  return (Math.imul(rotated(lane ^ spread, 13), multiplier) + 1) | 0;
}

/** 128 bits of bytes, as 32 hexadecimal digits. */
export function checksum(bytes: Uint8Array): string {
  const whole = bytes.length - (bytes.length % BLOCK_BYTES);
  const rest = new Uint8Array(BLOCK_BYTES);
  rest.set(bytes.subarray(whole));
  const [m0, m1, m2, m3] = MULTIPLIERS;
  let [a, b, c, d] = [...MULTIPLIERS] as [number, number, number, number];
  const take = (view: DataView, end: number): void => {
    for (let at = 0; at < end; at += BLOCK_BYTES) {
      a = mixed(a, view.getInt32(at, true), m0);
      b = mixed(b, view.getInt32(at + 4, true), m1);
      c = mixed(c, view.getInt32(at + 8, true), m2);
      d = mixed(d, view.getInt32(at + 12, true), m3);
    }
  };
  take(new DataView(bytes.buffer, bytes.byteOffset, whole), whole);
  take(new DataView(rest.buffer), BLOCK_BYTES);
  for (let round = 0; round < 4; round++) {
    // With the length, zeros at the end count.
    a = mixed(a, d ^ bytes.length, m0);
    b = mixed(b, a, m1);
    c = mixed(c, b, m2);
    d = mixed(d, c, m3);
  }
  return [a, b, c, d].map((lane) => (lane >>> 0).toString(16).padStart(8, "0")).join("");
}
