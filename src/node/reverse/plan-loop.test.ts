/** @file From bytes to schedules: within the budget, as good as the candidates, and clear about what cannot be. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leastAdvances } from "../../loops/binomial.ts";
import { checkActions } from "./check.ts";
import { mixedTable } from "./mixed-table.ts";
import { type KnownLoopPlan, type LoopSpec, planLoop, snapshotsFor } from "./plan-loop.ts";

/** Follows the plan, and finds that it does what it says in the bytes that it says. */
function checked(plan: KnownLoopPlan, spec: LoopSpec): KnownLoopPlan {
  const { schedule, levels, unitBytes } = plan;
  const result = checkActions(schedule.steps, levels, schedule.actions(), { costs: spec.stepCosts });
  expect(result.problem).toBeNull();
  expect(result).toMatchObject({ recomputedSteps: plan.extraSteps, cost: plan.extraCost });
  const slower = spec.slower?.length ?? 0;
  const memory = levels.slice(0, schedule.name === "multi-level" ? levels.length - slower : levels.length);
  const bytes = memory.reduce((sum, { units }, k) => sum + units * (unitBytes[k] ?? 0), 0);
  expect(plan.bytes).toBe(bytes + (schedule.steps > 0 ? workingTape(spec) : 0));
  expect(plan.bytes).toBeLessThanOrEqual(spec.budgetBytes);
  for (const [k, { stateUnits, tapeUnits }] of memory.entries()) {
    const unit = unitBytes[k] as number;
    if (stateUnits !== null && (levels[k]?.units ?? 0) > 0)
      expect(stateUnits * unit).toBeGreaterThanOrEqual(spec.stateBytes);
    if (tapeUnits !== null) expect(tapeUnits * unit).toBeGreaterThanOrEqual(spec.tapeBytes);
    expect(unit % (spec.alignBytes ?? 1)).toBe(0);
  }
  return plan;
}

const workingTape = ({ tapeBytes, alignBytes = 1 }: LoopSpec): number => Math.ceil(tapeBytes / alignBytes) * alignBytes;

const plan = (spec: LoopSpec & { readonly steps: number }): KnownLoopPlan => checked(planLoop(spec), spec);

describe("the number of snapshots", () => {
  it("is what fits beside the working tape", () => {
    expect(snapshotsFor(1000, 100, 250)).toBe(7);
    expect(snapshotsFor(100, 100, 250)).toBe(0);
    expect(snapshotsFor(100, 0, 10)).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("a loop within bytes", () => {
  it("repeats nothing when all tapes fit", () => {
    const spec = { steps: 100, stateBytes: 8, tapeBytes: 40, budgetBytes: 4000 };
    expect(plan(spec)).toMatchObject({ schedule: { name: "store-all" }, extraSteps: 0, bytes: 4000 });
  });

  it("mixes states and tapes when they are of a size", () => {
    const spec = { steps: 100, stateBytes: 64, tapeBytes: 64, budgetBytes: 11 * 64 };
    expect(plan(spec)).toMatchObject({ schedule: { name: "mixed" }, extraSteps: 137 });
  });

  it("keeps states alone when tapes are large", () => {
    const spec = { steps: 1000, stateBytes: 10, tapeBytes: 10_000, budgetBytes: 10_100 };
    expect(plan(spec).extraSteps).toBe(leastAdvances(1000, 10));
  });

  it("uses fractions of the smaller size where whole ones waste", () => {
    const spec = { steps: 60, stateBytes: 200, tapeBytes: 300, budgetBytes: 300 + 2400 };
    const whole = mixedTable(60, 12, { stateUnits: 1, tapeUnits: 2 }).evaluations(60, 12) - 60;
    expect(plan(spec).extraSteps).toBeLessThan(whole);
  });

  it("never gets worse with more bytes, where sizes fit evenly", () => {
    let before = Number.POSITIVE_INFINITY;
    for (let budgetBytes = 96; budgetBytes <= 64 * 60; budgetBytes += 32) {
      const { extraSteps } = plan({ steps: 60, stateBytes: 32, tapeBytes: 64, budgetBytes });
      expect(extraSteps).toBeLessThanOrEqual(before);
      before = extraSteps;
    }
    expect(before).toBe(0);
  });

  it("stays within any budget that is enough, and says what is when it is not", () => {
    const specs = fc.record({
      steps: fc.integer({ min: 0, max: 150 }),
      stateBytes: fc.integer({ min: 0, max: 500 }),
      tapeBytes: fc.integer({ min: 0, max: 500 }),
      budgetBytes: fc.integer({ min: 0, max: 6000 }),
      alignBytes: fc.constantFrom(1, 16, 64),
    });
    fc.assert(
      fc.property(specs, (spec) => {
        const { steps, alignBytes } = spec;
        const state = Math.ceil(spec.stateBytes / alignBytes) * alignBytes;
        const least = Math.min(steps * workingTape(spec), state + workingTape(spec));
        if (spec.budgetBytes < least)
          expect(() => plan(spec)).toThrow(`raise the budget to ${least.toLocaleString("en")} bytes`);
        else plan(spec);
      }),
      { seed: 3, numRuns: 200 },
    );
  });

  it("looks at what steps cost", () => {
    const stepCosts = Array.from({ length: 50 }, (_, i) => (i === 40 ? 1000 : 1));
    const spec = { steps: 50, stateBytes: 10, tapeBytes: 1000, budgetBytes: 1040, stepCosts };
    expect(plan(spec)).toMatchObject({ schedule: { name: "variable" } });
    expect(plan(spec).extraCost).toBeLessThan(2500);
  });

  it("uses slower levels where they save more than they cost", () => {
    const slower = [{ name: "disk", units: 100, writeCost: 2, readCost: 2 }];
    const spec = { steps: 100, stateBytes: 10, tapeBytes: 1000, budgetBytes: 1050, slower };
    expect(plan(spec)).toMatchObject({ schedule: { name: "multi-level" }, extraCost: 233 });
    const dear = [{ name: "disk", units: 100, writeCost: 1e5, readCost: 1e5 }];
    expect(plan({ ...spec, slower: dear }).extraCost).toBe(leastAdvances(100, 5));
  });

  it("of a hundred thousand steps with ten thousand units repeats each step at most once", () => {
    const spec = { steps: 100_000, stateBytes: 64, tapeBytes: 64, budgetBytes: 64 * 10_000 };
    expect(plan(spec).extraSteps).toBeLessThan(100_000);
  });

  it("of unknown length is online, with as many snapshots as fit", () => {
    const spec = { stateBytes: 100, tapeBytes: 300, budgetBytes: 1234 };
    const online = planLoop({ ...spec, steps: null });
    expect(online).toMatchObject({ online: true, snapshots: 9, bytes: 1200 });
    const result = checkActions(
      77,
      online.levels,
      online.actions((step) => step === 76),
    );
    expect(result.problem).toBeNull();
    expect(() => planLoop({ ...spec, steps: null, budgetBytes: 399 })).toThrow("raise the budget to 400 bytes");
    expect(planLoop({ ...spec, steps: null, stateBytes: 0 }).snapshots).toBe(1024);
  });

  it("is described in whole numbers", () => {
    const spec = { steps: 5, stateBytes: 8, tapeBytes: 8, budgetBytes: 100 };
    expect(() => planLoop({ ...spec, steps: 1.5 })).toThrow("planLoop: steps is 1.5");
    expect(() => planLoop({ ...spec, stateBytes: -1 })).toThrow("planLoop: stateBytes is -1");
    expect(() => planLoop({ ...spec, budgetBytes: Number.NaN })).toThrow("planLoop: budgetBytes is NaN");
    expect(() => planLoop({ ...spec, alignBytes: 0 })).toThrow("planLoop: alignBytes is 0");
    expect(() => planLoop({ ...spec, stepCosts: [1] })).toThrow("1 costs for 5 steps");
  });
});
