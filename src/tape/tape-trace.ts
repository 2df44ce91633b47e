/**
 * @file A tape: a trace whose tensors have values. Operations are recorded as in any trace, and computed when an element is read (`x.item()`) or the
 * tape ends, so that ordinary `if`, `while`, recursion and early return decide on real numbers.
 *
 *   x.mul(w) ──→ log entry        read ──→ evaluation: what the value depends on runs, in the pool
 *
 * Gradients are recorded on the same tape, by the reverses of operations in reverse order; they are differentiated like anything else.
 * Everything lives in the pool of tapes until the tape ends; what the function returns is copied out.
 */
import { TidemarkError, withLocation } from "../base/errors.ts";
import { at, invariant } from "../base/invariant.ts";
import { Build, type NodeOptions } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import { type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { type DType, elementWriter, isFloat, type TypedArray } from "../kernel/dtype.ts";
import { broadcast } from "../ops/broadcast.ts";
import { full } from "../ops/create.ts";
import { add } from "../ops/elementwise.ts";
import { currentValue, newRoot } from "../trace/cell.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { ArrayStorage, type Donation, type TensorStorage } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";
import { Trace } from "../trace/trace.ts";
import { type Engine, Evaluation } from "./evaluate.ts";
import { ACTIVE, type Log } from "./log.ts";
import { PoolStorage } from "./pool-storage.ts";
import type { Read } from "./signatures.ts";

/** Appends to a log instead of a graph. */
class LogBuild extends Build {
  readonly log: Log;

  constructor(log: Log) {
    super("tape");
    this.log = log;
  }

  override append(node: Node): void {
    this.log.add(node);
  }
}

export interface TapeSettings {
  /** Whether the user's line is looked up for every operation, which takes longer than recording it. */
  readonly hasLines: boolean;
  /** Whether values make room for others where memory is limited. */
  readonly recomputes: boolean;
  /** Tensors that are not used after the tape: results of their types stay in the pool. */
  readonly donated: ReadonlySet<TensorStorage>;
}

/** A value that is one number throughout. */
interface Constant extends TensorType {
  readonly value: number;
  readonly made: Value;
}

export class TapeTrace extends Trace {
  readonly log: Log;
  readonly #engine: Engine;
  readonly #evaluation: Evaluation;
  /** Values from outside by their storage, and what writes their elements. */
  readonly #leaves = new Map<TensorStorage, Value>();
  readonly #constants = new Map<number, Constant[]>();
  readonly #data = new Map<number, (into: TypedArray) => void>();
  /** Elements that were read: most are read to decide, some several times. */
  #lastRead: { readonly value: Value; readonly data: TypedArray } | null = null;
  #watches = false;
  readonly #hasLines: boolean;
  readonly #donated: ReadonlySet<TensorStorage>;

  constructor(engine: Engine, log: Log, { hasLines, recomputes, donated }: TapeSettings) {
    super("tape", new LogBuild(log));
    this.log = log;
    this.#hasLines = hasLines;
    this.#donated = donated;
    this.#engine = engine;
    this.#evaluation = new Evaluation(
      log,
      engine,
      (value) => {
        const fill = this.#data.get(value);
        invariant(fill, () => `value ${value} has no elements`);
        return fill;
      },
      recomputes,
    );
  }

  override lift(tensor: Tensor): Value {
    const { traced } = tensor;
    if (traced?.trace === this) return currentValue(this.build, traced.cell);
    if (!traced) return this.#leafOf(storageOf(tensor));
    if (traced.trace instanceof TapeTrace && !traced.trace.finished) return this.#fromOuter(tensor, traced.trace);
    if (traced.trace.finished) throw ended(tensor, traced.where);
    throw new TidemarkError(
      "TraceLeak",
      `${typeText(tensor)} of a function that is being traced meets values of a tape`,
      {
        where: sourceLocation(),
        help: "a traced tensor has no elements yet: run the tape outside of compile, grad and their kin, on concrete tensors",
      },
    );
  }

  override line(): string | undefined {
    return this.#hasLines ? super.line() : undefined;
  }

  override record<A>(
    op: OpDef<A>,
    inputs: readonly Tensor[],
    attrs: NoInfer<A>,
    options?: NodeOptions,
  ): readonly Tensor[] {
    try {
      return super.record(op, inputs, attrs, options);
    } catch (error) {
      throw withLocation(error, sourceLocation());
    }
  }

  /** A constant is data, so that a program serves all numbers; those of one type and value are one value of the tape. */
  override constant(dtype: DType, shape: Shape, value: number): Tensor {
    // zeros of both signs are in one list
    const known = this.#constants.get(value) ?? [];
    const same = known.find((own) => own.dtype === dtype && Object.is(own.value, value) && sameShape(own.shape, shape));
    if (same) return this.#tensorOf(same.made);
    const made =
      shape.length === 0
        ? this.#scalar(dtype, value)
        : this.build.call(
            broadcast,
            [this.lift(this.constant(dtype, [], value))],
            { shape, axes: [] },
            { where: this.line() },
          );
    known.push({ dtype, shape, value, made });
    this.#constants.set(value, known);
    return this.#tensorOf(made);
  }

  #scalar(dtype: DType, value: number): Value {
    const stored = elementWriter(dtype)(value);
    return this.#newLeaf(tensorType(dtype, []), (into) => into.fill(stored), false);
  }

  override get hasValues(): boolean {
    return !this.finished;
  }

  override elements(tensor: Tensor): TypedArray | null {
    if (this.finished) throw ended(tensor, tensor.traced?.where);
    const value = this.lift(tensor);
    if (this.#lastRead?.value !== value) {
      const number = this.log.numberOf(value);
      this.#evaluation.compute([number], false);
      this.#lastRead = { value, data: this.#engine.memory.read(this.log.block[number] as number, value.type) };
    }
    return this.#lastRead.data;
  }

  /** From now on only what depends on these tensors has gradients. */
  watch(tensors: readonly Tensor[]): void {
    if (!this.#watches) {
      this.#watches = true;
      this.log.forgetActive();
    }
    for (const tensor of tensors) this.#mark(this.lift(tensor));
  }

  #mark(value: Value): void {
    const number = this.log.numberOf(value);
    this.log.valueMarks[number] = (this.log.valueMarks[number] as number) | ACTIVE;
  }

  /** Cotangents of sources from that of a target, recorded on the tape. */
  gradient(target: Tensor, sources: readonly Tensor[], seed: Tensor | null): readonly Tensor[] {
    const wanted = sources.map((source) => this.lift(source));
    const from = this.lift(target);
    const ct = seed ? this.lift(seed) : this.build.call(full, [], { ...from.type, value: 1 });
    const sums = this.#reverse(
      this.log.numberOf(from),
      ct,
      wanted.map((value) => this.log.numberOf(value)),
    );
    return wanted.map((value) => {
      const sum = sums.get(this.log.numberOf(value));
      return this.#tensorOf(sum ?? this.build.call(full, [], { ...value.type, value: 0 }));
    });
  }

  /** The reverse sweep: entries from the target's back to the first that depends on a source. */
  #reverse(target: number, seed: Value, sources: readonly number[]): ReadonlyMap<number, Value> {
    const { log, build } = this;
    const isActive = this.#dependents(sources, target);
    const sums = new Map<number, Value>();
    if (isActive[target]) sums.set(target, seed);
    const last = log.producer[target] as number;
    const phase = build.phase;
    build.phase = "backward";
    // few differentiate gradients again; for those who do, what that reads is recomputed
    log.keepsForReverse = false;
    for (let entry = last; entry >= 0; entry--) {
      const first = log.firstOutput[entry] as number;
      const signature = log.signatureOf(entry);
      const outputs = signature.outputTypes.map((_, i) => sums.get(first + i));
      if (outputs.every((ct) => ct === undefined)) continue;
      const active = signature.inputTypes.flatMap((_, i) => (isActive[log.inputAt(entry, i)] ? [i] : []));
      const rule = signature.reverse(active);
      if (!rule) continue;
      build.where = log.lineOf(entry);
      const read = ({ kind, index }: Read): Value => {
        if (kind === "input") return log.valueAt(log.inputAt(entry, index));
        if (kind === "output") return log.valueAt(first + index);
        return outputs[index] ?? build.call(full, [], { ...at(signature.outputTypes, index), value: 0 });
      };
      const made = build.inline(rule.graph, rule.reads.map(read), { where: log.lineOf(entry) });
      rule.inputs.forEach((input, k) => {
        const value = log.inputAt(entry, input);
        const sum = sums.get(value);
        const contribution = at(made, k);
        sums.set(value, sum ? build.call(add, [sum, contribution], {}) : contribution);
      });
      log.markReversed(entry);
    }
    build.where = undefined;
    build.phase = phase;
    log.keepsForReverse = true;
    return sums;
  }

  /** Marks the float values up to `target` that depend on `sources`. */
  #dependents(sources: readonly number[], target: number): Uint8Array {
    const { log } = this;
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

  get donates(): boolean {
    return this.#donated.size > 0;
  }

  /** Whether a tensor is of this tape, or will not be there after it. */
  owns({ traced, storage }: Tensor): boolean {
    return traced ? traced.trace === this : storage !== null && this.#donated.has(storage);
  }

  /**
   * What the tape leaves behind, as many results in the pool as tensors of their types were donated; everything else on it is
   * given up.
   * @param donation what readers of donated tensors are told
   */
  results(tensors: readonly Tensor[], donation: Donation): readonly TensorStorage[] {
    const values = tensors.map((tensor) => this.log.numberOf(this.lift(tensor)));
    const held = [...this.#donated].filter((storage) => storage instanceof PoolStorage && this.#leaves.has(storage));
    // their blocks belong to values now, and may be overwritten
    for (const storage of held) (storage as PoolStorage).take();
    this.#evaluation.letGo();
    try {
      this.#evaluation.compute(values, true);
    } finally {
      for (const storage of held) storage.consume?.(donation);
    }
    for (const storage of this.#donated) storage.consume?.(donation);
    return this.#leftBehind(values);
  }

  #leftBehind(values: readonly number[]): readonly TensorStorage[] {
    const { memory } = this.#engine;
    const left = new Map<string, number>();
    for (const storage of this.#donated) left.set(typeText(storage), (left.get(typeText(storage)) ?? 0) + 1);
    return values.map((value) => {
      const type = this.log.typeOf(value);
      const others = left.get(typeText(type)) ?? 0;
      const kept = others > 0 ? this.#evaluation.keep(value) : null;
      if (kept === null)
        return new ArrayStorage(type.dtype, type.shape, memory.read(this.log.block[value] as number, type));
      left.set(typeText(type), others - 1);
      return new PoolStorage(type, memory, kept);
    });
  }

  /** Gives back all memory. */
  close(): void {
    this.#evaluation.end();
  }

  #tensorOf(value: Value): Tensor {
    return new Tensor({ trace: this, cell: newRoot(value), where: undefined });
  }

  #leafOf(storage: TensorStorage): Value {
    const known = this.#leaves.get(storage);
    if (known) return known;
    const { dtype, shape } = storage;
    const fill = (into: TypedArray): void => {
      if (storage.writeTo) storage.writeTo(into);
      else into.set(storage.read());
    };
    const value = this.#newLeaf(tensorType(dtype, shape), fill, true);
    this.#leaves.set(storage, value);
    const isHere = storage instanceof PoolStorage && this.#donated.has(storage);
    const block = isHere ? storage.blockIn(this.#engine.memory) : null;
    if (block !== null) this.#evaluation.hold(this.log.numberOf(value), block);
    return value;
  }

  #fromOuter(tensor: Tensor, outer: TapeTrace): Value {
    const data = outer.elements(tensor) as TypedArray;
    return this.#newLeaf(tensorType(tensor.dtype, tensor.shape), (into) => into.set(data), true);
  }

  #newLeaf(type: TensorType, fill: (into: TypedArray) => void, mayNeedGradient: boolean): Value {
    const value = this.log.leaf(type);
    this.#data.set(this.log.numberOf(value), fill);
    if (mayNeedGradient && !this.#watches && isFloat(type.dtype)) this.#mark(value);
    return value;
  }
}

function ended(tensor: Tensor, where: string | undefined): TidemarkError {
  const from = where ? ` at ${where}` : "";
  return new TidemarkError("TraceLeak", `${typeText(tensor)} was made${from} on a tape that has ended`, {
    where: sourceLocation(),
    help: "return it from the function given to tape: what is returned outlives the tape",
  });
}
