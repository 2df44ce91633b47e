/**
 * @file Full matrices of derivatives, one row or one column at a time: reverse mode gives a row for each result element,
 * forward mode a column for each argument element, and the smaller number wins. Meant for small ones: inside a trace
 * each row is a copy of the derivative's graph.
 */
import { jvp as jvpGraph } from "../autodiff/jvp.ts";
import { vjp as vjpGraph } from "../autodiff/vjp.ts";
import { at } from "../base/invariant.ts";
import { elementsOf, type Shape, typeText } from "../ir/type.ts";
import { type DType, isFloat } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import { ArrayStorage, newArray } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import type { Tree } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";
import { arange } from "./create.ts";
import { cast, equal } from "./elementwise.ts";
import { activeParams, type Bound, bind, grad, positions, requireFloatLeaves } from "./grad.ts";
import { stack } from "./join.ts";
import { fullOf } from "./operands.ts";
import { reshape } from "./shape.ts";

export interface MatrixOptions {
  /** The argument to differentiate; the first one by default. */
  readonly argnums?: number;
}

const OPTIONS: OptionKinds<MatrixOptions> = { argnums: "a number" };

/** One at element i, zero elsewhere. */
function basis(i: number, dtype: DType, shape: Shape): Tensor {
  const elements = elementsOf(shape);
  if (currentTrace()) return reshape(cast(equal(arange(elements), i), dtype), shape);
  const data = newArray(dtype, elements);
  data[i] = 1;
  return new Tensor(new ArrayStorage(dtype, shape, data));
}

function requireMatrix(name: string, bound: Bound, n: number): void {
  const { traced } = bound;
  requireFloatLeaves(name, bound, [n]);
  if (at(traced.argTrees, n).kind !== "tensor") {
    fail(
      "InvalidTree",
      `${name}: argument ${n} must be one tensor`,
      "differentiate a function of one tensor at a time",
    );
  }
  if (traced.resultTree.kind !== "tensor") {
    fail("InvalidTree", `${name}: the function must return one tensor`, "return one tensor");
  }
  const { type } = at(traced.graph.results, 0);
  if (!isFloat(type.dtype)) {
    fail("NotDifferentiable", `${name}: the result is ${typeText(type)}, which has no derivative`, 'cast it to "f32"');
  }
}

/**
 * All partial derivatives ∂y/∂x of a function from tensor to tensor, with shape [...shape of y, ...shape of x].
 *
 * @example
 * import { jacobian, tensor } from "tidemark";
 *
 * const matrix = jacobian((x) => x.square())(tensor([1, 2]));
 * console.log(matrix.toArray()); // [[2, 0], [0, 4]]
 */
export function jacobian<Args extends readonly Tree[] = [Tensor]>(
  fn: (...args: Args) => Tensor,
  options: MatrixOptions = {},
): (...args: Args) => Tensor {
  requireFunction("jacobian", "its argument", fn);
  requireOptions("jacobian", options, OPTIONS);
  return (...args) => {
    const [n] = positions("jacobian", options.argnums ?? 0, args.length) as readonly [number];
    const bound = bind(fn as AnyFunction, args);
    requireMatrix("jacobian", bound, n);
    const { graph, leaves } = bound.traced;
    const x = at(
      leaves,
      leaves.findIndex((leaf) => leaf.argument === n),
    ).type;
    const y = at(graph.results, 0).type;
    const active = activeParams(bound, [n]);
    const shape = [...y.shape, ...x.shape];
    const reverse = elementsOf(y.shape) <= elementsOf(x.shape);
    const [from, derivative] = reverse ? [y, vjpGraph(graph, active)] : [x, jvpGraph(graph, active)];
    if (elementsOf(shape) === 0) return fullOf(reverse ? x.dtype : y.dtype, shape, 0);
    const parts = Array.from({ length: elementsOf(from.shape) }, (_, i) => {
      const made = applyGraph(derivative, [...bound.inputs, basis(i, from.dtype, from.shape)]);
      return reshape(at(made, 1), [-1]);
    });
    // rows one below the other, or columns side by side
    return reshape(stack(parts, reverse ? 0 : 1), shape);
  };
}

/**
 * All second derivatives of a scalar function, with shape [...shape of x, ...shape of x].
 *
 * @example
 * import { hessian, tensor } from "tidemark";
 *
 * const matrix = hessian((x) => x.pow(3).sum())(tensor([1, 2]));
 * console.log(matrix.toArray()); // [[6, 0], [0, 12]]
 */
export function hessian<Args extends readonly Tree[] = [Tensor]>(
  fn: (...args: Args) => Tensor,
  options: MatrixOptions = {},
): (...args: Args) => Tensor {
  requireFunction("hessian", "its argument", fn);
  requireOptions("hessian", options, OPTIONS);
  const { argnums = 0 } = options;
  return jacobian(grad(fn, { argnums }) as (...args: Args) => Tensor, options);
}
