/**
 * @file Loops and branches inside of programs. The functions given are traced once, become regions of one node
 * (ops/loops.ts, ops/branch.ts), and run inside of the compiled module as often as it takes: the program does not grow
 * with the number of iterations. What they close over becomes further inputs of the node; derivatives flow through those too.
 *
 *   scan(fn, init, xs)     fn(state, row, i) → [state, y]         over the rows of xs; the y's are stacked
 *   forLoop(n, init, fn)   fn(i, state) → state                   n times
 *   whileLoop(test, fn, init)                                     as long as test(state) holds
 *   cond(p, yes, no, …x)   switchCase(k, [f₀, f₁, …], …x)         one of several functions
 */

import type { ErrorCode } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { loopSupport } from "../compiler/loops.ts";
import { Build } from "../ir/build.ts";
import type { Graph } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import { sameType, type TensorType, typeText, withShape } from "../ir/type.ts";
import { overBoth } from "../ir/variance.ts";
import { isBool, isIndexType } from "../kernel/dtype.ts";
import { switchOp } from "../ops/branch.ts";
import { gated } from "../ops/control.ts";
import { MOST_ITERATIONS, REVERSALS, type Reversal, scan as scanOp, whileLoop as whileOp } from "../ops/loops.ts";
import { INDEX } from "../ops/region-checks.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import { Tensor, tensorTypeOf } from "../trace/tensor.ts";
import {
  currentTrace,
  outsideOfTraces,
  requireActive,
  type TracedGraph,
  type TraceParam,
  traceGraph,
} from "../trace/trace.ts";
import { type Flat, flatten, flattenLike, type Tree, type TreeDef, treeKey, unflatten } from "../trace/tree.ts";
import { applyGraph, ownCopy, placed } from "./apply.ts";
import { isPlaced } from "./autocast-mode.ts";
import { concreteOf } from "./concrete.ts";
import { add, less, sub } from "./elementwise.ts";
import { installPart } from "./host.ts";
import { inMetTypes } from "./met-types.ts";
import { slice } from "./shape.ts";

const INDEX_PARAM: TraceParam = { type: INDEX, name: "i" };

const paramsOf = ({ leaves, paths }: Flat): readonly TraceParam[] =>
  leaves.map((leaf, i) => ({
    type: tensorTypeOf(leaf),
    name: at(paths, i).replaceAll(/\W+/g, "_"),
    sample: () => leaf,
  }));

/** What an iteration gets of stacks: a row, of which the first is known when the stack is. */
const rowParamsOf = (stacks: Flat): readonly TraceParam[] =>
  paramsOf(stacks).map(({ type, name }, i) => ({
    type: withShape(type, type.shape.slice(1)),
    name,
    sample: () => firstRow(at(stacks.leaves, i)),
  }));

function firstRow(stack: Tensor): Tensor | null {
  const [known] = concreteOf([stack]) ?? [];
  return known && known.shape[0] !== 0 ? outsideOfTraces(() => slice(known, [0])) : null;
}

/** What a state is at first: numbers in it are tensors, since they may change. */
function flatState(name: string, init: unknown): Flat {
  const flat = flatten(init, "state", "result");
  if (flat.leaves.length > 0) return flat;
  return fail("InvalidTree", `${name}: the state has no tensors`, "give a tensor, or an array or object of tensors");
}

const mismatch = (got: Tensor, wanted: TensorType): ErrorCode =>
  got.dtype === wanted.dtype ? "ShapeMismatch" : "DtypeMismatch";

/** The leaves of a state that a body returned, which must be of the structure and the types of the first one. */
function sameState(name: string, state: Flat, made: unknown): readonly Tensor[] {
  const given = flattenLike(state.def, flattenedNumbers(made), "the returned state");
  const leaves = given.map((leaf, i) => placed(leaf, at(state.leaves, i)));
  leaves.forEach((leaf, i) => {
    const wanted = tensorTypeOf(at(state.leaves, i));
    if (sameType(tensorTypeOf(leaf), wanted)) return;
    const path = at(state.paths, i);
    const summary = `${name}: the body returns ${typeText(leaf)} for ${path}, which is ${typeText(wanted)}`;
    fail(mismatch(leaf, wanted), summary, "the state must keep its types: cast or reshape it");
  });
  return leaves;
}

/** A tree with tensors in the place of numbers. */
function flattenedNumbers(tree: unknown): unknown {
  if (tree === undefined || tree === null || tree instanceof Promise) return tree;
  const { def, leaves } = flatten(tree, "the returned state", "result");
  return unflatten(def, leaves);
}

/** What a captured tensor is, to find it again among the captures of another function. */
const captureKey = (tensor: Tensor): object => tensor.traced?.cell.value ?? (tensor.storage as object);

/** Functions with one list of captures, which are their last parameters. */
function closed(traced: readonly TracedGraph[]): { readonly regions: readonly Graph[]; readonly captured: Tensor[] } {
  const captured = new Map<object, Tensor>();
  for (const { captures } of traced) for (const { tensor } of captures) captured.set(captureKey(tensor), tensor);
  const tensors = [...captured.values()];
  const regions = traced.map(({ graph, captures }) => {
    const own = graph.params.length - captures.length;
    const b = new Build(graph.name);
    const params = graph.params.slice(0, own).map((param) => b.param(param.type, param.name));
    const names = new Map(captures.map(({ value, tensor }) => [captureKey(tensor), value.name]));
    const rest = tensors.map((tensor) => b.param(tensorTypeOf(tensor), names.get(captureKey(tensor)) ?? "captured"));
    const place = [...captured.keys()];
    const bound = captures.map(({ tensor }) => at(rest, place.indexOf(captureKey(tensor))));
    return b.finish(b.inline(graph, [...params, ...bound]));
  });
  return { regions, captured: tensors };
}

/**
 * The body of a loop. Where a carry comes to vary over more axes of a mesh than it did at first, the body is recorded once more, so that
 * derivatives inside of it know.
 */
function traceBody(
  name: string,
  carries: readonly TraceParam[],
  rows: readonly TraceParam[],
  fn: (params: readonly Tensor[]) => readonly Tensor[],
): TracedGraph {
  for (let now = carries; ; ) {
    const body = traceGraph(name, [INDEX_PARAM, ...now, ...rows], fn);
    const next = now.map((param, i) => ({ ...param, type: overBoth(param.type, at(body.graph.results, i).type) }));
    if (next.every(({ type }, i) => type.varies === now[i]?.type.varies)) return body;
    now = next;
  }
}

/** A node in a trace; outside it runs at once. */
function applyRegions<A>(
  op: OpDef<A>,
  inputs: readonly Tensor[],
  attrs: NoInfer<A>,
  regions: readonly Graph[],
): readonly Tensor[] {
  installPart("loops", loopSupport);
  const trace = currentTrace();
  if (trace) return trace.record(op, inputs, attrs, { regions });
  inputs.forEach(requireActive);
  const b = new Build(op.name);
  const params = inputs.map((tensor) => b.param(tensorTypeOf(tensor)));
  return applyGraph(b.finish(b.callAll(op, params, attrs, { regions })), inputs);
}

/**
 * What a function gives, whose first result (a bool scalar) says whether the others count: where it is false nothing flows
 * back to the inputs and to what the function closes over, not even the NaN that zero times an overflow would be.
 *
 * @internal
 */
export function applyGated(
  inputs: readonly Tensor[],
  fn: (params: readonly Tensor[]) => readonly Tensor[],
): readonly Tensor[] {
  const { regions, captured } = closed([
    traceGraph(
      "gated",
      inputs.map((input) => ({ type: tensorTypeOf(input), name: "x" })),
      fn,
    ),
  ]);
  return applyRegions(gated, [...inputs, ...captured], {}, regions);
}

/** Options of {@link scan}. */
export interface ScanOptions {
  /** The number of iterations; needed where there are no xs. */
  readonly length?: number;
  /** From the last row to the first; y's still lie where their rows lie. */
  readonly reverse?: boolean;
  /**
   * How its derivative gets at the states of iterations: `"store-all"` keeps what it reads of each, the others hold some states
   * and compute the rest again. Without it the planner decides, from `memory` of `compile`.
   */
  readonly reversal?: Reversal;
  /** How many states `reversal` may hold; for `"periodic"` the number of pieces. */
  readonly snapshots?: number;
}

const SCAN: OptionKinds<ScanOptions> = {
  length: "a number",
  reverse: "a boolean",
  reversal: "a text",
  snapshots: "a number",
};

/** The part of a scan's attributes that says how it is reversed. */
function reversalOf(name: string, { reversal = "auto", snapshots = 0 }: ScanOptions) {
  if (!REVERSALS.includes(reversal)) {
    fail("InvalidArgument", `${name}: reversal is ${describe(reversal)}`, `give one of ${REVERSALS.join(", ")}`);
  }
  if (!Number.isInteger(snapshots) || snapshots < 0) {
    fail("InvalidArgument", `${name}: snapshots is ${snapshots}`, "the reverse holds a whole number ≥ 1 of states");
  }
  return { reversal, snapshots };
}

/** The number of rows that all stacks have, or the length that is given. */
function lengthOf(stacks: Flat, { length }: ScanOptions): number {
  stacks.leaves.forEach((leaf, i) => {
    const first = leaf.shape[0];
    const path = at(stacks.paths, i);
    if (first === undefined) fail("ShapeMismatch", `scan: ${path} is a scalar, it has no rows`, "pass it by closure");
    const wanted = length ?? at(stacks.leaves, 0).shape[0];
    if (first === wanted) return;
    const summary = `scan: ${path} is ${typeText(leaf)}, but there are ${wanted} iterations`;
    fail("ShapeMismatch", summary, "the first axis of every xs is the number of iterations");
  });
  const iterations = length ?? stacks.leaves[0]?.shape[0];
  if (iterations === undefined)
    fail("InvalidArgument", "scan: there are no xs and no length", "give one: { length: 100 }");
  return requireIterations("scan", "length", iterations);
}

function requireIterations(name: string, what: string, iterations: number): number {
  if (Number.isInteger(iterations) && iterations >= 0 && iterations <= MOST_ITERATIONS) return iterations;
  return fail("InvalidArgument", `${name}: ${what} is ${iterations}`, "the number of iterations is a whole number ≥ 0");
}

/**
 * A loop over the rows of tensors. `fn` gets the state, the row (of the structure of `xs`) and its number, and returns
 * the next state and what is to be stacked; the state keeps its structure and types. Returns the last state and the
 * stacks. For a loop without rows `xs` is null and `length` says how many iterations there are.
 *
 * @example
 * import { scan, tensor } from "tidemark";
 *
 * const [last, sums] = scan((s, x) => [s.add(x), s.add(x)], tensor(0), tensor([1, 2, 3]));
 * console.log(last.item(), sums.toArray()); // 6 [1, 3, 6]
 */
export function scan<S extends Tree = Tensor, X extends Tree | null = Tensor, Y extends Tree = Tensor>(
  fn: (state: S, row: X, i: Tensor) => readonly [S, Y],
  init: S,
  xs: X,
  options: ScanOptions = {},
): [S, Y] {
  requireFunction("scan", "its first argument", fn, "scan((state, x) => [state.add(x), state], init, xs)");
  requireOptions("scan", options, SCAN);
  return scanAs({ name: "scan", fn }, init, xs, options);
}

/** The body of a scan, and the function that it was given to. */
interface ScanBody<S, X, Y> {
  readonly name: string;
  readonly fn: (state: S, row: X, i: Tensor) => readonly [S, Y];
}

function scanAs<S extends Tree, X extends Tree | null, Y extends Tree>(
  { name, fn }: ScanBody<S, X, Y>,
  init: S,
  xs: X,
  options: ScanOptions,
): [S, Y] {
  const state = flatState(name, init);
  const stacks = flatten(xs ?? [], "xs");
  const length = lengthOf(stacks, options);
  const rows = rowParamsOf(stacks);
  const count = state.leaves.length;
  let made: Flat | undefined;
  const body = traceBody("body", paramsOf(state), rows, ([i, ...params]) => {
    const own = unflatten(state.def, params.slice(0, count)) as S;
    const row = (xs === null ? null : unflatten(stacks.def, params.slice(count))) as X;
    const pair: unknown = fn(own, row, i as Tensor);
    if (!Array.isArray(pair) || pair.length !== 2) {
      return fail("InvalidTree", `scan: the body returned ${describe(pair)}`, "return [state, y]; y may be []");
    }
    made = flatten(pair[1], "y", "result");
    return [...sameState(name, state, pair[0]), ...made.leaves];
  });
  const attrs = {
    carries: count,
    xs: rows.length,
    length,
    reverse: options.reverse ?? false,
    counted: false,
    ...reversalOf(name, options),
  };
  const captured = body.captures.map(({ tensor }) => tensor);
  const results = applyRegions(scanOp, [...state.leaves, ...stacks.leaves, ...captured], attrs, [body.graph]);
  const ys = unflatten((made as Flat).def, results.slice(count)) as Y;
  return [unflatten(state.def, results.slice(0, count)) as S, ys];
}

/**
 * `n` iterations of a function from the iteration's number (an i32 scalar) and the state to the next state. A number `n` is a
 * constant of the program; a tensor may differ from call to call.
 *
 * @example
 * import { forLoop, tensor } from "tidemark";
 *
 * console.log(forLoop(10, tensor(1), (i, x) => x.mul(2)).item()); // 1024
 */
export function forLoop<S extends Tree = Tensor>(
  n: number | Tensor,
  init: S,
  fn: (i: Tensor, state: S) => S,
  options: ForOptions = {},
): S {
  requireFunction("forLoop", "its last argument", fn, "forLoop(n, init, (i, state) => state.mul(2))");
  if (typeof n === "number") {
    requireIterations("forLoop", "n", n);
    const { maxSteps: _, ...how } = options;
    const body: ScanBody<S, null, Tree> = { name: "forLoop", fn: (state, _, i) => [fn(i, state), []] };
    return scanAs(body, init, null, { ...how, length: n })[0];
  }
  if (!(n instanceof Tensor) || !isIndexType(n.dtype) || n.rank > 0) {
    fail("InvalidArgument", `forLoop: n is ${describe(n)}`, "give a whole number, or an i32 scalar");
  }
  const { reversal: _, ...bounds } = options;
  // Counted by the state: the test sees nothing else.
  const start = sub(n, n);
  return whileLoop<readonly [Tensor, S]>(
    ([i]) => less(i, n),
    ([i, state]) => [add(i, 1), fn(i, state)],
    [start, init],
    bounds,
  )[1];
}

/** Options of {@link whileLoop}. */
export interface WhileOptions {
  /** The most iterations: the loop ends after as many whatever the test says. Its reverse then keeps what it needs of each. */
  readonly maxSteps?: number;
  /** Without maxSteps: how many states the reverse may hold at once; others are recomputed. Without it the planner
   * decides, from `memory` of `compile`. */
  readonly snapshots?: number;
}

/** `reversal` is for a number of iterations that is a constant, `maxSteps` for one that is not. */
export interface ForOptions extends WhileOptions, Pick<ScanOptions, "reversal"> {}

const WHILE: OptionKinds<WhileOptions> = { maxSteps: "a number", snapshots: "a number" };

/** A test's result as a bool scalar. */
function truth(name: string, made: unknown): Tensor {
  if (made instanceof Tensor && isBool(made.dtype) && made.rank === 0) return made;
  return fail(
    "InvalidArgument",
    `${name} is ${describe(made)}`,
    "give a bool scalar: x.less(1), or any(…) of a tensor",
  );
}

/**
 * A loop of as many iterations as a test of the state asks for. `fn` gets the state and the iteration's number. Derivatives
 * of any order are exact, also without a bound on the number of iterations: states that are not kept are recomputed.
 *
 * @throws InvalidArgument for a test or body that is no function, a test that gives no bool scalar, and options
 * that are none; InvalidTree, ShapeMismatch or DtypeMismatch where the body returns another structure or other
 * types than the state has
 *
 * @example
 * import { tensor, whileLoop } from "tidemark";
 *
 * const root = whileLoop((x) => x.mul(x).sub(2).abs().greater(1e-6), (x) => x.add(tensor(2).div(x)).div(2), tensor(1));
 * console.log(root.item().toFixed(4)); // 1.4142
 */
export function whileLoop<S extends Tree = Tensor>(
  test: (state: S) => Tensor,
  fn: (state: S, i: Tensor) => S,
  init: S,
  options: WhileOptions = {},
): S {
  requireOptions("whileLoop", options, WHILE);
  return whileInTurns(test, fn, init, options);
}

/** The same of a loop whose turns are known (ops/loops.ts). @internal */
export function whileInTurns<S extends Tree>(
  test: (state: S) => Tensor,
  fn: (state: S, i: Tensor) => S,
  init: S,
  { maxSteps, snapshots, turns = "" }: WhileOptions & { readonly turns?: string },
): S {
  const example = "whileLoop((state) => state.less(9), (state) => state.mul(2), init)";
  requireFunction("whileLoop", "the test", test, example);
  requireFunction("whileLoop", "the body", fn, example);
  if (maxSteps !== undefined) requireIterations("whileLoop", "maxSteps", maxSteps);
  if (snapshots !== undefined && (!Number.isInteger(snapshots) || snapshots < 1)) {
    fail("InvalidArgument", `whileLoop: snapshots is ${snapshots}`, "the reverse holds a whole number ≥ 1 of states");
  }
  const state = flatState("whileLoop", init);
  if (maxSteps === 0) return unflatten(state.def, state.leaves.map(ownCopy)) as S;
  const own = (params: readonly Tensor[]): S => unflatten(state.def, params) as S;
  const holds = traceGraph("test", paramsOf(state), (params) => [
    truth("whileLoop: the test's result", test(own(params))),
  ]);
  const body = traceBody("body", paramsOf(state), [], ([i, ...params]) =>
    sameState("whileLoop", state, fn(own(params), i as Tensor)),
  );
  const { regions, captured } = closed([holds, body]);
  const attrs = { carries: state.leaves.length, length: maxSteps ?? 0, checkpoints: snapshots ?? 0, turns };
  const results = applyRegions(whileOp, [...state.leaves, ...captured], attrs, regions);
  return own(results.slice(0, state.leaves.length));
}

type Branch<Args extends readonly Tree[], R extends Tree> = (...operands: Args) => R;

/** Branches of one structure and of one type for each leaf. */
function requireAgreement(name: string, [a, b]: readonly [string, string], first: Flat, other: Flat): void {
  const shapes = [first, other].map(({ def }) => treeKey(def).replaceAll("*", "tensor"));
  if (shapes[0] !== shapes[1]) {
    const summary = `${name}: ${a} returns ${shapes[0]}, ${b} ${shapes[1]}`;
    fail("InvalidTree", summary, "all branches must return the same structure");
  }
  other.leaves.forEach((leaf, i) => {
    const wanted = tensorTypeOf(at(first.leaves, i));
    const got = isPlaced(leaf, wanted.dtype) ? wanted.dtype : leaf.dtype;
    if (sameType({ ...tensorTypeOf(leaf), dtype: got }, wanted)) return;
    const path = at(first.paths, i);
    const summary = `${name}: ${a} returns ${typeText(wanted)} for ${path}, ${b} ${typeText(leaf)}`;
    fail(mismatch(leaf, wanted), summary, "all branches must return the same types: cast or reshape one of them");
  });
}

function branchOn<Args extends readonly Tree[], R extends Tree>(
  name: string,
  index: Tensor,
  branches: ReadonlyMap<string, Branch<Args, R>>,
  operands: Args,
): R {
  const names = [...branches.keys()];
  const flat = flatten(operands, "operands");
  let first: Flat | undefined;
  const traced = [...branches].map(([called, branch]) =>
    traceGraph(called.replace(" ", ""), paramsOf(flat), (params) => {
      const made = flatten(branch(...(unflatten(flat.def, params) as Args)), "result", "result");
      if (first) requireAgreement(name, [at(names, 0), called], first, made);
      first ??= made;
      return made.leaves;
    }),
  );
  const { regions, captured } = closed(inMetTypes(traced));
  const results = applyRegions(switchOp, [index, ...flat.leaves, ...captured], {}, regions);
  return unflatten((first as unknown as Flat).def as TreeDef, results) as R;
}

/**
 * One of two functions of the operands, chosen by a bool scalar when the program runs; only that one runs. Both return
 * the same structure and types.
 *
 * @example
 * import { cond, tensor } from "tidemark";
 *
 * const x = tensor(-3);
 * console.log(cond(x.less(0), (v) => v.neg(), (v) => v, x).item()); // 3
 */
export function cond<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  predicate: Tensor,
  ifTrue: (...operands: Args) => R,
  ifFalse: (...operands: Args) => R,
  ...operands: Args
): R {
  const example = "cond(x.sum().less(0), (v) => v.neg(), (v) => v, x)";
  requireFunction("cond", "ifTrue", ifTrue, example);
  requireFunction("cond", "ifFalse", ifFalse, example);
  // In the order of the index: false is 0.
  const branches = new Map([
    ["ifFalse", ifFalse],
    ["ifTrue", ifTrue],
  ]);
  return branchOn("cond", truth("cond: the predicate", predicate), branches, operands);
}

/**
 * One of several functions of the operands, chosen by an i32 scalar when the program runs; a number beyond the functions
 * counts as the nearest. All return the same structure and types.
 *
 * @example
 * import { switchCase, tensor } from "tidemark";
 *
 * const k = tensor(1, { dtype: "i32" });
 * console.log(switchCase(k, [(x) => x.neg(), (x) => x.square(), (x) => x], tensor(3)).item()); // 9
 */
export function switchCase<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  index: Tensor,
  branches: readonly ((...operands: Args) => R)[],
  ...operands: Args
): R {
  if (!Array.isArray(branches) || branches.length === 0) {
    fail("InvalidArgument", `switchCase: the branches are ${describe(branches)}`, "give a list of functions");
  }
  const example = "switchCase(k, [(x) => x.neg(), (x) => x], x)";
  for (const [n, branch] of branches.entries()) requireFunction("switchCase", `branch ${n}`, branch, example);
  if (!(index instanceof Tensor) || !isIndexType(index.dtype) || index.rank > 0) {
    fail("InvalidArgument", `switchCase: the index is ${describe(index)}`, "give an i32 scalar");
  }
  return branchOn("switchCase", index, new Map(branches.map((branch, n) => [`branch ${n}`, branch])), operands);
}
