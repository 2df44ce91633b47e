/** @file Tensors from nothing: constants, counters, masks. Inside a program they cost no memory. */
import type { Shape } from "../ir/type.ts";
import type { DType, FloatType, NumberType } from "../kernel/dtype.ts";
import { iota } from "../ops/create.ts";
import { fail, requireShape, requireTensor, requireTypeOption, type TypeOption } from "../trace/arguments.ts";
import { AbstractStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import { weaklyTyped } from "../trace/weak.ts";
import { applyOp } from "./apply.ts";
import { add, cast, equal, greaterEqual, lessEqual, mul, where } from "./elementwise.ts";
import { constantOf, fullOf } from "./operands.ts";

const separate = (constant: Tensor): Tensor => currentTrace()?.separate(constant) ?? constant;

/** What a function makes in its default type; weakly typed, where no type was given. */
function madeIn<T extends DType>(name: string, type: TypeOption<T> | undefined, make: (dtype: T) => Tensor): Tensor {
  const made = separate(make(requireTypeOption(name, type, "f32" as T)));
  return type === undefined ? weaklyTyped(made, (dtype) => separate(make(dtype as DType as T))) : made;
}

/**
 * A tensor of one value throughout; f32, or bool for a boolean, where no type is given.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { full } from "tidemark";
 *
 * console.log(full([2, 2], 7).toArray()); // → [[7, 7], [7, 7]]
 */
export function full(shape: Shape, value: number | boolean, type?: TypeOption): Tensor {
  requireShape("full", shape);
  if (typeof value === "boolean") return constantOf("full", value, requireTypeOption("full", type, "bool"), shape);
  return madeIn("full", type, (dtype) => constantOf("full", value, dtype, shape));
}

/**
 * Zeros.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { zeros } from "tidemark";
 *
 * console.log(zeros([2, 2]).toArray()); // [[0, 0], [0, 0]]
 * console.log(zeros([2], "f64").dtype, zeros([2], { dtype: "i32" }).dtype); // f64 i32
 */
export function zeros(shape: Shape, type?: TypeOption): Tensor {
  requireShape("zeros", shape);
  return madeIn("zeros", type, (dtype) => fullOf(dtype, shape, 0));
}

/**
 * Ones.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { ones } from "tidemark";
 *
 * console.log(ones([2, 2]).toArray(), ones([2], { dtype: "i32" }).dtype); // → [[1, 1], [1, 1]] i32
 */
export function ones(shape: Shape, type?: TypeOption): Tensor {
  requireShape("ones", shape);
  return madeIn("ones", type, (dtype) => fullOf(dtype, shape, 1));
}

/**
 * Zeros with the type of another tensor.
 *
 * @example
 * import { tensor, zerosLike } from "tidemark";
 *
 * console.log(zerosLike(tensor([5, 6])).toArray()); // → [0, 0]
 */
export function zerosLike(x: Tensor): Tensor {
  requireTensor("zerosLike", "x", x);
  return separate(fullOf(x.dtype, x.shape, 0));
}

/**
 * Ones with the type of another tensor.
 *
 * @example
 * import { onesLike, tensor } from "tidemark";
 *
 * console.log(onesLike(tensor([5, 6])).toArray()); // → [1, 1]
 */
export function onesLike(x: Tensor): Tensor {
  requireTensor("onesLike", "x", x);
  return separate(fullOf(x.dtype, x.shape, 1));
}

/**
 * A tensor of a type and without elements, to plan with: it costs no memory whatever its shape is. Reading it, or running
 * anything on it, is an error.
 *
 * @memory None: it has no elements.
 *
 * @example
 * import { plan, spec } from "tidemark";
 *
 * const square = plan((x) => x.matmul(x));
 * console.log(square(spec([32768, 32768])).arenaBytes > 2 ** 33); // true
 */
export function spec(shape: Shape, type?: TypeOption): Tensor {
  requireShape("spec", shape);
  return new Tensor(new AbstractStorage(requireTypeOption("spec", type, "f32"), [...shape]));
}

/**
 * Whole numbers from 0 (or start) up to, not including, stop, by step; i32 where no type is given.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { arange } from "tidemark";
 *
 * console.log(arange(3).toArray(), arange(2, 8, 2).toArray()); // [0, 1, 2] [2, 4, 6]
 * console.log(arange(3, { dtype: "f32" }).dtype, arange(0, 3, 1, "f64").dtype); // f32 f64
 */
export function arange(stop: number, type?: TypeOption<NumberType>): Tensor;
export function arange(start: number, stop: number, step?: number, type?: TypeOption<NumberType>): Tensor;
export function arange(
  first: number,
  second?: number | TypeOption<NumberType>,
  step = 1,
  last?: TypeOption<NumberType>,
): Tensor {
  const [from, to] = typeof second === "number" ? [first, second] : [0, first];
  const dtype = requireTypeOption("arange", typeof second === "number" ? last : (second ?? last), "i32");
  if (![from, to, step].every(Number.isInteger) || step === 0) {
    fail(
      "InvalidArgument",
      `arange: ${from} to ${to} by ${step}`,
      "use whole numbers and a step that is not 0, or linspace",
    );
  }
  const count = Math.max(0, Math.ceil((to - from) / step));
  const counted = applyOp(iota, [], { shape: [count], axis: 0 });
  const scaled = step === 1 ? counted : mul(counted, step);
  const whole = from === 0 ? scaled : add(scaled, from);
  return whole.dtype === dtype ? whole : cast(whole, dtype);
}

/**
 * `count` numbers from start to stop, both included, at equal distances.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { linspace } from "tidemark";
 *
 * console.log(linspace(0, 1, 5).toArray()); // → [0, 0.25, 0.5, 0.75, 1]
 */
export function linspace(start: number, stop: number, count: number, type?: TypeOption<FloatType>): Tensor {
  if (!Number.isInteger(count) || count < 1)
    fail("InvalidArgument", `linspace: count ${count}`, "a count is a whole number ≥ 1");
  const step = count === 1 ? 0 : (stop - start) / (count - 1);
  return madeIn("linspace", type, (dtype) => add(mul(cast(arange(count), dtype), step), start));
}

/** Row number and column number of every element of a matrix. */
function coordinates(rows: number, columns: number): readonly [Tensor, Tensor] {
  const shape = [rows, columns];
  return [applyOp(iota, [], { shape, axis: 0 }), applyOp(iota, [], { shape, axis: 1 })];
}

/**
 * The identity matrix; the number of columns may be left out.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { eye } from "tidemark";
 *
 * console.log(eye(2).toArray(), eye(1, 2).toArray()); // → [[1, 0], [0, 1]] [[1, 0]]
 */
export function eye(rows: number, columns?: number | TypeOption, type?: TypeOption): Tensor {
  if (typeof columns !== "number" && columns !== undefined) return eye(rows, rows, columns);
  return madeIn("eye", type, (dtype) => identity(rows, columns ?? rows, dtype));
}

function identity(rows: number, columns: number, dtype: DType): Tensor {
  requireShape("eye", [rows, columns]);
  const [i, j] = coordinates(rows, columns);
  return cast(equal(i, j), dtype);
}

function triangle(name: string, x: Tensor, keep: (rows: Tensor, columns: Tensor) => Tensor): Tensor {
  requireTensor(name, "x", x);
  const [rows, columns] = x.shape.slice(-2);
  if (rows === undefined || columns === undefined) {
    return fail(
      "ShapeMismatch",
      `${name}: needs a matrix, got rank ${x.rank}`,
      "the last two axes are rows and columns",
    );
  }
  const [i, j] = coordinates(rows, columns);
  return where(keep(i, j), x, zerosLike(x));
}

/**
 * The lower triangle, zero above diagonal number k (0 is the main one, positive above it).
 *
 * @example
 * import { tensor, tril } from "tidemark";
 *
 * console.log(tril(tensor([[1, 2], [3, 4]])).toArray()); // → [[1, 0], [3, 4]]
 */
export function tril(x: Tensor, k = 0): Tensor {
  return triangle("tril", x, (i, j) => lessEqual(j, add(i, k)));
}

/**
 * The upper triangle, zero below diagonal number k.
 *
 * @example
 * import { tensor, triu } from "tidemark";
 *
 * console.log(triu(tensor([[1, 2], [3, 4]])).toArray()); // → [[1, 2], [0, 4]]
 */
export function triu(x: Tensor, k = 0): Tensor {
  return triangle("triu", x, (i, j) => greaterEqual(j, add(i, k)));
}
