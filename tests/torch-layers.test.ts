/**
 * @file Layers and operations of networks against PyTorch (tests/fixtures/torch/layers.py): outputs, and gradients of the
 * sum of their squares with respect to inputs and parameters, all in f64.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as tm from "../src/api/index.ts";
import { grad, Tensor, tensor } from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";

type Tensors = Readonly<Record<string, Tensor>>;
type Forward = (inputs: Tensors, params: never) => Tensors;
type Stored = { readonly shape: readonly number[]; readonly data: readonly number[] };
type StoredTree = Stored | { readonly [key: string]: StoredTree };
type Case = Readonly<Record<"inputs" | "params" | "outputs" | "inputGrads" | "paramGrads", StoredTree>>;

const cases = JSON.parse(readFileSync(new URL("./fixtures/torch/layers.json", import.meta.url), "utf8")) as Readonly<
  Record<string, Case>
>;

/** What batch normalisation keeps is no output. */
const STATISTICS = new Set(["mean", "variance"]);
const INTEGERS = new Set(["embedding.x", "cross entropy.labels"]);

/** Stored trees as trees of tensors. */
function load(stored: StoredTree, path: string): unknown {
  if ("data" in stored && Array.isArray(stored.data)) {
    const dtype = INTEGERS.has(path) ? "i32" : "f64";
    return tensor(stored.data as number[], { shape: stored.shape as number[], dtype });
  }
  return Object.fromEntries(Object.entries(stored).map(([key, item]) => [key, load(item, `${path}.${key}`)]));
}

const f64 = { dtype: "f64" } as const;
/** A layer of one input. */
function layer<P extends tm.Tree>(made: nn.Layer<P>): Forward {
  return ({ x }, params) => ({ y: made.apply(params, x!) });
}
function batchNorm(train: boolean): Forward {
  return ({ x, mean, variance }, params) => {
    const [y, state] = nn.batchNorm(3, f64).apply(params, { mean: mean!, variance: variance! }, x!, { train });
    return { y, ...state };
  };
}

const FORWARD: Readonly<Record<string, Forward>> = {
  linear: layer(nn.linear(5, 4)),
  embedding: layer(nn.embedding(5, 3)),
  "lstm cell": ({ x, h, c }, params) => ({ ...nn.lstmCell(3, 4).step(params, x!, { h: h!, c: c! }) }),
  lstm: ({ x }, params) => {
    const { outputs, state } = nn.unroll<nn.LstmParams, nn.LstmState>(nn.lstmCell(3, 4, f64), params, x!);
    return { y: tm.stack(outputs, 1), ...state };
  },
  "gru cell": ({ x, h }, params) => ({ ...nn.gruCell(3, 4).step(params, x!, { h: h! }) }),
  attention: layer(nn.multiHeadAttention(8, { heads: 2 })),
  "causal attention": layer(nn.multiHeadAttention(8, { heads: 2, causal: true })),
  "transformer block": layer(nn.transformerBlock(8, { heads: 2, hidden: 12, causal: true })),
  "batch norm": batchNorm(true),
  "batch norm at rest": batchNorm(false),
  "layer norm": layer(nn.layerNorm(6)),
  "group norm": layer(nn.groupNorm(2, 4)),
  conv1d: layer(nn.conv1d(3, 4, 3, { stride: 2, padding: 1 })),
  conv2d: layer(nn.conv2d(4, 6, [3, 2], { stride: [2, 1], padding: 1, dilation: [1, 2], groups: 2 })),
  "conv transpose 1d": layer(nn.convTranspose1d(3, 4, 3, { stride: 2, padding: 1, outputPadding: 1 })),
  "conv transpose 2d": layer(nn.convTranspose2d(4, 4, [3, 2], { stride: 2, padding: 1, groups: 2 })),
  "max pool": layer(nn.maxPool2d(3, { stride: 2, padding: 1 })),
  "average pool": layer(nn.avgPool2d(2)),
  "padded average pool": layer(nn.avgPool2d(3, { stride: 2, padding: 1 })),
  gelu: layer(nn.geluExact()),
  "gelu tanh": layer(nn.gelu()),
  silu: layer(nn.silu()),
  softmax: layer(nn.softmax()),
  "cross entropy": ({ x, labels }) => ({ y: tm.crossEntropy(x!, labels!) }),
};

/** Everything that is stored must have been found, and be equal. */
function compare(found: unknown, stored: StoredTree, path: string): void {
  if ("data" in stored && Array.isArray(stored.data)) {
    expect(found, path).toBeInstanceOf(Tensor);
    const { shape, data } = stored as Stored;
    expect((found as Tensor).shape, path).toEqual(shape);
    const own = (found as Tensor).data();
    const worst = data.reduce((w, x, i) => Math.max(w, Math.abs(x - own[i]!) / (1 + Math.abs(x))), 0);
    expect(worst, path).toBeLessThan(1e-9);
    return;
  }
  for (const [key, item] of Object.entries(stored)) {
    compare((found as Record<string, unknown>)[key], item, `${path}.${key}`);
  }
}

describe("layers follow PyTorch", () => {
  it("in every case that the fixture has", () => {
    expect(Object.keys(FORWARD).sort()).toEqual(Object.keys(cases).sort());
  });

  for (const [name, { inputs, params, outputs, inputGrads, paramGrads }] of Object.entries(cases)) {
    it(`${name}: outputs and gradients`, () => {
      const forward = FORWARD[name]!;
      const x = load(inputs, name) as Tensors;
      const p = load(params, name) as never;
      compare(forward(x, p), outputs, name);
      const floats = Object.fromEntries(Object.entries(x).filter(([, leaf]) => leaf.dtype === "f64"));
      const loss = (some: Tensors, own: never): Tensor => {
        const made = Object.entries(forward({ ...x, ...some }, own)).filter(([key]) => !STATISTICS.has(key));
        return made.map(([, y]) => y.square().sum()).reduce((a, b) => a.add(b));
      };
      const [byInput, byParam] = grad(loss, { argnums: [0, 1] })(floats, p);
      compare(byInput, inputGrads, `${name}: inputs`);
      compare(byParam, paramGrads, `${name}: params`);
    });
  }
});
