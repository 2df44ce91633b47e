/** @file The searches for graphs alone: tiny graphs exactly, lower peaks, other orders, windows of plans. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { skippingGraph } from "../../bench/layered-graphs.ts";
import { leastCost, randomProblem, trainingChain } from "../../tests/support/recompute-graphs.ts";
import { layeredGraph } from "../../tests/support/training-graphs.ts";
import { findSolver } from "../node/highs.ts";
import { anneal } from "../plan/recompute/anneal.ts";
import { dropBound } from "../plan/recompute/drop-bound.ts";
import { flatGraph } from "../plan/recompute/flat-graph.ts";
import { lookAhead } from "../plan/recompute/look-ahead.ts";
import { SCORINGS } from "../plan/recompute/look-ahead-runs.ts";
import { unlimited } from "../plan/recompute/meter.ts";
import { baseSequence, leastBytes, type RecomputeProblem } from "../plan/recompute/problem.ts";
import { relieve } from "../plan/recompute/relief.ts";
import { simulate } from "../plan/recompute/simulate.ts";
import { planRecompute } from "../plan/recompute/strategies.ts";
import { optimal } from "./exact-planner.ts";
import { relaxedBound } from "./optimal.ts";
import { planGraph } from "./plan-graph.ts";
import { renumbered } from "./reorder.ts";
import { lowerByReplays } from "./replays.ts";
import { relieveInStages } from "./stages.ts";
import { searchStates } from "./state-search.ts";
import { improveByStates } from "./state-windows.ts";
import { improveWindows } from "./windows.ts";

const solver = findSolver()?.solve;
const seeds = fc.integer({ min: 0, max: 100_000 });

/** A budget between what is certainly needed and what is needed without recomputation. */
function budgetOf(problem: RecomputeProblem, part: number): number {
  const peak = simulate(problem, baseSequence(problem)).peakBytes;
  const least = leastBytes(problem);
  return Math.floor(least + (peak - least) * part);
}

describe("relief in stages", () => {
  it("gets lower in stages than at once where nearly all steps are above the budget", () => {
    const problem = layeredGraph(1, 1000);
    const budget = Math.floor(simulate(problem, baseSequence(problem)).peakBytes / 2);
    expect(simulate(problem, relieve(flatGraph(problem), budget)).peakBytes).toBeGreaterThan(budget);
    const staged = simulate(problem, relieveInStages(problem, budget).sequence);
    expect(staged.violations).toEqual([]);
    expect(staged.peakBytes).toBeLessThanOrEqual(budget);
  });

  it("goes on where a stage gets no lower, by removing recomputations around the fullest step", () => {
    const problem = skippingGraph(5, 200);
    const budget = budgetOf(problem, 0.65);
    const { violations, peakBytes } = simulate(problem, relieveInStages(problem, budget, { rounds: 40 }).sequence);
    expect(violations).toEqual([]);
    expect(peakBytes).toBeLessThanOrEqual(budget);
  });

  it("goes lower where the order of first executions is free", () => {
    const problem = skippingGraph(5, 200);
    const budget = Math.floor(0.58 * simulate(problem, baseSequence(problem)).peakBytes);
    const rounds = 25;
    expect(simulate(problem, relieveInStages(problem, budget, { rounds }).sequence).peakBytes).toBeGreaterThan(budget);
    const free = relieveInStages(problem, budget, { rounds, order: "any" });
    const { violations, peakBytes } = simulate(free.problem, free.sequence);
    expect(violations).toEqual([]);
    expect(peakBytes).toBeLessThanOrEqual(budget);
    // the same operations, each once in the order
    expect(free.problem.ops).toEqual(free.given.map((op) => problem.ops[op]));
    expect([...free.given].sort((a, b) => a - b)).toEqual(baseSequence(problem));
    expect(relieveInStages(problem, budget, { rounds, order: "any" })).toEqual(free);
  });

  it("finds a plan at 0.6 of the peak of 500 layered operations by replays of many values at once", () => {
    const problem = skippingGraph(4, 500);
    const budget = Math.floor(0.6 * simulate(problem, baseSequence(problem)).peakBytes);
    const lowered = lowerByReplays(problem, budget, { rounds: 12, order: "any" });
    const { violations, peakBytes } = simulate(lowered.problem, lowered.sequence);
    expect(violations).toEqual([]);
    expect(peakBytes).toBeLessThanOrEqual(budget);
    expect(lowered.problem.ops).toEqual(lowered.given.map((op) => problem.ops[op]));
    expect(lowerByReplays(problem, budget, { rounds: 12, order: "any" })).toEqual(lowered);
  });

  it("replays nothing that may run only once, in the given order where that is to stay", () => {
    const problem = skippingGraph(2, 200);
    const ops = problem.ops.map((op, k) => (k % 5 === 0 ? { ...op, once: true } : op));
    const { given, sequence } = lowerByReplays({ ...problem, ops }, budgetOf(problem, 0.7), { rounds: 6 });
    expect(given).toEqual(baseSequence(problem));
    expect(simulate({ ...problem, ops }, sequence).violations).toEqual([]);
    expect(sequence.length).toBeGreaterThan(ops.length);
  });

  it("keeps the given order where constants appear on the way", () => {
    const problem = skippingGraph(5, 60);
    const pinnedBytes = problem.pinnedBytes.map((_, k) => Number(k > 30));
    const budget = budgetOf(problem, 0.5);
    const { given } = relieveInStages({ ...problem, pinnedBytes }, budget, { rounds: 3, order: "any" });
    expect(given).toEqual(baseSequence(problem));
  });
});

describe("the search over states", () => {
  const options = { cutoff: Number.POSITIVE_INFINITY };

  it("finds the least cost of tiny graphs when nothing is left out, or that there is no plan", () => {
    let [none, found] = [0, 0];
    for (let seed = 0; seed < 40; seed++) {
      const problem = randomProblem(seed, 7);
      const budget = budgetOf(problem, (seed % 4) / 4);
      const least = leastCost(problem, budget);
      const meter = unlimited();
      const { sequence, complete } = searchStates(flatGraph(problem), budget, { ...options, width: 3000, meter });
      expect(complete).toBe(true);
      expect(sequence !== null).toBe(Number.isFinite(least));
      none += Number(sequence === null);
      if (sequence === null) continue;
      found += 1;
      const { violations, peakBytes, cost } = simulate(problem, sequence);
      expect(violations).toEqual([]);
      expect(peakBytes).toBeLessThanOrEqual(budget);
      expect(cost).toBeCloseTo(least, 9);
    }
    expect(none).toBeGreaterThan(0);
    expect(found).toBeGreaterThan(20);
  });

  it("gives valid plans with more values than a double has bits, and says when it left something out", () => {
    const problem = randomProblem(4, 52);
    expect(problem.bytes.length).toBeGreaterThan(53);
    const budget = budgetOf(problem, 0.9);
    const meter = { ...unlimited(), left: 1e7 };
    const { sequence, complete } = searchStates(flatGraph(problem), budget, { ...options, width: 20, meter });
    expect(complete).toBe(false);
    const { violations, peakBytes } = simulate(problem, sequence ?? []);
    expect(violations).toEqual([]);
    expect(peakBytes).toBeLessThanOrEqual(budget);
  });

  it("improves windows of a plan and leaves it within its budget", () => {
    let better = 0;
    for (let seed = 1; seed < 16; seed += 2) {
      const problem = randomProblem(seed, 27);
      const graph = flatGraph(problem);
      const budget = budgetOf(problem, 0.5);
      const before = lookAhead(graph, budget, SCORINGS[0]!);
      if (!before) continue;
      const limits = { stages: 6, width: 20, meter: { ...unlimited(), left: 1e7 } };
      const after = simulate(problem, improveByStates(graph, budget, before, limits));
      expect(after.violations).toEqual([]);
      expect(after.peakBytes).toBeLessThanOrEqual(budget);
      better += Number(after.cost < simulate(problem, before).cost);
    }
    expect(better).toBeGreaterThan(1);
  });
});

describe("tiny graphs", () => {
  it("are planned at the least cost of all, by a search over every state, and no bound is above it", () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(0.3, 0.6, 0.9), (seed, part) => {
        const problem = randomProblem(seed, 7);
        if (problem.bytes.length > 9) return;
        const budget = budgetOf(problem, part);
        const least = leastCost(problem, budget);
        const answer = planGraph(problem, budget, { effort: 0.2, solver });
        expect(answer.feasible).toBe(Number.isFinite(least));
        expect(dropBound(flatGraph(problem), budget)).toBeLessThanOrEqual(least + 1e-9);
        expect(answer.boundCost).toBeLessThanOrEqual(least * (1 + 1e-6));
        if (answer.feasible) expect(answer.cost).toBe(least);
        if (solver) {
          const bound = relaxedBound(flatGraph(problem), { budget, solver }, Number.POSITIVE_INFINITY);
          expect(bound).toBeLessThanOrEqual(least * (1 + 1e-6));
        }
      }),
      { seed: 11, numRuns: 60 },
    );
  });

  it("cost the same with the integer program alone", () => {
    if (!solver) return expect.fail("the package highs is not installed");
    for (let seed = 0; seed < 25; seed++) {
      const problem = randomProblem(seed, 7);
      if (problem.bytes.length > 9) continue;
      const budget = budgetOf(problem, 0.4);
      const answer = planRecompute(problem, budget, optimal, { solver, seconds: 20 });
      const least = leastCost(problem, budget);
      if (Number.isFinite(least) && answer.feasible) expect(answer.cost).toBe(least);
    }
  });
});

describe("plans of graphs", () => {
  const chain = trainingChain(
    30,
    (layer) => 8 + (layer % 5),
    (layer) => 3 + (layer % 7),
  );

  it("by the solver are no dearer than those of auto", () => {
    const budget = budgetOf(chain, 0.5);
    const solved = planRecompute(chain, budget, optimal, { effort: 0.3, solver });
    expect(simulate(chain, solved.sequence)).toMatchObject({ violations: [], cost: solved.cost });
    expect(solved).toMatchObject({ feasible: true, strategy: "optimal" });
    expect(solved.cost).toBeLessThanOrEqual(planRecompute(chain, budget, "auto", { effort: 0.3 }).cost);
  });

  it("prove that a budget below one operation's operands is impossible", () => {
    const answer = planGraph(chain, leastBytes(chain) - 1, { solver, order: "any" });
    expect(answer).toMatchObject({ feasible: false, proven: true });
  });

  it("take another order of first executions where the given one has no plan, if they may", () => {
    // a and b are large and run once; what is made of each is small
    const large = { cost: 1, inputs: [], once: true };
    const ops = [
      { id: "a", name: "a", ...large, outputs: [0] },
      { id: "b", name: "b", ...large, outputs: [1] },
      { id: "c", name: "c", cost: 1, inputs: [0], outputs: [2] },
      { id: "d", name: "d", cost: 1, inputs: [1], outputs: [3] },
    ];
    const branches = {
      name: "branches",
      ops,
      bytes: [100, 100, 10, 10],
      results: [2, 3],
      pinnedBytes: [0, 0, 0, 0, 0],
    };
    expect(planGraph(branches, 130, { seconds: 1 })).toMatchObject({ feasible: false, proven: true });
    const answer = planGraph(branches, 130, { seconds: 1, order: "any" });
    expect(answer).toMatchObject({ feasible: true, peakBytes: 120, cost: 4 });
    const { problem: inOrder, sequence } = renumbered(branches, answer.sequence);
    expect(simulate(inOrder, sequence)).toMatchObject({ violations: [], peakBytes: 120 });
    // neither order helps against a single operation; a plan with the given order stays
    expect(planGraph(branches, 109, { seconds: 1, order: "any" })).toMatchObject({ feasible: false, proven: true });
    expect(planGraph(branches, 210, { seconds: 1, order: "any" }).sequence).toEqual([0, 1, 2, 3]);
  });
});

describe("improvements", () => {
  it("leave a plan within its budget and never make it dearer", () => {
    for (let seed = 0; seed < 8; seed++) {
      const problem = randomProblem(seed, 40);
      const graph = flatGraph(problem);
      const budget = budgetOf(problem, 0.5);
      const start = lookAhead(graph, budget, SCORINGS[0]!);
      if (!start) continue;
      const { cost } = simulate(problem, start);
      const options = { seed, meter: { ...unlimited(), left: 1e6 }, hot: 0.3, cold: 0.01 };
      const better = anneal(graph, budget, start, options)!;
      const limits = { stages: 12, seconds: 2, deadline: Number.POSITIVE_INFINITY };
      const windows = solver ? improveWindows(graph, { budget, solver }, better, limits) : better;
      for (const sequence of [better, windows]) {
        const found = simulate(problem, sequence);
        expect(found.violations).toEqual([]);
        expect(found.peakBytes).toBeLessThanOrEqual(budget);
        expect(found.cost).toBeLessThanOrEqual(cost);
      }
    }
  });
});
