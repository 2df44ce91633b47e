/**
 * @file Where every operation of the API meets a graph: inside a trace it becomes nodes; outside it runs at once, through
 * a program of that one operation which is kept for the next call with the same types and attributes.
 */
import { withLocation } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { Recent } from "../base/recent.ts";
import { attrsKey } from "../ir/attrs.ts";
import { Build } from "../ir/build.ts";
import type { Graph } from "../ir/graph.ts";
import { structuralKey } from "../ir/hash.ts";
import type { AnyOp, Attrs, OpDef } from "../ir/op.ts";
import { sameShape, type TensorType, tensorType } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { castTo } from "../ops/select.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace, requireActive, type TracedGraph } from "../trace/trace.ts";
import { agreed } from "../trace/weak.ts";
import { autocastMode, isConverted, isPlaced, metType, typeFor } from "./autocast-mode.ts";
import { runConcrete } from "./execute.ts";
import { runInPool } from "./operation-pool.ts";

/** The programs of one operation by types and attributes; compiling again would give the same. */
interface Known {
  readonly programs: Recent<string, TracedGraph>;
  /** The one that ran last, which most often runs again; its operation has no attributes. */
  last: TracedGraph | null;
}

const operations = new WeakMap<AnyOp, Known>();
/** Keys of compiled graphs (execute.ts), by structure. */
const programs = new Recent<string, object>(256);

/** Not `typeText`: looking up what tensors do not have is slow (method-hints.ts). */
const typeKey = ({ dtype, shape }: Tensor): string => `${dtype}[${shape.join()}]`;

function isFor({ graph }: TracedGraph, inputs: readonly Tensor[]): boolean {
  const { params } = graph;
  return (
    params.length === inputs.length &&
    inputs.every(({ dtype, shape }, i) => {
      const { type } = at(params, i);
      return type.dtype === dtype && sameShape(type.shape, shape);
    })
  );
}

function isEmpty(attrs: object): boolean {
  for (const _ in attrs) return false;
  return true;
}

function programOf<A>(op: OpDef<A>, inputs: readonly Tensor[], attrs: NoInfer<A>): TracedGraph {
  let known = operations.get(op as AnyOp);
  if (!known) {
    known = { programs: new Recent(64), last: null };
    operations.set(op as AnyOp, known);
  }
  const isPlain = isEmpty(attrs as object);
  if (isPlain && known.last && isFor(known.last, inputs)) return known.last;
  const key = `${inputs.map(typeKey).join()}{${attrsKey(op as AnyOp, attrs as Attrs)}}`;
  const program = known.programs.get(key, () => {
    const b = new Build(op.name);
    const params = inputs.map((x) => b.param(tensorType(x.dtype, x.shape)));
    return { graph: b.finish(b.callAll(op, params, attrs)), captures: [] };
  });
  known.last = isPlain ? program : null;
  return program;
}

/** The same elements in a tensor of its own; outside of traces, where nothing changes, the tensor itself. */
export function ownCopy(x: Tensor): Tensor {
  const trace = currentTrace();
  return trace ? trace.separate(trace.copy(x)) : x;
}

const inType = (x: Tensor, dtype: DType): Tensor => at(applyAll(castTo(x.dtype, dtype), [x], { dtype }), 0);

/** Under `autocast`, a tensor in the type that its place has. */
export const placed = (x: Tensor, { dtype }: Pick<TensorType, "dtype">): Tensor =>
  isPlaced(x, dtype) ? inType(x, dtype) : x;

/** Inputs in the types that automatic casts give them. */
function cast(op: AnyOp, inputs: readonly Tensor[]): readonly Tensor[] {
  const mode = autocastMode();
  const type = mode && typeFor(op, inputs, mode);
  return type ? inputs.map((x) => (isConverted(x, type) ? inType(x, type) : x)) : inputs;
}

/** Tensors that meet in an operation on elements, in one float type where they may be converted. */
export function metTensors(given: readonly Tensor[]): readonly Tensor[] {
  const [mode, tensors] = [autocastMode(), agreed(given)];
  const type = mode && metType(tensors, mode);
  return type ? tensors.map((x) => (isConverted(x, type) ? inType(x, type) : x)) : tensors;
}

/** Applies an operation with one result. */
export function applyOp<A>(op: OpDef<A>, given: readonly Tensor[], attrs: NoInfer<A>): Tensor {
  return at(applyAll(op, given, attrs), 0);
}

/** Applies an operation: all of its results. */
export function applyAll<A>(op: OpDef<A>, given: readonly Tensor[], attrs: NoInfer<A>): readonly Tensor[] {
  const trace = currentTrace();
  const inputs = cast(op as AnyOp, agreed(given));
  if (trace) return trace.record(op, inputs, attrs);
  inputs.forEach(requireActive);
  try {
    const program = programOf(op, inputs, attrs);
    return runInPool(program, program.graph, inputs) ?? runConcrete(program, program, inputs);
  } catch (error) {
    throw withLocation(error, sourceLocation());
  }
}

/** Applies a graph to one tensor for each of its parameters: inlined in a trace, run at once outside. */
export function applyGraph(
  graph: Graph,
  inputs: readonly Tensor[],
  use: "once" | "again" = "again",
): readonly Tensor[] {
  const trace = currentTrace();
  if (trace) return trace.inline(graph, inputs, use);
  inputs.forEach(requireActive);
  const key = programs.get(structuralKey(graph), () => ({}));
  return runConcrete(key, { graph, captures: [] }, inputs);
}
