/** @file Modules: named parameters, shared and frozen weights, dropout of channels, and what is refused. */
import { describe, expect, it } from "vitest";
import { grad, matmul, ones, random, type Tensor, tensor, transpose } from "../api/index.ts";
import * as nn from "./index.ts";

const x = random.normal(random.key(3), [5, 4]);

describe("a module", () => {
  const model = nn.module({ first: nn.linear(4, 4), drop: nn.dropout(0.5), last: nn.linear(4, 2) }, (layers, input) =>
    layers.last(layers.drop(layers.first(layers.first(input)).relu())),
  );
  const params = model.init(0);

  it("has the parameters of its layers by name, and shares those of a layer that is called twice", () => {
    expect(Object.keys(params)).toEqual(["first", "drop", "last"]);
    const twice = matmul(x, params.first.w).add(params.first.b).matmul(params.first.w).add(params.first.b).relu();
    expect(model.apply(params, x).toArray()).toEqual(twice.matmul(params.last.w).add(params.last.b).toArray());
  });

  it("passes keys on while training", () => {
    expect(model.random).toBe(true);
    expect(() => model.apply(params, x, { train: true })).toThrow("no key");
    const trained = (seed: number) => model.apply(params, x, { train: true, key: random.key(seed) }).toArray();
    expect(trained(1)).toEqual(trained(1));
    expect(trained(1)).not.toEqual(trained(2));
  });

  it("ties weights that its function reads directly", () => {
    const tied = nn.module({ table: nn.embedding(6, 3) }, ({ table }, ids, { table: own }) =>
      matmul(table(ids), transpose(own.table)),
    );
    const own = tied.init(0);
    const ids = tensor([1, 4], { dtype: "i32" });
    const slopes = grad((p: typeof own) => tied.apply(p, ids).square().sum())(own);
    // all rows are read as columns of the second product
    expect(slopes.table.table.shape).toEqual([6, 3]);
    expect(slopes.table.table.data().every((v) => v !== 0)).toBe(true);
  });

  it("gives frozen layers no gradient", () => {
    const half = nn.module({ a: nn.frozen(nn.linear(4, 4)), b: nn.linear(4, 1) }, ({ a, b }, v) => b(a(v)));
    const own = half.init(0);
    const slopes = grad((p: typeof own) => half.apply(p, x).sum())(own);
    expect(slopes.a.w.data().every((v) => v === 0)).toBe(true);
    expect(slopes.b.w.data().some((v) => v !== 0)).toBe(true);
  });

  it("refuses what is no layer, and layers with a state", () => {
    const none = (_: unknown, v: Tensor) => v;
    expect(() => nn.module({}, none)).toThrow("module: layers an object");
    expect(() => nn.module({ a: nn.linear as never }, none)).toThrow("a is the function linear, not a layer");
    expect(() => nn.module({ a: nn.batchNorm(3) as never }, none)).toThrow("a has a state");
    expect(() => nn.module({ a: nn.relu() }, 3 as never)).toThrow("module");
  });
});

describe("other layers", () => {
  it("dropout of channels drops all elements of a channel, or none", () => {
    const layer = nn.channelDropout(0.5);
    const y = layer.apply({}, ones([8, 16, 3, 2]), { train: true, key: random.key(1) });
    const sums = y.sum([2, 3]).data();
    expect(new Set(sums)).toEqual(new Set([0, 12]));
    expect(layer.apply({}, ones([2, 2])).toArray()).toEqual(ones([2, 2]).toArray());
    expect(() => layer.apply({}, ones([2]), { train: true, key: random.key(1) })).toThrow("channelDropout: takes");
    expect(() => nn.channelDropout(1)).toThrow("rate 1");
  });

  it("refuse what they cannot use", () => {
    expect(() => nn.stackedCell()).toThrow("no cells");
    expect(() => nn.embeddingBag(3, 2, { mode: "median" as never })).toThrow("mode");
    expect(() => nn.embeddingBag(3, 2).apply(nn.embedding(3, 2).init(0), ones([2]))).toThrow("takes i32");
    expect(() => nn.instanceNorm(3).apply(nn.instanceNorm(3).init(0), ones([2, 4, 2]))).toThrow("made for 3 channels");
  });
});
