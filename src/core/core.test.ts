/** @file `tidemark/core`: the functions of `tidemark`, the same plans and bits, no methods, and budgets when they are imported. */
import { describe, expect, it } from "vitest";
import * as core from "./index.ts";

const { compile, compileAsync, grad, matmul, mean, mul, random, sum, tanh, tensor } = core;

const w = mul(random.normal(random.key(0), [64, 64]), 0.2);
const x = random.normal(random.key(1), [128, 64]);

function loss(v: core.Tensor): core.Tensor {
  let h: core.Tensor = x;
  for (let i = 0; i < 6; i++) h = tanh(matmul(h, v));
  return mean(h);
}

// in this order: what is imported stays for the rest of the file
describe("tidemark/core", () => {
  it("compiles gradients of functions", () => {
    const slope = compile(grad((v: core.Tensor) => sum(mul(v, v))));
    expect(slope(tensor([1, 2, 3])).toArray()).toEqual([2, 4, 6]);
    expect(compile(grad(loss))(w).shape).toEqual([64, 64]);
  });

  it("has loops and branches, which bring along what compiles them", () => {
    const powers = (v: core.Tensor) => sum(core.forLoop(3, v, (_, state) => mul(state, v)));
    expect(compile(grad(powers))(tensor([1, 2])).toArray()).toEqual([4, 32]);
    const sign = compile((v: core.Tensor) =>
      core.cond(
        core.less(v, 0),
        (u) => core.neg(u),
        (u) => u,
        v,
      ),
    );
    expect([sign(tensor(-2)).item(), sign(tensor(3)).item()]).toEqual([2, 3]);
  });

  it("has no methods for operations", () => {
    expect("matmul" in w).toBe(false);
  });

  it("says what to import for a budget", () => {
    const within = compile(grad(loss), { memory: "min" });
    const message = /planner of budgets, which is not imported[\s\S]*import "tidemark\/core\/budget"/;
    expect(() => within(w)).toThrow(message);
    expect(() => compile(grad(loss), { maxSlowdown: 1.2 }).program(w)).toThrow(message);
    expect(() => compile(grad(loss), { strategy: "sqrt" }).program(w)).toThrow(message);
    const shapes = { shapes: { T: [64] }, axes: [["T", null]] };
    expect(() => compile(grad(loss), shapes)).toThrow(/shapes is not imported[\s\S]*import "tidemark\/core\/budget"/);
  });

  it("plans within budgets with compileAsync, which loads them, and from then on with compile", async () => {
    const all = compile(grad(loss));
    const { arenaBytes } = all.program(w);
    const later = await compileAsync(grad(loss), [w], { memory: Math.floor(0.9 * arenaBytes) });
    expect(later.program(w).arenaBytes).toBeLessThan(0.9 * arenaBytes);
    expect(later(w).data()).toEqual(all(w).data());
    const memory = Math.floor(0.9 * arenaBytes);
    expect(compile(grad(loss), { memory }).program(w).arenaBytes).toBeLessThanOrEqual(memory);
  });

  it("has the plan, the code and the bits of tidemark, and its functions", async () => {
    const { plan, moduleBytes } = compile(grad(loss)).program(w);
    const bits = compile(grad(loss))(w).data();
    const tidemark = await import("../api/index.ts");
    const full = tidemark.compile(tidemark.grad(loss));
    expect(full.program(w)).toMatchObject({ moduleBytes, arenaBytes: plan.height });
    expect(full.program(w).plan.offsets).toEqual(plan.offsets);
    expect(full(w).data()).toEqual(bits);
    // `plan`, `lossyDeviation` and `pageFile` look for plans in any case; the list of operations is all of them
    const left = Object.keys(tidemark).filter((name) => !(name in core));
    expect(left.sort()).toEqual(["allOps", "lossyDeviation", "pageFile", "plan"]);
    const others = Object.entries(core).filter(
      ([name, value]) => (tidemark as Record<string, unknown>)[name] !== value,
    );
    expect(others.map(([name]) => name)).toEqual(["compileAsync"]);
  });
});
