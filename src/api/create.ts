/** @file Tensors from nothing: constants, counters, masks. Inside a program they cost no memory. */
import type { Shape } from "../ir/type.ts";
import type { DType, FloatType } from "../kernel/dtype.ts";
import { iota } from "../ops/create.ts";
import { fail, requireDType, requireShape, requireTensor } from "../trace/arguments.ts";
import { AbstractStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { add, cast, equal, greaterEqual, lessEqual, mul, where } from "./elementwise.ts";
import { constantOf, fullOf } from "./operands.ts";

/** A tensor of one value throughout. */
export function full(shape: Shape, value: number | boolean, dtype?: DType): Tensor {
  requireShape("full", shape);
  const made = dtype ?? (typeof value === "boolean" ? "bool" : "f32");
  requireDType("full", made);
  return constantOf("full", value, made, shape);
}

/**
 * Zeros.
 *
 * @example
 * import { zeros } from "tidemark";
 *
 * console.log(zeros([2, 2]).toArray()); // [[0, 0], [0, 0]]
 */
export function zeros(shape: Shape, dtype: DType = "f32"): Tensor {
  requireShape("zeros", shape);
  requireDType("zeros", dtype);
  return fullOf(dtype, shape, 0);
}

/** Ones. */
export function ones(shape: Shape, dtype: DType = "f32"): Tensor {
  requireShape("ones", shape);
  requireDType("ones", dtype);
  return fullOf(dtype, shape, 1);
}

/** Zeros with the type of another tensor. */
export function zerosLike(x: Tensor): Tensor {
  requireTensor("zerosLike", "x", x);
  return fullOf(x.dtype, x.shape, 0);
}

/** Ones with the type of another tensor. */
export function onesLike(x: Tensor): Tensor {
  requireTensor("onesLike", "x", x);
  return fullOf(x.dtype, x.shape, 1);
}

/**
 * A tensor of a type and without elements, to plan with: it costs no memory whatever its shape is. Reading it, or running
 * anything on it, is an error.
 *
 * @example
 * import { plan, spec } from "tidemark";
 *
 * const square = plan((x) => x.matmul(x));
 * console.log(square(spec([32768, 32768])).arenaBytes > 2 ** 33); // true
 */
export function spec(shape: Shape, dtype: DType = "f32"): Tensor {
  requireShape("spec", shape);
  requireDType("spec", dtype);
  return new Tensor(new AbstractStorage(dtype, [...shape]));
}

/** Whole numbers from 0 (or start) up to, not including, stop, by step; i32. */
export function arange(start: number, stop?: number, step = 1): Tensor {
  const [from, to] = stop === undefined ? [0, start] : [start, stop];
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
  return from === 0 ? scaled : add(scaled, from);
}

/** `count` numbers from start to stop, both included, at equal distances. */
export function linspace(start: number, stop: number, count: number, dtype: FloatType = "f32"): Tensor {
  if (!Number.isInteger(count) || count < 1)
    fail("InvalidArgument", `linspace: count ${count}`, "a count is a whole number ≥ 1");
  const step = count === 1 ? 0 : (stop - start) / (count - 1);
  return add(mul(cast(arange(count), dtype), step), start);
}

/** Row number and column number of every element of a matrix. */
function coordinates(rows: number, columns: number): readonly [Tensor, Tensor] {
  const shape = [rows, columns];
  return [applyOp(iota, [], { shape, axis: 0 }), applyOp(iota, [], { shape, axis: 1 })];
}

/** The identity matrix. */
export function eye(rows: number, columns: number = rows, dtype: DType = "f32"): Tensor {
  requireShape("eye", [rows, columns]);
  requireDType("eye", dtype);
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

/** The lower triangle, zero above diagonal number k (0 is the main one, positive above it). */
export function tril(x: Tensor, k = 0): Tensor {
  return triangle("tril", x, (i, j) => lessEqual(j, add(i, k)));
}

/** The upper triangle, zero below diagonal number k. */
export function triu(x: Tensor, k = 0): Tensor {
  return triangle("triu", x, (i, j) => greaterEqual(j, add(i, k)));
}
