/**
 * @file `tidemark remat` as a user runs it, and published graphs where they are at hand: their licences do not allow a
 * copy here, so they are read from the folder beside the project.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { main } from "../src/cli/main.ts";
import { findSolver } from "../src/node/highs.ts";
import { auto } from "../src/plan/recompute/auto.ts";
import { baseSequence, leastBytes } from "../src/plan/recompute/problem.ts";
import { readGraph } from "../src/plan/recompute/read-graph.ts";
import { simulate } from "../src/plan/recompute/simulate.ts";
import { planRecompute } from "../src/plan/recompute/strategies.ts";
import { optimal } from "../src/remat/exact-planner.ts";
import { planGraph } from "../src/remat/plan-graph.ts";
import { randomProblem, trainingChain } from "./support/recompute-graphs.ts";
import { layeredGraph, trainingGraph } from "./support/training-graphs.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-remat-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Ten layers as node-link JSON. */
function graphFile(): string {
  const { ops, bytes } = trainingChain(
    10,
    () => 100,
    () => 4,
  );
  const nodes = ops.map((op, id) => ({
    id,
    name: op.name,
    cost_cpu: op.cost,
    cost_ram: bytes[id],
    backward: op.backward,
  }));
  const links = ops.flatMap((op, target) => op.inputs.map((source) => ({ source, target })));
  const path = join(folder, "graph.json");
  writeFileSync(path, JSON.stringify({ graph: { name: "ten layers" }, nodes, links }));
  return path;
}

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await main(argv, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

describe("tidemark remat", () => {
  const path = graphFile();

  it("prints a sequence with its cost and bytes as JSON", async () => {
    const { code, out } = await run("remat", path, "--budget", "700", "--json", "--timeout", "5");
    expect(code).toBe(0);
    const answer = JSON.parse(out.trim().split("\n").at(-1) ?? "");
    const problem = readGraph(readFileSync(path, "utf8"));
    const { cost, peakBytes, violations } = simulate(problem, answer.sequence);
    expect(violations).toEqual([]);
    expect(answer).toMatchObject({ cost, peakBytes, baseCost: 120, feasible: true, proven: true, budgetBytes: 700 });
    expect(peakBytes).toBeLessThanOrEqual(700);
    expect(answer.boundCost).toBeLessThanOrEqual(cost);
  });

  it("takes a fraction of the peak as a budget, and a strategy by name", async () => {
    const { code, out } = await run("remat", path, "--budget", "0.7", "--strategy", "look-ahead", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ budgetBytes: 770, strategy: "look-ahead", feasible: true });
  });

  it("gives addresses within the budget with --arena", async () => {
    const { code, out } = await run("remat", path, "--budget", "700", "--arena", "--json", "--timeout", "2");
    expect(code).toBe(0);
    const answer = JSON.parse(out);
    const problem = readGraph(readFileSync(path, "utf8"));
    expect(answer.arenaBytes).toBeLessThanOrEqual(700);
    expect(answer.offsets).toHaveLength(answer.sequence.length);
    // a byte belongs to who wrote it last: whatever is read is still there
    const owner = new Int32Array(answer.arenaBytes).fill(-1);
    const where = new Map<number, number>();
    answer.sequence.forEach((index: number, step: number) => {
      const { inputs, outputs } = problem.ops[index]!;
      outputs.forEach((value, i) => {
        const from = answer.offsets[step][i];
        where.set(value, from);
        owner.fill(value, from, from + problem.bytes[value]!);
      });
      for (const value of [...inputs, ...outputs]) {
        const from = where.get(value)!;
        expect(from + problem.bytes[value]!).toBeLessThanOrEqual(answer.arenaBytes);
        expect([...new Set(owner.subarray(from, from + problem.bytes[value]!))]).toEqual([value]);
      }
    });
    const tooSmall = await run("remat", path, "--budget", "200", "--arena", "--json", "--timeout", "1");
    expect(tooSmall.code).toBe(1);
    expect(JSON.parse(tooSmall.out)).toMatchObject({ feasible: false, proven: true });
  });

  it("says in words what it did", async () => {
    const { out } = await run("remat", path, "--budget", "2KB");
    expect(out).toMatch(
      /^20 operations, 0 repetitions, by store-all\n1,100 of 2,000 bytes, \d+ ms\ncost 1\.0000, bound 1\.0000, optimal\n$/,
    );
  });

  it("ends with 1 and the bytes of the largest operation when nothing fits", async () => {
    const { code, out, err } = await run("remat", path, "--budget", "200", "--json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ feasible: false, proven: true });
    expect(err).toContain("no plan fits 200 bytes");
    expect(err).toContain("300 bytes");
  });

  it.each([
    [["remat", path], "no budget given"],
    [["remat", "missing.json", "--budget", "1"], "cannot read missing.json: there is no such file or folder"],
    [["remat", path, "--budget", "700", "--timeout", "-1"], "invalid --timeout"],
    [["remat", path, "--budget", "700", "--strategy", "magic"], "no recomputation strategy magic"],
  ])("refuses %j", async (argv, problem) => {
    const { code, err } = await run(...argv);
    expect(code).toBe(1);
    expect(err).toContain(problem);
  });
});

const solver = findSolver()?.solve;
if (!solver) console.warn("the package highs is not installed: auto is not compared with the integer program");

/** So many random graphs of up to 40 operations instead of the few that are always compared. */
const MANY = Number(process.env.TIDEMARK_SMALL_GRAPHS ?? 0);

describe.skipIf(!solver)("small graphs at ten budgets", () => {
  const chain = trainingChain(
    7,
    (layer) => 10 + ((layer * 7) % 5) * 6,
    (layer) => 3 + ((layer * 5) % 7),
  );

  const few = [chain, trainingGraph(2, 4), trainingGraph(9, 5), randomProblem(1, 13)];
  const many = Array.from({ length: MANY }, (_, seed) =>
    seed % 2 === 1 ? randomProblem(seed, 12 + (seed % 29)) : trainingGraph(seed, 4 + (seed % 7)),
  );

  it.each(MANY > 0 ? many : few)(
    "auto without a solver is within a hundredth of the integer program: $name",
    (graph) => {
      const least = leastBytes(graph);
      const peak = simulate(graph, baseSequence(graph)).peakBytes;
      let compared = 0;
      for (let tenth = 0; tenth < 10; tenth++) {
        const budget = Math.floor(least + ((peak - least) * tenth) / 10);
        const exact = planRecompute(graph, budget, optimal, { solver, seconds: 1 });
        if (!exact.feasible || !exact.proven) continue;
        compared += 1;
        const found = planGraph(graph, budget, { effort: MANY > 0 ? 1 : 0.3 });
        expect(found.feasible).toBe(true);
        expect(found.cost).toBeLessThanOrEqual(exact.cost * 1.01);
      }
      expect(compared).toBeGreaterThan(0);
    },
    120_000,
  );
});

describe("auto with little effort", () => {
  it("reaches the integer program's cost on a graph where only windows of the plan lead there", () => {
    const graph = randomProblem(15, 27);
    const least = leastBytes(graph);
    const budget = Math.floor(least + (simulate(graph, baseSequence(graph)).peakBytes - least) * 0.2);
    const { feasible, sequence } = planGraph(graph, budget, { effort: 0.3 });
    expect(feasible).toBe(true);
    // the proven optimum of the integer program is 619
    expect(simulate(graph, sequence).cost).toBeLessThanOrEqual(619 * 1.01);
  });

  it.each([
    ["100 operations in layers", layeredGraph(1, 100), 0.8, 1.08],
    ["1,000 operations in layers", layeredGraph(1, 1000), 0.9, 1.01],
    ["1,000 operations in layers", layeredGraph(1, 1000), 0.8, 1.04],
    ["a training step of 280 layers", trainingGraph(3, 280), 0.3, 1.25],
  ] as const)("finds the same plan each time: %s at $2 of the peak", (_, graph, fraction, most) => {
    const budget = Math.floor(fraction * simulate(graph, baseSequence(graph)).peakBytes);
    const effort = Math.min(0.025, 8 / graph.ops.length);
    const { feasible, sequence, baseCost } = auto(graph, budget, { effort });
    expect(feasible).toBe(true);
    const { cost, peakBytes, violations } = simulate(graph, sequence);
    expect(violations).toEqual([]);
    expect(peakBytes).toBeLessThanOrEqual(budget);
    expect(cost / baseCost).toBeLessThan(most);
    expect(auto(graph, budget, { effort }).sequence).toEqual(sequence);
  });

  it("shows without a search that results alone are too much", () => {
    const bytes = [10, 10, 10];
    const ops = bytes.map((_, id) => ({ id, name: `op${id}`, cost: 1, inputs: [], outputs: [id] }));
    const graph = { name: "results", ops, bytes, results: [0, 1, 2], pinnedBytes: [0, 0, 0, 0] };
    expect(auto(graph, 29, { effort: 1 })).toMatchObject({ feasible: false, proven: true });
    expect(auto(graph, 30, { effort: 1 })).toMatchObject({ feasible: true, proven: true, cost: 3 });
  });
});

const SHARED = new URL("../../shared/bench/instances/", import.meta.url);
const present = existsSync(SHARED);
if (!present) console.warn(`published graphs are absent (${SHARED.pathname}): their tests do not run`);

describe.runIf(present)("published graphs", () => {
  it.each([
    ["checkmate-graphs/random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14.json", 0.9, 1.0079, 5],
    ["checkmate-graphs/random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14.json", 0.8, 1.023, 5],
    ["checkmate-graphs/MobileNet_512_224x224x3_train.json", 0.5, 1.0164, 5],
    ["dtr-graphs/U-Net.json", 0.6, 1.083, 2],
    ["dtr-graphs/Transformer.json", 0.3, 1.09, 0.3],
  ])(
    "%s at %d costs at most %d of the cost without recomputation",
    (file, fraction, published, effort) => {
      const problem = readGraph(readFileSync(new URL(file, SHARED), "utf8"));
      const base = simulate(problem, baseSequence(problem));
      const answer = planGraph(problem, fraction * base.peakBytes, { effort });
      const { cost, peakBytes, violations } = simulate(problem, answer.sequence);
      expect(violations).toEqual([]);
      expect(peakBytes).toBeLessThanOrEqual(fraction * base.peakBytes);
      expect(cost / base.cost).toBeLessThan(published + 0.0001);
      expect(answer.boundCost).toBeLessThanOrEqual(cost);
    },
    300_000,
  );
});
