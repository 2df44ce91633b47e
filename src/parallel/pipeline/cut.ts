/**
 * @file A stage of a pipeline as the parts that are done at different times: its graph and the reverse of that, cut where they are apart.
 *
 *   forward    own, x             → y, and what the others read       one graph, as reverse mode makes it:
 *   backward   own, kept, dy      → dx, and gradients of own              x ─ F ─ y
 *   weights    own, late, between → gradients of own, where apart             └ kept ─ B ─ dx ─ … between … ─ W ─ d_own
 *
 * Nothing is computed twice but views, constants and what weights alone give, which is not stored for each microbatch.
 */
import { applyGraph } from "../../api/apply.ts";
import { activeParams, type Bound, bind, requireFloatLeaves } from "../../api/grad.ts";
import { splitGraph } from "../../autodiff/split.ts";
import { vjp } from "../../autodiff/vjp.ts";
import { at } from "../../base/invariant.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { type TensorType, tensorType, typeText } from "../../ir/type.ts";
import { withLiveNodes } from "../../ir/walk.ts";
import { fail } from "../../trace/arguments.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Tree } from "../../trace/tree.ts";

type Tensors = readonly Tensor[];

/** Functions of leaves of a device's own parameters. */
export interface CutStage {
  /** Gradients of weights are a part of their own, even where they need nothing of the others. */
  readonly apart: boolean;
  readonly kept: readonly TensorType[];
  readonly late: readonly TensorType[];
  readonly between: readonly TensorType[];
  forward(own: Tensors, x: Tensor): { readonly y: Tensor; readonly kept: Tensors; readonly late: Tensors };
  /** Gradients are none where weights are apart. */
  backward(
    own: Tensors,
    stored: { readonly kept: Tensors; readonly late: Tensors },
    dy: Tensor,
  ): {
    readonly dx: Tensor;
    readonly between: Tensors;
    readonly grads: Tensors;
  };
  weights(own: Tensors, stored: { readonly late: Tensors; readonly between: Tensors }): Tensors;
}

const typesOf = (values: readonly Value[]): readonly TensorType[] => values.map(({ type }) => type);
const outputsOf = (nodes: readonly Node[]): readonly Value[] => nodes.flatMap(({ outputs }) => outputs);
const readBy = ({ nodes, results }: Graph): ReadonlySet<Value> =>
  new Set([...nodes.flatMap(({ inputs }) => inputs), ...results]);

/** Values that are computed from some others alone, and those. */
function closure(nodes: readonly Node[], from: readonly Value[]): ReadonlySet<Value> {
  const found = new Set(from);
  for (const { inputs, outputs } of nodes) {
    if (inputs.every((value) => found.has(value))) for (const value of outputs) found.add(value);
  }
  return found;
}

function requireSameType({ traced }: Bound, x: Tensor): void {
  const plain = ({ dtype, shape }: { dtype: TensorType["dtype"]; shape: TensorType["shape"] }): string =>
    typeText(tensorType(dtype, shape));
  const [wanted, got] = [plain(x), traced.graph.results.map(({ type }) => plain(type)).join(", ")];
  if (traced.resultTree.kind === "tensor" && got === wanted) return;
  const help = "all stages of a pipeline take and give one tensor of the same type";
  fail("ShapeMismatch", `pipeline: a stage gives ${got || "nothing"} for x: ${wanted}`, help);
}

/** Graphs of the parts, and the values that one leaves for another. */
interface Cut {
  readonly stored: readonly Value[];
  readonly kept: readonly Value[];
  readonly late: readonly Value[];
  readonly between: readonly Value[];
  readonly forward: Graph;
  readonly backward: Graph;
  readonly weights: Graph;
}

/** Cuts the graph of a stage with its reverse: parameters are `count` of its own, x, what it closes over, and the cotangent of y. */
function cutJoint(joint: Graph, count: number, apart: boolean): Cut {
  const [y, slopes, ct] = [at(joint.results, 0), joint.results.slice(1), at(joint.params, joint.params.length - 1)];
  const [dOwn, dx] = [slopes.slice(0, -1), at(slopes, slopes.length - 1)];
  const isGiven = joint.params.map((param) => param !== ct);
  const { known, rest, isKnown, residuals } = splitGraph(joint, isGiven, slopes);
  const always = [...joint.params.slice(0, count), ...joint.params.slice(count + 1, -1)];
  const alike = closure(known, always);
  const shared = known.filter(({ outputs }) => outputs.every((value) => alike.has(value)));
  const read = new Set([...residuals, ...slopes.filter((value) => isKnown.has(value))]);
  const stored = [...read].filter((value) => !alike.has(value));
  const all = { ...joint, params: [...always, ...stored, ct], nodes: [...shared, ...rest] };
  const first = { ...joint, params: [...always, at(joint.params, count)], nodes: known, results: [y, ...stored] };
  const forward = withLiveNodes(first);
  if (!apart) {
    const backward = withLiveNodes({ ...all, results: [dx, ...dOwn] });
    return {
      stored,
      kept: stored,
      late: [],
      between: [],
      forward,
      backward,
      weights: { ...all, nodes: [], results: [] },
    };
  }
  // what dx needs of its cotangent is done before the weights
  const again = closure(all.nodes, [...always, ...stored]);
  const forX = withLiveNodes({ ...all, results: [dx] });
  const before = new Set(outputsOf(forX.nodes).filter((value) => !again.has(value)));
  const others = all.nodes.filter(({ outputs }) => !outputs.some((value) => before.has(value)));
  const forWeights = withLiveNodes({ ...all, nodes: others, results: dOwn });
  const isRead = readBy(forWeights);
  const between = [...before, ct].filter((value) => isRead.has(value));
  const late = stored.filter((value) => isRead.has(value));
  const kept = stored.filter((value) => !isRead.has(value));
  const backward = { ...all, params: [...always, ...kept, ...late, ct], results: [dx, ...between] };
  const weights = { ...forWeights, params: [...always, ...late, ...between] };
  return { stored, kept, late, between, forward, backward: withLiveNodes(backward), weights };
}

/** The parts of `stage(own, x)`; `apart`: gradients of weights are a part of their own. */
export function cutStage(stage: (own: Tree, x: Tensor) => Tensor, own: Tree, x: Tensor, apart: boolean): CutStage {
  const bound = bind(stage as never, [own, x]);
  requireFloatLeaves("pipeline", bound, [0, 1]);
  requireSameType(bound, x);
  const { graph, leaves } = bound.traced;
  const joint = vjp(graph, activeParams(bound, [0, 1]), ["param"]);
  const captures = bound.inputs.slice(leaves.length);
  const cut = cutJoint(joint, leaves.length - 1, apart);
  const { kept, late, between } = cut;
  return {
    apart,
    ...{ kept: typesOf(kept), late: typesOf(late), between: typesOf(between) },
    forward(leavesOf, given) {
      const [made, ...values] = applyGraph(cut.forward, [...leavesOf, ...captures, given]);
      const storedOf = (value: Value): Tensor => at(values, cut.stored.indexOf(value));
      return { y: made as Tensor, kept: kept.map(storedOf), late: late.map(storedOf) };
    },
    backward(leavesOf, given, dy) {
      const inputs = [...leavesOf, ...captures, ...given.kept, ...given.late, dy];
      const [made, ...others] = applyGraph(cut.backward, inputs);
      return { dx: made as Tensor, between: apart ? others : [], grads: apart ? [] : others };
    },
    weights: (leavesOf, given) => applyGraph(cut.weights, [...leavesOf, ...captures, ...given.late, ...given.between]),
  };
}
