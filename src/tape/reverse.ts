/**
 * @file The reverse sweep of a tape: from a target's entry back to the first that depends on a source, the reverse of each entry is recorded
 * as further entries. Contributions to a cotangent are summed in the order of `grad`, the last use first; operations with regions
 * continue the sums that there are, as their nodes would, and what is used under several names has one sum. So bits are those of `grad`; those of
 * second derivatives through loops may not be.
 */
import { at } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import { type DType, isFloat } from "../kernel/dtype.ts";
import { full } from "../ops/create.ts";
import { add } from "../ops/elementwise.ts";
import { wideProduct } from "../ops/select.ts";
import type { Log } from "./log.ts";
import type { Continued, Read } from "./signatures.ts";

/** The float values up to `target` that depend on `sources`, by number. */
export function dependents(log: Log, sources: readonly number[], target: number): Uint8Array {
  const marks = new Uint8Array(log.values);
  for (const source of sources) if (isFloat(log.typeOf(source).dtype)) marks[source] = 1;
  const start = sources.reduce((least, source) => Math.min(least, (log.producer[source] as number) + 1), log.entries);
  for (let entry = start; entry <= (log.producer[target] as number); entry++) {
    const { inputTypes, outputTypes } = log.signatureOf(entry);
    let found = false;
    for (let i = 0; i < inputTypes.length && !found; i++) found = marks[log.inputAt(entry, i)] === 1;
    if (!found) continue;
    const first = log.firstOutput[entry] as number;
    outputTypes.forEach(({ dtype }, i) => {
      if (isFloat(dtype)) marks[first + i] = 1;
    });
  }
  return marks;
}

class Sweep {
  readonly #log: Log;
  readonly #build: Build;
  readonly #sources: ReadonlySet<number>;
  readonly #isActive: Uint8Array;
  readonly #sums = new Map<number, Value>();

  constructor(log: Log, build: Build, { target, seed, sources }: SweepRequest) {
    this.#log = log;
    this.#build = build;
    this.#sources = new Set(sources);
    this.#isActive = dependents(log, sources, target);
    if (this.#isActive[target]) this.#sums.set(this.#base(target), seed);
  }

  /** What a value is a copy of, unless the two are to be told apart. */
  #base(value: number): number {
    let base = value;
    for (let next: number | undefined = base; next !== undefined; next = this.#log.copies.get(base)) {
      base = next;
      if (this.#sources.has(base)) break;
    }
    return base;
  }

  /** The cotangent of a value so far. */
  of(value: number): Value | undefined {
    return this.#sums.get(this.#base(value));
  }

  reverse(entry: number): void {
    const log = this.#log;
    const first = log.firstOutput[entry] as number;
    const signature = log.signatureOf(entry);
    const outputs = signature.outputTypes.map((_, i) => this.#sums.get(first + i));
    if (outputs.every((ct) => ct === undefined)) return;
    const active = signature.inputTypes.flatMap((_, i) => (this.#isActive[log.inputAt(entry, i)] ? [i] : []));
    const rule = signature.reverse(active, signature.hasRegions ? this.#continued(entry, active) : null);
    if (!rule) return;
    const where = log.lineOf(entry);
    this.#build.where = where;
    const read = ({ kind, index }: Read): Value => {
      if (kind === "output") return log.valueAt(first + index);
      if (kind === "cotangent") return outputs[index] ?? this.#zero(first + index);
      const value = log.inputAt(entry, index);
      return kind === "sum" ? (this.of(value) as Value) : log.valueAt(value);
    };
    const product = signature.op.facts?.takesWide
      ? this.#wideProduct(outputs[0], at(signature.inputTypes, 0).dtype)
      : null;
    const made = product ? [product] : this.#build.inline(rule.graph, rule.reads.map(read), { where });
    const continues = rule.reads.flatMap(({ kind, index }) => (kind === "sum" ? [index] : []));
    rule.inputs.forEach((input, k) => {
      const value = this.#base(log.inputAt(entry, input));
      const sum = continues.includes(input) ? undefined : this.#sums.get(value);
      const contribution = at(made, k);
      this.#sums.set(value, sum ? this.#build.call(add, [sum, contribution], {}) : contribution);
    });
    log.markReversed(entry);
  }

  /** A cotangent that a product of bf16 or f16 gives, on its way back through a cast: the product before it is rounded. */
  #wideProduct(ct: Value | undefined, dtype: DType): Value | null {
    const log = this.#log;
    const entry = ct ? (log.producer[log.numberOf(ct)] as number) : -1;
    if (!ct || entry < 0) return null;
    const { op, attrs, inputTypes } = log.signatureOf(entry);
    const inputs = inputTypes.map((_, i) => log.valueAt(log.inputAt(entry, i)));
    return wideProduct(this.#build, { op, attrs, inputs }, ct.type.dtype, dtype);
  }

  #zero(value: number): Value {
    return this.#build.call(full, [], { ...this.#log.typeOf(value), value: 0 });
  }

  /** Inputs whose cotangents have a sum already, and those that are one value. */
  #continued(entry: number, active: readonly number[]): Continued {
    const log = this.#log;
    const values = log.signatureOf(entry).inputTypes.map((_, i) => this.#base(log.inputAt(entry, i)));
    const sameAs = values.map((value) => values.indexOf(value));
    const sums = active.filter((i) => sameAs[i] === i && this.#sums.has(at(values, i)));
    return { sameAs, sums };
  }
}

interface SweepRequest {
  readonly target: number;
  /** The target's cotangent. */
  readonly seed: Value;
  readonly sources: readonly number[];
}

/** Records the cotangents of `sources`; undefined is zero. */
export function reverseSweep(log: Log, build: Build, request: SweepRequest): (source: number) => Value | undefined {
  const sweep = new Sweep(log, build, request);
  const phase = build.phase;
  build.phase = "backward";
  // few differentiate gradients again; for those who do, what that reads is recomputed
  log.keepsForReverse = false;
  for (let entry = log.producer[request.target] as number; entry >= 0; entry--) sweep.reverse(entry);
  build.where = undefined;
  build.phase = phase;
  log.keepsForReverse = true;
  return (source) => sweep.of(source);
}
