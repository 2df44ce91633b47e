/**
 * @file Whole programs on the target `native`: random graphs, loops and gradients have the bits that WebAssembly gives them
 * where neither fuses multiplications with additions, on one thread and on three; and what a user compiles gives one result
 * whatever the budget and the number of threads. Many graphs are one program, since a C compiler takes a moment to start.
 */
import { describe, expect, it } from "vitest";
import { scan as scanOver } from "../src/api/control.ts";
import { compile, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";
import { vjp } from "../src/autodiff/vjp.ts";
import { at } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import type { Reference } from "../src/ir/op.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { adam } from "../src/optim/index.ts";
import { randomGraph, randomInputs, together } from "./support/random-graph.ts";
import { looped, randomCase } from "./support/random-loops.ts";
import { runGraph } from "./support/run-graph.ts";
import { plainTargets, type TestedTarget } from "./support/targets.ts";
import "./support/host.ts";

const [wasm, native, threaded] = plainTargets as readonly [TestedTarget, TestedTarget, TestedTarget];
const missing = native.missing !== null;

function expectSameBits(graphs: readonly Graph[], special: boolean, on: TestedTarget = native): void {
  const all = together(graphs);
  const inputs = graphs.flatMap((graph, i) =>
    randomInputs(graph, i, { special }).map((data, p) =>
      graph.params[p]?.type.dtype === "f32" ? data.map(Math.fround) : data,
    ),
  );
  const input = (_: Value, i: number): Reference => at(inputs, i);
  expect(runGraph(on.target(), all, input), on.name).toEqual(runGraph(wasm.target(), all, input));
}

const seeds = (count: number, from = 0): readonly number[] => Array.from({ length: count }, (_, i) => from + i);

describe.skipIf(missing)("programs on native", () => {
  it("have the bits of WebAssembly's where neither fuses multiplications with additions", () => {
    expectSameBits(
      seeds(14).map((seed) => randomGraph(seed, { nodes: 5 + (seed % 30) })),
      true,
    );
  });

  it("and gradients do", () => {
    const gradients = seeds(8, 100).map((seed) => {
      const graph = randomGraph(seed, { nodes: 4 + (seed % 20), smooth: true, scalar: true, regions: false });
      return vjp(
        graph,
        graph.params.map((p) => isFloat(p.type.dtype)),
      );
    });
    expectSameBits(gradients, false);
  });

  it("and loops over random bodies do, with threads that share everything", () => {
    expectSameBits(
      seeds(8, 200).map((seed) => looped(randomCase(seed))),
      false,
      threaded,
    );
  });
});

/** Parameters and losses after some steps of a network with a recurrence, sums, a softmax and products. */
function train(options: Parameters<typeof compile>[1]): readonly (readonly number[])[] {
  const random = hostRandom(3);
  const filled = (...shape: number[]): Tensor =>
    tensor(
      Float32Array.from({ length: shape.reduce((n, e) => n * e, 1) }, () => random.next() - 0.5),
      { shape },
    );
  const [steps, batch, width] = [12, 32, 48];
  const optimizer = adam({ lr: 0.01 });
  const loss = (p: { w: Tensor; u: Tensor; v: Tensor }, xs: Tensor, y: Tensor): Tensor => {
    const [h] = scanOver(
      (state: Tensor, x: Tensor) => [x.matmul(p.w).add(state.matmul(p.u)).tanh(), state],
      p.v.mul(0),
      xs,
    );
    const logits = h.matmul(p.u).softmax(-1);
    return logits.sub(y).square().sum().add(h.cumsum(0).mean());
  };
  const step = compile(
    (s: ReturnType<typeof optimizer.init<{ w: Tensor; u: Tensor; v: Tensor }>>, xs: Tensor, y: Tensor) => {
      const [value, gradient] = valueAndGrad(loss)(s.params, xs, y);
      return [optimizer.update(s, gradient), value] as const;
    },
    { donate: [0], ...options },
  );
  let state = optimizer.init({ w: filled(width, width), u: filled(width, width), v: filled(batch, width) });
  const [xs, y] = [filled(steps, batch, width), filled(batch, width)];
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const [next, value] = step(state as never, xs as never, y as never) as readonly [typeof state, Tensor];
    state = next;
    losses.push(value.item());
  }
  return [losses, ...[state.params.w, state.params.u].map((t) => [...t.data()] as number[])];
}

describe.skipIf(missing)("a training step on native", () => {
  it("gives the same bits at every budget and on any number of threads", () => {
    const want = train({ target: "native" });
    expect(want[0]?.every(Number.isFinite)).toBe(true);
    for (const options of [{ threads: 2 }, { threads: 3, memory: "min" }] as const) {
      expect(train({ target: "native", ...options }), JSON.stringify(options)).toEqual(want);
    }
  });

  it("agrees with WebAssembly to rounding", () => {
    const [losses, w] = train({ target: "native" });
    const [expected, v] = train({ target: "wasm" });
    const apart = (a: readonly number[] = [], b: readonly number[] = []): number =>
      Math.max(...a.map((x, i) => Math.abs(x - (b[i] as number))));
    expect(apart(losses, expected)).toBeLessThan(1e-3);
    expect(apart(w, v)).toBeLessThan(1e-3);
  });
});
