/**
 * @file Nothing is read that the plan calls dead. A program runs step by step; after each step every byte that holds no
 * live value is overwritten with 0xff, which is NaN for floats and an index out of range for integers:
 *
 *   step      0     1     2
 *   a        ███████░░░░░░░░      ░ 0xff: a's last reader was step 1
 *   b        ░░░░░░███████████
 *
 * What is live comes from the lifespans of values, which are finer than those of buffers. Results keep every bit.
 */

import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import { traceProgram } from "../src/api/traced-program.ts";
import { vjp } from "../src/autodiff/vjp.ts";
import { type AnyProgram, BUILT_IN } from "../src/cli/programs/built-in.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { adam } from "../src/optim/adam.ts";
import { type AnyFunction, flattenArguments } from "../src/trace/function.ts";
import { check, checkStep, load, poisonDead, results } from "./support/poison.ts";
import { randomGraph, randomInputs } from "./support/random-graph.ts";

/** One block with attention over 8 positions of 11 tokens, with Adam. */
function smallTransformer(): readonly [AnyFunction, readonly unknown[]] {
  const [width, time, vocabulary] = [16, 8, 11];
  const draw = (seed: number, ...shape: number[]) => tm.random.normal(tm.random.key(seed), shape).mul(0.1);
  const params = {
    ...{ tok: draw(1, vocabulary, width), qkv: draw(2, width, 3 * width), out: draw(3, width, width) },
    ...{ up: draw(4, width, 4 * width), down: draw(5, 4 * width, width), scale: tm.ones([width]) },
  };
  const optimizer = adam({ lr: 0.01 });
  const loss = (p: typeof params, ids: tm.Tensor, next: tm.Tensor): tm.Tensor => {
    const x = tm.take(p.tok, ids);
    const [q, k, v] = tm.split(tm.layerNorm(x, { scale: p.scale }).matmul(p.qkv), 3, 2) as [
      tm.Tensor,
      tm.Tensor,
      tm.Tensor,
    ];
    const h = x.add(tm.attention(q, k, v, { causal: true }).matmul(p.out));
    const y = h.add(tm.layerNorm(h).matmul(p.up).gelu().matmul(p.down));
    return tm.crossEntropy(y.matmul(p.tok, { tb: true }), next);
  };
  const state = optimizer.init(params);
  const step = (s: typeof state, ids: tm.Tensor, next: tm.Tensor) => {
    const [value, grads] = tm.valueAndGrad(loss)(s.params, ids, next);
    return [optimizer.update(s, grads), value];
  };
  const ids = tm.tensor(
    Int32Array.from({ length: 2 * time }, (_, i) => (i * 7 + 3) % vocabulary),
    { shape: [2, time] },
  );
  return [step as AnyFunction, [state, ids, ids]];
}

describe("with every dead byte overwritten after each step, results keep every bit:", () => {
  test.each(["mlp", "cnn"])("the training step of %s", (name) => {
    const program = BUILT_IN.find((p) => p.name === name) as AnyProgram;
    expect(checkStep(program.step as AnyFunction, [program.init(), ...program.batch()])).toBeGreaterThan(0);
  });

  test("the training step of a small transformer", () => {
    expect(checkStep(...smallTransformer())).toBeGreaterThan(0);
  });

  test("random programs and gradients of random programs", () => {
    let dead = 0;
    for (let seed = 0; seed < 50; seed++) {
      const graph = randomGraph(seed, { nodes: 5 + (seed % 30) });
      dead += check(graph, randomInputs(graph, seed));
      const scalar = randomGraph(seed, { nodes: 5 + (seed % 30), smooth: true, scalar: true, regions: false });
      const gradient = vjp(
        scalar,
        scalar.params.map((p) => isFloat(p.type.dtype)),
      );
      dead += check(gradient, randomInputs(gradient, seed));
    }
    expect(dead).toBeGreaterThan(0);
  });

  test("and a value that is overwritten while it lives is noticed", () => {
    const fn = ((x: tm.Tensor) => x.mul(2).sum()) as AnyFunction;
    const { graph } = traceProgram(fn, flattenArguments(fn, [tm.ones([4])]), {});
    const executable = loadGraph(graph, { stepwise: true });
    const poisonAll = (): void => executable.memory.fill(0, executable.placed.plan.height, 0xff);
    poisonAll();
    executable.runStepwise(() => undefined);
    expect(results(executable, graph)[0]).toEqual(Float32Array.of(Number.NaN));
    poisonAll();
    load(executable, graph, [Float32Array.of(1, 1, 1, 1)]);
    executable.runStepwise((kernel) => poisonDead(executable, kernel));
    expect(results(executable, graph)[0]).toEqual(Float32Array.of(8));
  });
});
