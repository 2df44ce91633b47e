/**
 * @file Programs of one compiled function for arguments of many shapes: they run in one arena, share what persists, are kept
 * up to a number, and go when the function is disposed of. Results are those of the function itself throughout.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compile, random, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";
import "../src/node/index.ts";
import { systemCompiler } from "../src/node/native/compiler.ts";
import { Arena } from "../src/runtime/arena.ts";
import { ResidentStorage } from "../src/runtime/resident.ts";
import { storageOf } from "../src/trace/tensor.ts";
import { hostMemory } from "./support/host-memory.ts";

const ramp = (n: number, from = 0): Tensor => tensor(Float32Array.from({ length: n }, (_, i) => from + i));
const batch = (rows: number): Tensor => random.normal(random.key(rows), [rows, 6]);
const weights = (): Tensor => random.normal(random.key(0), [6, 4]);

function train(w: Tensor, x: Tensor): readonly [Tensor, Tensor] {
  const [value, dw] = valueAndGrad((v: Tensor) => x.matmul(v).tanh().square().mean())(w);
  return [w.sub(dw.mul(0.1)), value];
}

/** The arena that a tensor lives in, and where. */
function placeOf(tensor: Tensor): { readonly home: Arena; readonly address: number } {
  const storage = storageOf(tensor);
  const place = storage instanceof ResidentStorage ? storage.place : null;
  if (!place || !(place.home instanceof Arena)) throw new Error("it lives in no arena");
  return { home: place.home, address: place.address };
}

const hasCompiler = typeof systemCompiler() !== "string";
const targets = [
  { target: "wasm", threads: 1 },
  { target: "wasm", threads: 2 },
  ...(hasCompiler
    ? ([
        { target: "native", threads: 1 },
        { target: "native", threads: 2 },
      ] as const)
    : []),
] as const;

describe.each(targets)("programs for many shapes on $target with $threads threads", (where) => {
  const sizes = [8, 3, 12, 8, 40, 3, 1, 12];

  test("keep one state and together stay within the memory of one", () => {
    const plain = compile(train, where);
    const largest = plain.program(weights(), batch(40)).arenaBytes;
    const step = compile(train, { ...where, donate: [0], memory: largest });
    let [a, b] = [weights(), weights()];
    for (const rows of sizes) {
      const [next, value] = plain(a, batch(rows));
      const [nextToo, valueToo] = step(b, batch(rows));
      expect(valueToo.item()).toBe(value.item());
      [a, b] = [next, nextToo];
      expect(step.usage().arenaBytes).toBeLessThanOrEqual(largest);
    }
    expect(b.data()).toEqual(a.data());
  });

  test("are dropped by least recent use, and made again", () => {
    let traces = 0;
    const table = ramp(30);
    const f = compile(
      (s: Tensor, x: Tensor) => {
        traces++;
        return s.add(x.sum()).add(table);
      },
      { ...where, donate: [0], programs: 2 },
    );
    let state = ramp(30);
    for (const n of [1, 2, 1, 3, 1, 2]) state = f(state, ramp(n, 1));
    // 2 was the one to go when 3 came
    expect(traces).toBe(4);
    expect(f.usage().programs).toBe(2);
    expect(state.data()[5]).toBe(5 + 6 * 5 + (1 + 3 + 1 + 6 + 1 + 3));
  });

  test("go when the function is disposed of; what it returned stays", () => {
    const step = compile(train, { ...where, donate: [0] });
    const [w, value] = step(weights(), batch(4));
    const before = [...w.data()];
    step.dispose();
    expect(step.usage()).toEqual({ programs: 0, arenaBytes: 0 });
    expect([...w.data()]).toEqual(before);
    expect(value.item()).toBeGreaterThan(0);
    expect(() => step(w, batch(4))).toThrow("Disposed: train was disposed of");
    expect(() => step.program(w, batch(4))).toThrow("Disposed");
    step.dispose();
    expect(w.sum().item()).toBeCloseTo(
      before.reduce((sum, x) => sum + x, 0),
      4,
    );
  });
});

test.skipIf(!hasCompiler)("memory of the process grows where it is, so that a budget holds meanwhile too", () => {
  const step = compile(train, { target: "native", donate: [0], memory: "64KB" });
  const bufferOf = (state: Tensor): ArrayBufferLike => hostMemory(placeOf(state).home.memory).buffer;
  let [w] = step(weights(), batch(1));
  const buffer = bufferOf(w);
  const before = buffer.byteLength;
  for (const rows of [20, 60]) [w] = step(w, batch(rows));
  expect(bufferOf(w)).toBe(buffer);
  expect(buffer.byteLength).toBeGreaterThan(before);
  expect(buffer.byteLength).toBeLessThanOrEqual(64_000 + 64);
});

describe.each(targets)("the arena of a function on $target with $threads threads", (where) => {
  test("is that of its largest program, and state stays where it is when it is called with other shapes", () => {
    const step = compile(train, { ...where, donate: [0] });
    let [w] = step(weights(), batch(400));
    const before = placeOf(w);
    const sizes = [1, 40, 400, 3].map((rows) => {
      [w] = step(w, batch(rows));
      return step.program(w, batch(rows)).arenaBytes;
    });
    expect(step.usage()).toEqual({ programs: 4, arenaBytes: Math.max(...sizes) });
    const after = placeOf(w);
    expect(after.home).toBe(before.home);
    expect(after.address).toBe(before.address);
  });
});

describe("the arena of a function", () => {
  test("is that of its largest program, not the sum", () => {
    const f = compile((x: Tensor) => x.tanh().matmul(x, { tb: true }).sum());
    const sizes = [10, 70, 30, 20].map((n) => {
      f(batch(n));
      return f.program(batch(n)).arenaBytes;
    });
    expect(f.usage()).toEqual({ programs: 4, arenaBytes: Math.max(...sizes) });
  });

  test("holds a constant once for all shapes, and keeps it when its tensor is donated elsewhere", () => {
    const take = compile((s: Tensor) => s.add(1), { donate: [0] });
    const state = take(ramp(20));
    const f = compile((x: Tensor, y: Tensor) => [x.mul(2), y.add(state)] as const, { donate: [0] });
    const want = ramp(20).add(ramp(20)).add(1).data();
    const expectSum = (n: number): void => expect(f(ramp(n), ramp(20))[1].data()).toEqual(want);
    expectSum(3);
    take(state);
    // states of other sizes: the constant is somewhere else in each program
    for (const n of [3, 50, 7, 3, 50]) expectSum(n);
  });

  test("forgets the least recent of 100 shapes by default", () => {
    const f = compile((x: Tensor) => x.mul(2).sum());
    for (let n = 1; n <= 100; n++) expect(f(ramp(n)).item()).toBe(n * (n - 1));
    expect(f.usage().programs).toBe(64);
  });

  test("gives the right numbers for any sequence of states and shapes", () => {
    const call = fc.record({ state: fc.nat(3), rows: fc.integer({ min: 1, max: 4 }), fresh: fc.nat(5) });
    fc.assert(
      fc.property(fc.array(call, { maxLength: 30 }), (calls) => {
        const constant = ramp(17);
        const fn = (s: Tensor, x: Tensor): readonly [Tensor, Tensor] => [s.add(x.sum()), s.mul(2).add(constant.sum())];
        const f = compile(fn, { donate: [0], programs: 3 });
        const states = [4, 4, 9, 30].map((n) => ramp(n));
        const known = states.map((s) => [...s.data()]);
        const held: (readonly [Tensor, readonly number[]])[] = [];
        for (const { state, rows, fresh } of calls) {
          const s = fresh === 0 ? ramp(states[state]!.elements) : states[state]!;
          if (fresh === 0) {
            held.push([states[state]!, known[state]!]);
            known[state] = [...s.data()];
          }
          const [next, twice] = f(s, ramp(rows, 1));
          expect([...twice.data()]).toEqual(known[state]!.map((v) => v * 2 + 136));
          known[state] = known[state]!.map((v) => v + (rows * (rows + 1)) / 2);
          states[state] = next;
        }
        for (const [i, s] of states.entries()) expect([...s.data()]).toEqual(known[i]);
        for (const [s, values] of held) expect([...s.data()]).toEqual(values);
      }),
      { numRuns: 40 },
    );
  });
});
