/** @file Collectives on 1, 2, 3 and 4 devices: what they give, and that both modes of their derivatives agree to the last bit. */
import { describe, expect, it } from "vitest";
import { onDevices } from "../../tests/support/devices.ts";
import { Random } from "../../tests/support/random.ts";
import { grad, jvp, type Tensor, tensor, vjp } from "../api/index.ts";
import { storageOf } from "../trace/tensor.ts";
import { allGather, allReduce, allToAll, broadcast, permute, reduceScatter, vary } from "./collectives.ts";
import { type Mesh, mesh } from "./mesh.ts";

/** Whole numbers of a rank. */
function numbers(shape: readonly number[], seed: number): Tensor {
  const random = new Random(seed);
  const count = shape.reduce((n, extent) => n * extent, 1);
  return tensor(Array.from({ length: count }, () => random.int(9) - 4)).reshape(shape);
}

interface Case {
  readonly name: string;
  readonly fn: (x: Tensor) => Tensor;
  readonly shape: readonly number[];
  readonly in: readonly string[];
  readonly out: readonly string[];
  /** What device `rank` gets of what all have. */
  readonly expected: (all: readonly number[][], rank: number) => readonly number[];
}

const D = { over: "d" };
const part = <T>(items: readonly T[], i: number, p: number): readonly T[] =>
  items.slice((i * items.length) / p, ((i + 1) * items.length) / p);
const sum = (all: readonly number[][]): number[] =>
  (all[0] ?? []).map((_, e) => all.reduce((total, x) => total + (x[e] ?? 0), 0));

const gathers = (p: number): readonly Case[] => [
  { name: "allReduce", fn: (x) => allReduce(x, D), shape: [3], in: ["d"], out: [], expected: sum },
  {
    name: "allReduce max",
    fn: (x) => allReduce(x, { ...D, op: "max" }),
    shape: [5],
    in: ["d"],
    out: [],
    expected: (all) => (all[0] ?? []).map((_, e) => Math.max(...all.map((x) => x[e] ?? 0))),
  },
  { name: "vary", fn: (x) => vary(x, D), shape: [3], in: [], out: ["d"], expected: (all) => all[0] ?? [] },
  {
    name: "allGather",
    fn: (x) => allGather(x, D),
    shape: [2, 2],
    in: ["d"],
    out: ["d"],
    expected: (all) => all.flat(),
  },
  {
    name: "allGather invariant",
    fn: (x) => allGather(x, { ...D, invariant: true }),
    shape: [2, 2],
    in: ["d"],
    out: [],
    expected: (all) => all.flat(),
  },
  {
    name: "reduceScatter",
    fn: (x) => reduceScatter(x, D),
    shape: [2 * p, 2],
    in: ["d"],
    out: ["d"],
    expected: (all, rank) => part(sum(all), rank, p),
  },
];

const moves = (p: number): readonly Case[] => [
  {
    name: "allToAll",
    fn: (x) => allToAll(x, { ...D, split: 0, join: 0 }),
    shape: [2 * p],
    in: ["d"],
    out: ["d"],
    expected: (all, rank) => all.flatMap((x) => part(x, rank, p)),
  },
  {
    name: "permute",
    fn: (x) => permute(x, { ...D, shift: 1 }),
    shape: [3],
    in: ["d"],
    out: ["d"],
    expected: (all, rank) => all[(rank + p - 1) % p] ?? [],
  },
  {
    name: "permute along a line",
    fn: (x) => permute(x, { ...D, pairs: Array.from({ length: p - 1 }, (_, i) => [i, i + 1] as const) }),
    shape: [3],
    in: ["d"],
    out: ["d"],
    expected: (all, rank) => all[rank - 1] ?? [0, 0, 0],
  },
  {
    name: "broadcast",
    fn: (x) => broadcast(x, { ...D, root: p - 1 }),
    shape: [3],
    in: ["d"],
    out: [],
    expected: (all) => all[p - 1] ?? [],
  },
];

/** ⟨a, b⟩ over all devices; of values that are equal on all, once. */
function inner(a: readonly (readonly number[])[], b: readonly (readonly number[])[], varies: boolean): number {
  const one = (x: readonly number[], y: readonly number[]): number => x.reduce((s, v, e) => s + v * (y[e] ?? 0), 0);
  return varies ? a.reduce((s, x, rank) => s + one(x, b[rank] ?? []), 0) : one(a[0] ?? [], b[0] ?? []);
}

/** Zeros without a sign. */
const plus0 = (x: Float64Array | undefined): number[] => Array.from(x ?? [], (v) => v + 0);

const dataOf = (x: Tensor): number[] => Array.from(storageOf(x).read() as Float32Array);

describe.each([1, 2, 3, 4])("on %i devices", (p) => {
  const devices = mesh({ d: p });
  const ranks = Array.from({ length: p }, (_, rank) => rank);
  for (const { name, fn, shape, in: from, out, expected } of [...gathers(p), ...moves(p)]) {
    const seedOf = (rank: number, what: number): number => 100 * what + (from.length > 0 ? rank : 0);
    const x = (rank: number): Tensor => numbers(shape, seedOf(rank, 1));

    it(`${name} gives what it says`, () => {
      const { results } = onDevices(fn as never, { mesh: devices, in: [from], out }, (rank) => [x(rank)]);
      const all = ranks.map((rank) => dataOf(x(rank)));
      for (const rank of ranks) expect([...(results[rank]?.[0] ?? [])]).toEqual([...expected(all, rank)]);
    });

    it(`${name} has two modes that agree`, () => {
      const t = (rank: number): Tensor => numbers(shape, seedOf(rank, 2));
      const ys = onDevices(fn as never, { mesh: devices, in: [from], out }, (rank) => [x(rank)]).traced.results[0]?.type
        .shape;
      const c = (rank: number): Tensor => numbers(ys ?? [], 300 + (out.length > 0 ? rank : 0));
      const forward = onDevices(
        ((v: Tensor, s: Tensor) => jvp(fn, [v], [s])[1]) as never,
        { mesh: devices, in: [from, from], out },
        (rank) => [x(rank), t(rank)],
      );
      const backward = onDevices(
        ((v: Tensor, ct: Tensor) => vjp(fn, v)[1](ct)[0]) as never,
        { mesh: devices, in: [from, out], out: from },
        (rank) => [x(rank), c(rank)],
      );
      const of = (made: typeof forward): number[][] => made.results.map(([y]) => [...(y ?? [])]);
      const left = inner(
        ranks.map((rank) => dataOf(c(rank))),
        of(forward),
        out.length > 0,
      );
      expect(left).toBe(
        inner(
          of(backward),
          ranks.map((rank) => dataOf(t(rank))),
          from.length > 0,
        ),
      );
    });

    // the slope of a maximum is not smooth; two sizes of group stand for all
    if (name.includes("max") || p === 1 || p === 4) continue;
    it(`${name} is differentiated twice`, () => {
      // slopes of Σ f(x)³ over all devices are of degree 2: differences give their derivatives exactly
      const loss = (v: Tensor): Tensor => {
        const y = fn(v);
        const cubes = y.mul(y).mul(y).sum();
        return out.length > 0 ? allReduce(cubes, D) : cubes;
      };
      const slope = grad(loss);
      const options = { mesh: devices, in: [from, from], out: from };
      const args = (rank: number) => [x(rank), numbers(shape, seedOf(rank, 4))];
      const run = (by: number) =>
        onDevices(((v: Tensor, s: Tensor) => slope(v.add(s.mul(by)))) as never, options, args).results;
      const [hi, lo] = [run(1), run(-1)];
      const along = (v: Tensor, s: Tensor) => jvp(slope, [v], [s])[1];
      for (const [rank, [made]] of onDevices(along as never, options, args).results.entries()) {
        const difference = made?.map((_, e) => ((hi[rank]?.[0]?.[e] ?? 0) - (lo[rank]?.[0]?.[e] ?? 0)) / 2);
        expect(plus0(made)).toEqual(plus0(difference));
      }
      const twice = (v: Tensor, s: Tensor) => {
        const along = slope(v).mul(s).sum();
        return along;
      };
      const product = (v: Tensor, s: Tensor) =>
        grad((u: Tensor) => (from.length > 0 ? allReduce(twice(u, s), D) : twice(u, s)))(v);
      const symmetric = onDevices(product as never, options, args).results;
      const forward = onDevices(along as never, options, args).results;
      for (const rank of ranks) expect(plus0(symmetric[rank]?.[0])).toEqual(plus0(forward[rank]?.[0]));
    });
  }
});

describe("groups in a mesh", () => {
  const grid: Mesh = mesh({ a: 2, b: 3 });
  it("connects devices that differ along the axes alone", () => {
    const rankOf = (rank: number) => [tensor([rank])];
    const along = (over: string) =>
      onDevices(
        ((x: Tensor) => allReduce(x, { over })) as never,
        { mesh: grid, in: [["a", "b"]], out: ["a", "b"] },
        rankOf,
      ).results.map(([y]) => y?.[0]);
    expect(along("a")).toEqual([3, 5, 7, 3, 5, 7]);
    expect(along("b")).toEqual([3, 3, 3, 12, 12, 12]);
  });
});
