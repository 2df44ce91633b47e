/** @file Every planner of recomputation against the checker, the profiles against each other, and tiny graphs exactly. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { skippingGraph } from "../../../bench/layered-graphs.ts";
import { leastCost, randomProblem, trainingChain } from "../../../tests/support/recompute-graphs.ts";
import { layeredGraph } from "../../../tests/support/training-graphs.ts";
import { findSolver } from "../../node/highs.ts";
import { anneal, dice } from "./anneal.ts";
import { auto, leastBytes } from "./auto.ts";
import { dropBound } from "./drop-bound.ts";
import { flatGraph } from "./flat-graph.ts";
import { lookAhead } from "./look-ahead.ts";
import { unmetered } from "./meter.ts";
import { relaxedBound } from "./optimal.ts";
import { SCORINGS } from "./portfolio.ts";
import { baseSequence, checkProblem, type RecomputeProblem } from "./problem.ts";
import { profiler } from "./profile.ts";
import { relieve } from "./relief.ts";
import { renumbered } from "./reorder.ts";
import { lowerByReplays } from "./replays.ts";
import { simulate } from "./simulate.ts";
import { relieveInStages } from "./stages.ts";
import { searchStates } from "./state-search.ts";
import { improveByStates } from "./state-windows.ts";
import { GRAPH_STRATEGIES, planRecompute, type StrategyName } from "./strategies.ts";
import { Timeline } from "./timeline.ts";
import { improveWindows } from "./windows.ts";

const solver = findSolver();
const seeds = fc.integer({ min: 0, max: 100_000 });

/** A budget between what is certainly needed and what is needed without recomputation. */
function budgetOf(problem: RecomputeProblem, part: number): number {
  const peak = simulate(problem, baseSequence(problem)).peakBytes;
  const least = leastBytes(problem);
  return Math.floor(least + (peak - least) * part);
}

describe("simulate", () => {
  it("counts what is held, what runs and what is pinned", () => {
    const problem = trainingChain(
      4,
      () => 10,
      () => 1,
    );
    // f0 … f3 b3: four layers and one gradient
    expect(simulate(problem, baseSequence(problem))).toEqual({ peakBytes: 50, peakStep: 4, cost: 12, violations: [] });
    // f2 again for b2, and f1 for b1: at most f0 f1 and two gradients
    const sequence = [0, 1, 2, 3, 4, 0, 1, 2, 5, 0, 1, 6, 7];
    expect(simulate(problem, sequence)).toEqual({ peakBytes: 40, peakStep: 11, cost: 17, violations: [] });
    const pinned = { ...problem, pinnedBytes: problem.pinnedBytes.map((_, k) => (k < 6 ? 0 : 7)) };
    expect(simulate(pinned, sequence)).toMatchObject({ peakBytes: 47, peakStep: 11 });
  });

  it("reports steps out of order, missing operations, missing results and repetitions that are not allowed", () => {
    const problem = trainingChain(
      2,
      () => 10,
      () => 1,
    );
    expect(simulate(problem, [0, 1, 2]).violations).toEqual([
      "1 operations never run",
      "result 3 is not present at the end",
    ]);
    expect(simulate(problem, [1, 0, 2, 3]).violations).toContain("step 0: f1 reads value 0, which is not present");
    const once = { ...problem, ops: problem.ops.map((op) => ({ ...op, once: true })) };
    expect(simulate(once, [0, 0, 1, 2, 3]).violations).toEqual(["step 1: f0 may run only once"]);
  });
});

describe("timeline", () => {
  it("has the cost and bytes of its sequence after any edits, and so has the profiler", () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const problem = checkProblem(randomProblem(seed, 14));
        const graph = flatGraph(problem);
        const budget = budgetOf(problem, 0.5);
        const random = dice(seed);
        const below = (n: number): number => Math.floor(random() * n);
        const line = new Timeline(graph, budget, baseSequence(problem), 20);
        for (let edit = 0; edit < 60; edit++) {
          const repetition = line.repetitions[below(2 * line.repetitions.length)];
          let step = below(graph.ops);
          const op = step;
          for (let k = 1 + below(10); k > 0 && step !== line.end; k--) step = line.next[step]!;
          if (repetition === undefined) line.insert(op, step);
          else line.remove(repetition);
        }
        const sequence = line.sequence();
        const { cost, peakBytes, violations } = simulate(problem, sequence);
        const profile = profiler(graph, budget, sequence.length).profile(Int32Array.from(sequence), sequence.length);
        expect(violations).toEqual([]);
        expect(profile.peakBytes).toBe(peakBytes);
        expect(profile.cost).toBe(cost);
        expect(line.cost).toBe(cost);
        expect(line.over - Math.max(0, line.bytesAt(line.end) - budget)).toBe(profile.overBytes);
        expect(sequence.length).toBe(graph.ops + line.repetitions.length);
      }),
      { seed: 3, numRuns: 200 },
    );
  });
});

describe("dice", () => {
  it("rolls streams for neighbouring seeds that are not the same stream a few draws on", () => {
    const draws = (seed: number): number[] => Array.from({ length: 500 }, dice(seed));
    const first = new Set(draws(0));
    for (let seed = 1; seed < 20; seed++) expect(draws(seed).filter((x) => first.has(x)).length).toBeLessThan(3);
  });
});

describe("relief", () => {
  it("gets lower in stages than at once where nearly all steps are above the budget", () => {
    const problem = layeredGraph(1, 1000);
    const budget = Math.floor(simulate(problem, baseSequence(problem)).peakBytes / 2);
    expect(simulate(problem, relieve(flatGraph(problem), budget)).peakBytes).toBeGreaterThan(budget);
    const staged = simulate(problem, relieveInStages(problem, budget).sequence);
    expect(staged.violations).toEqual([]);
    expect(staged.peakBytes).toBeLessThanOrEqual(budget);
  });

  it("goes on where a stage gets no lower, by forgetting what is computed again around the fullest step", () => {
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

  it("gives valid plans that cost no less than the least, most of them within the budget", () => {
    let within = 0;
    for (let seed = 0; seed < 12; seed++) {
      const problem = randomProblem(seed, 7);
      const budget = Math.floor(simulate(problem, baseSequence(problem)).peakBytes * 0.85);
      const relieved = simulate(problem, relieve(flatGraph(problem), budget));
      expect(relieved.violations).toEqual([]);
      if (relieved.peakBytes > budget) continue;
      within += 1;
      expect(relieved.cost).toBeGreaterThanOrEqual(leastCost(problem, budget));
    }
    expect(within).toBeGreaterThan(3);
  });

  it("stops when its work is done", () => {
    const problem = randomProblem(5, 60);
    const budget = budgetOf(problem, 0.3);
    const short = relieve(flatGraph(problem), budget, { work: 1 });
    expect(simulate(problem, short).violations).toEqual([]);
    expect(short.length).toBeLessThan(relieve(flatGraph(problem), budget).length);
  });
});

describe("the search over states", () => {
  const options = { cutoff: Number.POSITIVE_INFINITY, deadline: Number.POSITIVE_INFINITY };

  it("finds the least cost of tiny graphs when nothing is left out, or that there is no plan", () => {
    let [none, found] = [0, 0];
    for (let seed = 0; seed < 40; seed++) {
      const problem = randomProblem(seed, 7);
      const budget = budgetOf(problem, (seed % 4) / 4);
      const least = leastCost(problem, budget);
      const meter = unmetered();
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
    const meter = { left: 1e7 };
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
      const limits = { width: 20, deadline: Number.POSITIVE_INFINITY, meter: { left: 1e7 } };
      const after = simulate(problem, improveByStates(graph, budget, before, 6, limits));
      expect(after.violations).toEqual([]);
      expect(after.peakBytes).toBeLessThanOrEqual(budget);
      better += Number(after.cost < simulate(problem, before).cost);
    }
    expect(better).toBeGreaterThan(1);
  });
});

describe("look-ahead", () => {
  it("gives valid plans within the budget with every scoring, and finds the plain one where that fits", () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(0.2, 0.5, 0.8, 1), (seed, part) => {
        const problem = randomProblem(seed, 40);
        const graph = flatGraph(problem);
        const budget = budgetOf(problem, part);
        for (const scoring of SCORINGS) {
          const sequence = lookAhead(graph, budget, scoring);
          if (part === 1) expect(sequence).toEqual(baseSequence(problem));
          if (!sequence) continue;
          const { peakBytes, violations } = simulate(problem, sequence);
          expect(violations).toEqual([]);
          expect(peakBytes).toBeLessThanOrEqual(budget);
        }
      }),
      { seed: 5, numRuns: 60 },
    );
  });

  it("does not repeat what may run only once", () => {
    const problem = trainingChain(
      12,
      () => 10,
      () => 1,
    );
    const once = { ...problem, ops: problem.ops.map((op, index) => ({ ...op, once: index === 4 })) };
    const sequence = lookAhead(flatGraph(once), 80, SCORINGS[0]!);
    expect(sequence).not.toBeNull();
    expect(simulate(once, sequence!).violations).toEqual([]);
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
        const answer = auto(problem, budget, { effort: 0.2, solver });
        expect(answer.feasible).toBe(Number.isFinite(least));
        expect(dropBound(flatGraph(problem), budget)).toBeLessThanOrEqual(least + 1e-9);
        expect(answer.boundCost).toBeLessThanOrEqual(least * (1 + 1e-6));
        if (answer.feasible) expect(answer.cost).toBe(least);
        if (solver) {
          const bound = relaxedBound(flatGraph(problem), budget, solver, Number.POSITIVE_INFINITY);
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
      const answer = planRecompute(problem, budget, "optimal", { solver, seconds: 20 });
      const least = leastCost(problem, budget);
      if (Number.isFinite(least) && answer.feasible) expect(answer.cost).toBe(least);
    }
  });
});

describe("strategies", () => {
  const problem = trainingChain(
    30,
    (layer) => 8 + (layer % 5),
    (layer) => 3 + (layer % 7),
  );

  it.each(GRAPH_STRATEGIES)("%s gives valid sequences with true figures on a chain", (strategy) => {
    const budget = budgetOf(problem, 0.5);
    const answer = planRecompute(problem, budget, strategy, { seconds: 2, effort: 0.3, solver });
    const { peakBytes, cost, violations } = simulate(problem, answer.sequence);
    expect(violations).toEqual([]);
    expect(answer).toMatchObject({ peakBytes, cost, feasible: peakBytes <= budget });
    if (answer.feasible) expect(answer.boundCost).toBeLessThanOrEqual(cost * (1 + 1e-9));
    // Nothing is named here that could be split.
    if (!["store-all", "recompute-all", "sqrt", "calls"].includes(strategy)) expect(answer.feasible).toBe(true);
  });

  it("rank as they should: nothing beats the optimum of the chain, and auto reaches it", () => {
    const budget = budgetOf(problem, 0.4);
    const cost = (strategy: StrategyName): number => {
      const answer = planRecompute(problem, budget, strategy, { effort: 1, solver });
      return answer.feasible ? answer.cost : Number.POSITIVE_INFINITY;
    };
    const best = cost("auto");
    for (const strategy of ["every-k", "selective", "min-cut", "chain", "look-ahead"] as const) {
      expect(cost(strategy)).toBeGreaterThanOrEqual(best * 0.999);
    }
  });

  it("are deterministic when effort is counted in steps", () => {
    const random = randomProblem(8, 60);
    const plan = (): unknown => auto(random, budgetOf(random, 0.5), { effort: 0.5 });
    expect(plan()).toEqual(plan());
  });

  it("prove that a budget below one operation's operands is impossible", () => {
    const answer = auto(problem, leastBytes(problem) - 1, { solver, order: "any" });
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
    expect(auto(branches, 130, { seconds: 1 })).toMatchObject({ feasible: false, proven: true });
    const answer = auto(branches, 130, { seconds: 1, order: "any" });
    expect(answer).toMatchObject({ feasible: true, peakBytes: 120, cost: 4 });
    const { problem: inOrder, sequence } = renumbered(branches, answer.sequence);
    expect(simulate(inOrder, sequence)).toMatchObject({ violations: [], peakBytes: 120 });
    // neither order helps against a single operation; a plan with the given order stays
    expect(auto(branches, 109, { seconds: 1, order: "any" })).toMatchObject({ feasible: false, proven: true });
    expect(auto(branches, 210, { seconds: 1, order: "any" }).sequence).toEqual([0, 1, 2, 3]);
  });

  it("refuse a name that is none", () => {
    expect(() => planRecompute(problem, 100, "magic" as StrategyName)).toThrow(
      "there is no recomputation strategy magic",
    );
    expect(() => planRecompute(problem, 100, "binomial")).toThrow("binomial is about loops");
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
      const options = { seed, moves: 5000, deadline: Number.POSITIVE_INFINITY, hot: 0.3, cold: 0.01 };
      const better = anneal(graph, budget, start, options)!;
      const limits = { stages: 12, seconds: 2, deadline: Number.POSITIVE_INFINITY };
      const windows = solver ? improveWindows(graph, budget, better, solver, limits) : better;
      for (const sequence of [better, windows]) {
        const found = simulate(problem, sequence);
        expect(found.violations).toEqual([]);
        expect(found.peakBytes).toBeLessThanOrEqual(budget);
        expect(found.cost).toBeLessThanOrEqual(cost);
      }
    }
  });
});
