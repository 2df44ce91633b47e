/**
 * @file Winograd's convolution against doubles, over paddings, extents and channels that fill no register, in both directions;
 * and that its bits depend on nothing but shapes: not on lanes, threads, budgets, or what is fused before and behind. Many
 * convolutions are one program, since a C compiler takes a moment to start; the arena is poisoned before they run.
 */

import { describe, expect, it } from "vitest";
import { testHost } from "../../../tests/support/host.ts";
import { runGraph } from "../../../tests/support/run-graph.ts";
import { plainTargets } from "../../../tests/support/targets.ts";
import { compile, conv2d, type Tensor, tensor, valueAndGrad } from "../../api/index.ts";
import { at } from "../../base/invariant.ts";
import { hostRandom } from "../../base/random.ts";
import { Build } from "../../ir/build.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { elementsOf, type TensorType, tensorType } from "../../ir/type.ts";
import type { ContractNest, Kernel } from "../../kernel/loops.ts";
import { lowerNode } from "../../lower/lower.ts";
import { nodeHost } from "../../node/host.ts";
import { compilerFor, systemCompiler } from "../../node/native/compiler.ts";
import { type NativeRequest, nativeTarget } from "../../node/native/target.ts";
import { type ConvAttrs, conv, convInput, convWeight } from "../../ops/conv.ts";
import { add, mul, relu } from "../../ops/elementwise.ts";
import type { Target } from "../../runtime/device.ts";
import { type WasmRequest, wasmTarget } from "../../runtime/wasm-target.ts";
import { PLAIN_LOWERING } from "../../target/plain.ts";
import { total } from "../cpu/winograd-choice.ts";
import * as wasm from "../wasm/winograd-plan.ts";
import type { NativeOptions } from "./options.ts";
import { planWinograd, planWinogradWeights } from "./winograd-plan.ts";

/** Images, channels in and out, extents of the result, zeros before and behind, groups. */
interface Case {
  readonly n: number;
  readonly c: number;
  readonly k: number;
  readonly places: readonly [number, number];
  readonly lo?: readonly [number, number];
  readonly hi?: readonly [number, number];
  readonly groups?: number;
}

/** Several blocks and panels, cut tiles and registers, weights that are kept, groups, several runs of channels. */
const SHARED: readonly Case[] = [
  { n: 2, c: 6, k: 10, places: [6, 13], lo: [1, 1], hi: [1, 1], groups: 2 },
  { n: 9, c: 8, k: 24, places: [14, 14], lo: [1, 1], hi: [1, 1] },
  { n: 1, c: 150, k: 7, places: [8, 8], lo: [1, 1], hi: [1, 1] },
];

const CASES: readonly Case[] = [
  ...SHARED,
  { n: 1, c: 2, k: 2, places: [1, 1] },
  { n: 2, c: 3, k: 5, places: [2, 7], lo: [1, 1], hi: [1, 1] },
  { n: 1, c: 17, k: 33, places: [5, 3], lo: [2, 0], hi: [0, 2] },
  { n: 2, c: 2, k: 3, places: [4, 457], lo: [0, 1], hi: [1, 0] },
];

const attrsOf = ({ lo = [0, 0], hi = [0, 0], groups = 1 }: Case): ConvAttrs => ({
  ...{ stride: [1, 1], lo, hi, dilation: [1, 1], groups },
});

const sizeOf = ({ places, lo = [0, 0], hi = [0, 0] }: Case): readonly [number, number] => [
  places[0] + 2 - lo[0] - hi[0],
  places[1] + 2 - lo[1] - hi[1],
];

const typesOf = (one: Case) => {
  const { n, c, k, places, groups = 1 } = one;
  return {
    x: tensorType("f32", [n, c, ...sizeOf(one)]),
    w: tensorType("f32", [k, c / groups, 3, 3]),
    y: tensorType("f32", [n, k, ...places]),
  };
};

type Call = (b: Build, p: Value, q: Value) => Value;

/** Every case forward, back to the input and to the weights, side by side. */
function all(cases: readonly Case[], b: Build = new Build("convolutions")): Graph {
  const results = cases.flatMap((one) => {
    const { x, w, y } = typesOf(one);
    const [px, pw, py] = [b.param(x), b.param(w), b.param(y)];
    const attrs = attrsOf(one);
    return [
      b.call(conv, [px, pw], attrs),
      b.call(convInput, [py, pw], { ...attrs, size: sizeOf(one) }),
      b.call(convWeight, [px, py], { ...attrs, kernel: [3, 3] }),
    ];
  });
  return b.finish([...b.nodes.slice(0, -results.length).flatMap(({ outputs }) => outputs), ...results]);
}

/** A gradient to the input of 6 × 6 taps with stride 2: four phases of 3 × 3. */
function withPhases(): Build {
  const b = new Build("convolutions");
  const [y, w] = [b.param(tensorType("f32", [2, 7, 10, 10])), b.param(tensorType("f32", [7, 5, 6, 6]))];
  const [pair, two] = [
    [1, 1],
    [2, 2],
  ];
  b.call(convInput, [y, w], { stride: two, lo: two, hi: two, dilation: pair, groups: 1, size: [20, 20] });
  return b;
}

const run = (target: Target, graph: Graph, inputs: readonly Float32Array[]): readonly Float32Array[] =>
  runGraph(target, graph, (_, i) => at(inputs, i)) as readonly Float32Array[];

function inputsOf(graph: Graph, seed = 1): readonly Float32Array[] {
  const random = hostRandom(seed);
  return graph.params.map(({ type }) =>
    Float32Array.from({ length: elementsOf(type.shape) }, () => random.next() - 0.5),
  );
}

function winograd(request: NativeRequest = {}): Target {
  const target = nativeTarget({ winograd: "always", ...request });
  if (typeof target === "string") throw new Error(target);
  return target;
}

/** Largest difference from what the operation says in doubles, in terms of the largest result. */
function error(node: Node, inputs: readonly Float32Array[], found: Float32Array): number {
  const inTypes = node.inputs.map(({ type }) => type);
  const data = inputs.map((input) => Float64Array.from(input));
  const outTypes = node.outputs.map(({ type }) => type);
  const [want] = node.op.evaluate({ inputs: data, inTypes, outTypes, attrs: node.attrs } as never);
  const reference = want as Float64Array;
  const largest = reference.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
  return reference.reduce((most, v, i) => Math.max(most, Math.abs(v - at(found, i))), 0) / largest;
}

const missing = at(plainTargets, 1).missing !== null;
const OPTIONS: NativeOptions = { lanes: 16, fma: true, winograd: "paying", threads: 1 };

describe.skipIf(missing)("Winograd's convolution", () => {
  it("is within 4e-6 of the largest result, whatever the extents, channels, padding and groups", () => {
    const graph = all(CASES, withPhases());
    const inputs = inputsOf(graph);
    const params = new Map<Value, Float32Array>(graph.params.map((param, i) => [param, at(inputs, i)]));
    const results = run(winograd(), graph, inputs);
    graph.nodes.forEach((node, i) => {
      const data = node.inputs.map((value) => params.get(value) as Float32Array);
      expect(error(node, data, at(results, i)), `${node.op.name} of case ${Math.floor((i - 1) / 3)}`).toBeLessThan(
        4e-6,
      );
    });
  });

  it("has the same bits on three threads and in registers of any width", () => {
    const here = systemCompiler();
    const narrow = process.arch === "x64" && typeof here !== "string" && here.lanes === 16;
    const inRegisters = (machine: string, lanes: 4 | 8): NativeRequest =>
      narrow ? { fma: false, compiler: compilerFor(here, machine, lanes) } : { fma: false };
    const graph = all(SHARED);
    const inputs = inputsOf(graph);
    const want = run(winograd({ fma: false }), graph, inputs);
    const shared = { ...inRegisters("-march=x86-64-v3", 8), threads: 3, shareFrom: 0 };
    expect(run(winograd(shared), graph, inputs)).toEqual(want);
    const first = all(SHARED.slice(0, 1));
    expect(run(winograd(inRegisters("-march=x86-64-v2", 4)), first, inputs)).toEqual(want.slice(0, 3));
  });

  it("has the same bits on WebAssembly, on one thread and on three", () => {
    const graph = all(CASES, withPhases());
    const inputs = inputsOf(graph);
    const want = run(winograd({ fma: false }), graph, inputs);
    const onWasm = (request: WasmRequest): Target => wasmTarget(false, { winograd: "always", ...request });
    expect(run(onWasm({}), graph, inputs)).toEqual(want);
    expect(run(onWasm({ threads: 3, shareFrom: 0, workers: nodeHost.workers }), graph, inputs)).toEqual(want);
  });

  it("has the same bits with work fused before and behind as without", () => {
    const one: Case = { n: 2, c: 19, k: 21, places: [9, 11], lo: [1, 1], hi: [1, 1] };
    const { x, w, y } = typesOf(one);
    const forward: Call = (b, p, q) => b.call(conv, [p, q], attrsOf(one));
    const toWeights: Call = (b, p, q) => b.call(convWeight, [p, q], { ...attrsOf(one), kernel: [3, 3] });
    const left: Call = (b, p, q) => b.call(relu, [b.call(mul, [p, q], {})], {});
    const right: Call = (b, p) => b.call(mul, [p, p], {});
    const behind: Call = (b, p, q) => b.call(add, [b.call(mul, [p, p], {}), q], {});
    for (const [call, second, result] of [[forward, w, y] as const, [toWeights, y, w] as const]) {
      const fused = new Build("fused");
      const params = [x, x, second, result].map((type) => fused.param(type)) as [Value, Value, Value, Value];
      const product = call(fused, left(fused, params[0], params[1]), right(fused, params[2], params[2]));
      const whole = fused.finish([behind(fused, product, params[3])]);
      const [p, q, r, t] = inputsOf(whole, 5) as [Float32Array, Float32Array, Float32Array, Float32Array];
      const [got] = run(winograd(), whole, [p, q, r, t]);
      const alone = (
        on: Target,
        make: Call,
        types: readonly [TensorType, TensorType],
        data: readonly Float32Array[],
      ) => {
        const b = new Build("alone");
        const graph = b.finish([make(b, b.param(types[0]), b.param(types[1]))]);
        return at(run(on, graph, data), 0);
      };
      const wasm = wasmTarget(false);
      const sides = [alone(wasm, left, [x, x], [p, q]), alone(wasm, right, [second, second], [r, r])];
      const sum = alone(winograd(), call, [x, second], sides);
      expect(got).toEqual(alone(wasm, behind, [result, result], [sum, t]));
    }
  });

  it("keeps a NaN within the tiles that read it", () => {
    const one: Case = { n: 1, c: 3, k: 4, places: [12, 12], lo: [1, 1], hi: [1, 1] };
    const alone = all([one]);
    const [x, w, y] = inputsOf(alone) as [Float32Array, Float32Array, Float32Array];
    const [clean] = run(winograd(), alone, [x, w, y]) as [Float32Array];
    // Row 5, column 6: read by the tile of rows and columns 4 to 7, whose six reach from 3 to 8, and by no other.
    x[5 * 12 + 6] = Number.NaN;
    const [spoilt] = run(winograd(), alone, [x, w, y]) as [Float32Array];
    spoilt.forEach((value, i) => {
      const [row, column] = [Math.floor(i / 12) % 12, i % 12];
      const inside = row >= 4 && row < 8 && column >= 4 && column < 8;
      expect(Number.isNaN(value), `${row}, ${column}`).toBe(inside);
      if (!inside) expect(value).toBe(clean[i]);
    });
  });

  it("gives the same bits at every budget and on any number of threads", () => {
    testHost.targets = { native: winograd };
    const want = train({});
    expect(want.every(Number.isFinite)).toBe(true);
    expect(train({ threads: 3, memory: "min" })).toEqual(want);
    testHost.targets = { native: nativeTarget };
  });
});

/** Losses and what is left of the weights after some steps of a network with two convolutions. */
function train(options: Parameters<typeof compile>[1]): readonly number[] {
  const random = hostRandom(3);
  const filled = (...shape: number[]): Tensor =>
    tensor(
      Float32Array.from({ length: elementsOf(shape) }, () => random.next() - 0.5),
      { shape },
    );
  const loss = (p: readonly Tensor[], x: Tensor): Tensor =>
    p
      .reduce((h, w) => conv2d(h, w, { padding: 1 }).relu().mul(0.2), x)
      .square()
      .mean();
  const step = compile(
    (p: readonly Tensor[], x: Tensor) => {
      const [value, gradient] = valueAndGrad(loss)(p, x);
      return [p.map((w, i) => w.sub((gradient as readonly Tensor[])[i] as Tensor)), value] as const;
    },
    { target: "native", ...options },
  );
  let params: readonly Tensor[] = [filled(20, 6, 3, 3), filled(5, 20, 3, 3)];
  const x = filled(4, 6, 10, 10);
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const [next, value] = step(params as never, x as never) as readonly [readonly Tensor[], Tensor];
    params = next;
    losses.push(value.item());
  }
  return [...losses, ...params.flatMap((w) => [...w.data()] as number[])];
}

describe("whether a convolution is computed so", () => {
  const NONE = [null, null, null, null];
  const plansOf = (one: Case, attrs: Partial<ConvAttrs> = {}, dtype: "f32" | "f64" = "f32") => {
    const b = new Build("one");
    const typed = ({ shape }: TensorType): Value => b.param(tensorType(dtype, shape));
    const { x, w } = typesOf(one);
    const all = { ...attrsOf(one), ...attrs };
    const y = b.call(conv, [typed(x), typed(w)], all);
    b.call(convWeight, [typed(x), typed(y.type)], { ...all, kernel: [3, 3] });
    const [forward, weights] = b.nodes.map((node) => lowerNode(node, PLAIN_LOWERING).kernel);
    const nestOf = (kernel: Kernel | undefined) => kernel?.nests[0] as ContractNest;
    return [
      planWinograd(nestOf(forward), forward?.operands ?? [], OPTIONS),
      planWinogradWeights(nestOf(weights), OPTIONS),
      wasm.planWinograd(nestOf(forward), { fma: false, winograd: "paying" }),
      wasm.planWinogradWeights(nestOf(weights), { fma: true, winograd: "paying" }),
    ];
  };
  const layer = (n: number, c: number, k: number, extent: number): Case => ({
    ...{ n, c, k, places: [extent, extent], lo: [1, 1], hi: [1, 1] },
  });

  it("depends on how much there is to do", () => {
    for (const one of [layer(8, 64, 64, 56), layer(8, 128, 128, 28), layer(8, 512, 512, 7), layer(1, 64, 64, 128)]) {
      for (const plan of plansOf(one)) {
        expect(plan, JSON.stringify(one)).not.toBeNull();
        if (plan) expect(4 * total(plan.parts)).toBeLessThan(2 ** 21);
      }
    }
    for (const one of [layer(1, 8, 8, 28), layer(1, 16, 16, 28), layer(1, 256, 256, 7)]) {
      // registers of four lanes have fewer to fill
      expect(plansOf(one).slice(0, 2), JSON.stringify(one)).toEqual([null, null]);
    }
    expect(plansOf(layer(1, 2, 2, 8))).toEqual(NONE);
  });

  it("only for windows of f32 that move by one", () => {
    const one = layer(8, 64, 64, 56);
    expect(plansOf(one, { stride: [2, 2] })).toEqual(NONE);
    expect(plansOf(one, { dilation: [2, 2] })).toEqual(NONE);
    expect(plansOf(one, {}, "f64")).toEqual(NONE);
  });
});
