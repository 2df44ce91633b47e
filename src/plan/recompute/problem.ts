/**
 * @file The recomputation problem, free of tensors and targets: operations in the order of their first execution, what
 * each costs, reads and writes, and how many bytes each value takes. An answer is a sequence of operations with repeats.
 *
 * ```
 *   sequence   a  b  c  a  d        d reads a and c
 *   value a    ■──■     ■──■        dropped after b, recomputed for d: between them its bytes are free
 *   value c          ■─────■
 * ```
 *
 * A value lives from a computation of it to its last use before the next one. While an operation runs, what it reads and
 * all that it writes is live. So any sequence that keeps the order of first executions is valid; it only costs time
 * (every entry) and bytes (the largest sum of live values): Jain et al., "Checkmate", MLSys 2020.
 */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";

/** An operation of a {@link RecomputeProblem}. */
export interface RecomputeOp {
  /** Its name in the graph's file; printed in sequences. */
  readonly id: number | string;
  readonly name: string;
  readonly cost: number;
  /** Indices of values, each once. Constants are not listed: they are part of `pinnedBytes`. */
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** Bytes that are needed while it runs and at no other time. */
  readonly scratchBytes?: number;
  /** May not run again: its effect is not a function of its inputs. */
  readonly once?: boolean;
  /** Belongs to the backward half; schemes that need to know where forward ends read it. */
  readonly backward?: boolean;
  /** The part of the program that it belongs to: `encoder/block3`. */
  readonly scope?: string | undefined;
}

/** Operations with costs, values with bytes: what strategies of recomputation see of a program. */
export interface RecomputeProblem {
  readonly name: string;
  readonly ops: readonly RecomputeOp[];
  /** Bytes of each value. */
  readonly bytes: readonly number[];
  /** Values that are live after the last operation. */
  readonly results: readonly number[];
  /** `pinnedBytes[k]`: bytes of constants from the end of the first execution of operation k - 1 on. */
  readonly pinnedBytes: readonly number[];
}

/** Indices of `RecomputeProblem.ops` in the order they run. */
export type Sequence = readonly number[];

/**
 * Every operation once.
 *
 * @example
 * import { baseSequence, readGraph } from "tidemark/plan";
 *
 * const nodes = [0, 1].map((id) => ({ id, cost_cpu: 1, cost_ram: 1 }));
 * const problem = readGraph(JSON.stringify({ graph: {}, nodes, links: [{ source: 0, target: 1 }] }));
 * console.log(baseSequence(problem)); // → [0, 1]
 */
export function baseSequence(problem: RecomputeProblem): Sequence {
  return problem.ops.map((_, index) => index);
}

export function baseCost(problem: RecomputeProblem): number {
  return problem.ops.reduce((sum, { cost }) => sum + cost, 0);
}

/**
 * Bytes that the operation with the largest operands needs; no order and no recomputation goes lower.
 *
 * @example
 * import { leastBytes, readGraph } from "tidemark/plan";
 *
 * const nodes = [0, 1].map((id) => ({ id, cost_cpu: 1, cost_ram: 1 }));
 * const problem = readGraph(JSON.stringify({ graph: {}, nodes, links: [{ source: 0, target: 1 }] }));
 * console.log(leastBytes(problem)); // → 2
 */
export function leastBytes(problem: RecomputeProblem): number {
  return Math.max(
    0,
    ...problem.ops.map(({ inputs, outputs, scratchBytes = 0 }, k) => {
      const operands = [...inputs, ...outputs].reduce((sum, v) => sum + at(problem.bytes, v), 0);
      return operands + scratchBytes + at(problem.pinnedBytes, k);
    }),
  );
}

const ORDER = "operations are listed so that each comes after those whose values it reads";
const NUMBERS = "costs and bytes are numbers from 0 on";

function refuse(problem: RecomputeProblem, summary: string, help = ORDER): never {
  throw new TidemarkError("InvalidGraph", `${problem.name}: ${summary}`, { help });
}

/**
 * Refuses a problem whose order is not an order, or whose numbers are none.
 *
 * @throws InvalidGraph
 *
 * @example
 * import { checkProblem, readGraph } from "tidemark/plan";
 *
 * const nodes = [0, 1].map((id) => ({ id, cost_cpu: 1, cost_ram: 1 }));
 * const problem = readGraph(JSON.stringify({ graph: {}, nodes, links: [{ source: 0, target: 1 }] }));
 * console.log(checkProblem(problem) === problem); // → true
 */
export function checkProblem(problem: RecomputeProblem): RecomputeProblem {
  const producer = new Map<number, number>();
  problem.ops.forEach((op, index) => {
    const named = `operation ${op.id} (${op.name})`;
    if (!(op.cost >= 0 && Number.isFinite(op.cost))) refuse(problem, `${named} costs ${op.cost}`, NUMBERS);
    for (const value of op.inputs) {
      if (!producer.has(value)) refuse(problem, `${named} reads value ${value}, which no earlier operation writes`);
    }
    for (const value of op.outputs) {
      if (producer.has(value)) refuse(problem, `${named} writes value ${value} a second time`);
      const bytes = at(problem.bytes, value);
      if (!(bytes >= 0 && Number.isFinite(bytes)))
        refuse(problem, `value ${value} of ${named} takes ${bytes} bytes`, NUMBERS);
      producer.set(value, index);
    }
  });
  for (const value of problem.results) {
    if (!producer.has(value)) refuse(problem, `result ${value} is written by no operation`);
  }
  return problem;
}
