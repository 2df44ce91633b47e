/**
 * @file SHA-256 (FIPS 180-4) of bytes, in plain code: pages that do not come from a secure origin have no
 * `crypto.subtle`, and hashes are computed synchronously between training steps.
 */
import { at } from "../base/invariant.ts";

/** The first 32 bits of the fractional part of a root of the n-th prime: cube roots for rounds, square roots to start. */
const { rounds: ROUNDS, start: START } = constants();

/** The fractional part of p^(1/root) in 32 bits, exactly: the largest r with r^root ≤ p · 2^(32 root). */
function fractionBits(prime: number, root: number): number {
  const target = BigInt(prime) << BigInt(32 * root);
  let [low, high] = [0n, 1n << 40n];
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(root) <= target) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn) | 0;
}

function constants(): { readonly rounds: Int32Array; readonly start: Int32Array } {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p !== 0)) primes.push(n);
  return {
    rounds: Int32Array.from(primes, (p) => fractionBits(p, 3)),
    start: Int32Array.from(primes.slice(0, 8), (p) => fractionBits(p, 2)),
  };
}

const rotate = (x: number, by: number): number => (x >>> by) | (x << (32 - by));

/** One block of 64 bytes into the eight words of the hash. */
function digestBlock(hash: Int32Array, words: Int32Array): void {
  for (let i = 16; i < 64; i++) {
    const [x, y] = [at(words, i - 15), at(words, i - 2)];
    const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
    const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
    words[i] = (at(words, i - 16) + s0 + at(words, i - 7) + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + (words[i] as number)) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => {
    hash[i] = (at(hash, i) + word) | 0;
  });
}

/** Of several pieces one after the other, in hexadecimal. */
export function sha256(pieces: readonly Uint8Array[]): string {
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const padded = new Uint8Array(Math.ceil((bytes + 9) / 64) * 64);
  let used = 0;
  for (const piece of pieces) {
    padded.set(piece, used);
    used += piece.length;
  }
  padded[used] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes / 2 ** 29));
  view.setUint32(padded.length - 4, bytes * 8);
  const hash = START.slice();
  const words = new Int32Array(64);
  for (let from = 0; from < padded.length; from += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(from + 4 * i);
    digestBlock(hash, words);
  }
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}
