/**
 * @file The tensor that users hold. It is in one of two states: concrete, with elements in a storage, or traced, a value
 * of a graph under construction that has a type and no elements yet. Operations look the same on both; reading
 * elements (or branching on them) is an error on a traced tensor, and changing elements is an error on a concrete one.
 *
 * The methods for operations (`x.add(y)`, `x.sum()`) are those functions of the API that take a tensor first;
 * `api/methods.ts` puts them on the prototype and adds their types to `TensorMethods`.
 */
import { TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { elementsOf, type Shape, shapeText, type TensorType, typeText } from "../ir/type.ts";
import { type DType, elementReader, isBig, typeOf as rowOf } from "../kernel/dtype.ts";
import type { Cell } from "./cell.ts";
import { sourceLocation } from "./source-location.ts";
import type { TensorStorage, TypedArray } from "./storage.ts";
import type { Trace } from "./trace.ts";

/**
 * A plain number among the arguments of a compiled function, while the function is traced: it may be another one at the next
 * call. Like any number it takes the element type of the other operand, so it is one parameter of the program for each type.
 */
export interface TracedNumber {
  /** `options.lr`. */
  readonly path: string;
  /** Which argument it is in. */
  readonly argument: number;
  /** As a scalar of an element type. */
  as(dtype: DType): Tensor;
}

/** A tensor's place in a trace. */
export interface TracedState {
  readonly trace: Trace;
  /** The cell with its current value; `trace.lift` reads it. */
  readonly cell: Cell;
  /** The user's line that made it. */
  readonly where: string | undefined;
  /** It stands for a number: f32 where nothing else says what it should be. */
  readonly number?: TracedNumber;
}

/** Nested arrays of numbers, or of booleans for bool tensors. */
export type NestedArray = number | boolean | readonly NestedArray[];

/** Filled in by `api/methods.ts`. */
// biome-ignore lint/suspicious/noEmptyInterface: a place for declarations to merge into
export interface TensorMethods {}

/**
 * An array of numbers or booleans with a shape and an element type. It does not change; its functions make new ones.
 *
 * @example
 * import { tensor, Tensor } from "tidemark";
 *
 * const x = tensor([[1, 2], [3, 4]]);
 * console.log(x instanceof Tensor, x.shape, x.dtype, x.matmul(x).toArray()); // → true [2, 2] f32 [[7, 10], [15, 22]]
 */
export interface Tensor extends TensorMethods {}

/** The name that engines show in the error with which they refuse to clone a tensor. */
function toSendTensors_use_toMessage(): void {}

/** An n-dimensional array of one element type: concrete, or a value of a program being traced. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the methods are installed by api/methods.ts
export class Tensor {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly #state: TracedState | TensorStorage;
  /**
   * `structuredClone` and `postMessage` copy fields and drop the elements; a function among the fields makes them throw.
   * @internal
   */
  readonly uncloneable: () => void = toSendTensors_use_toMessage;

  /** Use `tensor(...)` and operations to make tensors. @internal */
  constructor(state: TracedState | TensorStorage) {
    const { dtype, shape } = typeOf(state);
    this.dtype = dtype;
    this.shape = shape;
    this.#state = state;
  }

  /** Number of axes. */
  get rank(): number {
    return this.shape.length;
  }

  /** Number of elements. */
  get elements(): number {
    return elementsOf(this.shape);
  }

  /** Whether this is a value of a program being traced, with no elements to look at, or of a tape, which has them. */
  get isTraced(): boolean {
    return "trace" in this.#state;
  }

  /** The place in a trace; null for a concrete tensor. @internal */
  get traced(): TracedState | null {
    return "trace" in this.#state ? this.#state : null;
  }

  /** Where the elements are; null for a traced tensor. @internal */
  get storage(): TensorStorage | null {
    return "trace" in this.#state ? null : this.#state;
  }

  /** A copy of the elements, row-major. Bools are 0 and 1 in a Uint8Array. */
  data(): TypedArray {
    return this.storage?.copy?.() ?? this.#read("data()").slice();
  }

  /**
   * The elements without a copy, where they are in memory that this thread can see. They must not be written to, and those of a result
   * or of state are valid until the next call of the function that returned it.
   */
  borrow(): TypedArray {
    return this.storage?.borrow?.() ?? this.#read("borrow()");
  }

  /** A copy of the elements, when they have come from the device that they are on; on processors they are there at once. */
  async dataAsync(): Promise<TypedArray> {
    const { storage } = this;
    return storage?.fetch ? (await storage.fetch()).slice() : this.data();
  }

  /** The only element, as a number; of a bool tensor 0 or 1. */
  item(): number {
    const data = this.#read("item()");
    const [value] = data;
    if (value === undefined || data.length !== 1) {
      throw new TidemarkError("ShapeMismatch", `item(): ${typeText(this)} has ${data.length} elements, not one`, {
        where: sourceLocation(),
        help: "use data() or toArray() for all elements",
      });
    }
    return elementReader(this.dtype)(value);
  }

  /** The elements as nested arrays; of a bool tensor as booleans. */
  toArray(): NestedArray {
    const data = this.#read("toArray()");
    const [read, { shown }] = [elementReader(this.dtype), rowOf(this.dtype)];
    let next = 0;
    const nested = (axis: number): NestedArray => {
      const extent = this.shape[axis];
      if (extent !== undefined) return Array.from({ length: extent }, () => nested(axis + 1));
      return shown(read(data[next++] as number));
    };
    return nested(0);
  }

  /** For `JSON.stringify`: the nested arrays that `tensor` takes. JSON has no NaN and no infinities. */
  toJSON(): NestedArray {
    const data = this.#read("JSON.stringify");
    const read = elementReader(this.dtype);
    const at = data.findIndex((element) => !Number.isFinite(read(element)));
    if (at >= 0) {
      const summary = `JSON.stringify of ${typeText(this)}: element ${at} is ${read(data[at] as number)}, which JSON cannot hold`;
      throw new TidemarkError("InvalidArgument", summary, {
        where: sourceLocation(),
        help: "save(tree) keeps every number; toArray() gives them as they are",
      });
    }
    return this.toArray();
  }

  /** `f32[2,2] [[1, 2], [3, 4]]`, cut short for large tensors; a traced tensor and a spec show their type. */
  toString(): string {
    const number = numberOf(this);
    if (number) return numberText(number);
    if (this.isTraced && !this.traced?.trace.hasValues) return `Tensor(${typeText(this)}, traced)`;
    if (this.storage?.abstract) return `Tensor(${typeText(this)}, spec)`;
    if (this.elements > 64) return `Tensor(${typeText(this)})`;
    return `Tensor(${typeText(this)} ${this.#text()})`;
  }

  /** The elements as nested lists; bigints too, whatever their size. */
  #text(): string {
    const data = this.#read("toString()");
    const [read, { shown, compute }] = [elementReader(this.dtype), rowOf(this.dtype)];
    const textOf = (element: number): string => `${isBig(compute) ? element : shown(read(element))}`;
    let next = 0;
    const nested = (axis: number): string => {
      const extent = this.shape[axis];
      if (extent === undefined) return textOf(data[next++] as number);
      return `[${Array.from({ length: extent }, () => nested(axis + 1)).join(", ")}]`;
    };
    return nested(0);
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  /** Conversion to a number: the only element of a concrete tensor; an error for a traced one. */
  [Symbol.toPrimitive](hint: string): string | number {
    if (hint === "string") return this.toString();
    this.#read("conversion to a number");
    return this.item();
  }

  #read(what: string): TypedArray {
    const state = this.#state;
    if (!("trace" in state)) return state.read();
    const known = state.trace.elements(this);
    if (known) return known;
    if (state.number) throw notConstant(what, state.number);
    const constant = state.trace.isConstant(state.cell.value);
    const why = constant ? ": operations on constants inside a traced function are traced too" : "";
    throw new TidemarkError("SideEffect", `${what}: ${typeText(this)} is traced and has no value yet${why}`, {
      where: sourceLocation(),
      help: constant
        ? "compute it outside of the function, and use the number or the tensor inside"
        : "return the tensor and read it outside; choose between values with where(condition, a, b) in place of if",
    });
  }
}

/** A number's cell is made when it is first used: an unused one is no parameter. */
function typeOf(state: TracedState | TensorStorage): { readonly dtype: DType; readonly shape: Shape } {
  if (!("trace" in state)) return state;
  return state.number ? { dtype: "f32", shape: [] } : state.cell.value.type;
}

/** The type of a tensor as a program sees it. */
export function tensorTypeOf({ dtype, shape, traced }: Tensor): TensorType {
  const varies = traced && !traced.number ? traced.cell.value.type.varies : undefined;
  return varies ? { dtype, shape, varies } : { dtype, shape };
}

/** The traced number that a value stands for, if any. */
export function numberOf(value: unknown): TracedNumber | null {
  return value instanceof Tensor ? (value.traced?.number ?? null) : null;
}

/** For messages; says what to do where a constant is needed. */
const numberText = ({ path, argument }: TracedNumber): string =>
  `the number ${path}, which may differ between calls (a constant with static: [${argument}])`;

function notConstant(what: string, { path, argument }: TracedNumber): TidemarkError {
  const summary = `${what} of ${path}: a number among the arguments of a compiled function has no value while it is traced`;
  return new TidemarkError("SideEffect", summary, {
    where: sourceLocation(),
    help: `compute with operations, x.mul(${path}); or make it a constant, for each value of which the function is compiled: compile(fn, { static: [${argument}] })`,
  });
}

/** The storage of a tensor that is known to be concrete. */
export function storageOf(tensor: Tensor): TensorStorage {
  const { storage } = tensor;
  invariant(storage, () => `tensor of shape ${shapeText(tensor.shape)} is traced`);
  return storage;
}

/** A tensor of the same elements, which can be donated without taking them from this one. */
export function spareTensor(tensor: Tensor): Tensor {
  const storage = storageOf(tensor);
  return new Tensor(storage.spare?.() ?? storage);
}
