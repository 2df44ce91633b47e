/** @file Optimizers beyond their numbers: the state they carry, where their nodes are, what they refuse. */
import { describe, expect, it } from "vitest";
import { compile, grad, plan, random, spec, type Tensor, tensor, tree, valueAndGrad } from "../api/index.ts";
import { traceFunction } from "../trace/function.ts";
import { flatten, treeKey } from "../trace/tree.ts";
import * as optim from "./index.ts";

const made = () => ({ layers: [{ w: random.normal(random.key(1), [3, 2]), b: tensor([0, 0]) }], gain: tensor(1) });
const params = made();
const x = random.normal(random.key(2), [16, 3]);
const y = x.slice([null, [0, 2]]);
const loss = (p: typeof params, input: Tensor, target: Tensor): Tensor => {
  const [layer] = p.layers;
  return input.matmul(layer!.w).add(layer!.b).mul(p.gain).sub(target).square().mean();
};

/** Largest difference between two trees. */
function distance(a: object, b: object): number {
  const [p, q] = [a, b].map((tree) => flatten(tree, "tree").leaves.flatMap((leaf) => [...leaf.cast("f64").data()]));
  return Math.max(...p!.map((v, i) => Math.abs(v - q![i]!)));
}

const OPTIMIZERS: readonly [string, optim.Optimizer][] = [
  ["sgd", optim.sgd({ lr: 0.2 })],
  ["sgd with momentum", optim.sgd({ lr: 0.02, momentum: 0.9, nesterov: true })],
  ["sgd with momentum of 16 bits", optim.sgd({ lr: 0.02, momentum: 0.9, momentumType: "bf16" })],
  ["adam", optim.adam({ lr: 0.1 })],
  ["adamw", optim.adamw({ lr: optim.warmupCosine(0.2, { warmup: 5, total: 60 }), clip: optim.clipByGlobalNorm(1) })],
  ["rmsprop", optim.rmsprop({ lr: 0.02, momentum: 0.5, centered: true })],
  ["adagrad", optim.adagrad({ lr: 0.5 })],
  ["lion", optim.lion({ lr: optim.exponential(0.15, 0.96) })],
  ["lamb", optim.lamb({ lr: optim.exponential(0.2, 0.97) })],
  ["adafactor", optim.adafactor({ lr: 0.15 })],
  ["lbfgs", optim.lbfgs({ lr: 0.5, history: 3 })],
  ["adam8bit", optim.adam8bit({ lr: 0.1, leastElements: 1 })],
  ["adamw8bit, small ones in full", optim.adamw8bit({ lr: 0.1 })],
  ["adamMini", optim.adamMini({ lr: 0.1 })],
  ["galore", optim.galore({ lr: 0.2, rank: 1, every: 5, scale: 1 })],
  ["an average", optim.ema(optim.adam({ lr: 0.1 }), 0.9)],
];

describe.each(OPTIMIZERS)("%s", (name, optimizer) => {
  it("keeps the structure and the types of its state", () => {
    const before = optimizer.init(params);
    const after = optimizer.update(before, grad(loss)(params, x, y));
    const [a, b] = [flatten(before, "state"), flatten(after, "state")];
    expect(treeKey(b.def)).toBe(treeKey(a.def));
    expect(b.paths).toEqual(a.paths);
    expect(b.leaves.map((leaf) => [leaf.dtype, leaf.shape])).toEqual(a.leaves.map((leaf) => [leaf.dtype, leaf.shape]));
  });

  it.skipIf(name === "lbfgs")("updates parameters of 16 bits in f32, in which it keeps their moments", () => {
    const trained = (dtype: "f32" | "f16") => {
      const own = tree.map((leaf) => leaf.cast(dtype), params);
      const step = compile((state: optim.OptimizerState<typeof params>, input: Tensor, target: Tensor) =>
        optimizer.update(state, grad(loss)(state.params, input, target)),
      );
      let state = optimizer.init(own);
      for (let i = 0; i < 12; i++) state = step(state, x.cast(dtype), y.cast(dtype));
      return state;
    };
    const [half, full] = [trained("f16"), trained("f32")];
    expect(flatten(half.params, "params").leaves.every(({ dtype }) => dtype === "f16")).toBe(true);
    expect(flatten(half.slots, "slots").leaves.some(({ dtype }) => dtype === "f16")).toBe(false);
    expect(distance(half.params, full.params)).toBeLessThan(0.02);
  });

  it("trains in a compiled step that is given its state to keep", () => {
    const step = compile(
      (state: optim.OptimizerState<typeof params>, input: Tensor, target: Tensor) => {
        const [value, grads] = valueAndGrad(loss)(state.params, input, target);
        return [optimizer.update(state, grads), value] as const;
      },
      { donate: [0] },
    );
    // the first state is given up to the step
    let state = optimizer.init(made());
    let expected = optimizer.init(params);
    const first = loss(params, x, y).item();
    for (let i = 0; i < 60; i++) {
      [state] = step(state, x, y);
      if (i < 3) expected = optimizer.update(expected, grad(loss)(expected.params, x, y));
      if (i === 2) expect(distance(state, expected)).toBeLessThan(1e-5);
    }
    expect(loss(state.params, x, y).item()).toBeLessThan(first / 20);
    expect(state.step.item()).toBe(60);
  });
});

describe("an update", () => {
  it("is marked as such in the program, and nothing else is", () => {
    const optimizer = optim.adam();
    const { graph } = traceFunction(
      (state: optim.OptimizerState<typeof params>) =>
        optimizer.update(state, grad((p: typeof params) => loss(p, x, y))(state.params)),
      [optimizer.init(params)],
    );
    const phases = graph.nodes.map((node) => node.phase);
    const first = phases.indexOf("update");
    expect(phases.slice(0, first)).toContain("backward");
    expect(new Set(phases.slice(first))).toEqual(new Set(["update"]));
  });

  it("decays the parameters that it is asked to", () => {
    const none = { layers: [{ w: tensor([[1]]), b: tensor([1]) }] };
    const zero = { layers: [{ w: tensor([[0]]), b: tensor([0]) }] };
    for (const make of [optim.sgd, optim.adamw]) {
      const optimizer = make({ lr: 0.5, weightDecay: 0.5, decays: (path) => path.endsWith(".w") });
      const { layers } = optimizer.update(optimizer.init(none), zero).params;
      expect([layers[0]!.w.item(), layers[0]!.b.item()]).toEqual([0.75, 1]);
    }
  });

  it("leaves parameters alone that it does not train, and keeps nothing for them", () => {
    const trains = (path: string) => !path.startsWith("params.layers");
    for (const optimizer of [
      optim.adamw({ trains }),
      optim.adafactor({ trains }),
      optim.sgd({ trains, momentum: 0.9 }),
    ]) {
      const before = optimizer.init(params);
      const after = optimizer.update(before, grad(loss)(params, x, y));
      expect(after.params.layers[0]!.w.toArray()).toEqual(params.layers[0]!.w.toArray());
      expect(after.params.gain.item()).not.toBe(1);
      for (const slot of Object.values(after.slots)) expect(slot.layers[0]!.w.elements).toBe(0);
    }
  });

  it("refuses gradients of another structure or shape, and parameters that are not floats", () => {
    const sgd = optim.sgd();
    const state = sgd.init({ w: tensor([1, 2]) });
    expect(() => sgd.update(state, { v: tensor([1, 2]) } as never)).toThrow("grads.w should be a tensor");
    expect(() => sgd.update(state, { w: tensor([1]) })).toThrow(
      "the gradient of params.w is f32[1], the parameter is f32[2]",
    );
    expect(() => sgd.init({ ids: tensor([1], { dtype: "i32" }) })).toThrow("params.ids is i32[1]");
  });

  it("refuses settings that make no sense", () => {
    expect(() => optim.sgd({ momentum: 1 })).toThrow("momentum 1");
    expect(() => optim.sgd({ nesterov: true })).toThrow("nesterov without momentum");
    expect(() => optim.sgd({ momentum: 0.9, momentumType: "f16" as "bf16" })).toThrow(
      'momentumType is the string "f16"',
    );
    expect(() => optim.sgd({ momentumType: "bf16" })).toThrow("momentumType without momentum");
    expect(() => optim.sgd({ momentum: 0.999, momentumType: "bf16" })).toThrow("momentum 0.999 in bf16");
    expect(() => optim.adam({ lr: -1 })).toThrow("adam: lr -1");
    expect(() => optim.adam({ beta2: 1 })).toThrow("beta2 1");
    expect(() => optim.rmsprop({ alpha: 2 })).toThrow("alpha 2");
    expect(() => optim.adagrad({ eps: Number.NaN })).toThrow("eps NaN");
    expect(() => optim.clipByGlobalNorm(0)).toThrow("limit 0");
    expect(() => optim.lion({ beta1: 1 })).toThrow("beta1 1");
    expect(() => optim.lbfgs({ history: 0 })).toThrow("history 0");
    expect(() => optim.lamb({ eps: -1 })).toThrow("eps -1");
    expect(() => optim.adafactor({ clipUpdate: 0 })).toThrow("clipUpdate 0");
    expect(() => optim.adam8bit({ beta1: 1 })).toThrow("beta1 1");
    expect(() => optim.galore({ rank: 0 })).toThrow("rank 0");
    expect(() => optim.adamMini({ blocks: () => [2, 1] }).init({ w: tensor([[1, 2]]) })).toThrow(
      "blocks [2,1] of params.w, whose shape is [1,2]",
    );
    expect(() => optim.ema(optim.sgd(), 1)).toThrow("decay 1");
    expect(() => optim.accumulate(loss, 0)).toThrow("0 parts");
    expect(() => optim.accumulate(loss, 5)(params, x, y)).toThrow("has 16 examples for 5 parts");
  });
});

describe("a batch in parts", () => {
  it("has the loss and the gradients of the whole batch", () => {
    const [value, grads] = valueAndGrad(loss)(params, x, y);
    const [sum, means] = compile(optim.accumulate(loss, 4))(params, x, y);
    expect(sum.item()).toBeCloseTo(value.item(), 6);
    expect(distance(means, grads)).toBeLessThan(1e-6);
  });

  it("needs memory for the activations of one part", () => {
    const wide = (w: Tensor, input: Tensor): Tensor => {
      let h = input;
      for (let i = 0; i < 6; i++) h = h.matmul(w).tanh();
      return h.square().mean();
    };
    const specs = [spec([32, 32]), spec([512, 32])] as const;
    const whole = plan(valueAndGrad(wide))(...specs).arenaBytes;
    expect(plan(optim.accumulate(wide, 8))(...specs).arenaBytes).toBeLessThan(whole / 2);
  });
});

describe("learning rates", () => {
  const at = (schedule: optim.Schedule, step: number): number => schedule(tensor(step, { dtype: "i32" })).item();

  it("warm up in a straight line whose first step is not zero", () => {
    const rate = optim.linearWarmup(0.4, 4);
    expect([0, 1, 2, 3, 9].map((step) => Number(at(rate, step).toFixed(6)))).toEqual([0.1, 0.2, 0.3, 0.4, 0.4]);
  });

  it("fall along the cosine after the warm-up", () => {
    const rate = optim.warmupCosine(1, { warmup: 2, total: 10, end: 0.2 });
    expect([0, 1, 2, 6, 10, 99].map((step) => Number(at(rate, step).toFixed(5)))).toEqual([0.5, 1, 1, 0.6, 0.2, 0.2]);
  });

  it("are constant when they are", () => {
    expect(at(optim.constant(0.25), 7)).toBe(0.25);
  });

  it("refuse counts that are none", () => {
    expect(() => optim.cosine(1, 0)).toThrow("cosine: steps 0");
    expect(() => optim.warmupCosine(1, { warmup: 5, total: 5 })).toThrow("total - warmup 0");
    expect(() => optim.piecewise([3, 2], [1, 2, 3])).toThrow("boundaries [3, 2]");
    expect(() => optim.piecewise([3], [1])).toThrow("1 values for boundaries [3]");
  });
});

describe("clipping", () => {
  it("leaves small gradients alone and chains", () => {
    const grads = { a: tensor([0.3]), b: tensor([[0.4]]) };
    expect(optim.globalNorm(grads).item()).toBeCloseTo(0.5, 6);
    expect(optim.clipByGlobalNorm(10)(grads).a.item()).toBeCloseTo(0.3, 6);
    const both = optim.chain(optim.clipByValue(0.3), optim.clipByGlobalNorm(0.3));
    const { a, b } = both(grads);
    expect(a.item()).toBeCloseTo(b.item(), 6);
    expect(optim.globalNorm({ a, b }).item()).toBeCloseTo(0.3, 5);
  });
});
