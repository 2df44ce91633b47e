/** @file Loops and branches as operations: types, refusals, meaning, cost, text. */
import { describe, expect, test } from "vitest";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph } from "../ir/graph.ts";
import { hashGraph } from "../ir/hash.ts";
import { parse } from "../ir/parse.ts";
import { print } from "../ir/print.ts";
import { tensorType } from "../ir/type.ts";
import { violations } from "../ir/verify.ts";
import { allOps } from "./all.ts";
import { switchOp } from "./branch.ts";
import { graphCost } from "./control.ts";
import { scan, whileLoop } from "./loops.ts";

const graphOf = (text: string): Graph => parse(text, allOps)[0]!;
const run = (text: string, ...inputs: readonly number[][]): readonly number[][] =>
  evaluate(
    graphOf(text),
    inputs.map((input) => Float64Array.from(input)),
  ).map((result) => [...result]);

const f = tensorType("f32", []);
const i = tensorType("i32", []);
const stack = tensorType("f32", [3]);

const SUMS = (attrs: string): string => `func sums(c: f32[], xs: f32[3], k: f32[]) {
  last: f32[], ys: f32[3], is: i32[3] = scan(c, xs, k) {carries=1, length=3${attrs}, xs=1} {
    func body(i: i32[], c: f32[], x: f32[], k: f32[]) {
      p: f32[] = mul(c, k)
      n: f32[] = add(p, x)
      return n, c, i
    }
  }
  return last, ys, is
}
`;

describe("scan", () => {
  test("hands the state from row to row and stacks what the body gives", () => {
    expect(run(SUMS(""), [1], [1, 2, 3], [2])).toEqual([[19], [1, 3, 8], [0, 1, 2]]);
  });

  test("goes from the last row to the first when reversed, and stacks beside the rows", () => {
    expect(run(SUMS(", reverse"), [1], [1, 2, 3], [2])).toEqual([[25], [12, 5, 1], [0, 1, 2]]);
  });

  test("takes as many rows as a count says, at most all and at least none", () => {
    const text = `func f(n: i32[], c: f32[], xs: f32[3]) {
      y: f32[] = scan(n, c, xs) {carries=1, counted, length=3, reverse, xs=1} {
        func body(i: i32[], c: f32[], x: f32[]) { two: f32[] = add(c, c) n: f32[] = add(two, x) return n }
      }
      return y
    }`;
    expect(run(text, [2], [0], [1, 2, 3])).toEqual([[5]]);
    expect(run(text, [9], [0], [1, 2, 3])).toEqual([[17]]);
    expect(run(text, [-1], [7], [1, 2, 3])).toEqual([[7]]);
  });

  test("refuses bodies and stacks that do not fit", () => {
    const body = graphOf("func body(i: i32[], c: f32[], x: f32[]) { return c, x }");
    const attrs = { carries: 1, xs: 1, length: 3, reverse: false, counted: false, reversal: "auto", snapshots: 0 };
    expect(scan.infer([f, stack], attrs, [body])).toEqual([f, stack]);
    expect(() => scan.infer([f, stack], attrs, [])).toThrow("scan: has 0 regions, needs 1");
    expect(() => scan.infer([f, f], attrs, [body])).toThrow("scan: f32[] has no leading axis of length 3");
    expect(() => scan.infer([f, stack], { ...attrs, length: 1.5 }, [body])).toThrow("scan: length=1.5");
    expect(() => scan.infer([f, stack], { ...attrs, xs: 2 }, [body])).toThrow("scan: xs=2, expected a whole number");
    expect(() => scan.infer([f, stack, f], attrs, [body])).toThrow("scan: region body takes (i32[], f32[], f32[])");
    expect(() => scan.infer([f, f, stack], { ...attrs, counted: true }, [body])).toThrow("scan: the count is (f32[])");
    const other = graphOf("func other(i: i32[], c: f32[], x: f32[]) { return i }");
    expect(() => scan.infer([f, stack], attrs, [other])).toThrow("scan: region other returns carries (i32[])");
  });

  test("costs its body once an iteration", () => {
    expect(graphCost(graphOf(SUMS("")))).toEqual({ flops: 6 });
  });
});

const DOUBLING = (attrs: string): string => `func doubling(c: f32[], k: f32[]) {
  last: f32[], n: i32[] = while(c, k) {carries=1${attrs}} {
    func test(c: f32[], k: f32[]) {
      t: bool[] = lt(c, k)
      return t
    }
    func body(i: i32[], c: f32[], k: f32[]) {
      d: f32[] = add(c, c)
      return d
    }
  }
  return last, n
}
`;

describe("while", () => {
  test("runs as long as the test holds, not at all if it never does, and says how often", () => {
    expect(run(DOUBLING(""), [1], [100])).toEqual([[128], [7]]);
    expect(run(DOUBLING(""), [200], [100])).toEqual([[200], [0]]);
  });

  test("ends after `length` iterations whatever the test says", () => {
    expect(run(DOUBLING(", length=3"), [1], [100])).toEqual([[8], [3]]);
  });

  test("refuses rows without a length, and tests that are no bool", () => {
    const holds = graphOf("func test(c: f32[]) { t: bool[] = eq(c, c) return t }");
    const rows = graphOf("func body(i: i32[], c: f32[]) { return c, c }");
    const attrs = { carries: 1, length: 0, checkpoints: 32 };
    expect(() => whileLoop.infer([f], attrs, [holds, rows])).toThrow("returns 1 rows an iteration without a length");
    expect(whileLoop.infer([f], { ...attrs, length: 3 }, [holds, rows])).toEqual([f, stack, i]);
    const number = graphOf("func test(c: f32[]) { return c }");
    expect(() => whileLoop.infer([f], { ...attrs, turns: "01,2" }, [holds, rows])).toThrow("while: turns is 01,2");
    expect(() => whileLoop.infer([f], attrs, [number, rows])).toThrow(
      "while: region test returns (f32[]), expected (bool[])",
    );
  });
});

const SWITCH = `func chosen(k: i32[], x: f32[]) {
  y: f32[] = switch(k, x) {
    func first(x: f32[]) {
      n: f32[] = neg(x)
      return n
    }
    func second(x: f32[]) {
      return x
    }
  }
  return y
}
`;

describe("switch", () => {
  test("runs the region with the number, or the nearest", () => {
    expect([-3, 0, 1, 7].map((k) => run(SWITCH, [k], [5])[0])).toEqual([[-5], [-5], [5], [5]]);
  });

  test("refuses indices and regions that do not fit", () => {
    const one = graphOf("func one(x: f32[]) { return x }");
    const two = graphOf("func two(x: f32[]) { return x, x }");
    expect(() => switchOp.infer([f, f], {}, [one])).toThrow("switch: the index is f32[], expected i32[] or bool[]");
    expect(() => switchOp.infer([i, f], {}, [one, two])).toThrow("switch: region two returns (f32[], f32[])");
    expect(() => switchOp.infer([i, f], {}, [])).toThrow("switch: has no regions");
  });

  test("costs what its most costly region costs", () => {
    expect(graphCost(graphOf(SWITCH)).flops).toBe(1);
  });
});

describe("text", () => {
  test.each([
    ["scan", SUMS(", reverse")],
    ["while", DOUBLING(", length=3")],
    ["switch", SWITCH],
  ])("%s prints, reads back, verifies and has a hash of its own", (_, text) => {
    const graph = graphOf(text);
    expect(print(graph)).toBe(text);
    expect(violations(graph)).toEqual([]);
    expect(hashGraph(graphOf(print(graph)))).toBe(hashGraph(graph));
    const changed = text.replace("return p, ", "return ").replace("neg(", "abs(").replace("add(", "sub(");
    expect(hashGraph(graphOf(changed))).not.toBe(hashGraph(graph));
  });
});
