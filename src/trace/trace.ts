/**
 * @file Recording. While a trace is active, operations append nodes to its graph and give back tensors that stand for
 * their results. Traces nest: differentiating a function inside a traced function traces the inner one on its own. Tensors
 * that the inner function closes over are captured:
 *
 *   outer: x ──────────┐                 a tensor of an outer trace, or a concrete tensor, becomes an extra parameter of
 *          inner: y ── mul ── …          the inner graph, which is bound where the inner graph is used
 *
 * Invariant: every value in a trace's graph is made by that trace. A tensor that outlives its trace is refused. A capture
 * has the current value; an inner trace cannot change it.
 */

import { TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { Build, type NodeOptions } from "../ir/build.ts";
import type { Graph, Phase, Value } from "../ir/graph.ts";
import { nodeLike } from "../ir/graph.ts";
import { libraryPart } from "../ir/label.ts";
import type { AnyOp, Attrs, OpDef } from "../ir/op.ts";
import { elementsOf, type Shape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { type DType, elementReader, isFloat, typeOf } from "../kernel/dtype.ts";
import { full } from "../ops/create.ts";
import { addToCell, type Cell, currentValue, newRoot, newView, writeCell } from "./cell.ts";
import { explained, requireDepth } from "./recursion.ts";
import { sourceLocation } from "./source-location.ts";
import type { TensorStorage, TypedArray } from "./storage.ts";
import { storageOf, Tensor, type TracedNumber, type TracedState, tensorTypeOf } from "./tensor.ts";

/** A number among the arguments that became a parameter of an element type. */
export interface MetNumber {
  readonly value: Value;
  /** Which of the numbers. */
  readonly index: number;
}

/** A tensor from outside that became a parameter. Outermost traces capture concrete tensors alone. */
export interface Capture {
  readonly value: Value;
  readonly tensor: Tensor;
}

/** A parameter of a graph that is traced. */
export interface TraceParam {
  readonly type: TensorType;
  readonly name?: string | undefined;
  /** Its value in the first run of the program: for checks, no graph depends on it. */
  readonly sample?: (() => Tensor | null) | undefined;
}

const stack: Trace[] = [];

/** Runs `body` as if no trace were active, on concrete tensors. */
export function outsideOfTraces<T>(body: () => T): T {
  const active = stack.splice(0);
  try {
    return body();
  } finally {
    stack.length = 0;
    stack.push(...active);
  }
}

/** Whether all runs on a tape, which may take gradients of whatever the traces inside of it read. */
const isOnTape = (): boolean => stack[0]?.hasValues === true;

/** A weakly typed constant in the type of others: made where they meet, or once for a whole tape. */
export function converted(weak: Tensor, dtype: DType, make: () => Tensor): Tensor {
  return stack[0]?.converted(weak, dtype, make) ?? make();
}

/** The innermost active trace, or null outside of all. */
export function currentTrace(): Trace | null {
  return stack[stack.length - 1] ?? null;
}

/** Concrete tensors up to this many elements, all equal, are constants of the graph instead of parameters. */
const UNIFORM_ELEMENTS = 16;

function uniformValue(storage: TensorStorage): number | null {
  if (storage.abstract || elementsOf(storage.shape) > UNIFORM_ELEMENTS) return null;
  const data = storage.read();
  const [first] = data;
  if (first === undefined || !data.every((x) => Object.is(x, first))) return null;
  // a bigint may be no number
  return isFloat(storage.dtype) || typeOf(storage.dtype).accepts(Number(first))
    ? elementReader(storage.dtype)(first)
    : null;
}

export class Trace {
  readonly build: Build;
  readonly captures: Capture[] = [];
  /** Numbers that operations have met, in the order in which they did. */
  readonly numbers: MetNumber[] = [];
  readonly #captured = new Map<Value | TensorStorage, Value>();
  readonly #constants = new Map<string, Value>();
  readonly #samples = new Map<Value, () => Tensor | null>();
  #finished = false;
  #replays = 0;
  /** How often each name of a part was used. */
  readonly #scopes = new Map<string, number>();

  constructor(name: string, build: Build = new Build(name)) {
    this.build = build;
    // Nodes of a traced function belong to the part of the program that calls it.
    this.build.scope = currentTrace()?.build.scope;
    this.build.within = currentTrace()?.build.within;
  }

  /** Nodes recorded by `fn` belong to a part of this name; the second part of a name is `name#2`. */
  inScope<T>(name: string, fn: () => T): T {
    const { build } = this;
    const outer = build.scope;
    const path = outer === undefined ? name : `${outer}/${name}`;
    const times = (this.#scopes.get(path) ?? 0) + 1;
    this.#scopes.set(path, times);
    const number = times === 1 ? "" : `#${times}`;
    build.scope = `${path}${number}`;
    try {
      return this.inPart(`${name}${number}`, fn);
    } finally {
      build.scope = outer;
    }
  }

  /** Names of values that `fn` records say that they belong to this part; plans are the same without. */
  inPart<T>(name: string, fn: () => T): T {
    const { build } = this;
    const outer = build.within;
    build.within = outer === undefined ? name : `${outer}/${name}`;
    try {
      return fn();
    } finally {
      build.within = outer;
    }
  }

  /** The user's line, for what is recorded now. */
  line(): string | undefined {
    return lineNow();
  }

  get finished(): boolean {
    return this.#finished;
  }

  param({ type, name, sample }: TraceParam): Tensor {
    const value = this.build.param(type, name);
    if (sample) this.#samples.set(value, sample);
    return this.#tensor(newRoot(value), undefined);
  }

  /** The value of a parameter in the first run of the program, in an outer trace or concrete; null if not known. */
  sampleOf(param: Value): Tensor | null {
    const captured = this.captures.find((capture) => capture.value === param);
    return captured?.tensor ?? this.#samples.get(param)?.() ?? null;
  }

  /** A tensor that stands for the `index`-th number among the arguments; a parameter for each element type it is used with. */
  number(index: number, { path, argument }: Pick<TracedNumber, "path" | "argument">, name: string): Tensor {
    const scalars = new Map<DType, Tensor>();
    const as = (dtype: DType): Tensor => {
      const known = scalars.get(dtype);
      if (known) return known;
      const value = this.build.param(tensorType(dtype, []), name);
      this.numbers.push({ value, index });
      const made = this.#tensor(newRoot(value), undefined);
      scalars.set(dtype, made);
      return made;
    };
    const cellOf = (): Cell => (as("f32").traced as TracedState).cell;
    return new Tensor({
      trace: this,
      get cell() {
        return cellOf();
      },
      where: undefined,
      number: { path, argument, as },
    });
  }

  #tensor(cell: Cell, where: string | undefined): Tensor {
    return new Tensor({ trace: this, cell, where });
  }

  /** The value that stands for a tensor in this trace. */
  lift(tensor: Tensor): Value {
    const { traced } = tensor;
    if (traced?.trace === this) return currentValue(this.build, traced.cell);
    if (traced) {
      requireActive(tensor);
      const { trace, where } = traced;
      const value = trace.lift(tensor);
      return this.#capture(value, () => trace.#tensor(newRoot(value), where), value.name);
    }
    const storage = storageOf(tensor);
    const known = this.#captured.get(storage);
    if (known) return known;
    const { dtype, shape } = tensor;
    const value = isOnTape() ? null : uniformValue(storage);
    if (value === null) return this.#capture(storage, () => tensor, undefined);
    const made = this.build.call(full, [], { dtype, shape, value });
    this.#captured.set(storage, made);
    return made;
  }

  #capture(key: Value | TensorStorage, tensorOf: () => Tensor, name: string | undefined): Value {
    const known = this.#captured.get(key);
    if (known) return known;
    const tensor = tensorOf();
    const value = this.build.param(tensorTypeOf(tensor), name ?? "captured");
    this.#captured.set(key, value);
    this.captures.push({ value, tensor });
    return value;
  }

  /** Whether elements can be had: on a tape (tape/tape-trace.ts). */
  get hasValues(): boolean {
    return false;
  }

  /** The elements of a tensor of this trace, where they can be had. */
  elements(_: Tensor): TypedArray | null {
    return null;
  }

  /** Whether a value of this trace is a number among the arguments of the compiled function, here or further out. */
  isNumber(value: Value): boolean {
    if (this.numbers.some((number) => number.value === value)) return true;
    const traced = this.captures.find((capture) => capture.value === value)?.tensor.traced;
    return traced ? traced.trace.isNumber(traced.cell.value) : false;
  }

  /** Whether a value of this trace is made without its arguments: from numbers, and from concrete tensors outside. */
  isConstant(value: Value): boolean {
    const concrete = new Set(this.captures.flatMap((capture) => (capture.tensor.isTraced ? [] : [capture.value])));
    const seen = new Set<Value>();
    const pending = [value];
    for (let next = pending.pop(); next; next = pending.pop()) {
      if (seen.has(next) || concrete.has(next)) continue;
      seen.add(next);
      const node = this.build.producer(next);
      if (!node) return false;
      pending.push(...node.inputs);
    }
    return true;
  }

  /** A tensor that stands for a value of this trace. */
  tensorOf(value: Value): Tensor {
    return this.#tensor(newRoot(value), lineNow());
  }

  /** Appends a node. */
  record<A>(op: OpDef<A>, inputs: readonly Tensor[], attrs: NoInfer<A>, options: NodeOptions = {}): readonly Tensor[] {
    const where = this.line();
    const values = inputs.map((tensor) => this.lift(tensor));
    const outputs = this.build.callAll(op, values, attrs, { where, ...options });
    if (!op.view) return outputs.map((value) => this.#tensor(newRoot(value), where));
    const [base] = inputs;
    const [value] = values;
    invariant(base && value, () => `${op.name} shows nothing`);
    const shown = base.traced?.trace === this ? base.traced.cell : newRoot(value, "captured");
    const view = { base: shown, op: op as AnyOp, attrs: attrs as Attrs, where };
    return outputs.map((made) => this.#tensor(newView({ ...view, value: made }), where));
  }

  /** A tensor of one value throughout; those of one type and value are one node of the graph. */
  constant(dtype: DType, shape: Shape, value: number): Tensor {
    const key = `${dtype}[${shape.join(",")}] ${Object.is(value, -0) ? "-0" : value}`;
    const known =
      this.#constants.get(key) ?? this.build.call(full, [], { dtype, shape, value }, { where: this.line() });
    this.#constants.set(key, known);
    return this.#tensor(newRoot(known), undefined);
  }

  /** A new tensor with the current value of another; one from outside is captured. */
  copy(tensor: Tensor): Tensor {
    return this.#tensor(newRoot(this.lift(tensor)), this.line());
  }

  /** A tensor that the user made, of a value that others may have: on a tape it is apart from them, as a source of gradients. */
  separate(tensor: Tensor): Tensor {
    return tensor;
  }

  /** A weakly typed constant in the type of others, where a trace has one of its own; null where each use makes it. */
  converted(_weak: Tensor, _dtype: DType, _make: () => Tensor): Tensor | null {
    return null;
  }

  /** Runs `body` as if nothing inside of this trace, the outermost, were traced. */
  protected outside<T>(body: () => T): T {
    const inner = stack.splice(1);
    try {
      return body();
    } finally {
      stack.push(...inner);
    }
  }

  /** Makes a tensor of this trace, and all views of it and of its base, stand for new elements. */
  assign(tensor: Tensor, elements: Tensor): void {
    writeCell(this.build, this.#ownCell(tensor), this.lift(elements), this.line());
  }

  /** The same for adding. */
  increase(tensor: Tensor, addend: Tensor): void {
    addToCell(this.build, this.#ownCell(tensor), this.lift(addend), this.line());
  }

  #ownCell({ traced }: Tensor): Cell {
    invariant(traced?.trace === this, () => "a trace changes its own tensors alone");
    return traced.cell;
  }

  /**
   * Appends a graph's nodes; replays in it get numbers that are new in this trace. A graph that is used this once is taken
   * over, one that is used again is copied.
   */
  inline(graph: Graph, inputs: readonly Tensor[], use: "once" | "again" = "again"): readonly Tensor[] {
    const where = this.line();
    const values = inputs.map((tensor) => this.lift(tensor));
    const offset = this.#replays;
    const nodes = graph.nodes.map((node) => {
      if (node.replay === 0) return node;
      this.#replays = Math.max(this.#replays, node.replay + offset);
      return nodeLike(node, { replay: node.replay + offset });
    });
    const all = { ...graph, nodes };
    const results = use === "once" ? this.build.absorb(all, values, where) : this.build.inline(all, values, { where });
    return results.map((value) => this.#tensor(newRoot(value), where));
  }

  /** Runs `body` with this trace active; the tensors made by it are refused afterwards. */
  run<T>(body: () => T): T {
    const outer = stack.length;
    requireDepth(this.build.name, outer);
    stack.push(this);
    try {
      return body();
    } catch (error) {
      throw explained(error, this.build);
    } finally {
      // An assignment: after an overflow there may be no room for a call.
      stack.length = outer;
      this.#finished = true;
    }
  }
}

/** The user's line under which everything is recorded for now. */
let oneLine: { readonly where: string | undefined } | null = null;

const lineNow = (): string | undefined => (oneLine ? oneLine.where : sourceLocation());

/** Records all of `body`, which is the library's, under the user's line that called it: looked up once, not for each node. */
export function atOneLine<T>(body: () => T): T {
  const trace = currentTrace();
  if (!trace || oneLine) return body();
  oneLine = { where: trace.line() };
  try {
    return body();
  } finally {
    oneLine = null;
  }
}

/** Runs a function of the library, or a part of one, by its name: values that it makes are named after it. */
export function asPart<T>(name: string, body: () => T): T {
  const trace = currentTrace();
  return trace ? trace.inPart(libraryPart(name), body) : body();
}

/** The same for a function that calls none of the user's. */
export function asFunction<T>(name: string, body: () => T): T {
  return currentTrace() ? atOneLine(() => asPart(name, body)) : body();
}

/** Marks the nodes that `body` records as part of a phase; graphs inlined meanwhile keep their own. */
export function inPhase<T>(phase: Phase, body: () => T): T {
  const build = currentTrace()?.build;
  if (!build) return body();
  const before = build.phase;
  build.phase = phase;
  try {
    return body();
  } finally {
    build.phase = before;
  }
}

/** Throws unless the tensor is concrete or its trace is active. */
export function requireActive(tensor: Tensor): void {
  const { traced } = tensor;
  if (!traced?.trace.finished) return;
  const from = traced.where ? ` at ${traced.where}` : "";
  throw new TidemarkError("TraceLeak", `${typeText(tensor)} was made${from} inside a trace that has ended`, {
    where: sourceLocation(),
    help: "return it from the traced function in place of storing it in a variable outside",
  });
}

export interface TracedGraph {
  /** Parameters: one for each type given, then the captures. */
  readonly graph: Graph;
  readonly captures: readonly Capture[];
}

/** The graph of `body` on parameters of the given types. */
export function traceGraph(
  name: string,
  params: readonly TraceParam[],
  body: (params: readonly Tensor[]) => readonly Tensor[],
): TracedGraph & { readonly numbers: readonly MetNumber[] } {
  const trace = new Trace(name);
  const tensors = params.map((param) => trace.param(param));
  const results = trace.run(() => body(tensors).map((tensor) => trace.lift(tensor)));
  return { graph: trace.build.finish(results), captures: trace.captures, numbers: trace.numbers };
}
