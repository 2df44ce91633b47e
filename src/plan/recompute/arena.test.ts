/** @file Budgets on the arena: lifetimes agree with the checker, packings are packings, and conflicts change the next plan. */
import { describe, expect, it } from "vitest";
import { integers, randomProblem, trainingChain } from "../../../tests/support/recompute-graphs.ts";
import { at } from "../../base/invariant.ts";
import { type PackedSequence, packSequence } from "../../remat/pack-sequence.ts";
import { boundOf } from "../bound.ts";
import { fitArena, type Realised, stageBytes } from "./arena.ts";
import { auto } from "./auto.ts";
import { conflictsOf } from "./conflicts.ts";
import { lifetimesOf } from "./lifetimes.ts";
import { baseSequence, leastBytes, type RecomputeProblem, type Sequence } from "./problem.ts";
import { simulate } from "./simulate.ts";

const peakOf = (problem: RecomputeProblem): number => simulate(problem, baseSequence(problem)).peakBytes;

/** Runs the packed sequence on an arena of bytes, each of which knows whose it is: complains about any that is lost. */
function execute(problem: RecomputeProblem, sequence: Sequence, packed: PackedSequence, arenaBytes: number): string[] {
  const owner = new Int32Array(arenaBytes).fill(-1);
  const where = new Map<number, number>();
  const complaints: string[] = [];
  const write = (value: number, offset: number, bytes: number): void => {
    if (offset < 0 || offset + bytes > arenaBytes) complaints.push(`${value} lies outside`);
    owner.fill(value, offset, offset + bytes);
    where.set(value, offset);
  };
  const check = (value: number): void => {
    const offset = where.get(value) ?? -1;
    if (!owner.subarray(offset, offset + at(problem.bytes, value)).every((o) => o === value)) {
      complaints.push(`value ${value} was overwritten`);
    }
  };
  const pinned = problem.bytes.length;
  sequence.forEach((index, step) => {
    const { inputs, outputs } = at(problem.ops, index);
    packed.constants.forEach(({ fromStep, bytes, offset }, k) => {
      if (fromStep === step) write(pinned + k, offset, bytes);
    });
    outputs.forEach((value, i) => {
      write(value, at(at(packed.offsets, step), i), at(problem.bytes, value));
    });
    for (const value of [...inputs, ...outputs]) check(value);
    packed.constants.forEach(({ fromStep, toStep, bytes, offset }, k) => {
      const own = owner.subarray(offset, offset + bytes).every((o) => o === pinned + k);
      if (fromStep <= step && step < toStep && !own) complaints.push(`constant ${k} was overwritten`);
    });
  });
  for (const value of problem.results) check(value);
  return complaints;
}

describe("lifetimes", () => {
  it("add up to what the checker counts, whatever is repeated", () => {
    for (let seed = 0; seed < 60; seed++) {
      const problem = randomProblem(seed, 15);
      const draw = integers(seed + 1000);
      const sequence = baseSequence(problem).flatMap((op) => {
        const again = draw(0, op);
        return draw(0, 2) === 0 ? [op, again] : [op];
      });
      const { buffers } = lifetimesOf(problem, sequence);
      const { peakBytes, violations } = simulate(problem, sequence);
      if (violations.length > 0) continue;
      expect(boundOf({ buffers, capacity: 0, alignment: 1 }).bytes).toBe(peakBytes);
      expect(Math.max(...stageBytes(problem, sequence))).toBe(peakBytes);
    }
  });

  it("of constants that come and go take the bytes of each stage", () => {
    const chain = trainingChain(
      4,
      () => 10,
      () => 1,
    );
    const pinnedBytes = [5, 9, 9, 3, 3, 12, 0, 4, 4];
    const problem = { ...chain, pinnedBytes };
    const { pinned, buffers } = lifetimesOf(problem, baseSequence(problem));
    const held = baseSequence(problem).map((step) =>
      pinned
        .map((id) => at(buffers, id))
        .filter(({ lifespan }) => lifespan.start <= step && step < lifespan.end)
        .reduce((sum, { bytes }) => sum + bytes, 0),
    );
    expect(held).toEqual(pinnedBytes.slice(0, 8));
  });
});

describe("fitArena", () => {
  it("finds plans whose values keep their bytes in an arena within the budget", () => {
    let fitted = 0;
    for (let seed = 0; seed < 12; seed++) {
      const problem = randomProblem(seed, 18);
      const budget = Math.max(leastBytes(problem), Math.floor(peakOf(problem) * 0.8));
      const fit = fitArena(problem, budget, (s) => packSequence(problem, s, budget, { workLimit: 1e5 }), {
        effort: 0.05,
      });
      if (!fit) continue;
      fitted += 1;
      const { plan, realised } = fit;
      expect(realised.arenaBytes).toBeLessThanOrEqual(budget);
      expect(simulate(problem, plan.sequence)).toMatchObject({ violations: [], cost: plan.cost });
      expect(plan.boundCost).toBeLessThanOrEqual(plan.cost);
      expect(execute(problem, plan.sequence, realised.result, realised.arenaBytes)).toEqual([]);
    }
    expect(fitted).toBeGreaterThan(6);
  });

  it("gives the same plan twice under effort", () => {
    const problem = randomProblem(5, 30);
    const budget = Math.floor(peakOf(problem) * 0.75);
    const run = () => fitArena(problem, budget, (s) => packSequence(problem, s, budget), { effort: 0.1 });
    expect(run()).toEqual(run());
  });

  const chain = trainingChain(
    12,
    () => 100,
    (layer) => 3 + (layer % 4),
  );

  /** One after the other. */
  const twice: RecomputeProblem = {
    ...chain,
    ops: [...chain.ops, ...chain.ops].map((op, index) => {
      const moved = (v: number): number => v + (index < chain.ops.length ? 0 : chain.bytes.length);
      return { ...op, id: index, inputs: op.inputs.map(moved), outputs: op.outputs.map(moved) };
    }),
    bytes: [...chain.bytes, ...chain.bytes],
    pinnedBytes: new Array<number>(2 * chain.ops.length + 1).fill(0),
  };

  it("leaves bytes free only where the realisation is too high", () => {
    const target = 900;
    const plain = auto(twice, target, { effort: 0.2 });
    // a realisation that loses a hundred bytes around the peak of the first half
    const lossy = (sequence: Sequence): Realised<null> => {
      const live = stageBytes(twice, sequence);
      const high = Math.max(...live.slice(9, 15)) + 100;
      const conflicts = high > target ? [{ fromOp: 9, toOp: 14, bytes: high - target, values: [3] }] : [];
      return { arenaBytes: Math.max(high, ...live), result: null, conflicts };
    };
    expect(lossy(plain.sequence).arenaBytes).toBeGreaterThan(target);
    const fit = fitArena(twice, target, lossy, { effort: 0.2 });
    expect(fit?.attempts).toBeGreaterThan(1);
    const everywhere = auto(twice, target - 100, { effort: 0.2 });
    expect(fit?.plan.cost).toBeLessThan(everywhere.cost);
    expect(fit?.plan.peakBytes).toBeGreaterThan(target - 100);
  });

  it("repair a plan with holes rather than making a dearer one, where time is short", () => {
    const problem = trainingChain(
      60,
      (layer) => 100 + 7 * (layer % 5),
      (layer) => 1 + (layer % 3),
    );
    const target = Math.floor(peakOf(problem) * 0.6);
    // Three per cent of what lives are lost in holes, wherever they are.
    const withHoles = (sequence: Sequence): Realised<Sequence> => {
      const arenaBytes = Math.ceil(simulate(problem, sequence).peakBytes * 1.03);
      return {
        arenaBytes,
        result: sequence,
        conflicts: [{ fromOp: 0, toOp: problem.ops.length, bytes: 1, values: [] }],
      };
    };
    const fit = fitArena(problem, target, withHoles, { seconds: 1, attempts: 1, thorough: true });
    expect(fit?.realised.arenaBytes).toBeLessThanOrEqual(target);
    expect(simulate(problem, fit?.plan.sequence ?? []).violations).toEqual([]);
    expect(fit?.plan.cost).toBe(simulate(problem, fit?.plan.sequence ?? []).cost);
  });

  it("answers null where nothing fits", () => {
    const realise = (): Realised<null> => ({ arenaBytes: 1e9, result: null, conflicts: [] });
    expect(fitArena(chain, 900, realise, { effort: 0.05, attempts: 3 })).toBeNull();
    expect(fitArena(chain, 100, realise, { effort: 0.05 })).toBeNull();
  });
});

describe("conflicts of a packing", () => {
  it("are what crosses the line, with the stages it lives in and what lies beside holes", () => {
    const lifetimes = lifetimesOf(
      trainingChain(
        3,
        () => 10,
        () => 1,
      ),
      [0, 1, 2, 3, 4, 5],
    );
    // values 0, 1, 2 at 0, 20, 30; a hole at [10, 20); value 2 lives in the stages 2 and 3
    const offsets = lifetimes.buffers.map((_, id) => [0, 20, 30, 10, 0, 0][id] ?? 0);
    expect(conflictsOf(lifetimes, offsets, 35)).toEqual([{ fromOp: 2, toOp: 3, bytes: 5, values: [0, 1, 2] }]);
    expect(conflictsOf(lifetimes, offsets, 40)).toEqual([]);
  });
});
