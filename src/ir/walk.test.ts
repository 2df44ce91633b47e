/** @file Users, producers, orders and rewriting. */
import { describe, expect, test } from "vitest";
import { Random } from "../../tests/support/random.ts";
import { randomGraph } from "../../tests/support/random-graph.ts";
import { allOps } from "../ops/all.ts";
import { neg } from "../ops/elementwise.ts";
import { tanh } from "../ops/math.ts";
import { type Graph, type Node, resultOf } from "./graph.ts";
import { parse } from "./parse.ts";
import { print } from "./print.ts";
import { violations } from "./verify.ts";
import { allNodes, nodesFor, producersOf, Rewrite, rewriteGraph, topological, usersOf, withLiveNodes } from "./walk.ts";

const graphOf = (text: string): Graph => parse(text, allOps)[0]!;
const sample = graphOf(`func f(a: f32[4], unused: f32[4]) {
  p: f32[4] = tanh(a)
  q: f32[4] = add(p, p)
  r: f32[4] = call(p) { func g(x: f32[4]) { y: f32[4] = tanh(x) return y } }
  return q
}`);

describe("walking", () => {
  test("finds users, producers and needed nodes", () => {
    const [p, q, r] = sample.nodes as [Node, Node, Node];
    expect(usersOf(sample).get(resultOf(p))).toEqual([
      { node: q, input: 0 },
      { node: q, input: 1 },
      { node: r, input: 0 },
    ]);
    expect(usersOf(sample).get(sample.params[1]!)).toEqual([]);
    expect(producersOf(sample).get(resultOf(q))).toBe(q);
    expect(producersOf(sample).has(sample.params[0]!)).toBe(false);
    expect([...nodesFor(sample)]).toEqual([q, p]);
    expect([...nodesFor(sample, [resultOf(r)])]).toEqual([r, p]);
    const live = withLiveNodes(sample);
    expect(live.nodes).toEqual([p, q]);
    expect(withLiveNodes(live)).toBe(live);
    expect([...allNodes(sample)].map((node) => node.op.name)).toEqual(["tanh", "add", "call", "tanh"]);
  });

  test("topological order repairs shuffled nodes and keeps ordered ones", () => {
    for (let seed = 0; seed < 50; seed++) {
      const graph = randomGraph(seed, { nodes: 20 });
      expect(topological(graph.nodes)).toEqual(graph.nodes);
      const nodes = topological(new Random(seed).shuffled(graph.nodes));
      expect(new Set(nodes)).toEqual(new Set(graph.nodes));
      expect(violations({ ...graph, nodes }), `seed ${seed}`).toEqual([]);
    }
  });

  test("topological order refuses a cycle", () => {
    const [p, q] = sample.nodes as [Node, Node];
    expect(() => topological([{ ...p, inputs: q.outputs }, q])).toThrow("depends on itself");
  });
});

describe("Rewrite", () => {
  test("replaces values and leaves the old graph alone", () => {
    const before = print(sample);
    const rewrite = new Rewrite(sample);
    const [p, q] = sample.nodes as [Node, Node];
    rewrite.replace(resultOf(p), sample.params[0]!);
    rewrite.keep(q);
    expect(print(rewrite.finish())).toBe(
      "func f(a: f32[4], unused: f32[4]) {\n  q: f32[4] = add(a, a)\n  return q\n}\n",
    );
    expect(print(sample)).toBe(before);
  });

  test("refuses a replacement of another type", () => {
    const graph = graphOf("func f(a: f32[4], b: f32[3]) { p: f32[4] = tanh(a) return p }");
    const rewrite = new Rewrite(graph);
    expect(() => rewrite.replace(resultOf(graph.nodes[0]!), graph.params[1]!)).toThrow("f32[4] replaced by f32[3]");
  });

  test("returns the very graph when nothing changes", () => {
    expect(rewriteGraph(sample, () => () => null)).toBe(sample);
  });

  test("new nodes take name, phase, source line and replay of the node they stand for, in regions too", () => {
    const text = (op: string) => `func f(a: f32[4]) {
  // backward
  p: f32[4] = ${op}(a) ~3  // m.ts:1:2
  r: f32[4] = call(p) {
    func g(x: f32[4]) {
      y: f32[4] = ${op}(x)
      return y
    }
  }
  return r
}
`;
    const changed = rewriteGraph(graphOf(text("neg")), () => (b, node) => {
      return node.op === neg ? [b.call(tanh, [node.inputs[0]!], {})] : null;
    });
    expect(print(changed, { locations: true })).toBe(text("tanh"));
  });
});
