/** @file Experts shared out over devices: values, losses and gradients of one device with all experts and all tokens. */
import { describe, expect, it } from "vitest";
import { leavesOf, onDevices, trainedOnDevices } from "../../tests/support/devices.ts";
import { arange, concat, full, grad, ones, random, type Tensor, valueAndGrad, zeros } from "../api/index.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Reference } from "../ir/op.ts";
import { type MixtureOptions, type MixtureParams, mixtureOfExperts } from "../nn/mixture.ts";
import { adam } from "../optim/index.ts";
import { type AnyFunction, traceFunction } from "../trace/function.ts";
import { chooseForm } from "./choose.ts";
import { allReduce } from "./collectives.ts";
import { dataParallel } from "./data-parallel.ts";
import { parallelExperts } from "./experts.ts";
import { mesh } from "./mesh.ts";
import { shard } from "./shard.ts";

const E = { over: "e" };
const [TOKENS, WIDTH] = [12, 6];
const tokens = random.normal(random.key(3), [TOKENS, WIDTH], { dtype: "f64" });

/** Results and derivatives of one device, in the order of those of all. */
function evaluated(fn: (...args: never[]) => unknown, args: readonly unknown[]): readonly Reference[] {
  const { graph, captures } = traceFunction(fn as AnyFunction, args);
  return evaluate(graph, [...leavesOf(args), ...leavesOf(captures.map((c) => c.tensor))]);
}

const weigh = (y: Tensor): Tensor => y.square().mul(0.5).add(y).sum();

/** What a loss sees of a layer. */
const lossOf = (layer: Pick<ReturnType<typeof parallelExperts>, "apply">, total: (x: Tensor) => Tensor) =>
  function loss(params: MixtureParams, x: Tensor) {
    const { y, balance, zLoss, dropped, load } = layer.apply(params, x);
    const value = total(weigh(y)).add(balance.mul(0.3)).add(zLoss.mul(0.2));
    return [value, { y, balance, zLoss, dropped, load }] as const;
  };

const both = { argnums: [0, 1], hasAux: true } as const;

/** The rows of a device. */
const rowsOf = (x: Tensor, rank: number, p: number): Tensor => {
  const count = (x.shape[0] as number) / p;
  return x.slice([[rank * count, (rank + 1) * count]]);
};

function ownParams(params: MixtureParams, rank: number, p: number): MixtureParams {
  const { router, up, gate, down } = params;
  const gated = gate ? { gate: rowsOf(gate, rank, p) } : {};
  return { router, up: rowsOf(up, rank, p), ...gated, down: rowsOf(down, rank, p) };
}

/** One value of all devices, in order. */
const joined = (results: readonly (readonly Reference[])[], i: number): number[] =>
  results.flatMap((own) => [...(own[i] ?? [])]);

function close(made: ArrayLike<number>, expected: ArrayLike<number> | undefined, name: string, digits = 10): void {
  expect(made.length, name).toBe(expected?.length);
  for (let e = 0; e < made.length; e++) expect(made[e], `${name} ${e}`).toBeCloseTo(expected?.[e] as number, digits);
}

/** y, balance, … and gradients on p devices are those of one with the plain layer. */
function compare(p: number, options: MixtureOptions, params: MixtureParams, x: Tensor): readonly Reference[] {
  const alone = valueAndGrad(lossOf(mixtureOfExperts(WIDTH, options), (v) => v) as never, both as never) as never;
  const expected = evaluated(alone, [params, x]);
  const layer = parallelExperts(WIDTH, { ...options, ...E });
  const step = valueAndGrad(lossOf(layer, (v) => allReduce(v, E)) as never, both as never) as never;
  const spec = { router: [], up: "e", ...(params.gate ? { gate: "e" } : {}), down: "e" };
  const aux = { y: "e", balance: [], zLoss: [], dropped: [], load: [] };
  const out = [
    [[], aux],
    [spec, "e"],
  ];
  const given = { mesh: mesh({ e: p }), in: [spec, "e"], out };
  const argsOf = (rank: number) => [ownParams(params, rank, p), rowsOf(x, rank, p)];
  const { results } = onDevices(step, given, argsOf);
  // loss, y, balance, zLoss, dropped, load, router, up, [gate], down, x
  const names = ["loss", "y", "balance", "zLoss", "dropped", "load", ...Object.keys(params), "x"];
  expect(expected).toHaveLength(names.length);
  const isOwn = new Set(["y", "up", "gate", "down", "x"]);
  for (const [i, name] of names.entries()) {
    if (isOwn.has(name)) close(joined(results, i), expected[i], name);
    else for (const own of results) close(own[i] ?? [], expected[i], name);
  }
  // products of rows are those of one device
  expect(joined(results, 1)).toEqual([...(expected[1] ?? [])]);
  return expected;
}

/** A router that sends every token to the same experts, the last ones first: a token's first feature is 1. */
function allToLast(params: MixtureParams, x: Tensor): readonly [MixtureParams, Tensor] {
  const [count, width] = x.shape as [number, number];
  const experts = params.router.shape[1] as number;
  const order = arange(experts, "f64").mul(9).reshape([1, experts]);
  const router = concat([order, zeros([width - 1, experts], "f64")]);
  return [{ ...params, router }, concat([ones([count, 1], "f64"), x.slice([null, [1, width]])], 1)];
}

const f64 = { hidden: 5, tile: 4, dtype: "f64" } as const;

describe("experts shared out over devices", () => {
  const shapes = [
    ["two of four, gated", { experts: 4, active: 2, gated: true }],
    ["one of twelve", { experts: 12, active: 1 }],
    ["all of twelve", { experts: 12, active: 12 }],
    ["with room for all", { experts: 12, active: 2, capacity: 6 }],
    ["with room for all, gated", { experts: 4, active: 3, capacity: 4 / 3, gated: true }],
  ] as const;
  for (const [name, options] of shapes) {
    it.each([1, 2, 3, 4].filter((p) => options.experts % p === 0))(`${name}, on %i devices, are those of one`, (p) => {
      const all = { ...options, ...f64 };
      compare(p, all, mixtureOfExperts(WIDTH, all).init(7), tokens);
    });
  }

  it.each([2, 4])("where all tokens go to one of %i devices, are those of one", (p) => {
    const all = { experts: 4, active: p === 2 ? 2 : 1, ...f64 };
    const expected = compare(p, all, ...allToLast(mixtureOfExperts(WIDTH, all).init(7), tokens));
    expect([...(expected[5] ?? [])]).toEqual(p === 2 ? [0, 0, 12, 12] : [0, 0, 0, 12]);
  });

  it("without tokens are without rows", () => {
    const all = { experts: 4, active: 2, ...f64 };
    compare(2, all, mixtureOfExperts(WIDTH, all).init(7), zeros([0, WIDTH], "f64"));
    expect(parallelExperts(WIDTH, { ...all, ...E }).rows(0, 2)).toBe(0);
  });

  it.each([{}, { capacity: 2 }])("keep a token that is NaN to itself, %o", (capacity) => {
    const all = { experts: 4, active: 2, ...capacity, ...f64 };
    const layer = parallelExperts(WIDTH, { ...all, ...E });
    const params = layer.init(7);
    const x = concat([full([1, WIDTH], Number.NaN, "f64"), tokens.slice([[1, TOKENS]])]);
    const given = { mesh: mesh({ e: 2 }), in: [{ router: [], up: "e", down: "e" }, "e"], out: "e" };
    const fn = (p: MixtureParams, t: Tensor) => layer.apply(p, t).y;
    const argsOf = (rank: number) => [ownParams(params, rank, 2), rowsOf(x, rank, 2)];
    const y = joined(onDevices(fn as never, given, argsOf).results, 0);
    const [alone = []] = evaluated((t: Tensor) => mixtureOfExperts(WIDTH, all).apply(params, t).y, [x]);
    expect(y).toEqual([...alone]);
    expect(y.map(Number.isNaN)).toEqual(y.map((_, i) => i < WIDTH));
  });

  it("drop choices beyond the capacity of a device's tokens", () => {
    const all = { experts: 4, active: 2, capacity: 1, ...f64 };
    const plain = mixtureOfExperts(WIDTH, all);
    const [params, x] = allToLast(plain.init(7), tokens);
    const layer = parallelExperts(WIDTH, { ...all, ...E });
    const { y, dropped } = { y: "e", dropped: [] };
    const given = { mesh: mesh({ e: 2 }), in: [{ router: [], up: "e", down: "e" }, "e"], out: [y, dropped] };
    const fn = (p: MixtureParams, t: Tensor) => {
      const made = layer.apply(p, t);
      return [made.y, made.dropped];
    };
    const { results } = onDevices(fn as never, given, (rank) => [ownParams(params, rank, 2), rowsOf(x, rank, 2)]);
    for (const [rank, own] of results.entries()) {
      const alone = evaluated((t: Tensor) => plain.apply(params, t).y, [rowsOf(x, rank, 2)]);
      expect([...(own[0] ?? [])]).toEqual([...(alone[0] ?? [])]);
      // room for three of six first choices and three of six second ones, twice
      expect([...(own[1] ?? [])]).toEqual([12]);
    }
    expect([plain.rows(6), layer.rows(6, 2)]).toEqual([12, 12]);
  });

  it("train beside parts of a batch, with every stage of ZeRO, as one device with all of them", () => {
    const options = { experts: 4, active: 2, hidden: 5, tile: 4 };
    const layer = parallelExperts(WIDTH, { ...options, ...E });
    const loss = (p: MixtureParams, x: Tensor) => {
      const { y, balance } = layer.apply(p, x);
      return allReduce(y.sub(1).square().mean(), { ...E, op: "mean" }).add(balance.mul(0.01));
    };
    const params = { router: [], up: "e", down: "e" };
    const start = mixtureOfExperts(WIDTH, options).init(7);
    const all = random.normal(random.key(3), [TOKENS, WIDTH]);
    const course = { steps: 2, round: false };
    const train = (axes: Record<string, number>, zero: 0 | 1 | 2 | 3) =>
      dataParallel(loss, adam({ lr: 0.1 }), { mesh: mesh(axes), over: "d", params, batch: [["d", "e"]], zero });
    const plain = dataParallel(loss, adam({ lr: 0.1 }), {
      mesh: mesh({ d: 2, e: 1 }),
      over: "d",
      params,
      batch: [["d", "e"]],
    });
    const one = trainedOnDevices(plain as never, 2, {
      ...course,
      start: () => start,
      rows: (rank) => [rowsOf(all, rank, 2)],
    });
    for (const zero of [0, 2, 3] as const) {
      const four = trainedOnDevices(train({ d: 2, e: 2 }, zero) as never, 4, {
        ...course,
        start: (rank) => ownParams(start, rank % 2, 2),
        rows: (rank) => [rowsOf(all, rank, 4)],
      });
      for (const [i, losses] of four.losses.entries())
        for (const made of losses) expect(made).toBeCloseTo(one.losses[i]?.[0] as number, 6);
      const [left, right] = four.params;
      close([...(left?.[1] ?? []), ...(right?.[1] ?? [])], one.params[0]?.[1], `up, zero ${zero}`, 5);
    }
  });

  it("have rows for any routing", () => {
    const rows = (devices: number) =>
      parallelExperts(WIDTH, { experts: 8, active: 2, tile: 1, ...E }).rows(16, devices);
    expect([1, 2, 4, 8].map(rows)).toEqual([32, 64, 128, 128]);
  });

  it("take less of each of more devices with a capacity, and without one at most twice as much", () => {
    const arena = (p: number, capacity: object) => {
      const options = { experts: 8, active: 2, hidden: 256, ...capacity };
      const layer = parallelExperts(64, { ...options, ...E });
      const args = [ownParams(layer.init(7), 0, p), zeros([128, 64])];
      const lossOf = (w: MixtureParams, x: Tensor) => allReduce(layer.apply(w, x).y.square().sum(), E);
      const step = (w: MixtureParams, x: Tensor) => grad((v: MixtureParams) => lossOf(v, x))(w);
      const spec = { router: [], up: "e", down: "e" };
      const sharded = shard(step, { mesh: mesh({ e: p }), in: [spec, "e"], out: spec });
      return chooseForm([{ name: `${p} devices`, step: sharded, args }], { network: 1e10 }).arenaBytes;
    };
    const limited = [1, 2, 4, 8].map((p) => arena(p, { capacity: 1.25 }));
    expect(limited).toEqual([...new Set(limited)].sort((a, b) => b - a));
    const one = arena(1, {});
    for (const p of [2, 4, 8]) expect(arena(p, {}) / one).toBeLessThan(2);
  });

  it("take a device's own part of parameters that all have", () => {
    const layer = parallelExperts(WIDTH, { experts: 4, ...f64, ...E });
    const all = layer.init(7);
    const spec = { router: [], up: "e", down: "e" };
    const given = { mesh: mesh({ e: 2 }), in: [[]], out: spec };
    const { results } = onDevices(layer.own as never, given, () => [all]);
    for (const [rank, own] of results.entries()) expect(own).toEqual(leavesOf([ownParams(all, rank, 2)]));
  });

  it("say what is wrong", () => {
    const layer = parallelExperts(WIDTH, { experts: 4, ...f64, ...E });
    const params = layer.init(7);
    const run = (p: number, own: MixtureParams, over: readonly string[]) => () => {
      const given = { mesh: mesh({ e: p }), in: [{ router: [], up: "e", down: "e" }, over], out: "e" };
      return onDevices(((w: MixtureParams, x: Tensor) => layer.apply(w, x).y) as never, given, () => [own, tokens]);
    };
    expect(run(3, params, ["e"])).toThrow("parallelExperts: 4 experts on 3 devices");
    expect(run(2, params, ["e"])).toThrow("parallelExperts: the parameter up is f64[4,6,5]");
    expect(run(2, ownParams(params, 0, 2), [])).toThrow("parallelExperts over e: x is equal on all devices along it");
    expect(() => layer.apply(params, tokens)).toThrow("parallelExperts: there is no mesh here");
    expect(() => layer.rows(-1, 2)).toThrow("parallelExperts: rows of -1 tokens");
    expect(() => layer.rows(4, 3)).toThrow("4 experts on 3 devices");
    expect(() => layer.rows(4, 0)).toThrow("parallelExperts");
    expect(() => parallelExperts(WIDTH, undefined as never)).toThrow("parallelExperts");
    expect(() => parallelExperts(WIDTH, { experts: 4 } as never)).toThrow("parallelExperts");
    expect(() => parallelExperts(WIDTH, { experts: 4, ...E, hiden: 3 } as never)).toThrow("hiden");
  });
});
