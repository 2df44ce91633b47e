/** @file A loop that holds states and its reverse, as operations: meaning, types, refusals, cost, text. */
import { describe, expect, test } from "vitest";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph } from "../ir/graph.ts";
import { parse } from "../ir/parse.ts";
import { print } from "../ir/print.ts";
import { tensorType } from "../ir/type.ts";
import { violations } from "../ir/verify.ts";
import { allOps } from "./all.ts";
import { graphCost } from "./control.ts";
import { record } from "./rewind.ts";

const graphOf = (text: string): Graph => parse(text, allOps)[0]!;
const run = (graph: Graph, ...inputs: readonly number[][]): readonly number[][] =>
  evaluate(
    graph,
    inputs.map((input) => Float64Array.from(input)),
  ).map((result) => [...result]);

/** c ← c · x + k; backwards a ← a · x and w = a · c, the state c before the turn computed again. */
const TEXT = (reverse: string): string => `func both(n: i32[], c: f32[], a: f32[], xs: f32[4], k: f32[]) {
  last: f32[], held: f32[3], turns: i32[3] = record(n, c, xs, k) {carries=1, counted, kept=[0], length=4${reverse}, slots=2, split=binomial, xs=1} {
    func body(i: i32[], c: f32[], x: f32[], k: f32[]) {
      p: f32[] = mul(c, x)
      q: f32[] = add(p, k)
      return q
    }
  }
  first: f32[], ws: f32[4], h: f32[3], t: i32[3] = rewind(n, turns, held, a, xs, k) {adjoints=1, advances=3, length=4${reverse}, slots=2, split=binomial, states=1, xs=1} {
    func step(i: i32[], c: f32[], x: f32[], k: f32[]) {
      p: f32[] = mul(c, x)
      q: f32[] = add(p, k)
      return q
    }
    func back(i: i32[], c: f32[], a: f32[], x: f32[], k: f32[]) {
      b: f32[] = mul(a, x)
      w: f32[] = mul(a, c)
      return b, w
    }
  }
  return last, first, ws
}
`;

describe("record and rewind", () => {
  test("go forward and back over the same states", () => {
    // states 1, 2, 5, 16, then 65; adjoints from the last turn: 1, 4, 12, 24
    expect(run(graphOf(TEXT("")), [4], [1], [1], [1, 2, 3, 4], [1])).toEqual([[65], [24], [24, 24, 20, 16]]);
  });

  test("go over rows from the last to the first where the loop does", () => {
    const [last, first, ws] = run(graphOf(TEXT(", reverse")), [4], [1], [1], [4, 3, 2, 1], [1]);
    expect([last, first, ws]).toEqual([[65], [24], [16, 20, 24, 24]]);
  });

  test("make as many turns as are counted, none too", () => {
    expect(run(graphOf(TEXT("")), [2], [1], [1], [1, 2, 3, 4], [1])).toEqual([[5], [2], [2, 2, 0, 0]]);
    expect(run(graphOf(TEXT("")), [0], [7], [9], [1, 2, 3, 4], [1])).toEqual([[7], [9], [0, 0, 0, 0]]);
  });

  test("cost the turns that are made again, and print as they are read", () => {
    const graph = graphOf(TEXT(""));
    expect(graphCost(graph)).toEqual({ flops: 4 * 2 + 3 * 2 + 4 * 2 });
    expect(violations(graph)).toEqual([]);
    expect(print(graphOf(print(graph)))).toBe(print(graph));
  });

  test("refuse states and splits that there are not", () => {
    const body = graphOf("func body(i: i32[], c: f32[]) { return c }");
    const attrs = {
      ...{ carries: 1, xs: 0, length: 3, reverse: false, counted: false },
      ...{ kept: [0], slots: 2, split: "binomial", every: 0, taped: 0 },
    };
    const f = tensorType("f32", []);
    const held = [f, tensorType("f32", [3]), tensorType("i32", [3])];
    expect(record.infer([f], attrs, [body])).toEqual(held);
    expect(() => record.infer([f], { ...attrs, kept: [1] }, [body])).toThrow("record: kept=1");
    expect(() => record.infer([f], { ...attrs, slots: 0 }, [body])).toThrow("record: slots=-1");
    expect(() => record.infer([f], { ...attrs, split: "golden" }, [body])).toThrow("there is no split golden");
    expect(() => record.infer([f], { ...attrs, split: "periodic" }, [body])).toThrow("no split periodic every 0");
  });
});
