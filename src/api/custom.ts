/**
 * @file Functions with a say in their own derivative: recomputation on request, and rules given by the user.
 *
 * A rule is traced into regions of one node (ops/control.ts). Concrete tensors that a rule closes over become further
 * inputs of the node, whose cotangents are zero, and so do numbers; traced floats it must take as arguments, or their
 * derivative would be lost without a word.
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { type Graph, REGION, type Value } from "../ir/graph.ts";
import { sameType, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { call, customJvp as customJvpOp, customVjp as customVjpOp } from "../ops/control.ts";
import { fullLike } from "../ops/create.ts";
import { fail, requireFunction } from "../trace/arguments.ts";
import { type AnyFunction, traceFlat } from "../trace/function.ts";
import { type Tensor, tensorTypeOf } from "../trace/tensor.ts";
import { currentTrace, type TracedGraph, traceGraph } from "../trace/trace.ts";
import { flattenLike, leafCount, type Tree, type TreeDef, treeKey, unflatten } from "../trace/tree.ts";
import { placed } from "./apply.ts";
import { type Bound, bind } from "./grad.ts";
import { fullOf } from "./operands.ts";

const isFloatType = (type: TensorType): boolean => isFloat(type.dtype);
const typesOf = (values: readonly Value[]): readonly TensorType[] => values.map((value) => value.type);
const tensorsOf = (traced: TracedGraph): readonly Tensor[] => traced.captures.map((capture) => capture.tensor);

/**
 * The same function, with a request to keep only its arguments for the backward pass and to run it again there.
 *
 * @memory The arguments are kept. What is inside is there in the forward pass for a moment, and once more in the backward pass.
 *
 * @example
 * import { checkpoint, grad, tensor } from "tidemark";
 *
 * const block = checkpoint((x) => x.sin().exp());
 * console.log(grad((x) => block(x).sum())(tensor([0])).toArray()); // [1]
 */
export function checkpoint<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  fn: (...args: Args) => R,
): (...args: Args) => R {
  requireFunction("checkpoint", "its argument", fn);
  return (...args) => {
    const trace = currentTrace();
    if (!trace) return fn(...args);
    return trace.inScope(`${REGION}${fn.name || "checkpoint"}`, () => {
      const { traced, inputs } = bind(fn as AnyFunction, args, "returned");
      const attrs = { checkpoint: true, name: traced.graph.name };
      const results = trace.record(call, inputs, attrs, { regions: [traced.graph] });
      return unflatten(traced.resultTree, results) as R;
    });
  };
}

/** Numbers among the arguments of a compiled function are constants to every derivative, like concrete tensors. */
function hasDerivative({ traced }: Tensor): boolean {
  return traced !== null && !traced.trace.isNumber(traced.cell.value);
}

function requireClosed(name: string, what: string, traced: TracedGraph): void {
  const open = tensorsOf(traced).find((tensor) => isFloat(tensor.dtype) && hasDerivative(tensor));
  if (!open) return;
  fail(
    "InvalidArgument",
    `${name}: ${what} closes over the traced tensor ${typeText(open)}`,
    "pass it as an argument, so that the rule can give its derivative",
  );
}

/** Paths of leaves that have no derivative. */
function integerPaths({ traced }: Bound): ReadonlySet<string> {
  return new Set(traced.leaves.filter((leaf) => !isFloatType(leaf.type)).map((leaf) => leaf.path));
}

/** Derivatives given by a rule, checked against what they belong to. */
function inTypes(
  name: string,
  what: string,
  made: readonly Tensor[],
  wanted: readonly TensorType[],
): readonly Tensor[] {
  return made.map((given, i) => {
    const type = at(wanted, i);
    const tensor = placed(given, type);
    if (sameType(tensorType(tensor.dtype, tensor.shape), type)) return tensor;
    return fail(
      "ShapeMismatch",
      `${name}: the rule gave the ${what} ${typeText(tensor)} for ${typeText(type)}`,
      "both must have the same type",
    );
  });
}

/** Tensors for all values, zeros for those without a derivative. */
function besides(types: readonly TensorType[], floats: readonly Tensor[]): readonly Tensor[] {
  let next = 0;
  return types.map((type) => (isFloatType(type) ? at(floats, next++) : fullOf(type.dtype, type.shape, 0)));
}

/** The two halves of a rule of {@link customVjp}. */
export interface CustomVjpRule<Args extends readonly Tree[], R extends Tree, Saved extends Tree> {
  /** The value, and what the backward rule needs. */
  forward(...args: Args): readonly [R, Saved];
  /** Cotangents of the arguments, one for each, of their structure; what stands in the place of integers is ignored. */
  backward(saved: Saved, cotangent: R): readonly Tree[];
}

function traceBackward(
  bound: Bound,
  [valueTree, savedTree]: readonly [TreeDef, TreeDef],
  {
    maker,
    backward,
  }: { readonly maker: string; readonly backward: (saved: never, cotangent: never) => readonly unknown[] },
): TracedGraph {
  const { graph, argTrees, leaves } = bound.traced;
  const types = typesOf(graph.results);
  const values = types.slice(0, leafCount(valueTree));
  const saved = types.slice(values.length);
  const params = [...saved, ...values.filter(isFloatType)].map((type, i) => ({
    type,
    name: i < saved.length ? "saved" : "ct",
  }));
  const skip = integerPaths(bound);
  return traceGraph(`${graph.name}_backward`, params, (tensors) => {
    const cotangent = unflatten(valueTree, besides(values, tensors.slice(saved.length)));
    const made = backward(unflatten(savedTree, tensors.slice(0, saved.length)) as never, cotangent as never);
    const list = Array.isArray(made) ? (made as readonly unknown[]) : [];
    const flat = argTrees.flatMap((tree, n) => flattenLike(tree, list[n], `cotangents[${n}]`, skip));
    return inTypes(maker, "cotangent", flat, leaves.map((leaf) => leaf.type).filter(isFloatType));
  });
}

/** The node's inputs are those of forward, then what backward captured, which forward hands through among the saved. */
function vjpRegions(forward: Graph, results: number, backward: TracedGraph): readonly [Graph, Graph] {
  const captured = tensorsOf(backward).map(tensorTypeOf);
  const f = new Build(forward.name);
  const inputs = forward.params.map((param) => f.param(param.type, param.name));
  const handed = captured.map((type) => f.param(type, "captured"));
  const made = f.inline(forward, inputs);
  const b = new Build(backward.graph.name);
  const savedTypes = typesOf(forward.results.slice(results));
  const saved = savedTypes.map((type) => b.param(type, "saved"));
  const constants = captured.map((type) => b.param(type, "captured"));
  const cts = typesOf(forward.results.slice(0, results))
    .filter(isFloatType)
    .map((type) => b.param(type, "ct"));
  const cotangents = b.inline(backward.graph, [...saved, ...cts, ...constants]);
  const floats = [...inputs, ...handed].filter((value) => isFloatType(value.type));
  const zeros = floats.slice(cotangents.length).map((value) => fullLike(b, value, 0));
  return [f.finish([...made, ...handed]), b.finish([...cotangents, ...zeros])];
}

/** Throws unless the function itself gives what its forward rule gives as the value. */
function requireAgreement(fn: AnyFunction, { flat, traced: { graph } }: Bound, valueTree: TreeDef): void {
  const plain = traceFlat(fn, flat);
  const text = (tree: TreeDef, { results }: Graph): string =>
    `${treeKey(tree).replaceAll("*", "tensor")} of ${results
      .slice(0, leafCount(tree))
      .map((v) => typeText(v.type))
      .join(", ")}`;
  const [own, ruled] = [text(plain.resultTree, plain.graph), text(valueTree, graph)];
  if (own === ruled) return;
  const help = "both compute the same value: forward(...) returns [fn(...), saved]";
  fail("ShapeMismatch", `customVjp: the function gives ${own}, its forward rule ${ruled}`, help);
}

/**
 * A function with a reverse-mode derivative of your own. `forward` returns the value and what is saved; `backward` gets
 * what was saved and the cotangent of the value and returns cotangents of the arguments, in an array. `fn` and
 * `forward` must agree: fn runs outside of programs, forward inside.
 *
 * @memory What `forward` returns to be saved, and nothing else.
 *
 * @example
 * import { customVjp, grad, tensor } from "tidemark";
 *
 * const clipped = customVjp((x) => x, {
 *   forward: (x) => [x, []],
 *   backward: (_, ct) => [ct.clamp(-1, 1)],
 * });
 * console.log(grad((x) => clipped(x).mul(5).sum())(tensor([3])).toArray()); // [1]
 */
export function customVjp<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor, Saved extends Tree = Tree>(
  fn: (...args: Args) => R,
  rule: CustomVjpRule<Args, R, Saved>,
): (...args: Args) => R {
  requireFunction("customVjp", "its first argument", fn);
  requireFunction("customVjp", "forward", rule?.forward);
  requireFunction("customVjp", "backward", rule?.backward);
  return withVjp("customVjp", fn, rule);
}

/** The same under the name of the function that a user called. @internal */
export function withVjp<Args extends readonly Tree[], R extends Tree, Saved extends Tree>(
  maker: string,
  fn: (...args: Args) => R,
  rule: CustomVjpRule<Args, R, Saved>,
): (...args: Args) => R {
  const agreed = new Set<string>();
  return (...args) => {
    const trace = currentTrace();
    if (!trace) return fn(...args);
    const bound = bind(rule.forward as AnyFunction, args, "returned");
    const { graph, resultTree } = bound.traced;
    const pair = resultTree.kind === "array" && resultTree.items.length === 2 ? resultTree.items : null;
    if (!pair)
      return fail("InvalidTree", `${maker}: forward must return [value, saved]`, "saved may be an empty array");
    const valueTree = at(pair, 0);
    if (!agreed.has(bound.flat.key)) requireAgreement(fn as AnyFunction, bound, valueTree);
    agreed.add(bound.flat.key);
    const backward = traceBackward(bound, [valueTree, at(pair, 1)], { maker, backward: rule.backward as never });
    requireClosed(maker, "forward", bound.traced);
    requireClosed(maker, "backward", backward);
    const results = leafCount(valueTree);
    const regions = vjpRegions(graph, results, backward);
    const made = trace.record(customVjpOp, [...bound.inputs, ...tensorsOf(backward)], { results, maker }, { regions });
    return unflatten(valueTree, made.slice(0, results)) as R;
  };
}

/** From arguments and their tangents to the tangent of the value, which must be linear in the tangents. */
export type CustomJvpRule<Args extends readonly Tree[], R extends Tree> = (primals: Args, tangents: Args) => R;

function traceTangent(bound: Bound, rule: (primals: never, tangents: never) => unknown): TracedGraph {
  const { graph, leaves, argTrees, resultTree } = bound.traced;
  const types = leaves.map((leaf) => leaf.type);
  const params = [...leaves.map((leaf) => ({ type: leaf.type, name: "x" }))];
  const tangentParams = types.filter(isFloatType).map((type) => ({ type, name: "t" }));
  const trees = (tensors: readonly Tensor[]): readonly unknown[] =>
    argTrees.map((tree, n) =>
      unflatten(
        tree,
        tensors.filter((_, i) => leaves[i]?.argument === n),
      ),
    );
  return traceGraph(`${graph.name}_tangent`, [...params, ...tangentParams], (tensors) => {
    const primals = tensors.slice(0, types.length);
    const tangents = besides(types, tensors.slice(types.length));
    const made = rule(trees(primals) as never, trees(tangents) as never);
    const results = typesOf(graph.results);
    const all = flattenLike(resultTree, made, "tangent").filter((_, i) => isFloatType(at(results, i)));
    return inTypes("customJvp", "tangent", all, results.filter(isFloatType));
  });
}

/** The node's inputs are those of the body, then what the rule captured; their tangents are not read. */
function jvpRegions(bound: Bound, rule: TracedGraph): readonly [Graph, Graph] {
  const { graph, leaves } = bound.traced;
  const captured = tensorsOf(rule).map(tensorTypeOf);
  const f = new Build(graph.name);
  const inputs = graph.params.map((param) => f.param(param.type, param.name));
  for (const type of captured) f.param(type, "captured");
  const body = f.finish(f.inline(graph, inputs));
  const t = new Build(rule.graph.name);
  const primals = body.params.map((param) => t.param(param.type, param.name));
  const tangents = typesOf(primals)
    .filter(isFloatType)
    .map((type) => t.param(type, "t"));
  const own = leaves.filter((leaf) => isFloatType(leaf.type)).length;
  const constants = primals.slice(inputs.length);
  const made = t.inline(rule.graph, [...primals.slice(0, leaves.length), ...tangents.slice(0, own), ...constants]);
  return [body, t.finish(made)];
}

/**
 * A function with a forward-mode derivative of your own; reverse mode follows by transposition.
 *
 * @memory What the tangents read of the forward pass is kept, as for derivatives that are found.
 *
 * @example
 * import { customJvp, grad, tensor } from "tidemark";
 *
 * const softSign = customJvp((x) => x.sign(), ([x], [t]) => t.div(x.abs().add(1).square()));
 * console.log(grad((x) => softSign(x).sum())(tensor([1])).toArray()); // [0.25]
 */
export function customJvp<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  fn: (...args: Args) => R,
  rule: CustomJvpRule<Args, R>,
): (...args: Args) => R {
  requireFunction("customJvp", "its first argument", fn);
  requireFunction("customJvp", "the rule", rule);
  return (...args) => {
    const trace = currentTrace();
    if (!trace) return fn(...args);
    const bound = bind(fn as AnyFunction, args, "returned");
    const tangent = traceTangent(bound, rule as never);
    requireClosed("customJvp", "the function", bound.traced);
    requireClosed("customJvp", "the rule", tangent);
    const regions = jvpRegions(bound, tangent);
    const made = trace.record(customJvpOp, [...bound.inputs, ...tensorsOf(tangent)], {}, { regions });
    return unflatten(bound.traced.resultTree, made) as R;
  };
}
