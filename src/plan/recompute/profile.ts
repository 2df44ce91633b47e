/**
 * @file The bytes of a sequence at each of its steps, fast: for searches that look at a hundred thousand sequences.
 *
 * Between two consecutive touches of a value (it is written or read) its bytes are held exactly if the second is a read:
 *
 * ```
 *   step      0  1  2  3  4  5
 *   value v   w──r     w─────r      w: written, r: read; between 1 and 3 nothing is held
 *   gap        1  2  3  4  5        gap g lies before step g
 *   held       ■        ■  ■
 * ```
 *
 * So step p holds what its gap holds and what it writes. A sum of differences gives all gaps in one pass, O(touches).
 */
import type { FlatGraph } from "./flat-graph.ts";

export interface Profile {
  readonly cost: number;
  readonly peakBytes: number;
  /** Bytes above the budget, summed over steps; 0 for a sequence that fits. */
  readonly overBytes: number;
}

export interface Profiler {
  /** Bytes at each step of the sequence last looked at. */
  readonly bytesAt: Float64Array;
  profile(sequence: Int32Array, length: number): Profile;
}

/** A profiler with its own working memory, for sequences of up to `longest` steps. */
export function profiler(graph: FlatGraph, budget: number, longest: number): Profiler {
  const { inputStart, inputs, outputStart, outputs, bytes, madeBytes, cost, results, pinnedBytes } = graph;
  const last = new Int32Array(graph.values);
  const held = new Float64Array(longest + 2);
  const bytesAt = new Float64Array(longest + 2);
  const profile = (sequence: Int32Array, length: number): Profile => {
    held.fill(0, 0, length + 2);
    for (let p = 0; p < length; p++) {
      const op = sequence[p] as number;
      for (let i = inputStart[op] as number, end = inputStart[op + 1] as number; i < end; i++) {
        const v = inputs[i] as number;
        const size = bytes[v] as number;
        (held[(last[v] as number) + 1] as number) += size;
        (held[p + 1] as number) -= size;
        last[v] = p;
      }
      for (let o = outputStart[op] as number, end = outputStart[op + 1] as number; o < end; o++)
        last[outputs[o] as number] = p;
    }
    for (let r = 0; r < results.length; r++)
      (held[(last[results[r] as number] as number) + 1] as number) += bytes[results[r] as number] as number;
    let [now, peakBytes, overBytes, total, started] = [0, 0, 0, 0, 0];
    for (let p = 0; p < length; p++) {
      const op = sequence[p] as number;
      now += held[p] as number;
      total += cost[op] as number;
      const at = now + (madeBytes[op] as number) + (pinnedBytes[started] as number);
      if (op === started) started++;
      bytesAt[p] = at;
      if (at > peakBytes) peakBytes = at;
      if (at > budget) overBytes += at - budget;
    }
    return { cost: total, peakBytes, overBytes };
  };
  return { bytesAt, profile };
}
