/**
 * @file How long values of a tape stay in memory where user code may still hold them. Nothing says what it holds, so:
 *
 *   stays      what nothing has read yet · what recorded operations still have to read · what reverses still to come read
 *   outlives   a small value, or one like those that were read later before: the next evaluation; then it is given back
 *   ends       everything else, after its last reader
 *
 * What was given back and is read after all is recomputed, and from then on lives twice as long: so a value that is needed every now
 * and then is recomputed a few times, whatever the distance.
 */
import { byteLength } from "../ir/type.ts";
import { EXECUTED, type Log, OF_GRADIENT, QUEUED, SEEN } from "./log.ts";

/** Values up to this size outlive an evaluation without having shown that they are needed. */
const SMALL_BYTES = 1024;
/** Up to this size, what the host has looked at and nothing has read stays too. */
const TINY_BYTES = 256;
const MOST_LASTING = 65536;
/** A power of two. */
const LONGEST_LIFE = 20;

/** Places in programs whose values are read by later evaluations, for all tapes: how many evaluations they outlive, as a power of two. */
export class LastingPlaces {
  #places = new Map<number, number>();

  has(place: number): boolean {
    return this.#places.has(place);
  }

  lifeAt(place: number): number {
    return this.#places.get(place) ?? 0;
  }

  /** A value of this place is read `evaluations` after it was used before. */
  add(place: number, evaluations: number): void {
    const life = Math.min(LONGEST_LIFE, Math.ceil(Math.log2(Math.max(1, evaluations))));
    const known = this.#places.get(place);
    if (known !== undefined && known >= life) return;
    if (this.#places.size >= MOST_LASTING) this.#places = new Map();
    this.#places.set(place, life);
  }
}

export class Lifetimes {
  readonly #log: Log;
  readonly #lasting: LastingPlaces;
  readonly #give: (value: number) => void;
  /** Values by the evaluation at whose end they are given back. */
  readonly #ends = new Map<number, number[]>();
  now = 0;

  constructor(log: Log, lasting: LastingPlaces, give: (value: number) => void) {
    this.#log = log;
    this.#lasting = lasting;
    this.#give = give;
  }

  /** A hash of the place in the program that makes a value. */
  #placeOf(value: number): number {
    const { producer, context, firstOutput } = this.#log;
    const entry = producer[value] as number;
    return Math.imul((context[entry] as number) ^ (value - (firstOutput[entry] as number)), 0x01000193);
  }

  /** An entry that never ran before reads a value: one of an earlier evaluation, of a place whose values are worth keeping. */
  noteRead(entry: number, value: number): void {
    const { producer, marks } = this.#log;
    const from = producer[value] as number;
    if (from < 0 || (marks[entry] as number) & OF_GRADIENT) return;
    if ((marks[from] as number) & EXECUTED) this.#noteLasting(value);
  }

  /** The host reads a value, or takes it out of the tape: one that was computed earlier and given back is worth keeping next time. */
  noteTarget(value: number): void {
    const { producer, marks, block } = this.#log;
    const from = producer[value] as number;
    if (from >= 0 && (block[value] as number) < 0 && (marks[from] as number) & EXECUTED) this.#noteLasting(value);
  }

  #noteLasting(value: number): void {
    this.#lasting.add(this.#placeOf(value), this.now - (this.#log.used[value] as number));
  }

  /** Whether a value is certain to be read, or likely; `first` of its readers run for the first time in this evaluation. */
  stays(value: number, first: number): boolean {
    const { readers, readersRun, saves, valueMarks } = this.#log;
    if ((saves[value] as number) > 0) return true;
    const all = readers[value] as number;
    if (all > (readersRun[value] as number) + first) return true;
    if (all > 0) return false;
    return !((valueMarks[value] as number) & SEEN) || this.#bytes(value) <= TINY_BYTES;
  }

  /** Whether a value should be stored that nothing is known to read. */
  mayLast(value: number, first: number): boolean {
    return this.stays(value, first) || this.#lasting.has(this.#placeOf(value));
  }

  /** A value has been read for the last time that is known of. */
  retire(value: number, reader: number): void {
    const { producer, marks, life } = this.#log;
    if (this.stays(value, 0)) return;
    const isLeaf = (producer[value] as number) < 0;
    const isSmall = this.#bytes(value) <= SMALL_BYTES && !((marks[reader] as number) & OF_GRADIENT);
    const isDear = isLeaf || !this.#log.signatureOf(producer[value] as number).isCheap;
    const isWanted = isLeaf || (life[value] as number) > 0 || this.#lasting.has(this.#placeOf(value));
    const outlives = isSmall || (isDear && isWanted);
    if (outlives) this.#queue(value);
    else this.#give(value);
  }

  use(value: number): void {
    this.#log.used[value] = this.now;
  }

  /** It was given back and is needed again. */
  prolong(value: number): void {
    this.#log.life[value] = Math.min(LONGEST_LIFE, (this.#log.life[value] as number) + 1);
  }

  #bytes(value: number): number {
    return byteLength(this.#log.typeOf(value));
  }

  #endOf(value: number): number {
    const { producer, used, life } = this.#log;
    const learnt = (producer[value] as number) < 0 ? 0 : this.#lasting.lifeAt(this.#placeOf(value));
    return (used[value] as number) + 2 ** Math.max(life[value] as number, learnt);
  }

  #queue(value: number): void {
    const { valueMarks } = this.#log;
    if ((valueMarks[value] as number) & QUEUED) return;
    valueMarks[value] = (valueMarks[value] as number) | QUEUED;
    const end = Math.max(this.now, this.#endOf(value));
    const others = this.#ends.get(end);
    if (others) others.push(value);
    else this.#ends.set(end, [value]);
  }

  /** Gives back what is due at the end of an evaluation. */
  settle(): void {
    const due = this.#ends.get(this.now) ?? [];
    this.#ends.delete(this.now);
    const { valueMarks } = this.#log;
    for (const value of due) {
      valueMarks[value] = (valueMarks[value] as number) & ~QUEUED;
      if ((this.#log.block[value] as number) < 0 || this.stays(value, 0)) continue;
      if (this.#endOf(value) > this.now) this.#queue(value);
      else this.#give(value);
    }
  }
}
