/** @file Parts of programs: levels of segments, and the call tree. */
import { describe, expect, it } from "vitest";
import { trainingChain } from "../../../tests/support/recompute-graphs.ts";
import { at } from "../../base/invariant.ts";
import { callPlans, calls } from "./calls.ts";
import { unitsOf } from "./levels.ts";
import { baseCost, type RecomputeProblem } from "./problem.ts";
import { everyK, forwardOps, squareRoot, unitCount } from "./segments.ts";
import { simulate } from "./simulate.ts";

/** A chain of 24 layers, four to a block, two blocks to a stage; the last stage is a checkpoint's. */
function named(): RecomputeProblem {
  const chain = trainingChain(
    24,
    () => 8,
    () => 3,
  );
  const forward = forwardOps(chain);
  const ops = chain.ops.map((op, k) => {
    if (k >= forward) return op;
    const [block, stage] = [Math.floor(k / 4), Math.floor(k / 8)];
    return { ...op, scope: `${stage === 2 ? "@stage" : `stage${stage}`}/block${block}` };
  });
  return { ...chain, ops };
}

describe("parts of a program", () => {
  const problem = named();
  const forward = forwardOps(problem);

  it("are units at each level", () => {
    const count = (level: "operation" | "layer" | "module" | "region") => unitCount(problem, level);
    expect(count("operation")).toBe(forward);
    expect(count("layer")).toBe(Math.ceil(forward / 4));
    expect(count("module")).toBe(Math.ceil(forward / 8));
    expect(count("region")).toBe(2);
    expect(unitsOf(problem, forward, "layer").slice(0, 9)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 2]);
  });

  it("bound the segments of every-k and sqrt", () => {
    for (const level of ["operation", "layer", "module", "region"] as const) {
      for (const sequence of [everyK(problem, 1, level), everyK(problem, 2, level), squareRoot(problem, level)]) {
        expect(simulate(problem, sequence).violations).toEqual([]);
      }
    }
    const peak = (length: number): number => simulate(problem, everyK(problem, length, "layer")).peakBytes;
    expect(peak(2)).not.toBe(peak(1));
  });

  it("are split one after the other: fewer bytes at rest each time, more time", () => {
    const plans = callPlans(problem).map((sequence) => simulate(problem, sequence));
    expect(plans.length).toBeGreaterThan(3);
    expect(at(plans, 0).cost).toBe(baseCost(problem));
    plans.forEach(({ violations, cost }, i) => {
      expect(violations).toEqual([]);
      expect(cost).toBeGreaterThanOrEqual(plans[i - 1]?.cost ?? 0);
    });
    expect(Math.min(...plans.map((p) => p.peakBytes))).toBeLessThan(at(plans, 0).peakBytes);
  });

  it("give the cheapest plan within a budget, or none", () => {
    const all = callPlans(problem).map((sequence) => simulate(problem, sequence));
    const least = Math.min(...all.map((p) => p.peakBytes));
    const found = calls(problem, least);
    expect(found && simulate(problem, found).peakBytes).toBe(least);
    expect(calls(problem, least - 1)).toBeNull();
  });

  it("that are tiny are left alone", () => {
    const large = new Set(
      problem.ops.slice(0, forward).flatMap((op) => (op.scope?.endsWith("block5") ? op.outputs : [])),
    );
    const bytes = problem.bytes.map((b, v) => (large.has(v) ? b : b * 1e-6));
    // Storing everything, block5, and the stage around it.
    expect(callPlans({ ...problem, bytes }).length).toBeLessThanOrEqual(3);
  });
});
