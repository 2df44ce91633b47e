/** @file Figures of the page about reverse mode: a scalar program with the values of its lines, the lifetimes of a perceptron's values, and what tapes hold. */

import { spec } from "../../../src/api/create.ts";
import { add, mul, square } from "../../../src/api/elementwise.ts";
import { valueAndGrad } from "../../../src/api/grad.ts";
import { matmul } from "../../../src/api/linear.ts";
import { crossEntropy } from "../../../src/api/loss.ts";
import { gelu, sin } from "../../../src/api/math.ts";
import { layerNorm } from "../../../src/api/normalize.ts";
import { at } from "../../../src/base/invariant.ts";
import { ProgramPlans } from "../../../src/compiler/assemble.ts";
import { PLAIN_REQUEST } from "../../../src/compiler/request.ts";
import { evaluate } from "../../../src/ir/evaluate.ts";
import type { Graph, Node } from "../../../src/ir/graph.ts";
import { pipeline, runPasses } from "../../../src/passes/pipeline.ts";
import type { PlanJson } from "../../../src/plan/json.ts";
import { planJson } from "../../../src/plan/json.ts";
import { tapeAccount } from "../../../src/tape/account-function.ts";
import { type AnyFunction, traceFunction } from "../../../src/trace/function.ts";
import type { Tensor } from "../../../src/trace/tensor.ts";
import type { HeldAccount } from "../../../src/view/data.ts";
import { perceptron } from "./models.ts";
import { named, type Planned, target } from "./plans.ts";

/** One operation of the program with its derivative. */
export interface TapeLine {
  readonly name: string;
  readonly text: string;
  readonly phase: string;
  readonly value: number;
  /** Indices of the lines that it reads; arguments are -1 for a and -2 for b. */
  readonly reads: readonly number[];
  /** The last line that reads it, or its own index. */
  readonly lastRead: number;
  readonly isResult: boolean;
}

export interface ScalarTape {
  readonly lines: readonly TapeLine[];
  readonly value: number;
  readonly slopes: readonly [number, number];
  /** By differences of the function itself. */
  readonly differences: readonly [number, number];
}

/** The program of the first figure. */
const scalar = (a: Tensor, b: Tensor): Tensor => add(sin(mul(a, b)), square(a));

const scalarAt = (a: number, b: number): number => Math.sin(a * b) + a * a;

function scalarGraph(): Graph {
  const slopes = valueAndGrad(scalar, { argnums: [0, 1] }) as unknown as AnyFunction;
  const args = [spec([], "f64"), spec([], "f64")];
  return runPasses(traceFunction(named(slopes, "f", ["a", "b"]), args).graph, pipeline);
}

const SIGNS: Readonly<Record<string, string>> = { mul: " · ", add: " + ", sub: " − ", div: " / " };

function textOf({ op, attrs }: Node, names: readonly string[]): string {
  const sign = SIGNS[op.name];
  if (sign) return names.join(sign);
  if (op.name === "square") return `${names[0]}²`;
  if (op.name === "full") return String((attrs as { readonly value: number }).value);
  return `${op.name}(${names.join(", ")})`;
}

/** The scalar program at a point: every line of it and of its derivative, with its value in doubles. */
export function scalarTape(a: number, b: number): ScalarTape {
  const graph = scalarGraph();
  const values = graph.nodes.map((node) => at(node.outputs, 0));
  const computed = evaluate({ ...graph, results: values }, [Float64Array.of(a), Float64Array.of(b)]).map((r) =>
    at(r, 0),
  );
  const index = new Map(values.map((value, i) => [value, i]));
  graph.params.forEach((param, i) => {
    index.set(param, -1 - i);
  });
  const backward = graph.nodes.findIndex(({ phase }) => phase === "backward");
  const label = (i: number): string => {
    if (i < 0) return i === -1 ? "a" : "b";
    return i < backward ? `v${i + 1}` : `d${i - backward + 1}`;
  };
  const lines = graph.nodes.map((node, i): TapeLine => {
    const reads = node.inputs.map((value) => index.get(value) ?? 0);
    const readers = graph.nodes.flatMap((one, k) => (one.inputs.includes(at(values, i)) ? [k] : []));
    return {
      ...{ name: label(i), text: textOf(node, reads.map(label)), phase: node.phase, value: at(computed, i), reads },
      lastRead: Math.max(i, ...readers),
      isResult: graph.results.includes(at(values, i)),
    };
  });
  const [value, da, db] = graph.results.map((result) => at(computed, index.get(result) ?? 0)) as [
    number,
    number,
    number,
  ];
  const step = 1e-5;
  const differences = [
    (scalarAt(a + step, b) - scalarAt(a - step, b)) / (2 * step),
    (scalarAt(a, b + step) - scalarAt(a, b - step)) / (2 * step),
  ] as const;
  return { lines, value, slopes: [da, db], differences };
}

export interface Lifetime {
  readonly name: string;
  readonly bytes: number;
  readonly start: number;
  readonly end: number;
  /** Made in the forward pass and read in the backward pass. */
  readonly kept: boolean;
  readonly backward: boolean;
}

export interface Lifetimes {
  readonly steps: readonly { readonly text: string; readonly phase: string }[];
  readonly values: readonly Lifetime[];
  /** Bytes of these values at each step. */
  readonly live: readonly number[];
  readonly peakStep: number;
}

/** The plan of a program whose operations are not fused, so that every value of the text is one of the plan. */
export function unfusedPlan({ fn, args }: Planned): PlanJson {
  const { graph } = traceFunction(fn, args);
  const request = { ...PLAIN_REQUEST, cache: false, passes: pipeline };
  return planJson(new ProgramPlans({ graph }, target.description, request).storeAll.result.plan);
}

const bytesOfType = (type: string): number =>
  [...type.matchAll(/\d+(?=[,\]])/g)].reduce((product, [n]) => product * Number(n), 4);

/** When each value that a perceptron computes is made and read for the last time. */
export function lifetimes(layers: number, batch: number, width: number): Lifetimes {
  const plan = unfusedPlan(perceptron(layers, batch, width));
  const { steps } = plan;
  const firstBackward = steps.findIndex(({ phase }) => phase === "backward");
  const big = batch * width * 4;
  const values = plan.values.flatMap(({ name, type }, v): readonly Lifetime[] => {
    const start = steps.findIndex(({ writes }) => writes.includes(v));
    if (start < 0 || bytesOfType(type) < big) return [];
    const last = steps.findLastIndex(({ reads }) => reads.includes(v));
    const isResult = plan.results.some(({ value }) => value === v);
    const end = isResult ? steps.length : Math.max(start, last) + 1;
    const backward = steps[start]?.phase === "backward";
    return [{ name, bytes: bytesOfType(type), start, end, backward, kept: !backward && last >= firstBackward }];
  });
  const live = steps.map((_, t) =>
    values.reduce((sum, { bytes, start, end }) => sum + (start <= t && t < end ? bytes : 0), 0),
  );
  return {
    steps: steps.map(({ text, phase }) => ({ text, phase })),
    ...{ values, live, peakStep: live.indexOf(Math.max(...live)) },
  };
}

/** What four kinds of tape hold for a normalised layer with gelu and a loss over classes. */
export function heldByTapes(batch: number, width: number): HeldAccount {
  type Params = { readonly w1: Tensor; readonly w2: Tensor; readonly g: Tensor; readonly b: Tensor };
  const net = ({ w1, w2, g, b }: Params, x: Tensor, y: Tensor): Tensor =>
    crossEntropy(matmul(gelu(layerNorm(matmul(x, w1), { scale: g, offset: b })), w2), y);
  const weights = { w1: spec([width, width]), w2: spec([width, 10]), g: spec([width]), b: spec([width]) };
  const { orders: _, ...account } = tapeAccount(net as (...args: never[]) => Tensor)(
    ...([weights, spec([batch, width]), spec([batch], "i32")] as never[]),
  );
  return { ...account, passes: [] };
}
