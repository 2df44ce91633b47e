/** @file Functions given to `shard`, evaluated on all devices of a mesh at once: the reference of what runs on several processes. */
import { evaluateDevices } from "../../src/ir/evaluate-devices.ts";
import type { Graph } from "../../src/ir/graph.ts";
import type { Reference } from "../../src/ir/op.ts";
import { print } from "../../src/ir/print.ts";
import { violations, violationText } from "../../src/ir/verify.ts";
import { type ShardOptions, shard } from "../../src/parallel/shard.ts";
import { pipeline, runPasses } from "../../src/passes/pipeline.ts";
import type { AnyFunction } from "../../src/trace/function.ts";
import { traceFunction } from "../../src/trace/function.ts";
import { storageOf, type Tensor } from "../../src/trace/tensor.ts";
import { flatten } from "../../src/trace/tree.ts";

export interface OnDevices {
  /** By rank: the leaves of the results. */
  readonly results: readonly (readonly Reference[])[];
  /** As it was recorded, and after all passes. */
  readonly traced: Graph;
  readonly passed: Graph;
}

const dataOf = (x: Tensor): Reference => Float64Array.from(storageOf(x).read() as Float32Array, Number);

/** Data of the leaves of arguments. */
export const leavesOf = (args: readonly unknown[]): readonly Reference[] =>
  args.flatMap((arg) => flatten(arg, "argument").leaves.map(dataOf));

/** Records the function once, and runs it on every device with its own arguments: as recorded, and after all passes. */
export function onDevices(
  fn: AnyFunction,
  options: ShardOptions,
  argsOf: (rank: number) => readonly unknown[],
  round = false,
): OnDevices {
  const sharded = shard(fn as never, options) as AnyFunction;
  const { graph: traced, captures } = traceFunction(sharded, argsOf(0));
  const found = violations(traced);
  if (found.length > 0) throw new Error(`${violationText(traced, found)}\n${print(traced)}`);
  const passed = runPasses(traced, pipeline, { verify: true });
  const captured = captures.map(({ tensor }) => dataOf(tensor));
  const inputs = Array.from({ length: options.mesh.size }, (_, rank) => [...leavesOf(argsOf(rank)), ...captured]);
  const results = evaluateDevices(passed, inputs, { round });
  const isOrdered = options.deterministic === true;
  const plain = isOrdered ? results : evaluateDevices(traced, inputs, { round });
  for (const [rank, own] of results.entries()) {
    own.forEach((data, i) => {
      const other = plain[rank]?.[i] ?? new Float64Array();
      const differs = data.some(
        (x, e) => !Object.is(x, other[e]) && Math.abs(x - (other[e] as number)) > 1e-9 * Math.abs(x),
      );
      if (differs) throw new Error(`rank ${rank}, result ${i}: ${other.join()} before passes, ${data.join()} after`);
    });
  }
  return { results, traced, passed };
}
