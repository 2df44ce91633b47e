/** @file Training on several devices: the losses of one process, and what the arena of a device saves. */
import { describe, expect, it } from "vitest";
import { leavesOf, runOnDevices, trainedOnDevices } from "../../tests/support/devices.ts";
import { Random } from "../../tests/support/random.ts";
import { specsOf, type Tensor, tensor, zeros } from "../api/index.ts";
import { elementsOf } from "../ir/type.ts";
import { adam, clipByGlobalNorm, lamb, sgd } from "../optim/index.ts";
import { flatten, unflatten } from "../trace/tree.ts";
import { type DataParallelOptions, dataParallel } from "./data-parallel.ts";
import { mesh } from "./mesh.ts";

function draws(shape: readonly number[], seed: number): Tensor {
  const random = new Random(seed);
  const count = shape.reduce((n, extent) => n * extent, 1);
  return tensor(Array.from({ length: count }, () => Math.fround(random.next() - 0.5))).reshape(shape);
}

interface Params {
  readonly a: Tensor;
  readonly b: Tensor;
  readonly c: Tensor;
}

const start: Params = { a: draws([5, 7], 1), b: draws([7], 2), c: draws([7, 3], 3) };
const lossOf = (p: Params, x: Tensor, y: Tensor): Tensor =>
  x.matmul(p.a).add(p.b).tanh().matmul(p.c).sub(y).square().mean();
const batchOf = (rank: number, step: number): readonly [Tensor, Tensor] => [
  draws([2, 5], 100 + 10 * step + rank),
  draws([2, 3], 200 + 10 * step + rank),
];

type Options = Omit<DataParallelOptions, "mesh" | "over">;

/** Losses of each step on each device, and the parameters at the end: every program evaluated in the types that it has. */
function trained(devices: number, options: Options, steps = 3, rows = batchOf) {
  const train = dataParallel(lossOf, adam({ lr: 0.05 }), { mesh: mesh({ data: devices }), over: "data", ...options });
  return trainedOnDevices(train as never, devices, { start: () => start, rows, steps, round: true });
}

describe("data parallel", () => {
  const inOrder = { deterministic: true };
  // one process whose batch has the rows of all, a device's after the other
  const alone = (devices: number) => {
    const rows = (_: number, step: number): readonly [Tensor, Tensor] => {
      const all = Array.from({ length: devices }, (__, rank) => batchOf(rank, step));
      const joined = (i: 0 | 1) => tensor(all.flatMap((own) => own[i].toArray() as number[][]));
      return [joined(0), joined(1)];
    };
    return trained(1, { microbatches: devices }, 3, rows);
  };

  it.each([
    [2, 0],
    [2, 1],
    [2, 2],
    [2, 3],
    [3, 0],
    [3, 3],
    [4, 0],
    [4, 1],
    [4, 2],
    [4, 3],
  ] as const)("on %i devices with zero %i has the bits of one process that adds microbatches", (devices, zero) => {
    const [one, all] = [alone(devices), trained(devices, { zero, ...inOrder })];
    for (const [i, losses] of all.losses.entries()) expect(losses).toEqual(new Array(devices).fill(one.losses[i]?.[0]));
    for (const own of all.params) expect(own).toEqual(one.params[0]);
  });

  it("keeps parts of the state", () => {
    const sizes = (zero: 0 | 1 | 2 | 3) => trained(4, { zero }, 1).states[0]?.map((x) => x.length);
    expect(sizes(0)).toEqual([35, 7, 21, 35, 7, 21, 35, 7, 21, 1]);
    expect(sizes(1)).toEqual([35, 7, 21, 9, 2, 6, 9, 2, 6, 1]);
    expect(sizes(3)).toEqual([9, 2, 6, 9, 2, 6, 9, 2, 6, 1, 0, 0, 0]);
  });

  it("goes on from a whole state on other devices, with another stage of ZeRO", () => {
    type Rows = readonly (readonly ArrayLike<number>[])[];
    const trainOn = (devices: number, zero: 0 | 1 | 2 | 3) =>
      dataParallel(lossOf, adam({ lr: 0.05 }), {
        mesh: mesh({ data: devices }),
        over: "data",
        zero,
        deterministic: true,
      });
    /** What a function makes of the states of all devices, and the tree that those are, for recording. */
    const run = (fn: unknown, tree: unknown, given: Rows) => {
      const made = runOnDevices(fn as never, [tree], given as never, true);
      const empty = made.graph.results.map(({ type }) => zeros(type.shape, type.dtype));
      return { tree: unflatten(made.resultTree, empty), results: made.results as Rows };
    };
    const plain = (all: Rows) => all.map((own) => own.map((x) => [...Array.from(x)]));
    const begun = run(trainOn(4, 2).init, start, Array.from({ length: 4 }, () => leavesOf([start])) as Rows);
    const trainedStates = trained(4, { zero: 2, ...inOrder }, 2).states as Rows;
    const whole = run(trainOn(4, 2).whole, begun.tree, trainedStates);
    expect(whole.results[0]?.map((x) => x.length)).toEqual([35, 7, 21, 35, 7, 21, 35, 7, 21, 1]);
    for (const [devices, zero] of [
      [1, 0],
      [2, 3],
      [3, 1],
      [4, 3],
      [5, 2],
    ] as const) {
      const train = trainOn(devices, zero);
      const all = Array.from({ length: devices }, () => whole.results[0] as Rows[number]);
      const resumed = run(train.resume, whole.tree, all);
      const again = run(train.whole, resumed.tree, resumed.results);
      expect(plain(again.results)).toEqual(plain(all));
    }
    // the third step on as many devices has the same bits as without the stop
    const other = trainOn(4, 3);
    const resumed = run(other.resume, whole.tree, whole.results);
    const inputs = resumed.results.map((own, rank) => [...own, ...leavesOf(batchOf(rank, 2))]);
    const { results } = runOnDevices(other.step as never, [resumed.tree, ...batchOf(0, 2)], inputs as never, true);
    const without = trained(4, { zero: 3, ...inOrder }, 3);
    expect(results.map((own) => own.at(-1)?.[0])).toEqual(without.losses[2]);
    expect(plain(results.map((own) => own.slice(0, -1)))).toEqual(plain(without.states as Rows));
  });

  it("sends small tensors together", () => {
    const counts = (options: Options) => {
      const ops = trained(2, options, 1)
        .graph.nodes.filter(({ op }) => op.facts?.collective && op.facts.collective.what !== "device_index")
        .map(({ op }) => op.name);
      return Object.fromEntries([...new Set(ops)].map((name) => [name, ops.filter((op) => op === name).length]));
    };
    expect(counts({})).toEqual({ all_reduce: 2 });
    expect(counts({ bucketBytes: 64 })).toEqual({ all_reduce: 4 });
    expect(counts({ zero: 1 })).toEqual({ all_reduce: 2, all_gather: 1 });
    expect(counts({ zero: 2 })).toEqual({ all_reduce: 1, reduce_scatter: 1, all_gather: 1 });
    // forward and again for the backward pass: one bucket of small parameters
    expect(counts({ zero: 3 })).toEqual({ all_reduce: 1, all_gather: 2, reduce_scatter: 1 });
  });

  it("refuses optimizers that do not update each element on its own", () => {
    const options = { mesh: mesh({ data: 2 }), over: "data", zero: 1 } as const;
    expect(() => dataParallel(lossOf, lamb({}), options)).toThrow("does not update each element on its own");
    expect(() => dataParallel(lossOf, sgd({ lr: 1, clip: clipByGlobalNorm(1) }), options)).toThrow("without clip");
    expect(() => dataParallel(lossOf, sgd({ lr: 1 }), { ...options, zero: 4 as never })).toThrow("give 0, 1, 2 or 3");
  });

  it("refuses losses that no communicator adds up, parameters in parts along the batch's axis, and no axis at all", () => {
    const w = tensor([1, 2]);
    const trained = (loss: (p: Tensor, x: Tensor) => Tensor, more: object = {}) => {
      const train = dataParallel(loss, sgd({ lr: 0.1 }), { mesh: mesh({ data: 1 }), over: "data", ...more });
      return () => train.step(train.init(w), tensor([[1, 2]]));
    };
    const lossOf = (p: Tensor, x: Tensor): Tensor => x.mul(p).mean();
    expect(trained((p, x) => lossOf(p, x).cast("f16"))).toThrow(
      "dataParallel: the loss is f16[], and devices add up losses of f32 and f64",
    );
    expect(trained(lossOf, { params: "data" })).toThrow("params differ along data: f32[2]{data}, and over is data");
    expect(() => trained(lossOf, { over: [] })).toThrow(
      /over names no axis along which devices have parts of the batch\s[\s\S]*help: .*mesh\(\{ data: 1/,
    );
  });

  it("refuses by name what is no state", () => {
    const lossOf = (w: Tensor, x: Tensor): Tensor => x.matmul(w).sum();
    const train = dataParallel(lossOf, sgd({ lr: 1 }), { mesh: mesh({ data: 1 }), over: "data" });
    expect(() => train.step({} as never, tensor([[1, 2]]))).toThrow("dataParallel: step is given no state");
    expect(() => train.resume(null as never)).toThrow("dataParallel: resume is given no state");
    expect(() => train.params(1 as never)).toThrow("dataParallel: params is given no state");
    const whole = { params: tensor([[1], [2]]), slots: {}, step: tensor(0, { dtype: "i32" }) };
    expect(() => train.whole(whole as never)).toThrow("give what init, resume or step made");
  });
});

describe("the layout of a state", () => {
  it.each([0, 1, 2, 3] as const)("has what devices keep of each tensor: zero %i", (zero) => {
    const options = { mesh: mesh({ data: 4, tensor: 2 }), over: "data", params: { a: "tensor", b: [], c: [] }, zero };
    const train = dataParallel(lossOf, adam(), options);
    const { tensors, own, over } = train.layout(start);
    expect([own, over]).toEqual([["tensor"], ["data"]]);
    const { params, slots, step } = specsOf(train.init)(start);
    const kept = flatten({ params, slots, step }, "state");
    expect(kept.paths).toEqual(tensors.map(({ path }) => `state.${path}`));
    tensors.forEach(({ type, isCut }, i) => {
      const count = elementsOf(type.shape);
      expect(kept.leaves[i]?.shape).toEqual(isCut ? [Math.ceil(count / 4)] : type.shape);
    });
    expect(tensors.filter(({ isCut }) => isCut).length).toBe([0, 6, 6, 9][zero]);
  });
});
