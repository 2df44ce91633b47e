/**
 * @file Messages between the devices of one process, which share one block of memory and nothing else. Each device has a room of its own in
 * it, into which it alone writes and out of which the others read:
 *
 *   device 0   write room │ post to 1, 2 │ ………………………………………… │ wait until taken by 1, 2 │ write room …
 *   device 1              │ receive from 0: read │ take │ …
 *
 *   words      failed │ text │ left[i] │ tag[i] │ posted[i][j] │ taken[j][i] ‖ room of 0 │ room of 1 │ …
 *
 * Counters of pairs, and no barriers: groups of any devices meet in any order, as long as each pair of devices comes to its meetings in the
 * same order. Counters wrap around; only differences count. A wait ends in an error when the device that is waited for has returned, or when any
 * device has failed.
 *
 * Invariant: a room is written only after all readers of what was in it have taken that; the tag goes with the room.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";

/** Bytes of a device's room: two of them and a part of a tensor are in a core's cache at once. */
export const ROOM_BYTES = 256 * 1024;

/** States of `failed`. */
const NONE = 0;
const WRITING = 1;
const FAILED = 2;

/** Numbers of words: `failed`, the rank that failed, the length of its text, and the text from there on. */
const FAILED_WORD = 0;
const RANK_WORD = 1;
const LENGTH_WORD = 2;
const TEXT_WORD = 16;
const TEXT_BYTES = 1024;
const COUNTERS_WORD = TEXT_WORD + TEXT_BYTES / 4;

/** Looks at a word before sleeping: some microseconds. */
const LOOKS = 2000;
/** Milliseconds after which a sleeper looks whether it was forgotten. */
const PATIENCE = 500;

const LINE = 64;

/** Where a device's counters begin: its words `left` and `tag`, what it has posted to each, what it has taken from each. */
const ownWords = (size: number): number => Math.ceil((2 + 2 * size) / (LINE / 4)) * (LINE / 4);

const roomStart = (size: number): number => 4 * (COUNTERS_WORD + size * ownWords(size));

/** Bytes of the block for so many devices. */
export const blockBytes = (size: number, room = ROOM_BYTES): number => roomStart(size) + (size > 1 ? size * room : 0);

export const deviceFailed = (summary: string, help = "what it says went wrong on that device"): TidemarkError =>
  new TidemarkError("DeviceFailed", summary, { help });

/** A device that failed, for all who look at the block. */
export interface Failure {
  readonly rank: number;
  readonly text: string;
}

/** Writes that a device failed, unless one has already, and wakes all. Whether it is the first. */
export function announceFailure(block: ArrayBuffer, { rank, text }: Failure, size: number): boolean {
  const words = new Int32Array(block, 0, roomStart(size) / 4);
  if (Atomics.compareExchange(words, FAILED_WORD, NONE, WRITING) !== NONE) return false;
  const bytes = new TextEncoder().encode(text).subarray(0, TEXT_BYTES);
  new Uint8Array(block, 4 * TEXT_WORD, TEXT_BYTES).set(bytes);
  Atomics.store(words, RANK_WORD, rank);
  Atomics.store(words, LENGTH_WORD, bytes.length);
  Atomics.store(words, FAILED_WORD, FAILED);
  for (let word = COUNTERS_WORD; word < words.length; word++) wake(words, word);
  return true;
}

/** The device that failed first, or null. */
export function failureIn(block: ArrayBuffer): Failure | null {
  const words = new Int32Array(block, 0, COUNTERS_WORD);
  if (Atomics.load(words, FAILED_WORD) !== FAILED) return null;
  // decoders read no shared memory
  const bytes = new Uint8Array(block, 4 * TEXT_WORD, Atomics.load(words, LENGTH_WORD)).slice();
  return { rank: Atomics.load(words, RANK_WORD), text: new TextDecoder("utf-8", { fatal: false }).decode(bytes) };
}

/** Only shared words have sleepers. */
function wake(words: Int32Array, word: number): void {
  if (words.buffer instanceof ArrayBuffer) return;
  Atomics.notify(words, word);
}

/** What one device sends and receives. */
export class Mailbox {
  readonly rank: number;
  readonly size: number;
  /** Of each device. */
  readonly roomBytes: number;
  readonly block: ArrayBuffer;
  readonly #words: Int32Array;
  /** How often this device has received from each. */
  readonly #received: number[];
  /** Readers of what is in the room, with the counts that they will have taken. */
  #readers: readonly (readonly [rank: number, count: number])[] = [];

  constructor(block: ArrayBuffer, rank: number, size: number) {
    this.rank = rank;
    this.size = size;
    this.block = block;
    this.#words = new Int32Array(block, 0, roomStart(size) / 4);
    this.#received = Array.from({ length: size }, (_, from) => Atomics.load(this.#words, this.#taken(rank, from)));
    this.roomBytes = size > 1 ? (block.byteLength - roomStart(size)) / size : 0;
  }

  #own(rank: number): number {
    return COUNTERS_WORD + rank * ownWords(this.size);
  }

  #left(rank: number): number {
    return this.#own(rank);
  }

  #tag(rank: number): number {
    return this.#own(rank) + 1;
  }

  #posted(from: number, to: number): number {
    return this.#own(from) + 2 + to;
  }

  #taken(by: number, from: number): number {
    return this.#own(by) + 2 + this.size + from;
  }

  /** Where in the block the room of a device is. */
  roomAt(rank: number): number {
    return roomStart(this.size) + rank * this.roomBytes;
  }

  /** Waits until the own room may be written. */
  clear(): void {
    for (const [reader, count] of this.#readers) this.#reach(this.#taken(reader, this.rank), count, reader);
    this.#readers = [];
  }

  /** What is in the own room is for these devices; `tag` says what it is. */
  post(to: readonly number[], tag: number): void {
    Atomics.store(this.#words, this.#tag(this.rank), tag);
    this.#readers = to.map((reader) => {
      const word = this.#posted(this.rank, reader);
      const count = (Atomics.add(this.#words, word, 1) + 1) | 0;
      wake(this.#words, word);
      return [reader, count];
    });
  }

  /** Waits for what a device posts next to this one; it may be read until it is taken. `what` names it in messages. */
  receive(from: number, tag: number): void {
    const count = (at(this.#received, from) + 1) | 0;
    this.#reach(this.#posted(from, this.rank), count, from);
    this.#received[from] = count;
    if (Atomics.load(this.#words, this.#tag(from)) === tag) return;
    const summary = `rank ${from} is at another collective than rank ${this.rank}`;
    throw deviceFailed(summary, "all devices have to run the same programs in the same order, equally often");
  }

  /** What was received is read. */
  take(from: number): void {
    const word = this.#taken(this.rank, from);
    Atomics.store(this.#words, word, at(this.#received, from));
    wake(this.#words, word);
  }

  /** This device has returned: nothing will be posted any more. */
  leave(): void {
    Atomics.store(this.#words, this.#left(this.rank), 1);
    for (let rank = 0; rank < this.size; rank++) wake(this.#words, this.#posted(this.rank, rank));
  }

  /** Waits until a counter of another device is there. */
  #reach(word: number, count: number, other: number): void {
    const words = this.#words;
    const isThere = (): boolean => ((Atomics.load(words, word) - count) | 0) >= 0;
    for (let i = 0; i < LOOKS; i++) if (isThere()) return;
    for (;;) {
      const failure = failureIn(this.block);
      if (failure) throw deviceFailed(`${failure.text}; rank ${this.rank} waited for rank ${other}`);
      const hasLeft = Atomics.load(words, this.#left(other)) === 1;
      const seen = Atomics.load(words, word);
      if (((seen - count) | 0) >= 0) return;
      if (hasLeft) {
        const summary = `rank ${this.rank} waits for rank ${other}, which has returned`;
        throw deviceFailed(summary, "all devices have to run the same programs in the same order, equally often");
      }
      Atomics.wait(words, word, seen, PATIENCE);
    }
  }
}
