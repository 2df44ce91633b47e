/** @file Functions on several devices: gradients of sums over all, loops, branches, checkpoints, rules of users, and what is refused. */
import { describe, expect, it } from "vitest";
import { onDevices } from "../../tests/support/devices.ts";
import { Random } from "../../tests/support/random.ts";
import {
  checkpoint,
  compile,
  cond,
  customVjp,
  grad,
  scan,
  stack,
  type Tensor,
  tensor,
  valueAndGrad,
  vmap,
  whileLoop,
} from "../api/index.ts";
import { parse } from "../ir/parse.ts";
import { print } from "../ir/print.ts";
import { allNodes } from "../ir/walk.ts";
import { allOps } from "../ops/all.ts";
import { allGather, allReduce, allToAll, deviceIndex, permute, reduceScatter, vary } from "./collectives.ts";
import { mesh } from "./mesh.ts";
import { shard } from "./shard.ts";

const D = { over: "data" };
const P = 3;
const devices = mesh({ data: P });

function numbers(shape: readonly number[], seed: number): Tensor {
  const random = new Random(seed);
  const count = shape.reduce((n, extent) => n * extent, 1);
  return tensor(Array.from({ length: count }, () => random.int(7) - 3)).reshape(shape);
}

/** The gradient of the sum of all devices' losses, and the same with all rows on one. */
function bothGradients(loss: (w: Tensor, x: Tensor) => Tensor, w: Tensor, rows: number) {
  const parts = Array.from({ length: P }, (_, rank) => numbers([rows, w.shape[0] ?? 1], 10 + rank));
  const onAll = onDevices(
    ((v: Tensor, x: Tensor) => valueAndGrad((u: Tensor) => allReduce(loss(u, x), D))(v)) as never,
    { mesh: devices, in: [[], "data"], out: [] },
    (rank) => [w, parts[rank]],
  );
  const alone = parts.map((x) => valueAndGrad((u: Tensor) => loss(u, x))(w));
  const total = (i: 0 | 1) =>
    alone.map((own) => [own[i].toArray()].flat(9)).reduce((a, b) => a.map((v, e) => Number(v) + Number(b[e])));
  return { onAll, expected: [total(0), total(1)] };
}

const collectivesOf = (made: ReturnType<typeof onDevices>, where: "traced" | "passed" = "passed") =>
  [...allNodes(made[where])].filter(({ op }) => op.facts?.collective).map(({ op }) => op.name);

describe("gradients of a sum over devices", () => {
  const w = numbers([4], 1);
  const losses: Record<string, (v: Tensor, x: Tensor) => Tensor> = {
    "a product": (v, x) => x.matmul(v).square().sum(),
    "a value used twice": (v, x) => x.matmul(v).square().sum().add(x.sum(0).mul(v).sum()),
    "a loop over rows": (v, x) => scan((s, row) => [s.add(row.mul(v).sum().square()), []], tensor(0), x)[0] as Tensor,
    "a loop that carries the weights": (v, x) =>
      (
        scan(
          ([s, u], row) => [[s.add(row.mul(u).sum()), u.mul(2)] as [Tensor, Tensor], []],
          [tensor(0), v] as [Tensor, Tensor],
          x,
        )[0] as [Tensor, Tensor]
      )[0],
    "a loop with a test": (v, x) =>
      whileLoop(
        ([i]) => i.less(3),
        ([i, s]) => [i.add(1), s.add(x.matmul(v).sum())] as [Tensor, Tensor],
        [tensor(0), tensor(0)] as [Tensor, Tensor],
      )[1],
    "a loop with a test of its own": (v, x) =>
      whileLoop(
        ([i]) => i.less(x.sum().abs()),
        ([i, s]) => [i.add(9), s.add(x.matmul(v).sum())] as [Tensor, Tensor],
        [tensor(0), tensor(0)] as [Tensor, Tensor],
        { maxSteps: 9 },
      )[1],
    "a branch of its own": (v, x) =>
      cond(
        x.sum().greater(0),
        (u: Tensor) => u.mul(3).sum(),
        (u: Tensor) => u.square().sum(),
        v,
      ),
    "a checkpoint": (v, x) => checkpoint((u: Tensor) => x.matmul(u).square().square())(v).sum(),
    "a rule of its own": (v, x) =>
      customVjp((u: Tensor, y: Tensor) => u.mul(y.sum()).sum(), {
        forward: (u: Tensor, y: Tensor) => [u.mul(y.sum()).sum(), [u, y]] as [Tensor, Tensor[]],
        backward: ([u, y]: Tensor[], ct: Tensor) => [
          ct.mul(y?.sum() as Tensor).broadcastTo((u as Tensor).shape),
          ct.mul((u as Tensor).sum()).broadcastTo((y as Tensor).shape),
        ],
      } as never)(v, x) as Tensor,
    "a batch of functions": (v, x) => vmap((row: Tensor) => row.mul(v).sum().square())(x).sum(),
  };
  for (const [name, loss] of Object.entries(losses)) {
    it(`is that of one process: ${name}`, () => {
      const { onAll, expected } = bothGradients(loss, w, 2);
      for (const own of onAll.results) expect(own.map((leaf) => [...leaf])).toEqual(expected);
      // one sum of the loss and one of the gradient
      expect(collectivesOf(onAll).filter((op) => op === "all_reduce")).toHaveLength(2);
    });
  }
});

describe("collectives inside of loops", () => {
  it("meet in every iteration", () => {
    const ring = (x: Tensor) =>
      scan((s) => [permute(s.mul(2), { ...D, shift: 1 }), []], x, null, { length: 2 })[0] as Tensor;
    const { results } = onDevices(ring as never, { mesh: devices, in: ["data"], out: "data" }, (rank) => [
      tensor([rank]),
    ]);
    expect(results.map(([y]) => y?.[0])).toEqual([4, 8, 0]);
  });

  it("are differentiated in reverse", () => {
    const loss = (x: Tensor) =>
      allReduce(
        (scan((s) => [permute(s.mul(x), { ...D, shift: 1 }), []], x, null, { length: 2 })[0] as Tensor).sum(),
        D,
      );
    const { results } = onDevices(
      ((x: Tensor) => grad(loss)(x)) as never,
      { mesh: devices, in: ["data"], out: "data" },
      (rank) => [tensor([rank + 2])],
    );
    // Σ x_r · x_(r+1) · x_(r+1 … ) : every product of x_r², x_(r+1) around the ring
    const x = [2, 3, 4];
    const value = (v: readonly number[]) => v.reduce((sum, own, r) => sum + own * own * (v[(r + 1) % 3] ?? 0), 0);
    x.forEach((_, r) => {
      const difference = (value(x.with(r, (x[r] ?? 0) + 1)) - value(x.with(r, (x[r] ?? 0) - 1))) / 2;
      expect(results[r]?.[0]?.[0]).toBe(difference);
    });
  });

  it("mark what a body changes from the first iteration on", () => {
    const fn = (x: Tensor) => scan((s, row) => [s.add(row), []], tensor(0), x)[0] as Tensor;
    const { traced } = onDevices(fn as never, { mesh: devices, in: ["data"], out: "data" }, (rank) => [
      tensor([rank, 1]),
    ]);
    expect(print(traced)).toContain("f32[]{data}");
  });
});

describe("collectives of a batch", () => {
  const x = (rank: number) => numbers([2, P, 2], 30 + rank);
  const on = (fn: (v: Tensor) => Tensor) =>
    onDevices(fn as never, { mesh: devices, in: ["data"], out: "data" }, (rank) => [x(rank)]).results.map(([y]) => [
      ...(y ?? []),
    ]);
  const cases: Record<string, (v: Tensor) => Tensor> = {
    allReduce: (v) => vary(allReduce(v, D), D),
    allGather: (v) => allGather(v, D),
    reduceScatter: (v) => reduceScatter(v, D),
    allToAll: (v) => allToAll(v, { ...D, split: 0, join: 1 }),
    permute: (v) => permute(v, { ...D, shift: 1 }),
  };
  it.each(Object.entries(cases))("are those of its elements: %s", (_, fn) => {
    const each = (v: Tensor) => stack([fn(v.slice([0])), fn(v.slice([1]))]);
    expect(on((v) => vmap(fn)(v))).toEqual(on(each));
  });
});

describe("sums in one order", () => {
  const values = [1e8, 1, -1e8].map((v) => Math.fround(v));
  it.each([3, 2000])("add up in the order of ranks, %i elements", (count) => {
    const { results, passed } = onDevices(
      ((x: Tensor) => allReduce(x, D)) as never,
      { mesh: devices, in: ["data"], out: [], deterministic: true },
      (rank) => [tensor(new Array(count).fill(values[rank]))],
      true,
    );
    const sum = Math.fround(Math.fround((values[0] ?? 0) + (values[1] ?? 0)) + (values[2] ?? 0));
    for (const [y] of results) expect([...new Set(y)]).toEqual([sum]);
    expect([...allNodes(passed)].some(({ op }) => op.name === "all_reduce")).toBe(false);
  });
});

describe("the text of a graph", () => {
  it("says over which axes values vary, and is read back", () => {
    const { traced } = onDevices(
      ((w: Tensor, x: Tensor) => grad((v: Tensor) => allReduce(x.matmul(v).sum(), D))(w)) as never,
      { mesh: devices, in: [[], "data"], out: [] },
      () => [numbers([4], 1), numbers([2, 4], 2)],
    );
    const text = print(traced);
    expect(text).toContain("f32[2,4]{data}");
    expect(print(parse(text, allOps))).toBe(text);
  });

  it("is refused where it is wrong", () => {
    const wrong = 'func f "data=2"(x: f32[2]{tensor}) {\n  return x\n}\n';
    expect(() => parse(wrong, allOps)).toThrow("x varies over tensor, the mesh of the function is");
    const result = 'func f "data=2"(x: f32[2]{data}) {\n  y: f32[2] = neg(x)\n  return y\n}\n';
    expect(() => parse(result, allOps)).toThrow("said to vary over no axis and varies over data");
    const operands = 'func f "data=2"(x: f32[2]{data}, w: f32[2]) {\n  y: f32[2]{data} = add(x, w)\n  return y\n}\n';
    expect(() => parse(operands, allOps)).toThrow("operands that vary over different axes");
  });
});

describe("what is refused", () => {
  const refusal = (fn: (x: Tensor) => unknown, given: unknown[] = ["data"], out: unknown = "data") => {
    try {
      compile(shard(fn as never, { mesh: devices, in: given as never, out: out as never })).program(tensor([1, 2]));
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };

  it("says why", () => {
    expect(refusal((x) => allReduce(x, D), [[]])).toContain(
      "VarianceMismatch: allReduce over data: x is equal on all devices along it",
    );
    expect(refusal((x) => x, ["data"], [])).toContain(
      "result varies over data, out says that it is equal on all devices",
    );
    expect(refusal((x) => allReduce(x, { over: "tensor" }))).toContain("the mesh has no axis tensor");
    const meeting = (x: Tensor) =>
      cond(
        x.sum().greater(0),
        (v: Tensor) => allReduce(vary(v, D), D),
        (v: Tensor) => v.mul(2),
        x,
      );
    expect(refusal(meeting)).toContain(
      "all_reduce over data in a loop or branch that is decided by a value that varies over data",
    );
    expect(() => allReduce(tensor([1]), D)).toThrow("there is no mesh here");
    expect(refusal((x) => allReduce(x, D), ["data"], [])).toContain(
      "on the mesh data=3, needs 3 devices, and this thread is none of them\n  all_reduce step 0 at shard.test.ts",
    );
  });

  it("runs everywhere on a mesh of one device", () => {
    const one = mesh({ data: 1 });
    const step = compile(
      shard((x: Tensor) => allReduce(x.mul(deviceIndex(D).cast("f32").add(1)), D), {
        mesh: one,
        in: ["data"],
        out: [],
      }),
    );
    expect(step(tensor([1, 2])).toArray()).toEqual([1, 2]);
  });
});
