/**
 * @file Gradients of scalar functions. Inside a trace the function is traced on its own, differentiated, and the joint
 * graph takes the place of the call, so gradients nest to any order; outside, the joint graph runs at once.
 */
import type { Seed } from "../autodiff/joint.ts";
import { vjp } from "../autodiff/vjp.ts";
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import {
  type AnyFunction,
  type ArgumentChanges,
  type FlatArguments,
  flattenArguments,
  type Traced,
  traceFlat,
} from "../trace/function.ts";
import { numberOf, type Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import { staticsOf, type Tree, type TreeDef, unflatten } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";

/** Which arguments are differentiated: a position, or a list of positions. */
export type ArgNums = number | readonly number[];

/** The type of the gradients: like the argument, or a tuple like the arguments. */
export type GradOf<Args extends readonly unknown[], N extends ArgNums> = N extends readonly number[]
  ? { -readonly [K in keyof N]: Args[N[K] & number] }
  : Args[N & number];

/** Options of {@link grad} and {@link valueAndGrad}. */
export interface GradOptions<N extends ArgNums> {
  /** The arguments to differentiate; the first one by default. */
  readonly argnums?: N;
}

/**
 * For functions that return [loss, aux]: aux is handed on as it is.
 *
 * @example
 * import { type AuxOptions, type Tensor, tensor, valueAndGrad } from "tidemark";
 *
 * const options: AuxOptions<0> = { argnums: 0, hasAux: true };
 * const f = (x: Tensor) => [x.square().sum(), { size: x.elements }] as const;
 * const [[value, aux], slope] = valueAndGrad(f, options)(tensor([1, 2]));
 * console.log(value.item(), aux, slope.toArray()); // → 5 { size: { dtype: f32, shape: [], uncloneable: function toSendTensors_use_toMessage() {} } } [2, 4]
 */
export interface AuxOptions<N extends ArgNums> extends GradOptions<N> {
  readonly hasAux: true;
}

/** With and without hasAux. */
const OPTIONS: OptionKinds<AuxOptions<ArgNums>> = { argnums: "anything", hasAux: "a boolean" };

/** A function traced together with the tensors that its graph's parameters stand for. @internal */
export interface Bound {
  readonly flat: FlatArguments;
  readonly traced: Traced;
  /** One for each parameter: leaves of the arguments, then captures. */
  readonly inputs: readonly Tensor[];
}

/** Traces a function on these arguments. @internal */
export function bind(fn: AnyFunction, args: readonly unknown[], changes: ArgumentChanges = "local"): Bound {
  const flat = flattenArguments(fn, args);
  // What they stand for now: a pullback may run when they have been changed.
  const trace = currentTrace();
  const own = flat.tensors.map((tensor) => (trace && tensor.isTraced ? trace.copy(tensor) : tensor));
  const traced = traceFlat(fn, flat, changes);
  return { flat, traced, inputs: [...own, ...traced.captures.map((capture) => capture.tensor)] };
}

/** Marks the parameters that are leaves of some arguments; captures are constants to this derivative. @internal */
export function activeParams({ traced }: Bound, argnums: readonly number[]): readonly boolean[] {
  return traced.graph.params.map((_, i) => {
    const leaf = traced.leaves[i];
    return leaf !== undefined && argnums.includes(leaf.argument);
  });
}

/** Argument positions, checked; negative ones count from the end. @internal */
export function positions(name: string, argnums: ArgNums, count: number): readonly number[] {
  return (Array.isArray(argnums) ? (argnums as readonly number[]) : [argnums as number]).map((n) => {
    if (Number.isInteger(n) && n >= -count && n < count) return n < 0 ? n + count : n;
    return fail(
      "InvalidArgument",
      `${name}: argnums names argument ${String(n)} of a call with ${count}`,
      "count from 0",
    );
  });
}

/** Throws unless all leaves of the arguments are float tensors. @internal */
export function requireFloatLeaves(name: string, { traced }: Bound, argnums: readonly number[]): void {
  for (const leaf of traced.leaves) {
    if (!argnums.includes(leaf.argument) || isFloat(leaf.type.dtype)) continue;
    fail(
      "NotDifferentiable",
      `${name}: ${leaf.path} is ${typeText(leaf.type)}, and only f32 and f64 have derivatives`,
      "pass it as another argument, or leave it out of argnums",
    );
  }
  for (const n of argnums) {
    for (const { path, value } of staticsOf(at(traced.argTrees, n))) {
      const number = numberOf(value);
      const shown = number ? `the number ${number.path}` : `the ${typeof value} ${value}, a constant of the trace`;
      const help = `make it a tensor, tensor(${number?.path ?? value}), or pass it as another argument`;
      const outside = number ? `${help}; a tensor is made before the compiled function is called` : help;
      fail("NotDifferentiable", `${name}: ${path} is ${shown}`, outside);
    }
  }
}

function requireScalarLoss(name: string, { traced }: Bound, hasAux: boolean): void {
  const { resultTree, graph } = traced;
  const isPair = resultTree.kind === "array" && resultTree.items.length === 2;
  if (hasAux && !(isPair && resultTree.items[0]?.kind === "tensor")) {
    fail("InvalidTree", `${name}: with hasAux the function must return [loss, aux]`, "return [loss, aux]");
  }
  if (!hasAux && resultTree.kind !== "tensor") {
    const help = "return the loss alone, or [loss, aux] and pass { hasAux: true }";
    fail("InvalidTree", `${name}: the function must return one scalar, it returned an ${resultTree.kind}`, help);
  }
  const { type } = at(graph.results, 0);
  if (type.shape.length > 0) {
    fail(
      "ShapeMismatch",
      `${name}: the loss must be a scalar, got ${typeText(type)}`,
      "reduce it with sum() or mean(); for derivatives of several results use jacobian or vjp",
    );
  }
  if (!isFloat(type.dtype)) {
    fail(
      "NotDifferentiable",
      `${name}: the loss is ${typeText(type)}, which has no derivative`,
      'cast it: loss.cast("f32")',
    );
  }
}

interface Gradients {
  readonly loss: Tensor;
  readonly aux: unknown;
  readonly grads: unknown;
}

/** The arguments to differentiate, and whether the function returns [loss, aux]. */
interface Wanted {
  readonly argnums: ArgNums;
  readonly hasAux: boolean;
}

function gradients(name: string, fn: AnyFunction, args: readonly unknown[], { argnums, hasAux }: Wanted): Gradients {
  const bound = bind(fn, args);
  const { traced } = bound;
  const wanted = positions(name, argnums, args.length);
  requireFloatLeaves(name, bound, wanted);
  requireScalarLoss(name, bound, hasAux);
  const seeds = traced.graph.results.map((_, i): Seed => (i === 0 ? "one" : "zero"));
  const joint = vjp(traced.graph, activeParams(bound, wanted), seeds);
  const made = applyGraph(joint, bound.inputs, "once");
  const results = made.slice(0, traced.graph.results.length);
  const byArgument = cotangentTrees(bound, wanted, made.slice(results.length));
  const auxTree = hasAux && traced.resultTree.kind === "array" ? at(traced.resultTree.items, 1) : null;
  return {
    loss: at(results, 0),
    aux: auxTree && unflatten(auxTree, results.slice(1)),
    grads: typeof argnums === "number" ? at(byArgument, 0) : byArgument,
  };
}

/** Cotangents, given in the order of the parameters, as trees like the arguments in the order of `argnums`. */
function cotangentTrees(
  { traced }: Bound,
  argnums: readonly number[],
  cotangents: readonly Tensor[],
): readonly unknown[] {
  const active = traced.leaves.filter((leaf) => argnums.includes(leaf.argument));
  return argnums.map((n) => {
    const own = cotangents.filter((_, i) => active[i]?.argument === n);
    return unflatten(at(traced.argTrees, n) as TreeDef, own);
  });
}

/**
 * The gradient of a function that returns a scalar, with the structure of the argument.
 *
 * @memory What the derivative reads of the forward pass is kept or recomputed, as the plan of the whole program decides.
 *
 * @example
 * import { grad, tensor } from "tidemark";
 *
 * const slope = grad((x) => x.square().sum());
 * console.log(slope(tensor([1, 2, 3])).toArray()); // [2, 4, 6]
 * const curvature = grad((x) => slope(x).sum());
 * console.log(curvature(tensor([1, 2, 3])).toArray()); // [2, 2, 2]
 */
export function grad<Args extends readonly Tree[] = [Tensor], const N extends ArgNums = 0>(
  fn: (...args: Args) => Tensor,
  options?: GradOptions<N>,
): (...args: Args) => GradOf<Args, N>;
/** With `hasAux`, of a function that returns [loss, aux]: the result is [gradient, aux]. */
export function grad<Args extends readonly Tree[], Aux extends Tree, const N extends ArgNums = 0>(
  fn: (...args: Args) => readonly [Tensor, Aux],
  options: AuxOptions<N>,
): (...args: Args) => [GradOf<Args, N>, Aux];
export function grad(fn: AnyFunction, options: { argnums?: ArgNums; hasAux?: boolean } = {}): AnyFunction {
  requireFunction("grad", "its argument", fn);
  requireOptions("grad", options, OPTIONS);
  const { argnums = 0, hasAux = false } = options;
  return (...args) => {
    const { grads, aux } = gradients("grad", fn, args, { argnums, hasAux });
    return hasAux ? [grads, aux] : grads;
  };
}

/**
 * Value and gradient in one pass: [loss, gradient], or [[loss, aux], gradient] with `hasAux`.
 *
 * @memory That of `grad`: the value is computed on the way.
 *
 * @example
 * import { tensor, valueAndGrad } from "tidemark";
 *
 * const params = { w: tensor([[1], [2]]), b: tensor([0]) };
 * const loss = (p: typeof params, x: typeof p.w, y: typeof p.w) => x.matmul(p.w).add(p.b).sub(y).square().mean();
 * const [value, grads] = valueAndGrad(loss)(params, tensor([[1, 1]]), tensor([[5]]));
 * console.log(value.item(), grads.w.toArray(), grads.b.toArray()); // 4 [[-4], [-4]] [-4]
 */
export function valueAndGrad<Args extends readonly Tree[] = [Tensor], const N extends ArgNums = 0>(
  fn: (...args: Args) => Tensor,
  options?: GradOptions<N>,
): (...args: Args) => [Tensor, GradOf<Args, N>];
export function valueAndGrad<Args extends readonly Tree[], Aux extends Tree, const N extends ArgNums = 0>(
  fn: (...args: Args) => readonly [Tensor, Aux],
  options: AuxOptions<N>,
): (...args: Args) => [[Tensor, Aux], GradOf<Args, N>];
export function valueAndGrad(fn: AnyFunction, options: { argnums?: ArgNums; hasAux?: boolean } = {}): AnyFunction {
  requireFunction("valueAndGrad", "its argument", fn);
  requireOptions("valueAndGrad", options, OPTIONS);
  const { argnums = 0, hasAux = false } = options;
  return (...args) => {
    const { loss, grads, aux } = gradients("valueAndGrad", fn, args, { argnums, hasAux });
    return hasAux ? [[loss, aux], grads] : [loss, grads];
  };
}
