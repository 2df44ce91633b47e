/** @file The strategy `optimal` as a library's user has it: the solver is found, and what it showed is reported. */
import { afterEach, describe, expect, it } from "vitest";
import { type PlanInfo, type PlanningOptions, plan, spec, type Tensor, valueAndGrad } from "../src/api/index.ts";
import { findSolver } from "../src/node/highs.ts";
import { exactPlanner } from "../src/remat/exact-planner.ts";
import { testHost } from "./support/host.ts";

afterEach(() => {
  testHost.findSolver = findSolver;
});

const loss = (w: Tensor, x: Tensor) =>
  [1, 2, 3, 4, 5, 6, 7, 8]
    .reduce((h) => h.matmul(w).tanh(), x)
    .square()
    .sum();
const planned = (options: PlanningOptions): PlanInfo =>
  plan(valueAndGrad(loss), { cache: false, ...options })(spec([32, 32]), spec([32, 32]));

describe("strategy optimal", () => {
  const { arenaBytes: stored } = planned({});

  it("finds the solver by itself, and says what is proven", () => {
    const memory = Math.ceil(0.85 * stored);
    const found = planned({ strategy: "optimal", memory });
    expect(found.arenaBytes).toBeLessThanOrEqual(memory);
    expect(found.arenaBytes).toBeLessThan(stored);
    expect(found).toMatchObject({ gap: 0, proven: true, strategy: "optimal" });
    expect(found.predictedMs).toBeLessThanOrEqual(planned({ memory }).predictedMs);
    // others ask no solver
    expect(planned({ memory })).toMatchObject({ gap: null, proven: false });
  });

  it("is not larger than others at the least", () => {
    const bytes = (strategy: PlanningOptions["strategy"]): number =>
      planned({ memory: "min", ...(strategy && { strategy }) }).arenaBytes;
    expect(bytes("optimal")).toBeLessThanOrEqual(Math.min(bytes("auto"), bytes("recompute-all")));
  });

  it("reports a gap where the solver ends without a proof, with a plan all the same", () => {
    const silent = exactPlanner(() => ({ status: "unknown", objective: 0, bound: 0, value: () => 0 }));
    // more values than the search over states takes
    const deep = (w: Tensor, x: Tensor) =>
      Array.from({ length: 30 }, (_, n) => n)
        .reduce((h) => h.matmul(w).tanh(), x)
        .square()
        .sum();
    const at = (options: PlanningOptions): PlanInfo =>
      plan(valueAndGrad(deep), { cache: false, ...options })(spec([32, 32]), spec([32, 32]));
    const memory = Math.ceil(0.3 * at({}).arenaBytes);
    const found = at({ strategy: "optimal", memory, solver: silent });
    expect(found.arenaBytes).toBeLessThanOrEqual(memory);
    expect(found.proven).toBe(false);
    expect(found.gap).toBeGreaterThan(0);
  });

  it("says what to do where there is no solver", () => {
    testHost.findSolver = () => undefined;
    expect(() => planned({ strategy: "optimal", memory: stored - 1 })).toThrow(/no solver of integer programs.*highs/s);
    expect(() => planned({ strategy: "optimal" })).toThrow("no solver of integer programs");
  });

  it("has a name that is checked where it is written", () => {
    // @ts-expect-error: there is no such strategy
    expect(() => planned({ strategy: "sqrtt" })).toThrow("strategy is");
  });
});
