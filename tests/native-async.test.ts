/** @file `compileAsync` for the target `native`: the worker generates C, and the compiler runs beside this thread, not on it. */
import { expect, test, vi } from "vitest";

const runs = vi.hoisted(() => ({ onThread: 0, beside: 0 }));

vi.mock("node:child_process", async (original) => {
  const real = await original<typeof import("node:child_process")>();
  const isC = (args: unknown): boolean => Array.isArray(args) && args.includes("-x");
  return {
    ...real,
    spawnSync: (...args: Parameters<typeof real.spawnSync>) => {
      if (isC(args[1])) runs.onThread++;
      return real.spawnSync(...args);
    },
    spawn: (...args: Parameters<typeof real.spawn>) => {
      if (isC(args[1])) runs.beside++;
      return real.spawn(...args);
    },
  };
});

const tm = await import("../src/api/index.ts");
await import("./support/host.ts");
const { nativeTarget } = await import("../src/node/native/target.ts");

const hasNative = typeof nativeTarget() !== "string";

test.runIf(hasNative)("no C is compiled on the calling thread, and results have the bits of compile", async () => {
  // a number that no earlier run has compiled
  const odd = 1 + (Date.now() % 1e6) / 1e9;
  const f = (x: InstanceType<typeof tm.Tensor>) => x.mul(odd).tanh().sum();
  const notes: (string | undefined)[] = [];
  const x = tm.tensor([0.1, 0.2, 0.3]);
  tm.compile((y: typeof x) => y.add(1), { target: "native" })(x);
  const before = { ...runs };
  const later = await tm.compileAsync(f, [x], { target: "native", onProgress: ({ note }) => notes.push(note) });
  const value = later(x).item();
  expect(later.program(x).target).toBe("native");
  expect(runs.onThread - before.onThread).toBe(0);
  expect(runs.beside - before.beside).toBe(1);
  expect(notes.filter((note) => note !== undefined)).toEqual([]);
  expect(tm.compile(f, { target: "native" })(x).item()).toBe(value);
  // the same text: from the cache
  expect(runs.onThread - before.onThread).toBe(0);
});
