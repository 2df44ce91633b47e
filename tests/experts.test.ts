/**
 * @file Mixtures of experts: values and gradients are those of a dense formulation in which every expert computes every token;
 * every target computes the same bits, whatever the router does; memory is planned for any routing and is within 1.15 of the dense
 * layer of the same active width; bad input has clear errors or defined results.
 */
import { describe, expect, it } from "vitest";
import * as tm from "../src/api/index.ts";
import { grad, type Tensor } from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";
import type { MixtureOptions, MixtureParams } from "../src/nn/mixture.ts";
import type { Target, TargetAnswer } from "../src/runtime/device.ts";
import { LARGE_DEVICE } from "./support/blocks.ts";
import { blocksTarget } from "./support/blocks-target.ts";
import { plainTargets } from "./support/targets.ts";
import "./support/host.ts";

const f64 = { dtype: "f64" } as const;

type Shape = Pick<MixtureOptions, "experts"> & { readonly active: number; readonly gated?: boolean };

/** Every expert computes every token; weights are zero where it was not chosen. */
function dense(params: MixtureParams, x: Tensor, { experts, active }: Shape): Tensor {
  const probabilities = x.matmul(params.router).softmax(1);
  let [left, chosen] = [probabilities, tm.zerosLike(probabilities)];
  for (let j = 0; j < active; j++) {
    const choice = tm.oneHot(left.argmax(1), experts, x.dtype).greater(0.5);
    chosen = chosen.add(tm.where(choice, probabilities, 0));
    left = tm.where(choice, -1, left);
  }
  const gates = active > 1 ? chosen.div(chosen.sum(1, { keepDims: true })) : chosen;
  let y = tm.zerosLike(x);
  for (let e = 0; e < experts; e++) {
    const up = tm.gelu(x.matmul(params.up.slice([e])));
    const inner = params.gate ? up.mul(x.matmul(params.gate.slice([e]))) : up;
    y = y.add(inner.matmul(params.down.slice([e])).mul(gates.slice([null, [e, e + 1]])));
  }
  return y;
}

const weigh = (y: Tensor): Tensor => y.mul(tm.sin(tm.arange(y.elements, y.dtype as "f64").reshape(y.shape))).sum();

/** Largest difference, against the largest number. */
function difference(a: Tensor, b: Tensor): number {
  return a.sub(b).abs().max().item() / Math.max(1e-30, b.abs().max().item());
}

/** The values and all gradients of the layer are those of the dense formulation. */
function compareWithDense(layer: nn.MixtureLayer, shape: Shape, params: MixtureParams, x: Tensor): void {
  expect(difference(layer.apply(params, x).y, dense(params, x, shape))).toBeLessThan(1e-13);
  const both = { argnums: [0, 1] } as const;
  const [dp, dx] = grad((p: MixtureParams, t: Tensor) => weigh(layer.apply(p, t).y), both)(params, x);
  const [wantP, wantX] = grad((p: MixtureParams, t: Tensor) => weigh(dense(p, t, shape)), both)(params, x);
  expect(difference(dx, wantX)).toBeLessThan(1e-12);
  for (const key of Object.keys(wantP) as (keyof MixtureParams)[]) {
    expect(difference(dp[key] as Tensor, wantP[key] as Tensor), key).toBeLessThan(1e-12);
  }
}

/** A router that sends every token to the first experts: a token's first feature is 1. */
function allToFirst(params: MixtureParams, x: Tensor): readonly [MixtureParams, Tensor] {
  const [tokens, features] = x.shape as [number, number];
  const ones = tm.ones([tokens, 1], x.dtype);
  const [, experts] = params.router.shape as [number, number];
  const order = tm
    .arange(experts, x.dtype as "f32")
    .mul(-100)
    .expandDims(0);
  const router = tm.concat([order, tm.zeros([features - 1, experts], x.dtype)]);
  return [{ ...params, router }, tm.concat([ones, x.slice([null, [1, features]])], 1)];
}

describe("the value and the gradients of a mixture are those of a dense formulation", () => {
  for (const [name, options] of [
    ["two of four, gated", { experts: 4, active: 2, gated: true }],
    ["one of three", { experts: 3, active: 1 }],
    ["all of three", { experts: 3, active: 3 }],
    ["one of one", { experts: 1, active: 1 }],
  ] as const) {
    it(name, () => {
      const layer = nn.mixtureOfExperts(6, { ...options, hidden: 10, tile: 4, ...f64 });
      const x = tm.random.normal(tm.random.key(1), [19, 6], f64);
      compareWithDense(layer, options, layer.init(7), x);
    });
  }

  it("where every token goes to the same experts", () => {
    const options = { experts: 4, active: 2 };
    const layer = nn.mixtureOfExperts(6, { ...options, hidden: 10, tile: 4, ...f64 });
    const [params, x] = allToFirst(layer.init(7), tm.random.normal(tm.random.key(1), [19, 6], f64));
    expect(layer.apply(params, x).load.toArray()).toEqual([19, 19, 0, 0]);
    compareWithDense(layer, options, params, x);
  });

  it("under a capacity that drops nothing, and drops count and add nothing elsewhere", () => {
    const options = { experts: 4, active: 2 };
    const shared = { ...options, hidden: 10, ...f64 };
    const ample = nn.mixtureOfExperts(6, { ...shared, capacity: 2 });
    const x = tm.random.normal(tm.random.key(1), [19, 6], f64);
    const params = ample.init(7);
    compareWithDense(ample, options, params, x);
    expect(ample.apply(params, x).dropped.item()).toBe(0);
    // ten rows each: of 19 first choices and 19 second ones
    const tight = nn.mixtureOfExperts(6, { ...shared, capacity: 1 });
    expect([ample.rows(19), tight.rows(19)]).toEqual([76, 40]);
    const [skewed, tokens] = allToFirst(params, x);
    const { y, dropped } = tight.apply(skewed, tokens);
    expect(dropped.item()).toBe(18);
    const want = dense(skewed, tokens, options);
    expect(difference(y.slice([[0, 10]]), want.slice([[0, 10]]))).toBeLessThan(1e-13);
    expect(
      y
        .slice([[10, 19]])
        .abs()
        .max()
        .item(),
    ).toBe(0);
  });
});

type Params = Record<string, Tensor>;

function stepOn(target: Target, layer: nn.MixtureLayer): tm.Compiled<[Params, Tensor], readonly Tensor[]> {
  const lossOf = (p: Params, t: Tensor): Tensor => {
    const { y, balance, zLoss } = layer.apply(p as never, t);
    return weigh(y).add(balance.mul(0.1)).add(zLoss.mul(0.01));
  };
  const step = (p: Params, t: Tensor): readonly Tensor[] => {
    const [loss, [dp, dx]] = tm.valueAndGrad(lossOf, { argnums: [0, 1] })(p, t);
    return [loss, dx, ...Object.values(dp)];
  };
  return tm.compile(step, { target });
}

const PLAIN_DEVICE = { ...LARGE_DEVICE, fma: false };

function found(answer: TargetAnswer): Target {
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

const bitsOf = (tensors: readonly Tensor[]): readonly Buffer[] =>
  tensors.map((t) => {
    const { buffer, byteOffset, byteLength } = t.data() as Float32Array;
    return Buffer.from(new Uint8Array(buffer, byteOffset, byteLength));
  });

it("every target computes the same bits in the planned memory, whatever the router does", () => {
  const layer = nn.mixtureOfExperts(20, { experts: 5, active: 2, hidden: 36, gated: true, tile: 8 });
  const params = layer.init(3);
  const x = tm.random.normal(tm.random.key(4), [70, 20]);
  const cases = [[params, x] as const, allToFirst(params, x)] as unknown as readonly (readonly [Params, Tensor])[];
  const blocks = { name: "blocks", missing: null, target: () => found(blocksTarget(PLAIN_DEVICE, { quick: true })) };
  const tested = [...plainTargets.filter(({ name }) => name !== "native"), blocks].filter((t) => t.missing === null);
  const all = tested.map(({ name, target }) => {
    const run = stepOn(target(), layer);
    const planned = run.program({ ...params }, x).arenaBytes;
    const bits = cases.map(([p, t]) => bitsOf(run(p, t)));
    expect(run.usage().arenaBytes, name).toBe(planned);
    return { name, bits };
  });
  for (const { name, bits } of all.slice(1)) expect(bits, name).toEqual(all[0]?.bits);
});

describe("memory", () => {
  const [tokens, experts, active] = [1024, 8, 2];

  it("is planned for all choices and the padding of experts in whole tiles", () => {
    const rows = (tile: number): number => nn.mixtureOfExperts(8, { experts, active, tile }).rows(tokens);
    expect([1, 16, 32, 128].map(rows)).toEqual([2048, 2160, 2272, 2944]);
    expect(nn.mixtureOfExperts(8, { experts, active }).rows(0)).toBe(0);
    expect(nn.mixtureOfExperts(8, { experts, active }).rows(1)).toBe(32);
  });

  /** Of a step of gradient descent, without the weights: they differ by design. */
  function stepBytes(target: Target, params: Params, apply: (p: never, x: Tensor) => Tensor): number {
    const step = (p: Params, x: Tensor) => {
      const lossOf = (q: Params, t: Tensor): Tensor =>
        apply(q as never, t)
          .square()
          .mean();
      const [loss, [dp, dx]] = tm.valueAndGrad(lossOf, { argnums: [0, 1] })(p, x);
      return [Object.fromEntries(Object.entries(p).map(([n, w]) => [n, w.sub((dp[n] as Tensor).mul(0.1))])), dx, loss];
    };
    const features = params.down?.shape.at(-1) ?? 0;
    const { arenaBytes } = tm.plan(step, { donate: [0], target })(params, tm.spec([tokens, features]));
    return arenaBytes - Object.values(params).reduce((bytes, w) => bytes + 4 * w.elements, 0);
  }

  for (const [form, gated, hidden] of [
    ["plain", false, 512],
    ["gated", true, 448],
  ] as const) {
    it(`is at most 1.15 of that of the dense layer of the same active width: ${form}`, () => {
      const d = 128;
      const layer = nn.mixtureOfExperts(d, { experts, active, hidden, gated });
      const wide = active * hidden;
      const gate = (shape: readonly number[]) => (gated ? { gate: tm.spec(shape) } : {});
      const mixture = {
        router: tm.spec([d, experts]),
        up: tm.spec([experts, d, hidden]),
        ...gate([experts, d, hidden]),
        down: tm.spec([experts, hidden, d]),
      };
      const plain = { up: tm.spec([d, wide]), ...gate([d, wide]), down: tm.spec([wide, d]) };
      const denseLayer = (p: Omit<MixtureParams, "router">, x: Tensor): Tensor => {
        const up = tm.gelu(x.matmul(p.up));
        return (p.gate ? up.mul(x.matmul(p.gate)) : up).matmul(p.down);
      };
      for (const { name, target } of plainTargets.filter(({ missing }) => missing === null).slice(0, 2)) {
        const bytes = stepBytes(target(), mixture, (p: MixtureParams, x) => layer.apply(p, x).y);
        expect(bytes / stepBytes(target(), plain, denseLayer), name).toBeLessThanOrEqual(1.15);
      }
    });
  }
});

describe("bad input", () => {
  const make = (options: Partial<MixtureOptions>) => () => nn.mixtureOfExperts(4, { experts: 3, ...options });

  it("has clear errors", () => {
    expect(make({ experts: 0 })).toThrow("mixtureOfExperts: experts 0");
    expect(make({ active: 4 })).toThrow("mixtureOfExperts: 4 active of 3 experts");
    expect(make({ active: 0 })).toThrow("mixtureOfExperts: active 0");
    expect(make({ tile: 0 })).toThrow("mixtureOfExperts: tile 0");
    expect(make({ capacity: 0 })).toThrow("mixtureOfExperts: capacity 0");
    expect(make({ activation: "tanh" as never })).toThrow('mixtureOfExperts: activation "tanh"');
    const layer = make({})();
    for (const tokens of [-1, 1.5])
      expect(() => layer.rows(tokens)).toThrow(`mixtureOfExperts: rows of ${tokens} tokens`);
    expect(() => layer.apply(layer.init(0), tm.ones([2, 5]))).toThrow("made for 4 features, got 5");
    const apply = (other: Partial<MixtureParams>, of = layer) =>
      of.apply({ ...layer.init(0), ...other }, tm.ones([2, 4]));
    expect(() => apply({ up: tm.ones([2, 4, 16]) })).toThrow("the parameter up is f32[2,4,16]");
    expect(() => apply({ router: tm.ones([4, 2]) })).toThrow("the parameter router is f32[4,2]");
    expect(() => apply({ gate: tm.ones([3, 4, 16]) })).toThrow("the parameter gate is f32[3,4,16]");
    expect(() => apply({}, make({ gated: true })())).toThrow("the parameter gate is missing");
  });

  it("without tokens has no rows, and losses of zero", () => {
    for (const options of [{}, { capacity: 1 }]) {
      const layer = make(options)();
      const { y, balance, zLoss, dropped, load } = layer.apply(layer.init(0), tm.zeros([0, 4]));
      expect([y.shape, balance.item(), zLoss.item(), dropped.item(), load.toArray()]).toEqual([
        [0, 4],
        0,
        0,
        0,
        [0, 0, 0],
      ]);
      const dp = grad((p: MixtureParams) => layer.apply(p, tm.zeros([0, 4])).y.sum())(layer.init(0));
      expect(dp.up.abs().max().item()).toBe(0);
    }
  });

  it("NaN in a router's outputs is NaN in its token's result and in the losses, and nowhere else", () => {
    const layer = nn.mixtureOfExperts(4, { experts: 3, active: 2, tile: 2, ...f64 });
    const params = layer.init(1);
    const x = tm.random.normal(tm.random.key(2), [5, 4], f64);
    const broken = tm.where(tm.arange(5, "i32").equal(2).expandDims(1), Number.NaN, x);
    const { y, balance, load } = layer.apply(params, broken);
    const want = layer.apply(params, x).y;
    for (let t = 0; t < 5; t++) {
      const row = y.slice([t]);
      if (t === 2) expect(row.toArray()).toEqual([Number.NaN, Number.NaN, Number.NaN, Number.NaN]);
      else expect(row.toArray()).toEqual(want.slice([t]).toArray());
    }
    expect(balance.item()).toBeNaN();
    expect(load.sum().item()).toBe(10);
  });

  it("of groupedMatmul has clear errors", () => {
    const [x, w] = [tm.ones([4, 3]), tm.ones([2, 3, 5])];
    const offsets = tm.tensor([0, 2, 4], { dtype: "i32" });
    const call =
      (...args: Parameters<typeof tm.groupedMatmul>) =>
      () =>
        tm.groupedMatmul(...args);
    expect(call(x, w, offsets, { tile: 3 })).toThrow("4 rows are not whole tiles of 3");
    expect(call(x, w, offsets)).toThrow("4 rows are not whole tiles of 16");
    expect(call(x, w, tm.tensor([0, 2]).cast("i32"), { tile: 2 })).toThrow("2 offsets for 2 groups");
    expect(call(x, w, tm.tensor([0, 2, 4]), { tile: 2 })).toThrow("offsets must be i32");
    expect(call(x, tm.ones([3, 5]), offsets, { tile: 2 })).toThrow("takes x [rows, k], w [groups, k, n]");
    expect(call(x, tm.ones([2, 4, 5]), offsets, { tile: 2 })).toThrow("grouped_matmul: got f32[4,3], f32[2,4,5]");
    expect(call(x, w, offsets, { tile: 0 })).toThrow("tile 0");
  });
});
