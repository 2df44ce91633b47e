/** @file Every way to break a graph, one by one and together. */
import { describe, expect, test } from "vitest";
import { randomGraph } from "../../tests/support/random-graph.ts";
import { call } from "../ops/control.ts";
import { add, neg } from "../ops/elementwise.ts";
import { Build } from "./build.ts";
import { type Graph, type Node, newValue } from "./graph.ts";
import type { Attrs } from "./op.ts";
import { tensorType } from "./type.ts";
import { verify, violations } from "./verify.ts";

const f4 = tensorType("f32", [4]);

/** y = neg x; z = add(x, y); return z. */
function sample(): Graph {
  const b = new Build("f");
  const x = b.param(f4, "x");
  const y = b.call(neg, [x], {}, { name: "y" });
  return b.finish([b.call(add, [x, y], {}, { name: "z" })]);
}

function messages(graph: Graph): readonly string[] {
  return violations(graph).map((v) => v.message);
}

function withNode(graph: Graph, index: number, change: Partial<Node>): Graph {
  return { ...graph, nodes: graph.nodes.map((node, i) => (i === index ? { ...node, ...change } : node)) };
}

describe("verify", () => {
  test("accepts what the builder makes", () => {
    expect(messages(sample())).toEqual([]);
    for (let seed = 0; seed < 100; seed++) expect(messages(randomGraph(seed)), `seed ${seed}`).toEqual([]);
  });

  test("finds uses before definitions", () => {
    const graph = sample();
    expect(messages({ ...graph, nodes: graph.nodes.toReversed() })).toEqual(["y is used before it is defined"]);
  });

  test("finds values defined twice", () => {
    const graph = sample();
    expect(messages({ ...graph, params: [...graph.params, ...graph.params] })).toEqual(["x is defined twice"]);
    expect(messages({ ...graph, nodes: [...graph.nodes, ...graph.nodes] })).toEqual([
      "y is defined twice",
      "z is defined twice",
    ]);
  });

  test("finds types that the operation does not infer", () => {
    const graph = sample();
    const wrong = newValue(tensorType("f32", [5]), "w");
    expect(messages(withNode(graph, 1, { outputs: [wrong] }))).toEqual([
      "w is f32[5], add infers f32[4]",
      expect.stringMatching(/^result #\d+ is not defined$/),
    ]);
    expect(messages(withNode(graph, 1, { inputs: graph.params }))).toEqual([
      "InvalidArgument: add: takes 2 inputs, got 1",
    ]);
    expect(messages(withNode(graph, 1, { outputs: [] }))[0]).toBe("has no result");
  });

  test("finds attributes that are not plain data, and odd replay numbers", () => {
    const graph = sample();
    const attrs = { f: () => 1, "a b": 1, ok: [1, ["x", true]] } as unknown as Attrs;
    expect(messages(withNode(graph, 0, { attrs, replay: -1 }))).toEqual([
      "replay -1 is not a whole number ≥ 0",
      "attribute f is not a number, string, boolean or list of them",
      'attribute key "a b" is not a name',
    ]);
  });

  test("finds regions that see the outside or do not fit", () => {
    const b = new Build("g");
    const x = b.param(f4, "x");
    const y = b.call(neg, [x], {}, { name: "y" });
    const inner = new Build("body");
    const p = inner.param(f4, "p");
    const open = { ...inner.finish([p]), nodes: [{ ...b.nodes[0]!, inputs: [x], outputs: [newValue(f4)] }] };
    const results = b.callAll(call, [y], { checkpoint: false, name: "" }, { regions: [open] });
    const graph = b.finish(results);
    expect(violations(graph)).toMatchObject([
      { graph: "g/body", message: expect.stringMatching(/^#\d+ is used before/) },
    ]);
    expect(messages(withNode(graph, 1, { inputs: [y, y] }))[0]).toBe(
      "InvalidGraph: call: region body takes (f32[4]), expected (f32[4], f32[4])",
    );
  });

  test("throws one error with all of them", () => {
    const graph = withNode(sample(), 0, { inputs: [newValue(f4)], replay: 0.5, where: "m.ts:1:2" });
    expect(() => verify(graph)).toThrow(
      /InvalidGraph: f has 2 violations\n {2}f: #\d+ is used .*, in y = neg\(#\d+\) ~0.5 \(m.ts:1:2\)\n/,
    );
    expect(() => verify(sample())).not.toThrow();
  });
});
