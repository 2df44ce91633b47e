/**
 * @file Passes in text and in numbers: `tests/passes/*.ir` has what each does, exactly; here both sides are also verified
 * and evaluated on random inputs, signed zeros, infinities and NaN included, and must agree in every bit. The same is
 * asked of random graphs. `UPDATE=1` rewrites the files.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { evaluate } from "../src/ir/evaluate.ts";
import type { Graph } from "../src/ir/graph.ts";
import { parse } from "../src/ir/parse.ts";
import { print } from "../src/ir/print.ts";
import { violations } from "../src/ir/verify.ts";
import { allNodes } from "../src/ir/walk.ts";
import { allOps } from "../src/ops/all.ts";
import type { Pass } from "../src/passes/pass.ts";
import { allPasses, orderProblems, pipeline, runPasses } from "../src/passes/pipeline.ts";
import { type PassCase, readCases, writeCases } from "./support/pass-cases.ts";
import { randomGraph, randomInputs } from "./support/random-graph.ts";

const directory = new URL("passes/", import.meta.url);
const update = process.env.UPDATE === "1";
const byName = new Map<string, Pass>(allPasses.map((pass) => [pass.name, pass]));

function passesOf(names: readonly string[]): readonly Pass[] {
  if (names.includes("pipeline")) return pipeline;
  return names.map((name) => {
    const pass = byName.get(name);
    if (!pass) throw new Error(`there is no pass ${name} in the pipeline (${[...byName.keys()].join(", ")})`);
    return pass;
  });
}

/** Both graphs give the same bits, f32 rounded as a target does; NaN equals NaN. */
function expectSameMeaning(before: Graph, after: Graph, seed: number): void {
  for (const special of [false, true]) {
    const inputs = randomInputs(before, seed, { special });
    const expected = evaluate(before, inputs, { round: true });
    const actual = evaluate(after, inputs, { round: true });
    expect(actual.map((x) => [...x])).toEqual(expected.map((x) => [...x]));
  }
}

function checkCase(passCase: PassCase): string {
  const before = parse(passCase.program, allOps);
  const after = before.map((graph) => runPasses(graph, passesOf(passCase.passes), { verify: true }));
  before.forEach((graph, i) => {
    expect(violations(graph)).toEqual([]);
    expectSameMeaning(graph, after[i] as Graph, i);
  });
  return print(after);
}

describe("passes in text", () => {
  for (const file of readdirSync(directory)
    .filter((name) => name.endsWith(".ir"))
    .sort()) {
    const url = new URL(file, directory);
    const text = readFileSync(url, "utf8");
    const cases = readCases(text, file);
    describe(file, () => {
      for (const passCase of cases) {
        test(passCase.title, () => {
          const printed = checkCase(passCase);
          if (!update) expect(printed).toBe(passCase.expected);
        });
      }
      test("is written canonically", () => {
        const canonical = cases.map((c) => ({
          ...c,
          program: print(parse(c.program, allOps)),
          expected: update ? checkCase(c) : print(parse(c.expected, allOps)),
        }));
        if (update) writeFileSync(url, writeCases(canonical));
        else expect(text).toBe(writeCases(canonical));
      });
    });
  }
});

describe("passes on random graphs", () => {
  const distinct = [...byName.values()];
  test.each(distinct.map((pass) => [pass.name, pass] as const))("%s keeps every bit and is stable", (_, pass) => {
    for (let seed = 0; seed < 150; seed++) {
      const graph = randomGraph(seed, { nodes: 5 + (seed % 20) });
      const before = print(graph);
      const after = runPasses(graph, [pass], { verify: true });
      expect(print(graph), `seed ${seed}: the input was changed`).toBe(before);
      expectSameMeaning(graph, after, seed);
      expect(print(pass.run(after)), `seed ${seed}: a second run changed something`).toBe(print(after));
    }
  });

  test("the whole pipeline keeps every bit and leaves no region to inline", () => {
    let [nodesBefore, nodesAfter] = [0, 0];
    for (let seed = 1000; seed < 1200; seed++) {
      const graph = randomGraph(seed, { nodes: 30 });
      const after = runPasses(graph, pipeline, { verify: true });
      expectSameMeaning(graph, after, seed);
      expect([...allNodes(after)].filter((node) => node.op.inlines !== undefined)).toEqual([]);
      nodesBefore += [...allNodes(graph)].length;
      nodesAfter += after.nodes.length;
    }
    expect(nodesAfter).toBeLessThan(nodesBefore);
  });
});

describe("the pipeline", () => {
  test("respects the order that its passes ask for", () => {
    expect(orderProblems(pipeline)).toEqual([]);
  });

  test("refuses a wrong order", () => {
    const [inline, dce] = passesOf(["inline", "dce"]) as [Pass, Pass];
    expect(orderProblems([dce, inline])).toEqual(["dce must run after inline"]);
    expect(() => runPasses(randomGraph(1), [dce, inline])).toThrow("order of passes: dce must run after inline");
    expect(orderProblems([dce])).toEqual([]);
  });

  test("names the pass that breaks a graph", () => {
    const careless: Pass = { name: "careless", run: (graph) => ({ ...graph, nodes: graph.nodes.slice(1) }) };
    expect(() => runPasses(randomGraph(1), [careless], { verify: true })).toThrow("internal: careless broke random_1");
  });

  test("tells an observer about every step", () => {
    const seen: string[] = [];
    runPasses(randomGraph(1), pipeline, { observe: (pass) => seen.push(pass.name) });
    expect(seen).toEqual(pipeline.map((pass) => pass.name));
  });
});
