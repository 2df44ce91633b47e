/** @file Planning without compiling: the same plan as compile's, on types alone, at any size. */
import { describe, expect, it } from "vitest";
import { adam } from "../optim/adam.ts";
import { compile, grad, plan, spec, specsOf, type Tensor, tensor, zeros } from "./index.ts";

const slope = grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum());

describe("plan", () => {
  it("gives the plan that compile makes", () => {
    const args = [zeros([64, 16]), zeros([32, 64])] as const;
    const { plan: made, paths, ...planned } = plan(slope)(...args);
    const compiled = compile(slope).program(...args);
    expect(planned.arenaBytes).toBe(compiled.arenaBytes);
    expect(planned.kernelCalls).toBe(compiled.kernelCalls);
    expect(planned.flops).toBe(compiled.flops);
    expect(made.offsets).toEqual(compiled.plan.offsets);
    expect(made.problem.buffers.map((b) => b.lifespan)).toEqual(compiled.plan.problem.buffers.map((b) => b.lifespan));
    expect(paths).toEqual(["arg0", "arg1"]);
  });

  it("takes specs in the place of arguments and of what a function closes over", () => {
    const table = spec([1024, 256]);
    const { paths, persistentBytes, arenaBytes } = plan((x: Tensor) => x.matmul(table))(spec([8, 1024]));
    expect(paths).toEqual(["x", "captured[0]"]);
    expect(persistentBytes).toBe(4 * 1024 * 256);
    expect(arenaBytes).toBeGreaterThan(persistentBytes);
    // small enough to be looked at, if there were something to see
    expect(plan((x: Tensor) => x.mul(spec([2])))(spec([2])).paths).toEqual(["x", "captured[0]"]);
  });

  it("plans beyond the 4 GiB of a WebAssembly memory, where compile refuses", () => {
    const huge = spec([1 << 15, 1 << 15]);
    const double = (x: Tensor) => x.matmul(x);
    expect(plan(double)(huge).arenaBytes).toBeGreaterThanOrEqual(2 ** 33);
    expect(() => compile(double).program(huge)).toThrow("TargetUnsupported");
  });

  it("updates donated arguments in place and refuses budgets like compile", () => {
    const step = (s: { w: Tensor }, g: Tensor) => ({ w: s.w.sub(g) });
    const args = [{ w: spec([1024]) }, spec([1024])] as const;
    const { plan: made, persistentBytes } = plan(step, { donate: [0] })(...args);
    expect([persistentBytes, made.copies]).toEqual([4096, []]);
    expect(() => plan(step, { donate: [0], memory: 8191 })(...args)).toThrow("PlanInfeasible: step needs 8,192 bytes");
  });
});

describe("spec", () => {
  it("has a type and nothing to read or to run on", () => {
    const x = spec([2, 3], "i32");
    expect([x.shape, x.dtype, String(x)]).toEqual([[2, 3], "i32", "Tensor(i32[2,3], spec)"]);
    expect(() => x.data()).toThrow("this i32[2,3] is a spec: it has a type and no elements");
    expect(() => x.add(x)).toThrow("is a spec");
    expect(() => compile((v: Tensor) => v.add(1))(x)).toThrow("is a spec");
    expect(() => spec([-1])).toThrow("spec: shape [-1]");
  });

  it("stands for what a function returns, which is not run", () => {
    const state = specsOf((params: { w: Tensor }) => adam().init(params))({ w: spec([50257, 768]) });
    expect([state.slots.m?.w.shape, state.step.dtype]).toEqual([[50257, 768], "i32"]);
    expect(specsOf(() => ({ a: tensor([1, 2]), b: 3 }))().a.toString()).toBe("Tensor(f32[2], spec)");
  });
});
