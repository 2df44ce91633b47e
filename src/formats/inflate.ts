/**
 * @file Reading deflated bytes (RFC 1951) into an array whose length is known: an archive says how long an entry is, and what would
 * become longer or shorter is refused, so that a small file cannot ask for more memory than it announced.
 *
 * A code is read bit by bit from `counts` (codes of each length) and `symbols` (in the order of their codes), as canonical codes allow.
 */
import { badArchive } from "./zip-error.ts";

interface Code {
  readonly counts: Uint16Array;
  readonly symbols: Uint16Array;
}

const MOST_BITS = 15;

function codeOf(lengths: readonly number[]): Code {
  const counts = new Uint16Array(MOST_BITS + 1);
  for (const length of lengths) counts[length] = (counts[length] as number) + 1;
  counts[0] = 0;
  const offsets = new Uint16Array(MOST_BITS + 2);
  for (let n = 1; n <= MOST_BITS; n++) offsets[n + 1] = (offsets[n] as number) + (counts[n] as number);
  const symbols = new Uint16Array(lengths.length);
  lengths.forEach((length, symbol) => {
    if (length === 0) return;
    symbols[offsets[length] as number] = symbol;
    offsets[length] = (offsets[length] as number) + 1;
  });
  return { counts, symbols };
}

/** First length of each length symbol from 257 on, and its further bits. */
const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131];
const LENGTH_BASE = [...LENGTHS, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
/** The order in which lengths of the code of lengths come. */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Distances double every second symbol: 1, 2, 3, 4, 5, 7, 9, 13, … */
const distanceBits = (symbol: number): number => (symbol < 4 ? 0 : (symbol >> 1) - 1);
const distanceBase = (symbol: number): number =>
  symbol < 4 ? symbol + 1 : 1 + ((2 + (symbol & 1)) << distanceBits(symbol));

class Inflation {
  readonly #source: Uint8Array;
  readonly #out: Uint8Array;
  #next = 0;
  #bits = 0;
  #held = 0;
  #length = 0;

  constructor(source: Uint8Array, bytes: number) {
    this.#source = source;
    this.#out = new Uint8Array(bytes);
  }

  run(): Uint8Array {
    for (let isLast = false; !isLast; ) {
      isLast = this.#take(1) === 1;
      const kind = this.#take(2);
      if (kind === 0) this.#stored();
      else if (kind === 1) this.#coded(fixedCodes());
      else if (kind === 2) this.#coded(this.#ownCodes());
      else throw badArchive("compressed bytes have a block of an unknown kind");
    }
    if (this.#length !== this.#out.length) throw badArchive("an entry is shorter than the archive says");
    return this.#out;
  }

  #take(count: number): number {
    while (this.#held < count) {
      const byte = this.#source[this.#next++];
      if (byte === undefined) throw badArchive("compressed bytes end in the middle: the file was cut off");
      this.#bits |= byte << this.#held;
      this.#held += 8;
    }
    const value = this.#bits & ((1 << count) - 1);
    this.#bits >>>= count;
    this.#held -= count;
    return value;
  }

  #symbol({ counts, symbols }: Code): number {
    let [code, first, index] = [0, 0, 0];
    for (let length = 1; length <= MOST_BITS; length++) {
      code |= this.#take(1);
      const count = counts[length] as number;
      if (code - count < first) return symbols[index + code - first] as number;
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw badArchive("compressed bytes have a code that means nothing");
  }

  #push(byte: number): void {
    if (this.#length >= this.#out.length) throw badArchive("an entry is longer than the archive says");
    this.#out[this.#length++] = byte;
  }

  #stored(): void {
    this.#bits = 0;
    this.#held = 0;
    const length = this.#take(8) | (this.#take(8) << 8);
    const inverse = this.#take(8) | (this.#take(8) << 8);
    if ((length ^ inverse) !== 0xffff) throw badArchive("compressed bytes have a block of a damaged length");
    for (let i = 0; i < length; i++) this.#push(this.#take(8));
  }

  /** The codes of a block, themselves coded. */
  #ownCodes(): readonly [Code, Code] {
    const [literals, distances, count] = [this.#take(5) + 257, this.#take(5) + 1, this.#take(4) + 4];
    const own = new Array<number>(ORDER.length).fill(0);
    for (let i = 0; i < count; i++) own[ORDER[i] as number] = this.#take(3);
    const code = codeOf(own);
    const lengths: number[] = [];
    while (lengths.length < literals + distances) {
      const symbol = this.#symbol(code);
      if (symbol < 16) lengths.push(symbol);
      else if (symbol === 16) lengths.push(...new Array<number>(3 + this.#take(2)).fill(lengths.at(-1) ?? 0));
      else lengths.push(...new Array<number>(symbol === 17 ? 3 + this.#take(3) : 11 + this.#take(7)).fill(0));
    }
    return [codeOf(lengths.slice(0, literals)), codeOf(lengths.slice(literals, literals + distances))];
  }

  #coded([literals, distances]: readonly [Code, Code]): void {
    for (;;) {
      const symbol = this.#symbol(literals);
      if (symbol === 256) return;
      if (symbol < 256) this.#push(symbol);
      else this.#copy(symbol - 257, distances);
    }
  }

  #copy(symbol: number, distances: Code): void {
    const [base, bits] = [LENGTH_BASE[symbol], LENGTH_BITS[symbol]];
    if (base === undefined || bits === undefined) throw badArchive("compressed bytes have a length that is none");
    const length = base + this.#take(bits);
    const far = this.#symbol(distances);
    if (far > 29) throw badArchive("compressed bytes have a distance that is none");
    const distance = distanceBase(far) + this.#take(distanceBits(far));
    if (distance > this.#length) throw badArchive("compressed bytes refer to bytes before their start");
    for (let i = 0; i < length; i++) this.#push(this.#out[this.#length - distance] as number);
  }
}

function fixedCodes(): readonly [Code, Code] {
  const lengths = Array.from({ length: 288 }, (_, symbol) => {
    if (symbol < 144) return 8;
    if (symbol < 256) return 9;
    return symbol < 280 ? 7 : 8;
  });
  return [codeOf(lengths), codeOf(new Array<number>(30).fill(5))];
}

/** Deflated bytes as what they were: exactly so many. */
export function inflate(source: Uint8Array, bytes: number): Uint8Array {
  return new Inflation(source, bytes).run();
}
