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
import { reshape } from "../ops/movement.ts";
import { inDtype } from "../ops/select.ts";
import { currentValue, newRoot, type Root, rootOf } from "../trace/cell.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { ArrayStorage, type Donation, type TensorStorage } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";
import { Trace } from "../trace/trace.ts";
import { type Engine, Evaluation } from "./evaluate.ts";
import { ACTIVE, type Log } from "./log.ts";
import { PoolStorage } from "./pool-storage.ts";
import { dependents, reverseSweep } from "./reverse.ts";

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

/** What the options of a tape ask for. */
export interface TapeModes {
  /** Whether the user's line is looked up for every operation, which takes longer than recording it. */
  readonly hasLines: boolean;
  /** Whether values make room for others where memory is limited. */
  readonly recomputes: boolean;
}

export interface TapeSettings extends TapeModes {
  /** Tensors that are not used after the tape: results of their types stay in the pool. */
  readonly donated: ReadonlySet<TensorStorage>;
}

/** Tensors that a gradient is taken with respect to, and their names in messages. */
export interface Sources {
  readonly tensors: readonly Tensor[];
  readonly paths: readonly string[];
}

/** What a tensor stood for before a change in place, and the user's line of that. */
interface Earlier {
  readonly value: Value;
  readonly where: string | undefined;
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
  #hasLines: boolean;
  readonly #donated: ReadonlySet<TensorStorage>;
  /** Of tensors that were changed in place, what they stood for before each change. */
  readonly #changes = new Map<Root, Earlier[]>();
  /** Weakly typed constants, made once more in each type of others. */
  readonly #converted = new Map<Tensor, Map<DType, Tensor>>();

  constructor(engine: Engine, log: Log, { hasLines, recomputes, donated }: TapeSettings) {
    super("tape", new LogBuild(log));
    this.log = log;
    this.#hasLines = hasLines;
    this.#donated = donated;
    this.#engine = engine;
    this.#evaluation = new Evaluation(log, engine, (value) => {
      const fill = this.#data.get(value);
      invariant(fill, () => `value ${value} has no elements`);
      return fill;
    });
    this.#evaluation.recomputes = recomputes;
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

  /** Runs `body`, a tape inside of this one, in its modes where they do more. */
  within<T>({ hasLines, recomputes }: TapeModes, body: () => T): T {
    const before = { hasLines: this.#hasLines, recomputes: this.#evaluation.recomputes };
    this.#hasLines ||= hasLines;
    this.#evaluation.recomputes ||= recomputes;
    try {
      return body();
    } finally {
      this.#hasLines = before.hasLines;
      this.#evaluation.recomputes = before.recomputes;
    }
  }

  /** Has values in memory now. */
  compute(tensors: readonly Tensor[]): void {
    this.#evaluation.compute(
      tensors.map((tensor) => this.log.numberOf(this.lift(tensor))),
      false,
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
      try {
        this.#evaluation.compute([this.log.numberOf(value)], false, (block) => {
          this.#lastRead = { value, data: this.#engine.memory.read(block, value.type) };
        });
      } catch (error) {
        throw withLocation(error, sourceLocation());
      }
    }
    return this.#lastRead?.data ?? null;
  }

  /** From now on only what depends on these tensors has gradients; on a part of the tape, so do others. */
  watch(tensors: readonly Tensor[], isWhole: boolean): void {
    if (!this.#watches && isWhole) {
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
  gradient(target: Tensor, { tensors, paths }: Sources, seed: Tensor | null): readonly Tensor[] {
    const { log, build } = this;
    const earlier = tensors.map((source) => this.#earlier(source));
    const wanted = tensors.map((source) => log.numberOf(this.lift(source)));
    // a constant that was changed since is no constant of other types any more
    const others = tensors.map((source, i) =>
      at(earlier, i).length > 0 ? [] : this.#inOtherTypes(source).map((made) => log.numberOf(made)),
    );
    const from = this.lift(target);
    const ct = seed ? this.lift(seed) : build.call(full, [], { ...from.type, value: 1 });
    const number = log.numberOf(from);
    const cotangentOf = reverseSweep(log, build, { target: number, seed: ct, sources: [...wanted, ...others.flat()] });
    return wanted.map((value, i) => {
      const parts = at(others, i).flatMap((other) => cotangentOf(other) ?? []);
      const own = cotangentOf(value);
      const { dtype } = log.typeOf(value);
      const sum = parts.reduce((all: Value | undefined, part) => plus(build, all, inDtype(build, part, dtype)), own);
      if (sum) return this.#tensorOf(sum);
      requireUnchanged(log, number, at(earlier, i), at(paths, i));
      return this.#tensorOf(build.call(full, [], { ...log.typeOf(value), value: 0 }));
    });
  }

  /** What a weakly typed constant was beside tensors of other types. */
  #inOtherTypes(source: Tensor): readonly Value[] {
    return [...(this.#converted.get(source)?.values() ?? [])].map((made) => this.lift(made));
  }

  /** On the tape itself, also where they meet in something that is traced inside of it. */
  override converted(weak: Tensor, dtype: DType, make: () => Tensor): Tensor | null {
    if (weak.traced && weak.traced.trace !== this) return null;
    const own = this.#converted.get(weak) ?? new Map<DType, Tensor>();
    this.#converted.set(weak, own);
    const made = own.get(dtype) ?? this.outside(make);
    own.set(dtype, made);
    return made;
  }

  /** What a tensor stood for before it was changed in place, the last first. */
  #earlier(source: Tensor): readonly Earlier[] {
    const { traced } = source;
    if (traced?.trace !== this) return [];
    const { cell } = traced;
    const root = rootOf(cell);
    const changes = this.#changes.get(root) ?? [];
    if (cell.kind === "root") {
      const others = this.#inOtherTypes(source);
      return changes.flatMap((change) => [change, ...others.map((value) => ({ ...change, value }))]);
    }
    // a view was last looked at before the changes that it has not seen
    const change = changes[cell.version - root.version + changes.length];
    return change && cell.version !== root.version ? [{ ...change, value: cell.value }] : [];
  }

  override assign(tensor: Tensor, elements: Tensor): void {
    this.#noteChange(tensor);
    // a value of its own: a gradient with respect to the one is not that with respect to the other
    super.assign(tensor, this.separate(elements));
  }

  override increase(tensor: Tensor, addend: Tensor): void {
    this.#noteChange(tensor);
    super.increase(tensor, addend);
  }

  #noteChange({ traced }: Tensor): void {
    if (traced?.trace !== this) return;
    const root = rootOf(traced.cell);
    const changes = this.#changes.get(root) ?? [];
    changes.push({ value: root.value, where: sourceLocation() });
    this.#changes.set(root, changes);
  }

  override separate(tensor: Tensor): Tensor {
    const value = this.lift(tensor);
    const copy = this.build.call(reshape, [value], { shape: value.type.shape }, { where: this.line() });
    this.log.copies.set(this.log.numberOf(copy), this.log.numberOf(value));
    return this.#tensorOf(copy);
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

const plus = (b: Build, sum: Value | undefined, part: Value): Value => (sum ? b.call(add, [sum, part], {}) : part);

/** A target that depends on what a source was, and not on what it is, is a mistake. */
function requireUnchanged(log: Log, target: number, earlier: readonly Earlier[], path: string): void {
  const read = earlier.find(({ value }) => dependents(log, [log.numberOf(value)], target)[target] === 1);
  if (!read) return;
  throw new TidemarkError(
    "NotDifferentiable",
    `gradient: the target was computed from ${path} before ${path} was changed in place at ${read.where ?? "another line"}`,
    {
      where: sourceLocation(),
      help: "take the gradient before the change, or change a copy: x.copy()",
    },
  );
}

function ended(tensor: Tensor, where: string | undefined): TidemarkError {
  const from = where ? ` at ${where}` : "";
  return new TidemarkError("TraceLeak", `${typeText(tensor)} was made${from} on a tape that has ended`, {
    where: sourceLocation(),
    help: "return it from the function given to tape, by itself or in arrays and plain objects: those outlive the tape",
  });
}
