/** @file Profiles: every kernel has a time and its work, and the sums are those of the rows. */
import { expect, it } from "vitest";
import { machineModel } from "./machine.ts";
import { profile, profileText } from "./profile.ts";
import { mlp } from "./programs/mlp.ts";

it("gives every kernel of a program a time, its work and its bytes", () => {
  const settings = { target: "wasm", memory: {}, machine: machineModel(() => {}) } as const;
  const found = profile(mlp, settings, 0.01);
  const kernels = found.plan.program.steps.filter((step) => !step.alias);
  expect(found.steps.map(({ step }) => found.plan.program.steps[step])).toEqual(kernels);
  for (const { ms, name } of found.steps) {
    expect(ms).toBeGreaterThan(0);
    expect(name).not.toBe("");
  }
  expect(found.ms).toBeCloseTo(found.steps.reduce((sum, { ms }) => sum + ms, 0));
  expect(found.bytes).toBe(found.steps.reduce((sum, { bytes }) => sum + bytes, 0));
  expect(found.movedBytes).toBeGreaterThanOrEqual(found.bytes);
  expect(found.wholeMs).toBeGreaterThan(0);
  const text = profileText(found, 3);
  expect(text).toContain(`all ${found.steps.length} kernels`);
  expect(text).toContain("matmul × 8");
  expect(text).toMatch(/kernels one by one take [\d.]+ ms, [\d.]+ × the fastest step as a whole, [\d.]+ ms\n$/);
  expect(text.trimEnd().split("\n")).toHaveLength(8);
});
