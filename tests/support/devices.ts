/** @file Functions given to `shard`, evaluated on all devices of a mesh at once: the reference of what runs on several processes. */
import { zeros } from "../../src/api/index.ts";
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
import { flatten, unflatten } from "../../src/trace/tree.ts";

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

/** A function of one device that calls `shard` itself, on inputs by rank. */
export function runOnDevices(
  fn: AnyFunction,
  args: readonly unknown[],
  inputs: readonly (readonly Reference[])[],
  round: boolean,
) {
  const { graph, captures, resultTree } = traceFunction(fn, args);
  const passed = runPasses(graph, pipeline, { verify: true });
  const captured = leavesOf(captures.map(({ tensor }) => tensor));
  const all = inputs.map((own) => [...own, ...captured]);
  return { results: evaluateDevices(passed, all, { round }), resultTree, graph: passed };
}

/** What a rank begins with and is given. */
interface Course {
  readonly start: (rank: number) => unknown;
  readonly rows: (rank: number, step: number) => readonly unknown[];
  readonly steps: number;
  readonly round: boolean;
}

/** Losses of each step on each device, states and parameters at the end, and the program of a step. */
export function trainedOnDevices(
  train: Record<"init" | "step" | "params", AnyFunction>,
  devices: number,
  { start, rows, steps, round }: Course,
) {
  const ranks = Array.from({ length: devices }, (_, rank) => rank);
  const begun = ranks.map((rank) => leavesOf([start(rank)]));
  const first = runOnDevices(train.init, [start(0)], begun, round);
  // tensors of the types of a state, for recording
  const empty = first.graph.results.map(({ type }) => zeros(type.shape, type.dtype));
  const state = unflatten(first.resultTree, empty);
  let [states, graph] = [first.results, first.graph];
  const losses: number[][] = [];
  for (let i = 0; i < steps; i++) {
    const inputs = ranks.map((rank) => [...(states[rank] ?? []), ...leavesOf(rows(rank, i))]);
    const done = runOnDevices(train.step, [state, ...rows(0, i)], inputs, round);
    states = done.results.map((own) => own.slice(0, -1));
    losses.push(done.results.map((own) => own.at(-1)?.[0] ?? Number.NaN));
    graph = done.graph;
  }
  return { losses, params: runOnDevices(train.params, [state], states, round).results, states, graph };
}
