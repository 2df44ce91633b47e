/**
 * @file Full matrices of derivatives. One derivative along every element of a basis is a batch of derivatives, so it is one program:
 * reverse mode over a basis of the results gives all rows, forward mode over a basis of an argument all columns. What does not depend
 * on the basis (the value itself) is computed once. `chunk` says how many are computed at a time, in a loop, for less memory.
 */
import { jvp as jvpGraph } from "../autodiff/jvp.ts";
import { vjp as vjpGraph } from "../autodiff/vjp.ts";
import { at } from "../base/invariant.ts";
import { batch } from "../batching/batch.ts";
import { loopSupport } from "../compiler/loops.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { elementsOf, type Shape, type TensorType, typeText } from "../ir/type.ts";
import { withLiveNodes } from "../ir/walk.ts";
import { isFloat } from "../kernel/dtype.ts";
import { movedAxis, reshaped } from "../ops/batch.ts";
import { broadcast } from "../ops/broadcast.ts";
import { full, iota } from "../ops/create.ts";
import { apply } from "../ops/define.ts";
import { add, eq, mul } from "../ops/elementwise.ts";
import { scan } from "../ops/loops.ts";
import { INDEX } from "../ops/region-checks.ts";
import { cast } from "../ops/select.ts";
import { partAlong } from "../ops/slice.ts";
import { fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type Tree, unflatten } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";
import { activeParams, type Bound, bind, grad, positions, requireFloatLeaves } from "./grad.ts";
import { installPart } from "./host.ts";
import type { WithLeaves } from "./tree.ts";

/** Options of {@link jacobian} and {@link hessian}. */
export interface MatrixOptions {
  /** The argument to differentiate; the first one by default. */
  readonly argnums?: number;
  /** How many rows, or columns, are computed at a time; all by default. */
  readonly chunk?: number;
}

const OPTIONS: OptionKinds<MatrixOptions> = { argnums: "a number", chunk: "a number" };

type Mode = "forward" | "reverse";

/** In the place of each tensor of the result, a tree like the argument with a matrix for each of its tensors. */
export type JacobianOf<R, A> = R extends Tensor
  ? WithLeaves<A, Tensor>
  : R extends number | boolean
    ? WithLeaves<A, Tensor>
    : { [K in keyof R]: JacobianOf<R[K], A> };

/** A linear map from tensors to tensors: a graph whose last parameters, one for each of `from`, are what it is linear in. */
interface LinearMap {
  readonly graph: Graph;
  readonly from: readonly TensorType[];
}

const typesOf = (values: readonly Value[]): readonly TensorType[] => values.map(({ type }) => type);
const totalOf = (types: readonly TensorType[]): number => types.reduce((sum, { shape }) => sum + elementsOf(shape), 0);

/** Elements number `start` … of the basis of several tensors: one in one place of one tensor, zero elsewhere. */
function basis(b: Build, from: readonly TensorType[], rows: number, start: Value | null): readonly Value[] {
  let before = 0;
  return from.map(({ dtype, shape }) => {
    const all = [rows, elementsOf(shape)];
    const number = (value: number): Value => b.call(full, [], { ...INDEX, shape: all, value });
    const row = b.call(iota, [], { shape: all, axis: 0 });
    const moved = start ? apply(b, add, row, b.call(broadcast, [start], { shape: all, axes: [] })) : row;
    const place = apply(b, add, b.call(iota, [], { shape: all, axis: 1 }), number(before));
    before += elementsOf(shape);
    return reshaped(b, b.call(cast, [apply(b, eq, moved, place)], { dtype }), [rows, ...shape]);
  });
}

/** The map over `rows` elements of the basis: parameters are the graph's but for what it is linear in. */
function overBasis(
  b: Build,
  { graph, from }: LinearMap,
  rows: number,
  [params, start]: readonly [readonly Value[], Value | null],
) {
  const isLinear = graph.params.map((_, i) => i >= graph.params.length - from.length);
  const made = batch(graph, rows, { params: isLinear, results: graph.results.map(() => true) });
  return b.inline(made.graph, [...params, ...basis(b, from, rows, start)]);
}

/** The same in a loop, `rows` at a time. */
function inChunks(b: Build, map: LinearMap, rows: number, params: readonly Value[]): readonly Value[] {
  const total = totalOf(map.from);
  const length = Math.ceil(total / rows);
  const body = new Build("rows");
  const i = body.param(INDEX, "i");
  const own = params.map(({ type, name }) => body.param(type, name));
  const start = apply(body, mul, i, body.call(full, [], { ...INDEX, value: rows }));
  const region = body.finish(overBasis(body, map, rows, [own, start]));
  const attrs = {
    ...{ carries: 0, xs: 0, length, reverse: false },
    ...{ counted: false, reversal: "auto", snapshots: 0 },
  };
  return b.callAll(scan, params, attrs, { regions: [region] }).map((stacked) => {
    const [, , ...shape] = stacked.type.shape;
    return partAlong(b, reshaped(b, stacked, [length * rows, ...shape]), 0, [0, total]);
  });
}

/** Of results [basis, …to], the part that belongs to a tensor of the basis, with its shape behind or in front. */
function block(b: Build, made: Value, [from, before]: readonly [Shape, number], mode: Mode): Value {
  const to = made.type.shape.slice(1);
  const rows = partAlong(b, made, 0, [before, elementsOf(from)]);
  if (mode === "reverse") return reshaped(b, rows, [...from, ...to]);
  const columns = movedAxis(b, reshaped(b, rows, [elementsOf(from), elementsOf(to)]), 0, 1);
  return reshaped(b, columns, [...to, ...from]);
}

/** By tensor of the results and tensor of the argument, all derivatives. */
function matrixGraph(map: LinearMap, mode: Mode, chunk: number): Graph {
  const { graph, from } = map;
  const b = new Build(graph.name);
  const params = graph.params.slice(0, graph.params.length - from.length).map(({ type, name }) => b.param(type, name));
  const made =
    chunk < totalOf(from) ? inChunks(b, map, chunk, params) : overBasis(b, map, totalOf(from), [params, null]);
  let next = 0;
  const places = from.map(({ shape }) => {
    next += elementsOf(shape);
    return [shape, next - elementsOf(shape)] as const;
  });
  const pieces = places.map((place) => made.map((value) => block(b, value, place, mode)));
  // by result first
  return b.finish(mode === "reverse" ? pieces.flat() : made.flatMap((_, r) => pieces.map((row) => at(row, r))));
}

function requireMatrix(name: string, { traced }: Bound, n: number): void {
  if (at(traced.argTrees, n).kind !== "tensor") {
    const help = "differentiate a function of one tensor at a time, or use jacrev or jacfwd, which take trees";
    fail("InvalidTree", `${name}: argument ${n} must be one tensor`, help);
  }
  if (traced.resultTree.kind !== "tensor") {
    const help = "return one tensor, or use jacrev or jacfwd, which take trees";
    fail("InvalidTree", `${name}: the function must return one tensor`, help);
  }
}

function requireFloatResults(name: string, { traced }: Bound): void {
  for (const { type } of traced.graph.results) {
    if (isFloat(type.dtype)) continue;
    fail("NotDifferentiable", `${name}: the result is ${typeText(type)}, which has no derivative`, 'cast it to "f32"');
  }
}

function requireChunk(name: string, chunk: number | undefined): number {
  if (chunk === undefined) return Number.POSITIVE_INFINITY;
  if (Number.isInteger(chunk) && chunk > 0) return chunk;
  return fail("InvalidArgument", `${name}: chunk is ${chunk}`, "it is a whole number of rows or columns, 1 or more");
}

interface Wanted extends MatrixOptions {
  readonly name: string;
  /** Of one tensor by one tensor. */
  readonly single?: true;
  /** By numbers of elements of the results and of the argument. */
  mode(results: number, argument: number): Mode;
}

function matrices(fn: AnyFunction, args: readonly unknown[], wanted: Wanted): unknown {
  const { name, argnums = 0 } = wanted;
  const chunk = requireChunk(name, wanted.chunk);
  const [n] = positions(name, argnums, args.length) as readonly [number];
  const bound = bind(fn, args);
  requireFloatLeaves(name, bound, [n]);
  if (wanted.single) requireMatrix(name, bound, n);
  requireFloatResults(name, bound);
  installPart("loops", loopSupport);
  const { graph, leaves, resultTree, argTrees } = bound.traced;
  const active = activeParams(bound, [n]);
  const [y, x] = [typesOf(graph.results), leaves.filter(({ argument }) => argument === n).map(({ type }) => type)];
  const mode = wanted.mode(totalOf(y), totalOf(x));
  const derivative = mode === "reverse" ? vjpGraph(graph, active) : jvpGraph(graph, active);
  const slopes = withLiveNodes({ ...derivative, results: derivative.results.slice(graph.results.length) });
  const made = matrixGraph({ graph: slopes, from: mode === "reverse" ? y : x }, mode, chunk);
  const tensors = applyGraph(made, bound.inputs, "once");
  const rows = y.map((_, r) => unflatten(at(argTrees, n), tensors.slice(r * x.length, (r + 1) * x.length)));
  return unflatten(resultTree, rows);
}

/**
 * All partial derivatives ∂y/∂x by reverse mode, one row for each element of the result: for functions with more inputs than
 * results. The matrix of tensors y and x is [...shape of y, ...shape of x]; for trees there is a tree like the argument in the place
 * of each tensor of the result.
 *
 * @memory One forward pass, and a cotangent for each element of the result at once.
 *
 * @example
 * import { jacrev, tensor } from "tidemark";
 *
 * const params = { w: tensor([1, 2]), b: tensor([3, 4]) };
 * const rows = jacrev((p: typeof params) => p.w.mul(p.b).sum())(params);
 * console.log(rows.w.toArray(), rows.b.toArray()); // [3, 4] [1, 2]
 */
export function jacrev<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor, const N extends number = 0>(
  fn: (...args: Args) => R,
  options: MatrixOptions & { readonly argnums?: N } = {},
): (...args: Args) => JacobianOf<R, Args[N]> {
  requireFunction("jacrev", "its argument", fn);
  requireOptions("jacrev", options, OPTIONS);
  const wanted: Wanted = { name: "jacrev", ...options, mode: () => "reverse" };
  return (...args) => matrices(fn as AnyFunction, args, wanted) as JacobianOf<R, Args[N]>;
}

/**
 * The same by forward mode, one column for each element of the argument: for functions with more results than inputs.
 *
 * @memory A tangent for each element of the argument at once; nothing is kept.
 *
 * @example
 * import { jacfwd, jacrev, tensor } from "tidemark";
 *
 * const powers = jacfwd((x) => x.pow(3))(tensor([1, 2]));
 * console.log(powers.toArray()); // [[3, 0], [0, 12]]
 * const second = jacfwd(jacrev((x) => x.pow(3).sum()))(tensor([1, 2]));
 * console.log(second.toArray()); // [[6, 0], [0, 12]]
 */
export function jacfwd<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor, const N extends number = 0>(
  fn: (...args: Args) => R,
  options: MatrixOptions & { readonly argnums?: N } = {},
): (...args: Args) => JacobianOf<R, Args[N]> {
  requireFunction("jacfwd", "its argument", fn);
  requireOptions("jacfwd", options, OPTIONS);
  const wanted: Wanted = { name: "jacfwd", ...options, mode: () => "forward" };
  return (...args) => matrices(fn as AnyFunction, args, wanted) as JacobianOf<R, Args[N]>;
}

/**
 * All partial derivatives ∂y/∂x of a function from tensor to tensor, with shape [...shape of y, ...shape of x], by the mode that takes
 * fewer derivatives.
 *
 * @memory That of `jacrev` or `jacfwd`, whichever it takes.
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
  const wanted: Wanted = {
    ...options,
    name: "jacobian",
    single: true,
    mode: (y, x) => (y <= x ? "reverse" : "forward"),
  };
  return (...args) => matrices(fn as AnyFunction, args, wanted) as Tensor;
}

/**
 * All second derivatives of a scalar function, with shape [...shape of x, ...shape of x].
 *
 * @memory That of `jacobian` of the gradient: a row or a column for each element of the argument at once.
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
