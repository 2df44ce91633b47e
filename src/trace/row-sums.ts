/**
 * @file Gradients of look-ups. The derivative of `take` adds cotangents to rows of a table of zeros; of several look-ups these
 * tables are added up:
 *
 *   grad = scatter_add(0, i, a) + scatter_add(0, j, b)          nothing but the rows i and j is not zero
 *
 * While a program is traced its graph is there, and shows whether a tensor was made so.
 */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { Tensor } from "./tensor.ts";
import type { Trace } from "./trace.ts";

/** Updates of rows of a table of zeros, or two of these added up. */
export type RowSum =
  | { readonly kind: "rows"; readonly indices: Tensor; readonly updates: Tensor }
  | { readonly kind: "sum"; readonly first: RowSum; readonly second: RowSum };

/** Look-ups of one table, at most. */
const MOST = 256;

function isZero(trace: Trace, value: Value): boolean {
  const node = trace.build.producer(value);
  return node?.op.facts?.constant?.(node.attrs as never) === 0;
}

const isPlainSum = ({ op }: Node): boolean => {
  const coefficients = op.facts?.coefficients;
  return coefficients?.length === 2 && coefficients.every((c) => c === 1);
};

function rowSum(trace: Trace, value: Value, depth: number): RowSum | null {
  const node = trace.build.producer(value);
  if (!node || depth > MOST) return null;
  if (node.op.facts?.addsRows?.(node.attrs as never) === 0) {
    const [table, indices, updates] = [at(node.inputs, 0), at(node.inputs, 1), at(node.inputs, 2)];
    if (!isZero(trace, table)) return null;
    return { kind: "rows", indices: trace.tensorOf(indices), updates: trace.tensorOf(updates) };
  }
  if (!isPlainSum(node)) return null;
  const first = rowSum(trace, at(node.inputs, 0), depth + 1);
  const second = first && rowSum(trace, at(node.inputs, 1), depth + 1);
  return second && { kind: "sum", first, second };
}

/** How a traced tensor is made of updates of rows, if it is. */
export function rowSumOf(tensor: Tensor): RowSum | null {
  const trace = tensor.traced?.trace;
  return trace ? rowSum(trace, trace.lift(tensor), 0) : null;
}

/** The updates of a sum, from first to last. */
export function rowsIn(sum: RowSum): readonly Extract<RowSum, { kind: "rows" }>[] {
  return sum.kind === "rows" ? [sum] : [...rowsIn(sum.first), ...rowsIn(sum.second)];
}
