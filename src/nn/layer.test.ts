/** @file Layers beyond their numbers: what they are made of, how they nest, what they refuse. */
import { describe, expect, expectTypeOf, it } from "vitest";
import { compile, grad, ones, random, stack, type Tensor, tensor } from "../api/index.ts";
import { flatten } from "../trace/tree.ts";
import * as nn from "./index.ts";

const x = random.normal(random.key(3), [8, 4]);

describe("sequential", () => {
  const model = nn.sequential(nn.linear(4, 6), nn.tanh(), nn.linear(6, 2, { bias: false }));

  it("has a tuple of parameters whose types are those of its layers", () => {
    const params = model.init(1);
    expectTypeOf(params[0]).toEqualTypeOf<nn.Weights<true>>();
    expectTypeOf(params[2].w).toEqualTypeOf<Tensor>();
    expectTypeOf(params[2]).not.toHaveProperty("b");
    expect(params.map((p) => Object.keys(p))).toEqual([["w", "b"], [], ["w"]]);
    expect(params[0].b.shape).toEqual([6]);
  });

  it("is the composition of its layers", () => {
    const params = model.init(1);
    const expected = x.matmul(params[0].w).add(params[0].b).tanh().matmul(params[2].w);
    expect(model.apply(params, x).data()).toEqual(expected.data());
  });

  it("gives every layer a key of its own, and the same key the same parameters", () => {
    const twice = nn.sequential(nn.linear(3, 3), nn.linear(3, 3));
    const [a, b] = twice.init(5);
    expect(a.w.data()).not.toEqual(b.w.data());
    expect(twice.init(random.key(5))[1].w.data()).toEqual(b.w.data());
  });

  it("nests, and is differentiated and compiled like any function", () => {
    const outer = nn.sequential(
      model,
      nn.lambda((y) => y.square()),
    );
    const params = outer.init(2);
    const loss = (p: typeof params, v: Tensor): Tensor => outer.apply(p, v).sum();
    const slopes = grad(loss)(params, x);
    expect(slopes[0][2].w.shape).toEqual([6, 2]);
    expect(compile(loss)(params, x).item()).toBeCloseTo(loss(params, x).item(), 4);
  });

  it("has state as soon as one of its layers has", () => {
    const normed = nn.sequential(nn.linear(4, 3), nn.batchNorm(3), nn.relu());
    const params = normed.init(0);
    const state = normed.initState();
    expectTypeOf(state[1]).toEqualTypeOf<nn.BatchNormState>();
    const [y, next] = normed.apply(params, state, x, { train: true });
    expect(y.shape).toEqual([8, 3]);
    expect(state[1].mean.toArray()).toEqual([0, 0, 0]);
    expect(next[1].mean.data()).not.toEqual(state[1].mean.data());
    const [, same] = normed.apply(params, next, x);
    expect(same[1]).toBe(next[1]);
  });

  it("carries running statistics through a compiled step", () => {
    const normed = nn.sequential(nn.linear(4, 3), nn.batchNorm(3));
    const params = normed.init(0);
    type State = ReturnType<typeof normed.initState>;
    const step = compile((s: State, v: Tensor) => normed.apply(params, s, v, { train: true })[1], { donate: [0] });
    let kept = normed.initState();
    let expected = normed.initState();
    for (let i = 0; i < 3; i++) {
      kept = step(kept, x);
      expected = normed.apply(params, expected, x, { train: true })[1];
    }
    kept[1].variance.data().forEach((v, i) => {
      expect(v).toBeCloseTo(expected[1].variance.data()[i]!, 5);
    });
  });
});

describe("dropout", () => {
  const drop = nn.dropout(0.5);

  it("is the identity unless training", () => {
    expect(drop.apply({}, x)).toBe(x);
    expect(drop.apply({}, x, { key: random.key(0) })).toBe(x);
  });

  it("draws with its key, and differently at each place of a sequence", () => {
    const key = random.key(4);
    const wide = ones([1000]);
    const y = drop.apply({}, wide, { train: true, key });
    expect(y.data()).toEqual(drop.apply({}, wide, { train: true, key }).data());
    expect(y.mean().item()).toBeCloseTo(1, 0);
    const both = nn.sequential(nn.dropout(0.5), nn.dropout(0.5));
    const kept = both
      .apply(both.init(0), wide, { train: true, key })
      .data()
      .filter((v) => v !== 0);
    // one mask twice would keep a half
    expect(kept.length).toBeLessThan(350);
    expect(new Set(kept)).toEqual(new Set([4]));
  });

  it("without a key is refused while training", () => {
    expect(() => drop.apply({}, x, { train: true })).toThrow("no key to draw them from");
    const block = nn.transformerBlock(4, { heads: 2, dropout: 0.1 });
    expect(() => block.apply(block.init(0), ones([2, 4]), { train: true })).toThrow("dropout");
    expect(block.random).toBe(true);
  });
});

describe("attention", () => {
  it("that is causal does not see what comes later, and a mask says the same", () => {
    const options = { heads: 2 };
    const layer = nn.multiHeadAttention(4, { ...options, causal: true });
    const params = layer.init(0);
    const early = layer.apply(params, x.slice([[0, 3]]));
    const all = layer.apply(params, x);
    early.data().forEach((v, i) => {
      expect(all.data()[i]).toBeCloseTo(v, 5);
    });
    const masked = nn.multiHeadAttention(4, options).apply(params, x, { mask: ones([8, 8]).tril().greater(0) });
    masked.data().forEach((v, i) => {
      expect(all.data()[i]).toBeCloseTo(v, 5);
    });
  });
});

describe("recurrent cells", () => {
  it("stack by handing lists of outputs on", () => {
    const [first, second] = [nn.lstmCell(4, 5), nn.gruCell(5, 3)];
    const inputs = random.normal(random.key(1), [2, 6, 4]);
    const lower = nn.unroll(first, first.init(0), inputs);
    const upper = nn.unroll(second, second.init(1), lower.outputs);
    expect(upper.outputs).toHaveLength(6);
    expect(upper.state.h).toBe(upper.outputs[5]);
    // continuing from a state is the same as running through
    const params = first.init(0);
    const half = nn.unroll(first, params, inputs.slice([null, [0, 3]]));
    const rest = nn.unroll(first, params, inputs.slice([null, [3, 6]]), half.state);
    expect(rest.state.c.data()).toEqual(lower.state.c.data());
  });

  it("give the same bits as a loop of the program, with gradients, continued from a state", () => {
    const inputs = random.normal(random.key(1), [2, 6, 4]);
    const run = (cell: nn.Cell<object, object>): void => {
      const params = cell.init(0);
      const looped = compile((p: object, x: Tensor) => nn.scanCell(cell, p, x))(params, inputs);
      const written = compile((p: object, x: Tensor) => {
        const { outputs, state } = nn.unroll(cell, p, x);
        return { outputs: stack(outputs, 1), state };
      })(params, inputs);
      const bits = (tree: object): readonly number[][] => flatten(tree, "tree").leaves.map((leaf) => [...leaf.data()]);
      expect(bits(looped)).toEqual(bits(written));
      const half = nn.scanCell(cell, params, inputs.slice([null, [0, 3]]));
      const rest = nn.scanCell(cell, params, inputs.slice([null, [3, 6]]), half.state);
      expect(bits(rest.state)).toEqual(bits(looped.state));
      const [a, b] = [
        grad((p: object) => nn.scanCell(cell, p, inputs).outputs.square().sum())(params),
        grad((p: object) =>
          stack(nn.unroll(cell, p, inputs).outputs, 1)
            .square()
            .sum(),
        )(params),
      ].map(bits);
      a?.forEach((leaf, n) => {
        leaf.forEach((v, i) => {
          expect(v).toBeCloseTo(b?.[n]?.[i] ?? Number.NaN, 4);
        });
      });
    };
    run(nn.lstmCell(4, 5) as unknown as nn.Cell<object, object>);
    run(nn.gruCell(4, 3) as unknown as nn.Cell<object, object>);
  });
});

describe("layers refuse", () => {
  const cases: readonly [string, () => unknown][] = [
    ["linear: made for 512 features, got 784 in f32[32,784]", () => apply(nn.linear(512, 8), ones([32, 784]))],
    ["linear: made for 3 features, got f32[]", () => apply(nn.linear(3, 8), tensor(1))],
    ["linear: inFeatures 0", () => nn.linear(0, 8)],
    ["conv2d: made for 3 channels, got 1 in f32[2,1,8,8]", () => apply(nn.conv2d(3, 4, 3), ones([2, 1, 8, 8]))],
    ["conv2d: 3 and 4 channels in 2 groups", () => nn.conv2d(3, 4, 3, { groups: 2 })],
    ["conv2d: kernel [1,2,3] for 2 spatial axes", () => nn.conv2d(3, 4, [1, 2, 3])],
    ["embedding: takes i32 numbers, got f32[2]", () => apply(nn.embedding(5, 2), ones([2]))],
    ["layerNorm: made for 6 features, got 4 in f32[8,4]", () => apply(nn.layerNorm(6), x)],
    ["rmsNorm: made for 6 features, got 4", () => apply(nn.rmsNorm(6), x)],
    ["groupNorm: 6 channels in 4 groups", () => nn.groupNorm(4, 6)],
    ["batchNorm: one value for each channel", () => statefulApply(nn.batchNorm(4), ones([1, 4]))],
    ["batchNorm: momentum 2", () => nn.batchNorm(4, { momentum: 2 })],
    ["multiHeadAttention: 8 features in 3 heads", () => nn.multiHeadAttention(8, { heads: 3 })],
    [
      "multiHeadAttention: takes [..., positions, features]",
      () => apply(nn.multiHeadAttention(4, { heads: 2 }), ones([4])),
    ],
    ["transformerBlock: made for 8 features", () => apply(nn.transformerBlock(8, { heads: 2 }), x)],
    ["lstmCell: made for 3 features, got 4", () => nn.unroll(nn.lstmCell(3, 2), nn.lstmCell(3, 2).init(0), [x])],
    ["unroll: takes [batch, time, features]", () => nn.unroll(nn.lstmCell(4, 2), nn.lstmCell(4, 2).init(0), x)],
    ["scanCell: takes [batch, time, features]", () => nn.scanCell(nn.lstmCell(4, 2), nn.lstmCell(4, 2).init(0), x)],
    ["unroll: an empty sequence", () => nn.unroll(nn.lstmCell(4, 2), nn.lstmCell(4, 2).init(0), [])],
    ["dropout: rate 1", () => nn.dropout(1)],
    ["flatten: f32[8,4] has no axis 3", () => apply(nn.flatten(3), x)],
  ];
  function apply<P extends object>(layer: nn.Layer<P>, input: Tensor): Tensor {
    return layer.apply(layer.init(0), input);
  }
  function statefulApply<P extends object, S extends object>(layer: nn.StatefulLayer<P, S>, input: Tensor): unknown {
    return layer.apply(layer.init(0), layer.initState(), input, { train: true });
  }

  it.each(cases)("%s", (message, run) => {
    expect(run).toThrow(message);
    expect(run).toThrow("help: ");
    expect(run).toThrow("layer.test.ts");
  });
});
