/** @file A program run step by step, with every byte that holds no live value overwritten after each step (tests/poison.test.ts). */

import { persistentParams } from "../../src/api/donation.ts";
import { type LoadGraphOptions, loadGraph } from "../../src/api/load-graph.ts";
import { traceProgram } from "../../src/api/traced-program.ts";
import type { Graph } from "../../src/ir/graph.ts";
import { print } from "../../src/ir/print.ts";
import { liveness } from "../../src/plan/liveness.ts";
import { addressOf } from "../../src/plan/problem.ts";
import type { Elements, Executable } from "../../src/runtime/executable.ts";
import { type AnyFunction, flattenArguments } from "../../src/trace/function.ts";
import { storageOf } from "../../src/trace/tensor.ts";

type Data = Elements | Float64Array;

/** Byte ranges of the values that are needed after a step, in order and without overlap. */
function liveRanges(executable: Executable, step: number): readonly (readonly [number, number])[] {
  const { plan } = executable.placed;
  const ranges: [number, number][] = [];
  for (const [value, { start, end }] of liveness(plan.program)) {
    if (start > step || end <= step + 1) continue;
    const { from, to } = addressOf(plan, value);
    ranges.push([from, to]);
  }
  ranges.sort((a, b) => a[0] - b[0]);
  return ranges;
}

export function poisonDead(executable: Executable, step: number): number {
  const { height } = executable.placed.plan;
  let [dead, at] = [0, 0];
  for (const [from, to] of [...liveRanges(executable, step), [height, height] as const]) {
    if (from > at) {
      executable.memory.fill(at, from - at, 0xff);
      dead += from - at;
    }
    at = Math.max(at, to);
  }
  return dead;
}

export function load(executable: Executable, graph: Graph, inputs: readonly Data[]): void {
  graph.params.forEach((param, i) => {
    executable.write(param.type, executable.placed.params[i] as number, inputs[i] as Data);
  });
}

export const results = (executable: Executable, graph: Graph): Elements[] =>
  graph.results.map((value, i) => executable.read(value.type, executable.placed.results[i] as number));

/** Runs a program once straight through and once poisoned; gives the bytes that were dead, summed over steps. */
export function check(graph: Graph, inputs: readonly Data[], options: LoadGraphOptions = {}): number {
  const executable = loadGraph(graph, { ...options, stepwise: true });
  const { plan, kernelNodes } = executable.placed;
  load(executable, graph, inputs);
  executable.run();
  const expected = results(executable, graph);
  executable.memory.fill(0, plan.height, 0xff);
  load(executable, graph, inputs);
  const stepOf = new Map(plan.program.steps.map((step, i) => [step.node, i]));
  let dead = 0;
  executable.runStepwise((kernel) => {
    const node = kernelNodes[kernel];
    // renamings after the kernel run nothing: what dies in them dies now
    let step = node ? (stepOf.get(node) as number) : -1;
    while (plan.program.steps[step + 1]?.alias) step++;
    dead += poisonDead(executable, step);
  });
  const got = results(executable, graph);
  got.forEach((data, i) => {
    const same = Buffer.compare(Buffer.from(data.buffer), Buffer.from((expected[i] as Elements).buffer)) === 0;
    if (!same) throw new Error(`result ${i} depends on bytes that are dead:\n${print(graph)}`);
  });
  return dead;
}

/** A training step, whose first argument is donated, as a graph with its inputs. */
export function stepGraph(fn: AnyFunction, args: readonly unknown[]) {
  const flat = flattenArguments(fn, args);
  const { graph, donated, firstCapture, traced } = traceProgram(fn, flat, { donate: [0] });
  const tensors = [...flat.tensors, ...traced.captures.map((capture) => capture.tensor)];
  const inputs = tensors.map((tensor) => storageOf(tensor).read());
  return { graph, inputs, options: { donated, persistent: persistentParams(graph, donated, firstCapture) } };
}

/** The same for a training step. */
export function checkStep(fn: AnyFunction, args: readonly unknown[], more: LoadGraphOptions = {}): number {
  const { graph, inputs, options } = stepGraph(fn, args);
  return check(graph, inputs, { ...more, ...options });
}
