/** @file Graphs as plain data: what is packed is what is unpacked, down to metadata; keys tell apart what plans may show. */
import { describe, expect, it } from "vitest";
import { allOps } from "../ops/all.ts";
import { full } from "../ops/create.ts";
import { add, neg } from "../ops/elementwise.ts";
import { Build } from "./build.ts";
import type { Graph } from "./graph.ts";
import { graphKey, isPackable, type PackedGraph, packGraph, unpackGraph } from "./pack.ts";
import { parse } from "./parse.ts";
import { print } from "./print.ts";
import { tensorType } from "./type.ts";
import { verify } from "./verify.ts";

const OPS = new Map(allOps.map((op) => [op.name, op]));
const f4 = tensorType("f32", [4]);

const TEXT = `func outer(x: f32[4], n: i32[]) {
  a: f32[4] = call(x) {name=inner} {
    func inner(p: f32[4]) {
      q: f32[4] = neg(p)
      return q
    }
  }
  b: f32[4] = full() {shape=[4], value=-0}
  c: f32[4] = add(a, b) ~2
  return c, n
}
`;

const copyOf = (graph: Graph): Graph => unpackGraph(JSON.parse(JSON.stringify(packGraph(graph))) as PackedGraph, OPS);

function parsed(): Graph {
  const [graph] = parse(TEXT, allOps);
  if (!graph) throw new Error("nothing was parsed");
  return graph;
}

/** A step with everything that the text leaves out. */
function made(value = 0.5, where = "model.ts:3:4 in f"): Graph {
  const b = new Build("step");
  const x = b.param(f4, "x");
  b.where = where;
  b.scope = "encoder/block3";
  const y = b.call(neg, [x], {});
  b.phase = "update";
  b.scope = undefined;
  const c = b.call(full, [], { dtype: "f32", shape: [4], value }, { name: "rate" });
  return b.finish([b.call(add, [y, c], {}, { replay: 3 })]);
}

describe("a packed graph", () => {
  it("is unpacked to the same text, well-formed", () => {
    const graph = parsed();
    const copy = copyOf(graph);
    verify(copy);
    expect(print(copy)).toBe(print(graph));
    expect(copyOf(made()).nodes).not.toBe(made().nodes);
  });

  it("keeps phases, parts, source lines, replays and names", () => {
    const graph = made();
    const facts = ({ nodes }: Graph) =>
      nodes.map(({ phase, scope, where, replay, outputs }) => [phase, scope, where, replay, outputs[0]?.name]);
    expect(facts(copyOf(graph))).toEqual(facts(graph));
    expect(facts(graph)[0]).toEqual(["forward", "encoder/block3", "model.ts:3:4 in f", 0, undefined]);
  });

  it("keeps every number, those without a text in JSON too", () => {
    for (const value of [0, -0, 0.1, 1e-300, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(Object.is(copyOf(made(value)).nodes[1]?.attrs.value, value), String(value)).toBe(true);
    }
  });

  it("keeps which values came first, and which regions are one", () => {
    const b = new Build("f");
    const [x, early] = [b.param(f4), new Build("g")];
    const p = early.param(f4);
    const region = early.finish([early.call(neg, [p], {})]);
    const call = OPS.get("call");
    if (!call) throw new Error("there is no operation call");
    const [y] = b.callAll(call, [x], { name: "g" }, { regions: [region] });
    const [z] = b.callAll(call, y ? [y] : [], { name: "g" }, { regions: [region] });
    const copy = copyOf(b.finish(z ? [z] : []));
    expect(copy.nodes[0]?.regions[0]).toBe(copy.nodes[1]?.regions[0]);
    const ids = [copy.params[0]?.id, copy.nodes[0]?.regions[0]?.params[0]?.id, copy.nodes[0]?.outputs[0]?.id];
    expect(ids).toEqual([...ids].sort((i, j) => (i ?? 0) - (j ?? 0)));
  });

  it("keeps the order of values whose ids are far apart, and values that nothing defines", () => {
    const b = new Build("far");
    const x = b.param(f4, "x");
    const y = b.call(neg, [x], {}, { name: "y" });
    const far = { id: y.id + 1e9, type: f4, name: "far" };
    const last = { id: y.id + 2e9, type: f4, name: "last" };
    const copies = b.nodes.map((node) => ({ ...node, outputs: [last] }));
    const graph = { ...b.finish([last, far]), params: [x, far], nodes: copies };
    const { values, words, graphs } = packGraph(graph);
    expect(values.filter((_, i) => i % 2 === 1).map((name) => words[name])).toEqual(["x", "far", "last"]);
    expect(graphs[0]?.results).toEqual([2, 1]);
    expect(print(copyOf(graph))).toBe(print(graph));
    expect(() => copyOf({ ...graph, results: [y] })).toThrow();
  });

  it("has equal attributes and types once", () => {
    const b = new Build("f");
    const x = b.param(tensorType("f32", [4]));
    for (let i = 0; i < 9; i++) b.call(full, [], { dtype: "f32", shape: [4], value: i % 3 });
    const packed = packGraph(b.finish([x]));
    expect([packed.attrs.length, packed.types.length]).toEqual([3, 1]);
  });

  it("is refused where its numbers are not those of a graph", () => {
    const packed = packGraph(made());
    const [body] = packed.graphs;
    const cut = { ...packed, graphs: body ? [{ ...body, nodes: body.nodes.slice(0, -1) }] : [] };
    expect(() => unpackGraph(cut, OPS)).toThrow();
    expect(() => unpackGraph({ ...packed, attrs: [] }, OPS)).toThrow();
  });

  it("is none where an operation was defined outside of the package", () => {
    expect(isPackable(made(), OPS)).toBe(true);
    expect(isPackable(made(), new Map([...OPS, ["neg", { ...neg }]]))).toBe(false);
    const packed = packGraph(made());
    expect(() => unpackGraph(packed, new Map())).toThrow("there is no operation");
    expect(() => unpackGraph({ ...packed, values: [] }, OPS)).toThrow();
  });
});

describe("the key of a graph", () => {
  it("is the same for the same graph made again", () => {
    expect(graphKey(made())).toBe(graphKey(made()));
    expect(graphKey(parsed())).toBe(graphKey(parsed()));
  });

  it("differs by attributes, lines, names, parts and types", () => {
    const keys = [made(), made(0.25), made(-0), made(0), made(0.5, "model.ts:4:4 in f"), parsed()].map(graphKey);
    const renamed = { ...made(), name: "other" };
    const [first] = made().nodes;
    const elsewhere = { ...made(), nodes: first ? [{ ...first, scope: "decoder" }] : [] };
    expect(new Set([...keys, graphKey(renamed), graphKey(elsewhere)]).size).toBe(keys.length + 2);
  });
});
