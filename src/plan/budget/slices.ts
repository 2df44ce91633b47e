/**
 * @file The recomputation problem of a planned program. After fusion a kernel may store several values and hides others;
 * to recompute one value, not the kernel but a *slice* is needed: the nodes between stored values and it.
 *
 * ```
 *   kernel of forward      x ──matmul── t ──add── h ──gelu── g          stored: h, g      hidden: t
 *   slice of h             x ──matmul── t ──add── h                     a product
 *   slice of g                                    h ──gelu── g          free, as long as h is kept
 * ```
 *
 * So an operation of the problem is the slice of one node that stores its result, in the order that the plan runs kernels
 * in. What the plan knows better than a sum of values (values in place of others, workspace, what persists) corrects the
 * bytes, so that without recomputation the problem's bytes at every operation are those of the plan.
 */

import { at } from "../../base/invariant.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { nodeLike } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { producersOf } from "../../ir/walk.ts";
import { fused } from "../../ops/control.ts";
import { msOf, type Work } from "../../target/work.ts";
import type { NodeCosts } from "../cost/model.ts";
import { alignUp, type Plan } from "../problem.ts";
import { leastBytes, type RecomputeOp, type RecomputeProblem } from "../recompute/problem.ts";

/** The nodes that recompute one stored node. */
export interface Slice {
  /** In the graph's order; the last one makes the stored values. */
  readonly nodes: readonly Node[];
  /** The step of the plan that stores it. */
  readonly step: number;
}

export interface SlicedProgram {
  /** The most that one operation's operands and workspace take, and what persists: no plan of these slices is smaller. */
  readonly floorBytes: number;
  readonly persistentBytes: number;
  /** Before fusion: every slice's nodes are its. */
  readonly graph: Graph;
  readonly problem: RecomputeProblem;
  /** Per operation of the problem. */
  readonly slices: readonly Slice[];
  /** The stored value of each number in the problem, and the reverse. */
  readonly values: readonly Value[];
  readonly numberOf: ReadonlyMap<Value, number>;
}

/** Cuts a graph at what the plan of its fused form stores. */
export function sliceProgram(graph: Graph, plan: Plan, costs: NodeCosts): SlicedProgram {
  const slices = slicesOf(graph, plan);
  const values = slices.flatMap(({ nodes }) => at(nodes, nodes.length - 1).outputs);
  const numberOf = new Map(values.map((value, i) => [value, i]));
  const bytes = values.map((value) => bytesIn(plan, value));
  const ops = slices.map((slice, id): RecomputeOp => ({ id, ...opOf(slice, plan, numberOf, costs) }));
  const rootOf = roots(plan);
  const results = new Set(graph.results.flatMap((value) => numberOf.get(rootOf(value)) ?? []));
  const bare = { name: graph.name, ops, bytes, results: [...results], pinnedBytes: [] };
  const problem = corrected(bare, slices, plan);
  const persistent = persistentBytes(plan);
  const floorBytes = Math.min(
    leastBytes({ ...problem, pinnedBytes: problem.pinnedBytes.map(() => persistent) }),
    plan.height,
  );
  return { graph, problem, floorBytes, persistentBytes: persistent, slices, values, numberOf };
}

/** Persistent storage is there whether a value is in it or not. */
function bytesIn(plan: Plan, value: Value): number {
  const id = plan.bufferOf.get(value);
  if (id !== undefined && at(plan.problem.buffers, id).kind === "persistent") return 0;
  return alignUp(byteLength(value.type), plan.problem.spaces[0].alignment);
}

/** What a renamed value is a name of. */
function roots({ program }: Plan): (value: Value) => Value {
  const renamed = new Map(program.steps.flatMap(({ alias }) => (alias ? [[alias[1], alias[0]] as const] : [])));
  return (value) => {
    let root = value;
    for (let next = renamed.get(root); next; next = renamed.get(root)) root = next;
    return root;
  };
}

function slicesOf(graph: Graph, plan: Plan): readonly Slice[] {
  const producer = producersOf(graph);
  const position = new Map(graph.nodes.map((node, i) => [node, i]));
  const stored = new Set(plan.program.steps.flatMap(({ writes, alias }) => (alias ? [] : writes)));
  const place = (node: Node): number => position.get(node) ?? 0;
  const slice = (last: Node): readonly Node[] => {
    const nodes = new Set<Node>([last]);
    const visit = (node: Node): void => {
      for (const value of node.inputs) {
        const maker = stored.has(value) ? undefined : producer.get(value);
        if (!maker || nodes.has(maker)) continue;
        nodes.add(maker);
        visit(maker);
      }
    };
    visit(last);
    return [...nodes].sort((a, b) => place(a) - place(b));
  };
  return plan.program.steps.flatMap(({ writes, alias }, step) => {
    const makers = new Set(alias ? [] : writes.flatMap((value) => producer.get(value) ?? []));
    return [...makers].sort((a, b) => place(a) - place(b)).map((node) => ({ nodes: slice(node), step }));
  });
}

function opOf(
  { nodes, step }: Slice,
  plan: Plan,
  numberOf: ReadonlyMap<Value, number>,
  costs: NodeCosts,
): Omit<RecomputeOp, "id"> {
  const last = at(nodes, nodes.length - 1);
  const inner = new Set(nodes.flatMap((node) => node.outputs));
  const inputs = new Set(nodes.flatMap((node) => node.inputs.filter((value) => !inner.has(value))));
  const numbers = [...inputs].flatMap((value) => numberOf.get(value) ?? []);
  const isMap = nodes.every((node) => node.op.lower.kind === "map");
  // A kernel's workspace is its anchor's; maps have none.
  const scratchBytes = isMap ? 0 : scratchOf(plan, step);
  return {
    name: last.outputs[0]?.name ?? last.op.name,
    cost: msOf(workOfSlice(nodes, [...inputs], isMap, costs), costs.rates),
    inputs: numbers,
    outputs: last.outputs.flatMap((value) => numberOf.get(value) ?? []),
    scratchBytes,
    once: last.phase === "update",
    backward: last.phase !== "forward",
    scope: last.scope,
  };
}

function scratchOf(plan: Plan, step: number): number {
  return at(plan.scratch, step).reduce(
    (sum, id) => sum + alignUp(at(plan.problem.buffers, id).bytes, plan.problem.spaces[0].alignment),
    0,
  );
}

/**
 * What the slice takes as one kernel. A slice of maps alone is computed inside its reader more often than not: nothing is
 * launched for it and its result is not written.
 */
function workOfSlice(nodes: readonly Node[], inputs: readonly Value[], isMap: boolean, costs: NodeCosts): Work {
  const last = at(nodes, nodes.length - 1);
  const region: Graph = { name: last.op.name, params: inputs, nodes, results: last.outputs };
  const node = nodes.length === 1 ? last : nodeLike(last, { op: fused, inputs, attrs: {}, regions: [region] });
  const work = costs.workOf(node);
  if (!isMap) return work;
  const written = last.outputs.reduce((sum, value) => sum + byteLength(value.type), 0);
  return { ...work, bytes: Math.max(0, work.bytes - written), calls: 0 };
}

/**
 * The problem with the plan's own count of bytes. Where an operation needs less than the sum of what is live, it works in
 * place: that is the operation's (`scratchBytes`, below zero), whenever it runs. What it needs more (inputs, values that
 * the same kernel stores) is the moment's (`pinnedBytes`).
 */
function corrected(problem: RecomputeProblem, slices: readonly Slice[], plan: Plan): RecomputeProblem {
  const planned = liveBytes(plan);
  const persistent = persistentBytes(plan);
  const counted = countedBytes(problem);
  const pinnedBytes: number[] = [];
  const ops = problem.ops.map((op, k) => {
    const more = at(planned, at(slices, k).step) - persistent - at(counted, k);
    pinnedBytes.push(persistent + Math.max(0, more));
    return more >= 0 ? op : { ...op, scratchBytes: (op.scratchBytes ?? 0) + more };
  });
  return { ...problem, ops, pinnedBytes: [...pinnedBytes, persistent] };
}

function persistentBytes({ problem }: Plan): number {
  const kept = problem.buffers.filter((buffer) => buffer.kind === "persistent");
  return kept.reduce((sum, { bytes }) => sum + alignUp(bytes, problem.spaces[0].alignment), 0);
}

/** Bytes of all buffers live at each step of a plan. */
export function liveBytes(plan: Plan): Float64Array {
  const steps = plan.program.steps.length + 1;
  const live = new Float64Array(steps + 1);
  for (const { lifespan, bytes } of plan.problem.buffers) {
    const whole = alignUp(bytes, plan.problem.spaces[0].alignment);
    live[lifespan.start] = at(live, lifespan.start) + whole;
    live[lifespan.end] = at(live, lifespan.end) - whole;
  }
  for (let step = 1; step < steps; step++) live[step] = at(live, step) + at(live, step - 1);
  return live;
}

/** Bytes of values and workspace while each operation runs for the first and only time. */
function countedBytes({ ops, bytes, results }: RecomputeProblem): Float64Array {
  const change = new Float64Array(ops.length + 1);
  const lastUse = new Map<number, number>();
  ops.forEach((op, k) => {
    for (const value of [...op.inputs, ...op.outputs]) lastUse.set(value, k);
  });
  for (const value of results) lastUse.set(value, ops.length);
  ops.forEach((op, k) => {
    for (const value of op.outputs) {
      change[k] = at(change, k) + at(bytes, value);
      const after = (lastUse.get(value) ?? k) + 1;
      if (after <= ops.length) change[after] = at(change, after) - at(bytes, value);
    }
  });
  for (let k = 1; k <= ops.length; k++) change[k] = at(change, k) + at(change, k - 1);
  ops.forEach((op, k) => {
    change[k] = at(change, k) + (op.scratchBytes ?? 0);
  });
  return change;
}
