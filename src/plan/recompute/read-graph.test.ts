/** @file The readers: both kinds of node-link JSON, traces with views and constants, and what they refuse. */
import { describe, expect, it } from "vitest";
import { baseSequence } from "./problem.ts";
import { readGraph } from "./read-graph.ts";
import { simulate } from "./simulate.ts";

const nodes = [
  { id: 0, name: "x", cost_cpu: 2, cost_ram: 10, backward: false },
  { id: 1, name: "y", cost_cpu: 3, cost_ram: 20, backward: true },
];

describe("readGraph", () => {
  it("reads node-link JSON with its costs, links and halves", () => {
    const problem = readGraph(JSON.stringify({ graph: { name: "g" }, nodes, links: [{ source: 0, target: 1 }] }));
    expect(problem).toMatchObject({ name: "g", bytes: [10, 20], results: [], pinnedBytes: [0, 0, 0] });
    expect(problem.ops.map((op) => [op.id, op.cost, op.inputs, op.outputs, op.backward])).toEqual([
      [0, 2, [], [0], false],
      [1, 3, [0], [1], true],
    ]);
    expect(simulate(problem, baseSequence(problem))).toMatchObject({ peakBytes: 30, cost: 5 });
  });

  it("reads random layered graphs in the order that they give", () => {
    const graph = {
      graph: { order: [2, 0, 1] },
      nodes: [0, 1, 2].map((name) => ({ name, duration: name, out_cost: 5 })),
      links: [
        { 0: 2, 1: 0 },
        { 0: 0, 1: 1 },
        { 0: 0, 1: 1 },
      ],
    };
    const { ops } = readGraph(JSON.stringify(graph));
    expect(ops.map((op) => op.id)).toEqual([2, 0, 1]);
    expect(ops.map((op) => op.inputs)).toEqual([[], [2], [0]]);
  });

  it("makes an order topological that is not", () => {
    const { ops } = readGraph(JSON.stringify({ nodes, links: [{ source: 1, target: 0 }] }));
    expect(ops.map((op) => op.id)).toEqual([1, 0]);
  });

  it("reads traces: constants are pinned from where they appear, views read what they view", () => {
    const trace = {
      size: [100, 10, 20, 7],
      const: [
        [0, 0],
        [3, 2],
      ],
      outputs: [2, 0],
      ops: [
        { c: 1, i: [0], o: [1], a: [], n: "mm" },
        { c: 0, i: [1], o: [], a: [1, 1], n: "view" },
        { c: 2, i: [1, 3], o: [2], a: [], n: "add" },
      ],
    };
    const problem = readGraph(JSON.stringify(trace));
    expect(problem.pinnedBytes).toEqual([100, 100, 107, 107]);
    expect(problem.results).toEqual([2]);
    expect(problem.ops.map((op) => op.inputs)).toEqual([[], [1], [1]]);
    expect(simulate(problem, baseSequence(problem))).toMatchObject({ peakBytes: 137, cost: 3, violations: [] });
  });

  it.each([
    ["{", "ParseError"],
    ["[]", "not an object"],
    ["{}", "nodes is not a list"],
    [JSON.stringify({ nodes: [{ id: 1 }], links: [] }), "has none of cost_cpu, duration"],
    [JSON.stringify({ nodes, links: [{ source: 0, target: 9 }] }), "names 9, which is no node"],
    [
      JSON.stringify({
        nodes,
        links: [
          { source: 0, target: 1 },
          { source: 1, target: 0 },
        ],
      }),
      "form a cycle",
    ],
    [JSON.stringify({ nodes: [nodes[0], nodes[0]], links: [] }), "two nodes have the same id"],
    [JSON.stringify({ nodes: [{ ...nodes[0], cost_cpu: -1 }], links: [] }), "costs -1"],
  ])("refuses %s", (text, problem) => {
    expect(() => readGraph(text)).toThrow(problem);
  });
});
