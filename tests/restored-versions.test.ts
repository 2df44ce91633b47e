/**
 * @file A tensor that changes between calls whose backward reads it again: what is kept are the rows that change, not a
 * version for each call, and gradients have the bits of a program that keeps every version.
 */
import { describe, expect, test } from "vitest";
import { checkpoint, compile, plan, spec, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";

const SIZE = 128;
const ROW = 4 * SIZE;
const CALLS = 8;

type Change = (x: Tensor, i: number, row: Tensor) => unknown;

const i32 = (value: number | readonly number[]): Tensor => tensor(value as number, { dtype: "i32" });

/** Calls that read a matrix, which is changed after each of them. */
const program =
  (change: Change, isReplayed: boolean) =>
  (m: Tensor, v: Tensor, row: Tensor): Tensor => {
    const x = m.mul(1);
    const call = (a: Tensor, h: Tensor): Tensor => h.matmul(a).tanh();
    const layer = isReplayed ? checkpoint(call) : call;
    let h = v;
    for (let i = 0; i < CALLS; i++) {
      h = layer(x, h) as Tensor;
      change(x, i, row);
    }
    return h.sum();
  };

const CHANGES: readonly (readonly [name: string, change: Change, bytesAChange: number])[] = [
  ["setAt", (x, i, row) => x.setAt(i, row), ROW],
  ["addAt", (x, i, row) => x.addAt(i, row), ROW],
  ["a view", (x, i) => x.slice([i]).mulInPlace(0.5), ROW],
  ["a row known at run time", (x, i, row) => x.setAt(i32(i), row), ROW + 64],
  ["two rows", (x, i, row) => [x.setAt(i, row), x.addAt(i + 1, row)], 2 * ROW],
  ["every other element", (x, i, row) => x.slice([i, [0, null, 2]]).assign(row.slice([[0, SIZE / 2]])), ROW],
];

const arenaOf = (change: Change, isReplayed: boolean, options: object = {}): number => {
  const step = valueAndGrad(program(change, isReplayed), { argnums: [1] });
  return plan(step, options)(spec([SIZE, SIZE]), spec([1, SIZE]), spec([SIZE])).arenaBytes;
};

describe.each([
  ["checkpointed calls", true],
  ["calls", false],
] as const)("%s", (_, isReplayed) => {
  test.each(CHANGES)("keep the rows that change: %s", (_name, change, bytes) => {
    const unchanged = arenaOf(() => {}, isReplayed);
    expect(arenaOf(change, isReplayed) - unchanged).toBeLessThanOrEqual(CALLS * bytes);
    // the smallest plan has no version to hold either
    const least = { memory: "min" };
    expect(arenaOf(change, isReplayed, least)).toBeLessThanOrEqual(unchanged + CALLS * bytes);
  });

  const noise = (seed: number, shape: readonly number[]): Tensor => {
    let state = seed;
    const data = Float32Array.from({ length: shape.reduce((n, extent) => n * extent, 1) }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      return state / 2 ** 33;
    });
    return tensor(data, { shape });
  };

  test.each([
    ...CHANGES,
    ["a column", (x, i, row) => x.T.setAt(i, row), 0] as (typeof CHANGES)[number],
    ["several rows", (x, i, row) => x.addAt(i32([i, 3, i]), row), 0] as (typeof CHANGES)[number],
    ["everything", (x, i, row) => x.mulInPlace(0.9).setAt(i, row), 0] as (typeof CHANGES)[number],
  ])("have the bits of a program that keeps all versions: %s", (_name, change) => {
    const step = valueAndGrad(program(change, isReplayed), { argnums: [0, 1, 2] });
    const args = [noise(1, [SIZE, SIZE]), noise(2, [2, SIZE]), noise(3, [SIZE])] as const;
    // stepwise every operation is a kernel of its own, on versions as they were traced
    const [loss, slopes] = compile(step, { checkNaN: true })(...args);
    for (const memory of [undefined, "min"]) {
      const [made, found] = compile(step, { validate: true, ...(memory ? { memory } : {}) })(...args);
      expect(made.data()).toEqual(loss.data());
      expect(found.map((slope) => slope.data())).toEqual(slopes.map((slope) => slope.data()));
    }
  });
});
