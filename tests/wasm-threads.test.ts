/**
 * @file Whole programs on WebAssembly and several threads: random graphs, gradients, loops, and trainings of a perceptron, a
 * convolutional network and a transformer end in the bits of one thread, with workers that do take part.
 */

import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { compile, type Tensor, tensor, valueAndGrad, whileLoop } from "../src/api/index.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import { vjp } from "../src/autodiff/vjp.ts";
import { at } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import { TEAM } from "../src/codegen/wasm/team.ts";
import { Build } from "../src/ir/build.ts";
import type { Graph } from "../src/ir/graph.ts";
import type { Reference } from "../src/ir/op.ts";
import { tensorType } from "../src/ir/type.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { matmul } from "../src/ops/matmul.ts";
import { adam } from "../src/optim/index.ts";
import { batchTensors } from "../src/playground/model.ts";
import { MODELS } from "../src/playground/models.ts";
import type { Elements, Executable } from "../src/runtime/executable.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { testHost } from "./support/host.ts";
import { hostMemory } from "./support/host-memory.ts";
import { randomGraph, randomInputs } from "./support/random-graph.ts";
import { looped, randomCase } from "./support/random-loops.ts";

const { workers } = testHost;

/** Pieces that workers have done for a program; 0 where it has nothing to share, and then no words for it. */
function helped(executable: Executable): number {
  const { buffer, start } = hostMemory(executable.memory);
  return start === 0 ? 0 : at(new Int32Array(buffer), TEAM.helped / 4);
}

function once(graph: Graph, executable: Executable, inputs: readonly Reference[]): Elements[] {
  executable.poison();
  graph.params.forEach((param, i) => {
    executable.write(param.type, at(executable.placed.params, i), at(inputs, i));
  });
  executable.run();
  return graph.results.map((value, i) => executable.read(value.type, at(executable.placed.results, i)));
}

/** Results of some runs of a program, each of which finds nothing of the one before. */
function run(graph: Graph, inputs: readonly Reference[], threads: number, runs: number): [Elements[][], number] {
  const executable = loadGraph(graph, { target: wasmTarget(false, { threads, shareFrom: 0, workers }) });
  const results = Array.from({ length: runs }, () => once(graph, executable, inputs));
  return [results, threads === 1 ? 0 : helped(executable)];
}

/** Pieces that workers did, all in all. */
function expectSameBits(graphs: readonly Graph[], special: boolean): number {
  let pieces = 0;
  for (const [i, graph] of graphs.entries()) {
    const inputs = randomInputs(graph, i, { special }).map((data, p) =>
      graph.params[p]?.type.dtype === "f32" ? data.map(Math.fround) : data,
    );
    const [[want]] = run(graph, inputs, 1, 1);
    for (const threads of [2, 3]) {
      const [got, done] = run(graph, inputs, threads, 6);
      pieces += done;
      for (const results of got) expect(results, `graph ${i} on ${threads} threads`).toEqual(want);
    }
  }
  return pieces;
}

const seeds = (count: number, from = 0): readonly number[] => Array.from({ length: count }, (_, i) => from + i);

describe("programs on WebAssembly and several threads", () => {
  beforeAll(async () => {
    const b = new Build("product");
    const x = b.param(tensorType("f32", [192, 192]));
    const graph = b.finish([b.call(matmul, [x, x], { ta: false, tb: false })]);
    const executable = loadGraph(graph, { target: wasmTarget(false, { threads: 3, workers }) });
    for (let tries = 0; helped(executable) === 0 && tries < 1000; tries++) {
      executable.run();
      await pause(2);
    }
    expect(helped(executable), "workers start and help").toBeGreaterThan(0);
  });

  it("have the bits of one thread", () => {
    expect(
      expectSameBits(
        seeds(16).map((seed) => randomGraph(seed, { nodes: 5 + (seed % 30) })),
        true,
      ),
    ).toBeGreaterThan(0);
  });

  it("and gradients do", () => {
    const gradients = seeds(8, 100).map((seed) => {
      const graph = randomGraph(seed, { nodes: 4 + (seed % 20), smooth: true, scalar: true, regions: false });
      return vjp(
        graph,
        graph.params.map((p) => isFloat(p.type.dtype)),
      );
    });
    expect(expectSameBits(gradients, false)).toBeGreaterThan(0);
  });

  it("and loops over random bodies do", () => {
    const loops = seeds(8, 200).map((seed) => looped(randomCase(seed)));
    expect(expectSameBits(loops, false)).toBeGreaterThan(0);
  });

  it("and programs that take turns in one memory do, which grows for the larger ones", async () => {
    const target = wasmTarget(false, { threads: 3, shareFrom: 0, workers });
    const arena = target.allocate();
    const programs = seeds(6, 300).map((seed) => {
      const graph = randomGraph(seed, { nodes: 5 + 4 * (seed % 6) });
      const inputs = randomInputs(graph, seed, { special: false }).map((data, p) =>
        graph.params[p]?.type.dtype === "f32" ? data.map(Math.fround) : data,
      );
      const [[want]] = run(graph, inputs, 1, 1);
      return { graph, inputs, want, executable: loadGraph(graph, { target, arena }) };
    });
    const random = hostRandom(7);
    for (let turn = 0; turn < 600; turn++) {
      const program = at(programs, Math.floor(random.next() * programs.length));
      const { graph, executable } = program;
      expect(once(graph, executable, program.inputs), `turn ${turn}`).toEqual(program.want);
      // now and then workers have gone home
      if (turn % 50 === 0) await pause(10);
    }
    expect(at(new Int32Array(hostMemory(arena).buffer), TEAM.helped / 4)).toBeGreaterThan(0);
  });

  it("and a loop that numbers in the arena end does, with rows that are worth sharing", () => {
    const settle = (x: Tensor): Tensor =>
      whileLoop(
        (y: Tensor) => y.abs().max().greater(1e-3),
        (y: Tensor) => y.sin().mul(0.5),
        x,
        { maxSteps: 64 },
      );
    const random = hostRandom(5);
    const x = tensor(Float32Array.from({ length: 1 << 16 }, () => random.next() - 0.5));
    const on = (threads: number): ((x: Tensor) => Tensor) => compile(settle, { target: "wasm", threads });
    const [want, two] = [on(1)(x).data().slice(), on(2)];
    for (let i = 0; i < 3; i++) expect(two(x).data()).toEqual(want);
  });
});

/** State and losses after some steps of a model. */
function trained(model: (typeof MODELS)[number], threads: number): readonly unknown[] {
  const step = compile(model.step as (...args: never[]) => readonly [object, Tensor], { donate: [0], threads });
  let state = model.init();
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const [next, loss] = step(...([state, ...batchTensors(model, model.batch(i))] as never[]));
    state = next;
    losses.push(loss.item());
  }
  return [losses, JSON.stringify(state, (_, value) => (isTensor(value) ? [...value.data()] : value))];
}

const isTensor = (value: unknown): value is Tensor =>
  typeof value === "object" && value !== null && typeof (value as Tensor).data === "function";

const sizes = [64, 256, 128];
const perceptron = {
  optimizer: adam({ lr: 0.01 }),
  loss: (p: { v: Tensor; w: Tensor }, x: Tensor, y: Tensor): Tensor =>
    x.matmul(p.v).tanh().matmul(p.w).sub(y).square().mean(),
};

describe("trainings on WebAssembly", () => {
  for (const model of MODELS) {
    it(`of the ${model.name} end in the same bits on one, two and three threads`, () => {
      const want = trained(model, 1);
      for (const threads of [2, 3]) expect(trained(model, threads), `${threads} threads`).toEqual(want);
    });
  }

  it("of a perceptron do at every budget", () => {
    const [rows, width, out] = sizes as [number, number, number];
    const train = (options: object): unknown => {
      const random = hostRandom(7);
      const filled = (...shape: number[]): Tensor =>
        tensor(
          Float32Array.from({ length: shape.reduce((n, e) => n * e, 1) }, () => random.next() - 0.5),
          { shape },
        );
      const { optimizer, loss } = perceptron;
      const step = compile(
        (s: ReturnType<typeof optimizer.init<{ v: Tensor; w: Tensor }>>, x: Tensor, y: Tensor) => {
          const [value, gradient] = valueAndGrad(loss)(s.params, x, y);
          return [optimizer.update(s, gradient), value] as const;
        },
        { donate: [0], ...options },
      );
      let state = optimizer.init({ v: filled(width, width), w: filled(width, out) });
      const [x, y] = [filled(rows, width), filled(rows, out)];
      for (let i = 0; i < 3; i++) {
        [state] = step(state as never, x as never, y as never) as unknown as readonly [typeof state, Tensor];
      }
      return [state.params.v, state.params.w].map((t) => [...t.data()]);
    };
    const want = train({});
    for (const options of [{ threads: 2 }, { threads: 3, memory: "min" }]) {
      expect(train(options), JSON.stringify(options)).toEqual(want);
    }
  });
});
