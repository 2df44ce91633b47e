/** @file The canonical text: names, columns, attributes, phases, regions, notes; and that reading it gives the graph back. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { randomGraph } from "../../tests/support/random-graph.ts";
import { allOps } from "../ops/all.ts";
import { broadcast } from "../ops/broadcast.ts";
import { call } from "../ops/control.ts";
import { full } from "../ops/create.ts";
import { add, mul, neg } from "../ops/elementwise.ts";
import { matmul } from "../ops/matmul.ts";
import { attrOfWord, attrText, numberText, sameAttr } from "./attrs.ts";
import { Build } from "./build.ts";
import { sameGraph } from "./hash.ts";
import { parse } from "./parse.ts";
import { nodeText, print, valueNames } from "./print.ts";
import { tensorType } from "./type.ts";

const f4 = tensorType("f32", [4]);

describe("names", () => {
  test("come from hints and are made unique in order", () => {
    const b = new Build("f");
    const x = b.param(f4, "x");
    const values = ["x", "x", undefined, "v0", undefined, "x_1"].map((name) => b.call(neg, [x], {}, { name }));
    const names = valueNames(b.finish(values));
    expect(values.map((v) => names.get(v))).toEqual(["x_1", "x_2", "v0", "v0_1", "v1", "x_1_1"]);
  });

  test("are made legal", () => {
    const b = new Build("f");
    const params = ["a b", "return", "2nd", "layers.0.w", "θ", ""].map((name) => b.param(f4, name));
    const names = valueNames(b.finish(params));
    expect(params.map((v) => names.get(v))).toEqual(["a_b", "return_", "_2nd", "layers.0.w", "θ", "v0"]);
  });
});

describe("print", () => {
  test("aligns columns, leaves defaults out, and marks phases and replays", () => {
    const b = new Build("step");
    const x = b.param(tensorType("f32", [32, 64]), "x");
    const w = b.param(tensorType("f32", [64, 8]), "w");
    const y = b.call(matmul, [x, w], { ta: false, tb: false }, { name: "y", where: "model.ts:3:7" });
    const one = b.call(full, [], { dtype: "f32", shape: [], value: 1 }, { name: "d_loss", phase: "backward" });
    const d = b.call(broadcast, [one], { shape: [32, 8], axes: [] }, { name: "d_y", phase: "backward" });
    const again = b.call(matmul, [x, w], { ta: false, tb: false }, { name: "y", replay: 1, phase: "backward" });
    const product = b.call(mul, [again, d], {}, { phase: "update" });
    const text = print(b.finish([y, product]), { locations: true });
    expect(text).toBe(`func step(x: f32[32,64], w: f32[64,8]) {
  y:      f32[32,8] = matmul(x, w)  // model.ts:3:7
  // backward
  d_loss: f32[]     = full() {value=1}
  d_y:    f32[32,8] = broadcast(d_loss) {axes=[], shape=[32,8]}
  y_1:    f32[32,8] = matmul(x, w) ~1
  // update
  v0:     f32[32,8] = mul(y_1, d_y)
  return y, v0
}
`);
    expect(print(parse(text, allOps), { locations: true })).toBe(text);
  });

  test("nests regions, with names and phases of their own", () => {
    const inner = new Build("block");
    inner.phase = "backward";
    const [p, q] = [inner.param(f4, "p"), inner.param(f4, "p")];
    const body = inner.finish([inner.call(add, [p, q], {}), q]);
    const b = new Build("f");
    const x = b.param(f4, "x");
    const results = b.callAll(
      call,
      [x, x],
      { checkpoint: true, name: "my block" },
      { regions: [body], name: "r", phase: "backward", replay: 2 },
    );
    const text = print(b.finish(results));
    expect(text).toBe(`func f(x: f32[4]) {
  // backward
  r: f32[4], r_1: f32[4] = call(x, x) {checkpoint, name="my block"} ~2 {
    func block(p: f32[4], p_1: f32[4]) {
      v0: f32[4] = add(p, p_1)
      return v0, p_1
    }
  }
  return r, r_1
}
`);
    expect(print(parse(text, allOps))).toBe(text);
  });

  test("wraps long signatures", () => {
    const b = new Build("f");
    const params = Array.from({ length: 12 }, (_, i) => b.param(f4, `parameter_${i}`));
    const text = print(b.finish(params.slice(0, 1)));
    expect(text).toContain("func f(\n  parameter_0: f32[4],\n");
    expect(text).toContain("  parameter_11: f32[4]\n) {\n");
    expect(print(parse(text, allOps))).toBe(text);
  });

  test("puts notes in a column, and the parser skips addresses", () => {
    const b = new Build("f");
    const x = b.param(f4, "x");
    const y = b.call(add, [x, x], {}, { name: "y" });
    const z = b.call(neg, [y], {}, { name: "z" });
    const graph = b.finish([z]);
    const text = print(graph, { note: (node) => `@ b0[0:16]${node.op === neg ? " over y" : ""}` });
    expect(text).toContain("  y: f32[4] = add(x, x) @ b0[0:16]\n  z: f32[4] = neg(y)    @ b0[0:16] over y\n");
    expect(print(parse(text, allOps))).toBe(print(graph));
  });

  test("nodeText is one line for messages", () => {
    const b = new Build("f");
    const x = b.param(f4, "x");
    b.call(add, [x, x], {}, { name: "y" });
    const graph = b.finish([x]);
    const names = valueNames(graph);
    expect(nodeText(graph.nodes[0]!, (v) => names.get(v)!)).toBe("y = add(x, x)");
  });
});

describe("attributes", () => {
  test.each([
    [-0, "-0"],
    [0, "0"],
    [Number.POSITIVE_INFINITY, "inf"],
    [Number.NEGATIVE_INFINITY, "-inf"],
    [Number.NaN, "nan"],
    [0.1, "0.1"],
    [5e-324, "5e-324"],
    [1e21, "1e+21"],
  ])("the number %d prints as %s", (n, text) => {
    expect(numberText(n)).toBe(text);
  });

  test("words need no quotes unless they would read as something else", () => {
    expect(["f32", "nan", "inf", "true", "a b", "", "1", 'say "x"'].map(attrText)).toEqual([
      ...["f32", '"nan"', '"inf"', '"true"', '"a b"', '""', '"1"', '"say \\"x\\""'],
    ]);
    expect([attrOfWord("f32"), attrOfWord("true"), attrOfWord("false"), attrOfWord("inf")]).toEqual([
      "f32",
      true,
      false,
      Infinity,
    ]);
  });

  test("any plain data survives a round trip exactly", () => {
    const { attr } = fc.letrec((tie) => ({
      attr: fc.oneof(
        { depthSize: "small" },
        fc.double(),
        fc.string(),
        fc.boolean(),
        fc.array(tie("attr"), { maxLength: 3 }),
      ),
    }));
    const carrier = { ...neg, name: "carrier", samples: () => [], infer: () => [f4] };
    fc.assert(
      fc.property(attr, (value) => {
        const attrs = { key: value as number };
        const b = new Build("f");
        const graph = b.finish([b.call(carrier, [b.param(f4)], attrs)]);
        const [back] = parse(print(graph), [carrier]);
        expect(sameAttr(back!.nodes[0]!.attrs.key!, attrs.key)).toBe(true);
      }),
      { seed: 11, numRuns: 500 },
    );
  });
});

describe("print and parse", () => {
  test("are inverse on random graphs", () => {
    for (let seed = 0; seed < 300; seed++) {
      const graph = randomGraph(seed, { nodes: 5 + (seed % 30) });
      for (const options of [{}, { locations: true }]) {
        const text = print(graph, options);
        const back = parse(text, allOps);
        expect(print(back, options), `seed ${seed}`).toBe(text);
        expect(sameGraph(back[0]!, graph), `seed ${seed}`).toBe(true);
      }
    }
  });

  test("keep several functions apart", () => {
    const graphs = [randomGraph(1), randomGraph(2)];
    expect(print(parse(print(graphs), allOps))).toBe(print(graphs));
  });
});
