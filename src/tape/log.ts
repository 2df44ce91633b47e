/**
 * @file What a tape has recorded, in typed arrays: one row per operation (*entry*) and one per value. Operations with their attributes and
 * types are *signatures*, kept once for all tapes; an entry refers to one by its number.
 *
 *   entry     signature · first input · first output · line · replay · marks
 *   inputs    … 17 4 │ 18 │ 18 19 …          numbers of values, entry after entry
 *   value     type · producing entry, -1 for one from outside · place in memory · counts
 *
 * Entries and their values are numbered in the order in which they were recorded, so whatever an entry reads has a lower number.
 */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import { newValue } from "../ir/graph.ts";
import type { TensorType } from "../ir/type.ts";
import { inputBit, type Signature, type Signatures } from "./signatures.ts";

/** Marks of entries. */
export const EXECUTED = 1;
/** Its reverse has been recorded. */
export const REVERSED = 2;

/** It is part of a gradient. */
export const OF_GRADIENT = 4;

/** Marks of values. */
export const ACTIVE = 1;
/** The host has looked at its elements. */
export const SEEN = 2;
/** It is in the queue of those that are given back later. */
export const QUEUED = 4;

function longer<T extends Int32Array | Uint8Array>(from: T, make: (length: number) => T): T {
  const into = make(2 * from.length);
  into.set(from);
  return into;
}

const int32 = (length: number): Int32Array => new Int32Array(length);
const uint8 = (length: number): Uint8Array => new Uint8Array(length);

export class Log {
  readonly signatures: Signatures;
  entries = 0;
  values = 0;
  #inputs = 0;
  signature: Int32Array = int32(256);
  firstInput: Int32Array = int32(256);
  firstOutput: Int32Array = int32(256);
  replay: Int32Array = int32(256);
  /** Numbers in `lines`; 0 for none. */
  line: Int32Array = int32(256);
  marks: Uint8Array = uint8(256);
  /** Of entries that have run: a hash of what ran before them (cuts.ts). */
  context: Int32Array = int32(256);
  inputs: Int32Array = int32(1024);
  /** Of values. */
  producer: Int32Array = int32(256);
  block: Int32Array = int32(256);
  /** Entries that read it, and how many of them have run. */
  readers: Int32Array = int32(256);
  readersRun: Int32Array = int32(256);
  /** Reverses still to come that read it. */
  saves: Int32Array = int32(256);
  valueMarks: Uint8Array = uint8(256);
  /** The number of the last evaluation that wrote or read it, and of how many more it outlives (a power of two). */
  used: Int32Array = int32(256);
  life: Uint8Array = uint8(256);
  /** Whether what reverses of new entries would read is kept; if not, they compute it again. */
  keepsForReverse = true;
  /** Values that are apart from others only as sources of gradients, and these. */
  readonly copies: Map<number, number> = new Map();
  readonly lines: string[] = [""];
  readonly #lineNumbers = new Map<string, number>();
  readonly #numbers = new Map<Value, number>();
  readonly #values: Value[] = [];

  constructor(signatures: Signatures) {
    this.signatures = signatures;
  }

  signatureOf(entry: number): Signature {
    return this.signatures.at(this.signature[entry] as number);
  }

  typeOf(value: number): TensorType {
    return at(this.#values, value).type;
  }

  /** As it is known to traces and graphs. */
  valueAt(value: number): Value {
    return at(this.#values, value);
  }

  /** -1 for a value that is not of this tape. */
  numberOf(value: Value): number {
    return this.#numbers.get(value) ?? -1;
  }

  lineOf(entry: number): string | undefined {
    return this.lines[this.line[entry] as number] || undefined;
  }

  inputAt(entry: number, i: number): number {
    return this.inputs[(this.firstInput[entry] as number) + i] as number;
  }

  /** A value from outside. */
  leaf(type: TensorType): Value {
    const value = newValue(type);
    this.#addValue(value, -1);
    return value;
  }

  /** Records a node; its outputs are values of the tape from now on. */
  add(node: Node): number {
    const entry = this.entries;
    if (entry === this.signature.length) this.#growEntries();
    const { inputs, outputs } = node;
    this.signature[entry] = this.signatures.of(node);
    this.firstInput[entry] = this.#inputs;
    this.firstOutput[entry] = this.values;
    this.replay[entry] = node.replay;
    this.line[entry] = this.#lineNumber(node.where);
    this.marks[entry] = this.keepsForReverse ? 0 : OF_GRADIENT;
    while (this.#inputs + inputs.length > this.inputs.length) this.inputs = longer(this.inputs, int32);
    let mask = 0;
    for (let i = 0; i < inputs.length; i++) {
      const value = inputs[i] as Value;
      const number = this.#numbers.get(value) as number;
      this.inputs[this.#inputs++] = number;
      this.readers[number] = (this.readers[number] as number) + 1;
      if ((this.valueMarks[number] as number) & ACTIVE) mask |= inputBit(i);
    }
    this.entries += 1;
    if (!this.keepsForReverse) mask = 0;
    for (const value of outputs) this.#addValue(value, entry, mask === 0 ? 0 : ACTIVE);
    if (mask !== 0) this.#countSaves(entry, mask, 1);
    return entry;
  }

  /** The reverse of an entry has been recorded: what it reads is read by those entries from now on. */
  markReversed(entry: number): void {
    const marks = this.marks[entry] as number;
    if (marks & REVERSED) return;
    this.marks[entry] = marks | REVERSED;
    let mask = 0;
    for (let i = 0; i < this.signatureOf(entry).inputTypes.length; i++) {
      if ((this.valueMarks[this.inputAt(entry, i)] as number) & ACTIVE) mask |= inputBit(i);
    }
    this.#countSaves(entry, mask, -1);
  }

  /** Nothing has a gradient but what is marked from now on. */
  forgetActive(): void {
    for (let value = 0; value < this.values; value++)
      this.valueMarks[value] = (this.valueMarks[value] as number) & ~ACTIVE;
    this.saves.fill(0);
  }

  #countSaves(entry: number, mask: number, by: number): void {
    const { inputs, outputs } = this.signatureOf(entry).saved(mask);
    for (const i of inputs) this.#countSave(this.inputAt(entry, i), by);
    for (const i of outputs) this.#countSave((this.firstOutput[entry] as number) + i, by);
  }

  /** In place of what costs nothing to recompute, what it is computed from is saved. */
  #countSave(value: number, by: number): void {
    const producer = this.producer[value] as number;
    if (producer >= 0 && this.signatureOf(producer).isCheap) {
      const inputs = this.signatureOf(producer).inputTypes.length;
      for (let i = 0; i < inputs; i++) this.#countSave(this.inputAt(producer, i), by);
      return;
    }
    this.saves[value] = Math.max(0, (this.saves[value] as number) + by);
  }

  #addValue(value: Value, producer: number, marks = 0): void {
    const number = this.values;
    if (number === this.producer.length) this.#growValues();
    this.producer[number] = producer;
    this.block[number] = -1;
    this.readers[number] = 0;
    this.readersRun[number] = 0;
    this.saves[number] = 0;
    this.valueMarks[number] = marks;
    this.used[number] = 0;
    this.life[number] = 0;
    this.#numbers.set(value, number);
    this.#values.push(value);
    this.values += 1;
  }

  #lineNumber(where: string | undefined): number {
    if (where === undefined) return 0;
    const known = this.#lineNumbers.get(where);
    if (known !== undefined) return known;
    this.lines.push(where);
    this.#lineNumbers.set(where, this.lines.length - 1);
    return this.lines.length - 1;
  }

  #growEntries(): void {
    this.signature = longer(this.signature, int32);
    this.firstInput = longer(this.firstInput, int32);
    this.firstOutput = longer(this.firstOutput, int32);
    this.replay = longer(this.replay, int32);
    this.line = longer(this.line, int32);
    this.marks = longer(this.marks, uint8);
    this.context = longer(this.context, int32);
  }

  #growValues(): void {
    this.producer = longer(this.producer, int32);
    this.block = longer(this.block, int32);
    this.readers = longer(this.readers, int32);
    this.readersRun = longer(this.readersRun, int32);
    this.saves = longer(this.saves, int32);
    this.valueMarks = longer(this.valueMarks, uint8);
    this.used = longer(this.used, int32);
    this.life = longer(this.life, uint8);
  }
}
