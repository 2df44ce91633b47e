/**
 * @file A problem in typed arrays, for the planners that run a graph thousands of times. Lists of lists are kept as one
 * array of entries and one of starts: the inputs of operation k are `inputs[inputStart[k]] … inputs[inputStart[k + 1] - 1]`.
 */
import { at } from "../../base/invariant.ts";
import { baseCost, type RecomputeProblem } from "./problem.ts";

export interface FlatGraph {
  readonly ops: number;
  readonly values: number;
  readonly cost: Float64Array;
  readonly baseCost: number;
  readonly inputStart: Int32Array;
  readonly inputs: Int32Array;
  readonly outputStart: Int32Array;
  readonly outputs: Int32Array;
  /** Bytes of all that an operation writes, and its scratch. */
  readonly madeBytes: Float64Array;
  /** 1: may not run again. */
  readonly once: Uint8Array;
  readonly bytes: Float64Array;
  /** The operation that writes each value; -1 for a number that is no value here. */
  readonly producer: Int32Array;
  /** Readers of each value, ascending. */
  readonly useStart: Int32Array;
  readonly uses: Int32Array;
  readonly result: Uint8Array;
  readonly results: Int32Array;
  readonly pinnedBytes: Float64Array;
}

function rows(lists: readonly (readonly number[])[]): readonly [Int32Array, Int32Array] {
  const start = new Int32Array(lists.length + 1);
  lists.forEach((list, i) => {
    start[i + 1] = at(start, i) + list.length;
  });
  return [start, Int32Array.from(lists.flat())];
}

export function flatGraph(problem: RecomputeProblem): FlatGraph {
  const { ops, bytes } = problem;
  const [inputStart, inputs] = rows(ops.map((op) => op.inputs));
  const [outputStart, outputs] = rows(ops.map((op) => op.outputs));
  const producer = new Int32Array(bytes.length).fill(-1);
  const readers: number[][] = bytes.map(() => []);
  ops.forEach((op, index) => {
    for (const value of op.outputs) producer[value] = index;
    for (const value of op.inputs) at(readers, value).push(index);
  });
  const [useStart, uses] = rows(readers);
  const result = new Uint8Array(bytes.length);
  for (const value of problem.results) result[value] = 1;
  return {
    ops: ops.length,
    values: bytes.length,
    cost: Float64Array.from(ops, (op) => op.cost),
    baseCost: baseCost(problem),
    inputStart,
    inputs,
    outputStart,
    outputs,
    madeBytes: Float64Array.from(ops, (op) => op.outputs.reduce((n, v) => n + at(bytes, v), op.scratchBytes ?? 0)),
    once: Uint8Array.from(ops, (op) => Number(op.once ?? false)),
    bytes: Float64Array.from(bytes),
    producer,
    useStart,
    uses,
    result,
    results: Int32Array.from(problem.results),
    pinnedBytes: Float64Array.from(problem.pinnedBytes),
  };
}
