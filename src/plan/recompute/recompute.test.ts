/** @file Every planner of recomputation against the checker, and the profiles against each other. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leastCost, randomProblem, trainingChain } from "../../../tests/support/recompute-graphs.ts";
import { auto } from "./auto.ts";
import { flatGraph } from "./flat-graph.ts";
import { lookAhead } from "./look-ahead.ts";
import { SCORINGS } from "./look-ahead-runs.ts";
import { unlimited } from "./meter.ts";
import { baseSequence, checkProblem, leastBytes, type RecomputeProblem } from "./problem.ts";
import { profiler } from "./profile.ts";
import { seededRandom } from "./random.ts";
import { relieve } from "./relief.ts";
import { simulate } from "./simulate.ts";
import { PLAIN_STRATEGIES, planRecompute } from "./strategies.ts";
import type { StrategyName } from "./strategy.ts";
import { Timeline } from "./timeline.ts";

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
        const random = seededRandom(seed);
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

describe("random numbers", () => {
  it("have streams for neighbouring seeds that are not the same stream a few draws on", () => {
    const draws = (seed: number): number[] => Array.from({ length: 500 }, seededRandom(seed));
    const first = new Set(draws(0));
    for (let seed = 1; seed < 20; seed++) expect(draws(seed).filter((x) => first.has(x)).length).toBeLessThan(3);
  });
});

describe("relief", () => {
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
    const short = relieve(flatGraph(problem), budget, { meter: { ...unlimited(), left: 1 } });
    expect(simulate(problem, short).violations).toEqual([]);
    expect(short.length).toBeLessThan(relieve(flatGraph(problem), budget).length);
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

describe("strategies", () => {
  const problem = trainingChain(
    30,
    (layer) => 8 + (layer % 5),
    (layer) => 3 + (layer % 7),
  );

  it.each(PLAIN_STRATEGIES.filter(({ loopsOnly }) => !loopsOnly))(
    "$name gives valid sequences with true figures on a chain",
    (strategy) => {
      const budget = budgetOf(problem, 0.5);
      const answer = planRecompute(problem, budget, strategy, { effort: 0.3 });
      const { peakBytes, cost, violations } = simulate(problem, answer.sequence);
      expect(violations).toEqual([]);
      expect(answer).toMatchObject({ peakBytes, cost, feasible: peakBytes <= budget });
      if (answer.feasible) expect(answer.boundCost).toBeLessThanOrEqual(cost * (1 + 1e-9));
      // Nothing is named here that could be split.
      if (!["store-all", "recompute-all", "sqrt", "calls"].includes(strategy.name)) expect(answer.feasible).toBe(true);
    },
  );

  it("rank as they should: nothing beats the optimum of the chain, and auto reaches it", () => {
    const budget = budgetOf(problem, 0.4);
    const cost = (strategy: StrategyName): number => {
      const answer = planRecompute(problem, budget, strategy, { effort: 1 });
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

  it("refuse a name that is none", () => {
    expect(() => planRecompute(problem, 100, "magic" as StrategyName)).toThrow(
      "there is no recomputation strategy magic",
    );
    expect(() => planRecompute(problem, 100, "binomial")).toThrow("binomial is about loops");
  });
});
