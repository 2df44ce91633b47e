/** @file Where a concrete tensor's elements are. Programs may hold them in an arena; a literal holds an array. */
import { formatBytes } from "../base/bytes.ts";
import { grouped, TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { elementsOf, type Shape, typeText } from "../ir/type.ts";
import { bytesOf, type DType, newElements, type TypedArray } from "../kernel/dtype.ts";
import { sourceLocation } from "./source-location.ts";

export type { TypedArray };

/**
 * Where the elements of a tensor are.
 *
 * @example
 * import { type TensorStorage, tensor } from "tidemark";
 *
 * const elements = (storage: TensorStorage | null) => storage?.read();
 * console.log(elements(tensor([1, 2]).storage)); // → [1, 2]
 */
export interface TensorStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  /** There are no elements: it is a type to plan with, and reading is an error. */
  readonly abstract?: true;
  /** The elements, row-major; the caller must not write to them. */
  read(): TypedArray;
  /** The elements in a new array, where they are not in one. */
  copy?(): TypedArray;
  /** The elements where they are, without a copy; the caller must not write to them, and they change with the next run. */
  borrow?(): TypedArray;
  /** The elements, after they were copied from their device; storage without `fetch` is read at once. */
  fetch?(): Promise<TypedArray>;
  /** Writes the elements without making an array of them first, where that can be done. */
  writeTo?(into: TypedArray): void;
  /** Whether they were given up. */
  readonly isConsumed?: boolean;
  /** Gives the elements up: reading them from now on is an error that names the call. */
  consume?(to: Donation): void;
  /** The same elements for someone else, who may have them after they are given up here. */
  spare?(): TensorStorage;
}

/** The call that a tensor was donated to. */
export interface Donation {
  readonly by: string;
  readonly where: () => string | undefined;
}

/** What readers of a donated tensor are told. */
export function donatedTensor(type: Pick<TensorStorage, "dtype" | "shape">, { by, where }: Donation): TidemarkError {
  const donatedAt = where();
  const taken = `${by}${donatedAt ? ` at ${donatedAt}` : ""}`;
  return new TidemarkError(
    "DonatedTensor",
    `this ${typeText(type)} was donated to ${taken} and its storage was reused`,
    {
      where: sourceLocation(),
      help: "use the tensor that the call returned in its place, or leave the argument out of `donate`",
    },
  );
}

/** Zeroed elements of a dtype. */
export function newArray(dtype: DType, elements: number): TypedArray {
  try {
    return newElements(dtype, elements);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const bytes = formatBytes(elements * bytesOf(dtype));
    throw new TidemarkError(
      "InvalidArgument",
      `${grouped(elements)} elements of ${dtype} take ${bytes}, which cannot be had`,
      {
        where: sourceLocation(),
        help: "work on parts of it; to plan with a type of that size use spec(shape)",
      },
    );
  }
}

/** Storage in a JavaScript array of its own. */
export class ArrayStorage implements TensorStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  #data: TypedArray | null;
  #donation: Donation | null = null;

  /** Takes ownership of the array. */
  constructor(dtype: DType, shape: Shape, data: TypedArray) {
    invariant(data.length === elementsOf(shape), () => `${data.length} elements for shape [${shape.join(",")}]`);
    this.dtype = dtype;
    this.shape = shape;
    this.#data = data;
  }

  read(): TypedArray {
    if (this.#donation) throw donatedTensor(this, this.#donation);
    return this.#data as TypedArray;
  }

  get isConsumed(): boolean {
    return this.#donation !== null;
  }

  consume(to: Donation): void {
    this.#donation ??= to;
    this.#data = null;
  }

  spare(): ArrayStorage {
    return new ArrayStorage(this.dtype, this.shape, this.read());
  }
}

/**
 * Elements that are computed where they are needed: initial values of parameters, tensors of one value. Given to a program
 * that keeps them, they are computed into its arena and have no array; reading makes one.
 */
export class LazyStorage implements TensorStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly #fill: (into: TypedArray) => void;
  #data: TypedArray | null = null;
  #donation: Donation | null = null;

  /** @param fill writes all elements, the same ones every time */
  constructor(dtype: DType, shape: Shape, fill: (into: TypedArray) => void) {
    this.dtype = dtype;
    this.shape = shape;
    this.#fill = fill;
  }

  read(): TypedArray {
    this.#requireOwn();
    if (this.#data === null) {
      const data = newArray(this.dtype, elementsOf(this.shape));
      this.#fill(data);
      this.#data = data;
    }
    return this.#data;
  }

  writeTo(into: TypedArray): void {
    this.#requireOwn();
    if (this.#data === null) this.#fill(into);
    else into.set(this.#data);
  }

  get isConsumed(): boolean {
    return this.#donation !== null;
  }

  consume(to: Donation): void {
    this.#donation ??= to;
    this.#data = null;
  }

  spare(): LazyStorage {
    this.#requireOwn();
    const same = new LazyStorage(this.dtype, this.shape, this.#fill);
    same.#data = this.#data;
    return same;
  }

  #requireOwn(): void {
    if (this.#donation) throw donatedTensor(this, this.#donation);
  }
}

/** A type in the place of elements: enough to trace and to plan, nothing to run on. */
export class AbstractStorage implements TensorStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly abstract = true;

  constructor(dtype: DType, shape: Shape) {
    this.dtype = dtype;
    this.shape = shape;
  }

  read(): never {
    throw new TidemarkError("InvalidArgument", `this ${typeText(this)} is a spec: it has a type and no elements`, {
      where: sourceLocation(),
      help: "plan with it; to run, make a tensor of that type",
    });
  }
}
