/** @file The chain's program: replayed by hand, against closed forms, and through whole graphs; and the minimum cut. */
import { describe, expect, it } from "vitest";
import { integers, randomProblem, trainingChain } from "../../../tests/support/recompute-graphs.ts";
import { type ChainBlock, type ChainPlan, solveChain } from "./chain.ts";
import { chainPlan } from "./chain-of-graph.ts";
import { minCut } from "./min-cut.ts";
import { forwardOps, squareRoot } from "./segments.ts";
import { simulate } from "./simulate.ts";

/** Runs a plan and returns the most slots held; throws when a block has no input or no tape. */
function replay(blocks: readonly ChainBlock[], plan: ChainPlan): { readonly slots: number; readonly cost: number } {
  const held = new Map<string, number>();
  let [most, cost, expected] = [0, 0, blocks.length - 1];
  const has = (block: number): boolean => block < 0 || held.has(`a${block}`) || held.has(`t${block}`);
  plan.actions.forEach(({ kind, block, ...rest }, k) => {
    const way = blocks[block]!.options["option" in rest ? rest.option : 0]!;
    if (!has(block - 1)) throw new Error(`block ${block} runs without its input`);
    if (kind === "backward") {
      expect(block).toBe(expected--);
      expect(held.has(`t${block}`)).toBe(true);
      cost += way.backwardCost;
      held.delete(`t${block}`);
      held.delete(`a${block}`);
    } else {
      cost += kind === "tape" ? way.forwardCost : blocks[block]!.cost;
      held.set(
        kind === "tape" ? `t${block}` : `a${block}`,
        kind === "tape" ? way.tapeSlots : blocks[block]!.outputSlots,
      );
      // an output that the next action has read and no later one resumes from
      const resumed = plan.actions.slice(k + 1).some((next) => next.kind !== "backward" && next.block === block + 1);
      expect(resumed || block === blocks.length - 1 || kind === "tape").toBe(true);
    }
    const next = plan.actions[k + 1];
    if (next?.kind === "forward" && next.block === block && kind === "forward") held.delete(`a${block - 1}`);
    most = Math.max(
      most,
      [...held.values()].reduce((a, b) => a + b, 0),
    );
  });
  return { slots: most, cost };
}

const even = (count: number): ChainBlock[] =>
  Array.from({ length: count }, () => ({
    cost: 1,
    outputSlots: 1,
    workSlots: 0,
    options: [{ forwardCost: 1, backwardCost: 1, tapeSlots: 1 }],
  }));

const planChain = (blocks: readonly ChainBlock[], slots: number): ChainPlan | null => solveChain(blocks, slots)(slots);

describe("solveChain", () => {
  it("answers fewer slots as if asked for them alone", () => {
    const within = solveChain(even(8), 12);
    for (let slots = 0; slots <= 12; slots++) expect(within(slots)).toEqual(planChain(even(8), slots));
  });

  it("pays nothing twice with room for everything, and more with less room", () => {
    const blocks = even(12);
    expect(planChain(blocks, 12)?.cost).toBe(24);
    let last = 24;
    for (let slots = 11; slots >= 2; slots--) {
      const cost = planChain(blocks, slots)?.cost ?? Number.POSITIVE_INFINITY;
      expect(cost).toBeGreaterThanOrEqual(last);
      last = cost;
    }
    expect(planChain(blocks, 0)).toBeNull();
  });

  it("advances over two blocks again when two of three fit", () => {
    // forward 0 and 1, tape 2; then with 2 done, tape 0 and 1
    expect(planChain(even(6), 1)).toBeNull();
    const plan = planChain(even(3), 2);
    expect(plan?.cost).toBe(2 + 3 + 3);
  });

  it("gives actions that cost what it says", () => {
    const draw = integers(4);
    for (let round = 0; round < 20; round++) {
      const blocks = Array.from({ length: 9 }, (): ChainBlock => {
        const cost = draw(1, 9);
        const outputSlots = draw(1, 4);
        const options = [
          { forwardCost: cost, backwardCost: 2 * cost, tapeSlots: outputSlots + draw(2, 6) },
          { forwardCost: cost, backwardCost: 3 * cost, tapeSlots: outputSlots + draw(0, 2) },
        ];
        return { cost, outputSlots, workSlots: 0, options };
      });
      for (const slots of [20, 30, 45, 80]) {
        const plan = planChain(blocks, slots);
        if (plan) expect(replay(blocks, plan).cost).toBe(plan.cost);
      }
    }
  });
});

describe("chainPlan", () => {
  const problem = trainingChain(
    64,
    () => 100,
    () => 1,
  );

  it("plans graphs that are chains within the budget", () => {
    for (const budget of [3000, 2000, 1700]) {
      const sequence = chainPlan(problem, budget)!;
      expect(simulate(problem, sequence).violations).toEqual([]);
      expect(simulate(problem, sequence).peakBytes).toBeLessThanOrEqual(budget);
      expect(simulate(problem, sequence).cost).toBeLessThan(64 * 3 * 1.5);
    }
  });

  it("has nothing to say about a backward pass that needs nothing of the forward one", () => {
    const backward = problem.ops.map((op) => ({ ...op, backward: true }));
    expect(chainPlan({ ...problem, ops: backward }, 1000)).toBeNull();
  });

  it("costs no more than segments of the square root, within the same bytes", () => {
    const root = simulate(problem, squareRoot(problem));
    const plan = simulate(problem, chainPlan(problem, root.peakBytes)!);
    expect(plan.cost).toBeLessThanOrEqual(root.cost);
    expect(root.peakBytes).toBeLessThan(64 * 100 * 0.4);
  });
});

describe("minCut", () => {
  it("keeps the fewest bytes of all sets from which backward's values follow", () => {
    for (let seed = 0; seed < 40; seed++) {
      const made = randomProblem(seed, 11);
      const problem = { ...made, results: [], ops: made.ops.map((op, i) => ({ ...op, backward: i >= 7 })) };
      const forward = forwardOps(problem);
      const allowed = (op: number): boolean => op % 3 !== 0;
      const values = problem.ops.slice(0, forward).flatMap((op) => op.outputs);
      const read = new Set(
        problem.ops
          .slice(forward)
          .flatMap((op) => op.inputs)
          .filter((v) => values.includes(v)),
      );
      const follows = (kept: ReadonlySet<number>): boolean => {
        const known = new Set(kept);
        problem.ops.slice(0, forward).forEach((op, index) => {
          if (allowed(index) && op.inputs.every((v) => known.has(v))) for (const v of op.outputs) known.add(v);
        });
        return [...read].every((v) => known.has(v));
      };
      const bytes = (kept: Iterable<number>): number => [...kept].reduce((sum, v) => sum + problem.bytes[v]!, 0);
      let least = Number.POSITIVE_INFINITY;
      for (let set = 0; set < 2 ** values.length; set++) {
        const kept = new Set(values.filter((_, i) => (set >> i) & 1));
        if (follows(kept)) least = Math.min(least, bytes(kept));
      }
      const kept = minCut(problem, allowed);
      expect(follows(kept)).toBe(true);
      expect(bytes(kept)).toBe(least);
    }
  });
});
