/**
 * @file The graphs that run a loop from the host, one call a step. They are extracted from a loop of two iterations and
 * its reverse, as autodiff connects the two (autodiff/vjp-loops.ts), so that a step has the same bits as inside a
 * `scan`, and sums of constants' cotangents continue from iteration to iteration in the same order:
 *
 * ```
 *   advance   i, x, k → x'                        the body of the loop
 *   tape      i, x, k → x', r                     the same, which also returns the values that the reverse reads
 *   reverse   i, a', r, k → a                     a: cotangents of x, sums for k, other carries of the reverse
 *   loss      x, k → value, d_x, d_k              with all cotangents of floats
 * ```
 *
 * Captured values are constants without a derivative.
 */
import { scan } from "../api/control.ts";
import { reached } from "../autodiff/activity.ts";
import { vjp } from "../autodiff/vjp.ts";
import { TidemarkError } from "../base/errors.ts";
import { at, invariant } from "../base/invariant.ts";
import type { Loop } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { scanLoop } from "../ops/loops.ts";
import { fail } from "../trace/arguments.ts";
import { type AnyFunction, flattenArguments, type Traced, traceFlat, traceFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { leafCount, type Tree } from "../trace/tree.ts";

/** A graph whose last parameters are constants, with the tensor bound to each. */
export interface BoundGraph {
  readonly graph: Graph;
  readonly constants: readonly Tensor[];
}

/**
 * The meaning of a part of the reverse's state: the cotangent of a leaf of the state, a constant's sum, or x' itself.
 */
export type AdjointRole =
  | { readonly kind: "cotangent"; readonly leaf: number }
  | { readonly kind: "sum"; readonly constant: number }
  | { readonly kind: "state"; readonly leaf: number };

export interface ReverseGraphs {
  readonly tape: BoundGraph;
  /** Parameters: i, the adjoint, the tape, constants. */
  readonly reverse: BoundGraph;
  readonly adjoint: readonly AdjointRole[];
  /** Results of `tape` that the reverse reads, in the order in which it takes them. */
  readonly residuals: readonly number[];
}

export interface LossGraph {
  /** Results: the value, then cotangents of the floats among state and constants. */
  readonly bound: BoundGraph;
  /** By leaf of the constants: whether the loss depends on it. */
  readonly reaches: readonly boolean[];
}

/** A traced step with the leaves of its arguments. */
export interface TracedStep {
  readonly traced: Traced;
  /** Leaves of the state first, then those of constants, then captured tensors. */
  readonly inputs: readonly Tensor[];
  readonly states: number;
  readonly constants: number;
}

type Step = (state: Tree, i: Tensor, ...constants: readonly Tree[]) => Tree;

/** Rewrites errors about the generated loop as errors about the user's step. */
function asStep<T>(name: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof TidemarkError) || !error.summary.startsWith("scan: ")) throw error;
    const summary = error.summary.replace("scan: the body", `${name}: step`).replace(/^scan:/, `${name}:`);
    throw new TidemarkError(error.code, summary, { where: error.where, help: error.help });
  }
}

/** Traces the loop; the state has tensors alone. `name`: whose step it is, for errors. */
export function traceStep(step: Step, state: Tree, constants: readonly Tree[], name = "longRun"): TracedStep {
  const loop = (first: Tree, ...rest: readonly Tree[]): Tree =>
    scan<Tree, null, Tree>((now, _, i) => [step(now, i, ...rest), []], first, null, { length: 2 })[0];
  const flat = flattenArguments(loop as AnyFunction, [state, ...constants]);
  const traced = asStep(name, () => traceFlat(loop as AnyFunction, flat));
  const inputs = [...flat.tensors, ...traced.captures.map(({ tensor }) => tensor)];
  const states = leafCount(at(traced.argTrees, 0));
  return { traced, inputs, states, constants: traced.leaves.length - states };
}

/** The loop node of a graph, or the two of a graph with its reverse. */
const loopsIn = (graph: Graph): readonly Node[] => graph.nodes.filter((node) => node.regions.length > 0);

function boundBody({ body, consts }: Loop, graph: Graph, inputs: readonly Tensor[]): BoundGraph {
  const constants = consts.map((value) => {
    const place = graph.params.indexOf(value);
    invariant(place >= 0, () => `constant ${value.name ?? value.id} of a loop is no parameter`);
    return at(inputs, place);
  });
  return { graph: body, constants };
}

/** The step alone. */
export function advanceGraph({ traced, inputs }: TracedStep): BoundGraph {
  return boundBody(scanLoop(at(loopsIn(traced.graph), 0)), traced.graph, inputs);
}

/** The step and its reverse. */
export function reverseGraphs(step: TracedStep): ReverseGraphs {
  const { traced, inputs, states, constants } = step;
  const leaves = states + constants;
  const joint = vjp(
    traced.graph,
    traced.graph.params.map((_, i) => i < leaves),
  );
  const [forward, backward] = loopsIn(joint);
  if (!forward || !backward) {
    const help = "nothing that the loss depends on is a float that comes from the state or a constant";
    return fail("NotDifferentiable", "longRun: no result of step depends on its arguments", help);
  }
  const [before, after] = [scanLoop(forward), scanLoop(backward)];
  const residuals = after.xs.map((value) => states + before.ys.indexOf(value));
  invariant(
    residuals.every((place) => place >= states),
    () => "the reverse of a step reads what the step does not leave",
  );
  return {
    tape: boundBody(before, joint, inputs),
    reverse: boundBody(after, joint, inputs),
    adjoint: rolesOf(step, joint, before, after),
    residuals,
  };
}

/** Roles of the reverse's state by initial value: a seed, the last state, or zero (a sum). */
function rolesOf(
  { traced, states, constants }: TracedStep,
  joint: Graph,
  before: Loop,
  after: Loop,
): readonly AdjointRole[] {
  const floats = (values: readonly Value[]): readonly number[] =>
    values.flatMap(({ type }, i) => (isFloat(type.dtype) ? [i] : []));
  const seeded = floats(traced.graph.results);
  const seeds = joint.params.slice(traced.graph.params.length);
  const active = floats(traced.graph.params.slice(0, states + constants));
  const cotangents = joint.results.slice(traced.graph.results.length);
  return after.carries.map((value, k): AdjointRole => {
    const seed = seeds.indexOf(value);
    if (seed >= 0) return { kind: "cotangent", leaf: at(seeded, seed) };
    const last = before.last.indexOf(value);
    if (last >= 0) return { kind: "state", leaf: last };
    const place = cotangents.indexOf(at(after.last, k));
    invariant(place >= 0, () => `part ${k} of the reverse's state has no place among the cotangents`);
    const param = at(active, place);
    if (param < states) return { kind: "cotangent", leaf: param };
    return { kind: "sum", constant: param - states };
  });
}

/** The loss and its cotangents. */
export function lossGraph(loss: AnyFunction, state: Tree, constants: readonly Tree[]): LossGraph {
  const traced = traceFunction(loss, [state, ...constants]);
  const { graph, resultTree, leaves, captures } = traced;
  const type = graph.results[0]?.type;
  if (resultTree.kind !== "tensor" || !type || type.shape.length > 0 || !isFloat(type.dtype)) {
    const got = resultTree.kind === "tensor" && type ? typeText(type) : `an ${resultTree.kind}`;
    fail("ShapeMismatch", `longRun: the loss must be a float scalar, got ${got}`, "reduce it with sum() or mean()");
  }
  const states = leaves.filter((leaf) => leaf.argument === 0).length;
  const only = (n: number): readonly boolean[] => graph.params.map((_, i) => i === n);
  const reaches = leaves.slice(states).map((_, k) => reached(graph, only(states + k))[0] ?? false);
  const joint = vjp(
    graph,
    graph.params.map((_, i) => i < leaves.length),
    ["one"],
  );
  return { bound: { graph: joint, constants: captures.map(({ tensor }) => tensor) }, reaches };
}
