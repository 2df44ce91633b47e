/**
 * @file Another order for a sequence: each execution is a step of its own that reads what particular earlier ones wrote, and
 * those steps are ordered for the lowest peak (../order.ts), as a program's are.
 *
 * ```
 *   sequence   a  b  c  a  d        steps   a₁ b c a₂ d       b and c read a₁, d reads a₂ and c
 * ```
 *
 * Everything about sequences here counts on operations being numbered by their first executions. So another order goes with
 * a problem that has its operations in that order.
 */
import { at } from "../base/invariant.ts";
import { inverse, makeLists } from "../plan/order/lists.ts";
import type { Model } from "../plan/order/model.ts";
import { findOrders } from "../plan/order.ts";
import type { RecomputeProblem, Sequence } from "../plan/recompute/problem.ts";

/** Steps that the search for an order may run: a tenth of a second. */
const WORK = 1e6;

/** A problem with its operations in the order in which a sequence executes them first. */
export interface Numbered {
  readonly problem: RecomputeProblem;
  readonly sequence: Sequence;
  /** What operation k of `problem` is in the problem that it was made of. */
  readonly given: readonly number[];
}

/** Whether constants are there from the start: where they appear on the way, they do so in the given order. */
export function hasFreeOrder({ pinnedBytes }: RecomputeProblem): boolean {
  return pinnedBytes.every((bytes) => bytes === pinnedBytes[0]);
}

/** `given` tells what the operations of `problem` were before, if it was renumbered already. */
export function renumbered(problem: RecomputeProblem, sequence: Sequence, given?: readonly number[]): Numbered {
  const number = new Map<number, number>();
  for (const op of sequence) if (!number.has(op)) number.set(op, number.size);
  const order = [...number.keys()];
  return {
    problem: { ...problem, ops: order.map((op) => at(problem.ops, op)) },
    sequence: sequence.map((op) => number.get(op) as number),
    given: given ? order.map((op) => at(given, op)) : order,
  };
}

/** The same executions in the order with the lowest peak that is found. */
export function reordered({ problem, sequence, given }: Numbered): Numbered {
  const [best] = findOrders(modelOf(problem, sequence), WORK).better;
  const order = best ? Array.from(best.order, (step) => at(sequence, step)) : sequence;
  return renumbered(problem, order, given);
}

/** Every execution as a step, every computation of a value as a storage of its own. */
function modelOf({ ops, bytes, results }: RecomputeProblem, sequence: Sequence): Model {
  const [size, writer]: [number[], number[]] = [[], []];
  const copy = new Map<number, number>();
  const copyOf = (value: number): number => copy.get(value) as number;
  const steps = sequence.map((index, step) => {
    const { inputs, outputs } = at(ops, index);
    const reads = inputs.map(copyOf);
    for (const value of outputs) {
      copy.set(value, size.length);
      size.push(at(bytes, value));
      writer.push(step);
    }
    return { reads, writes: outputs.map(copyOf) };
  });
  const [n, storages] = [steps.length, size.length];
  const listsOf = (of: (step: (typeof steps)[number]) => Iterable<number>) =>
    makeLists(n, (add) => {
      steps.forEach((step, i) => {
        for (const item of of(step)) add(i, item);
      });
    });
  const reads = listsOf((step) => step.reads);
  const predecessors = listsOf((step) => new Set(step.reads.map((id) => at(writer, id))));
  const kept = new Uint8Array(storages);
  for (const value of results) kept[copyOf(value)] = 1;
  return {
    steps: n,
    storages,
    predecessors,
    successors: inverse(predecessors, n),
    reads,
    writes: listsOf((step) => step.writes),
    readers: inverse(reads, storages),
    bytes: Float64Array.from(size),
    scratch: Float64Array.from(sequence, (op) => at(ops, op).scratchBytes ?? 0),
    writer: Int32Array.from(writer),
    kept,
    ...withoutSlots(n, storages),
  };
}

/** Nothing is written over anything, and there are no parameters. */
function withoutSlots(steps: number, storages: number) {
  const none = (count: number) => makeLists(count, () => {});
  return {
    over: none(steps),
    claims: none(storages),
    isSlot: new Uint8Array(storages),
    replacement: new Int32Array(storages).fill(-1),
    settled: new Uint8Array(storages),
    movable: new Uint8Array(storages),
    passing: new Set<number>(),
    exact: true,
  };
}
