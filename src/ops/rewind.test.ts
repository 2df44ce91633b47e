/** @file A loop that keeps states, and the reverse of a loop from states, as operations: meaning, types, refusals, cost, text. */
import { describe, expect, test } from "vitest";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph } from "../ir/graph.ts";
import { parse } from "../ir/parse.ts";
import { print } from "../ir/print.ts";
import { tensorType } from "../ir/type.ts";
import { violations } from "../ir/verify.ts";
import { allOps } from "./all.ts";
import { graphCost } from "./control.ts";
import { type RecordAttrs, record } from "./record.ts";
import { NOT_RECORDED, rewind } from "./rewind.ts";

const f = tensorType("f32", []);
const i = tensorType("i32", []);
const graphOf = (text: string): Graph => parse(text, allOps)[0]!;
const run = (graph: Graph, ...inputs: readonly number[][]): readonly number[][] =>
  evaluate(
    graph,
    inputs.map((input) => Float64Array.from(input)),
  ).map((result) => [...result]);

/** c ← c · x + k; backwards a ← a · x and w = a · c, the state c before the iteration recomputed. */
const TEXT = (reverse: string): string => `func both(n: i32[], c: f32[], a: f32[], xs: f32[4], k: f32[]) {
  last: f32[], store: f32[3], positions: i32[3] = record(n, c, xs, k) {carries=1, checkpoints=2, counted, length=4${reverse}, split=binomial, states=[0], xs=1} {
    func body(i: i32[], c: f32[], x: f32[], k: f32[]) {
      p: f32[] = mul(c, x)
      q: f32[] = add(p, k)
      return q
    }
  }
  first: f32[], ws: f32[4], h: f32[3], t: i32[3] = rewind(n, positions, store, a, xs, k) {adjoints=1, advances=3, checkpoints=2, length=4, recorded${reverse}, states=1, xs=1} {
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
    // states 1, 2, 5, 16, then 65; adjoints from the last iteration: 1, 4, 12, 24
    expect(run(graphOf(TEXT("")), [4], [1], [1], [1, 2, 3, 4], [1])).toEqual([[65], [24], [24, 24, 20, 16]]);
  });

  test("go over rows from the last to the first where the loop does", () => {
    const [last, first, ws] = run(graphOf(TEXT(", reverse")), [4], [1], [1], [4, 3, 2, 1], [1]);
    expect([last, first, ws]).toEqual([[65], [24], [16, 20, 24, 24]]);
  });

  test("make as many iterations as are counted, none too", () => {
    expect(run(graphOf(TEXT("")), [2], [1], [1], [1, 2, 3, 4], [1])).toEqual([[5], [2], [2, 2, 0, 0]]);
    expect(run(graphOf(TEXT("")), [0], [7], [9], [1, 2, 3, 4], [1])).toEqual([[7], [9], [0, 0, 0, 0]]);
  });

  test("cost the iterations that are repeated, and print as they are read", () => {
    const graph = graphOf(TEXT(""));
    expect(graphCost(graph)).toEqual({ flops: 4 * 2 + 3 * 2 + 4 * 2 });
    expect(violations(graph)).toEqual([]);
    expect(print(graphOf(print(graph)))).toBe(print(graph));
  });

  test("refuse states and splits that there are not", () => {
    const body = graphOf("func body(i: i32[], c: f32[]) { return c }");
    const attrs = {
      ...{ carries: 1, xs: 0, length: 3, reverse: false, counted: false },
      ...{ states: [0], checkpoints: 2, split: "binomial", every: 0, taped: 0 },
    };
    expect(record.infer([f], attrs, [body])).toEqual([f, tensorType("f32", [3]), tensorType("i32", [3])]);
    expect(() => record.infer([f], { ...attrs, states: [1] }, [body])).toThrow("record: states=1");
    expect(() => record.infer([f], { ...attrs, checkpoints: 0 }, [body])).toThrow("record: checkpoints=-1");
    expect(() => record.infer([f], { ...attrs, split: "golden" }, [body])).toThrow("there is no split golden");
    expect(() => record.infer([f], { ...attrs, split: "periodic" }, [body])).toThrow("no split periodic every 0");
  });
});

/** c ← c · c as long as it is below a bound; backwards a ← a · (c + c). */
const ONLINE = `func both(c: f32[], k: f32[], a: f32[]) {
  last: f32[], store: f32[3], positions: i32[6], n: i32[] = record(c, k) {carries=1, checkpoints=2, split=online, states=[0]} {
    func test(c: f32[], k: f32[]) {
      t: bool[] = lt(c, k)
      return t
    }
    func body(i: i32[], c: f32[], k: f32[]) {
      q: f32[] = mul(c, c)
      return q
    }
  }
  first: f32[], s: f32[3], p: i32[6] = rewind(n, positions, store, a) {adjoints=1, checkpoints=2, recorded, split=online, states=1} {
    func step(i: i32[], c: f32[]) {
      q: f32[] = mul(c, c)
      return q
    }
    func back(i: i32[], c: f32[], a: f32[]) {
      d: f32[] = add(c, c)
      b: f32[] = mul(a, d)
      return b
    }
  }
  return last, first, n
}
`;

describe("record as long as a test holds", () => {
  test("is reversed from its states, however many iterations there were", () => {
    // 2, 4, 16, 256: d 256 / d 2 = 8 · 2⁷
    expect(run(graphOf(ONLINE), [2], [100], [1])).toEqual([[256], [32 * 8 * 4], [3]]);
    expect(run(graphOf(ONLINE), [200], [100], [1])).toEqual([[200], [1], [0]]);
  });

  test("prints as it is read, and verifies", () => {
    expect(print(graphOf(ONLINE))).toBe(ONLINE);
    expect(violations(graphOf(ONLINE))).toEqual([]);
  });

  test("has no rows to read and no count", () => {
    const test = graphOf("func test(c: f32[]) { t: bool[] = eq(c, c) return t }");
    const body = graphOf("func body(i: i32[], c: f32[]) { return c }");
    const attrs: RecordAttrs = {
      ...{ carries: 1, xs: 0, length: 0, reverse: false, counted: false },
      ...{ states: [0], checkpoints: 2, split: "online", every: 0, taped: 0 },
    };
    expect(record.infer([f], attrs, [test, body])).toEqual([f, tensorType("f32", [3]), tensorType("i32", [6]), i]);
    for (const wrong of [{ xs: 1 }, { counted: true }, { reverse: true }, { taped: 1 }]) {
      expect(() => record.infer([f], { ...attrs, ...wrong }, [test, body])).toThrow("online is for a while");
    }
    expect(() => record.infer([f], attrs, [body])).toThrow("while: has 1 regions, needs 2");
  });
});

const FROM_FIRST = (reverse: string): string => `func unrecorded(n: i32[], c: f32[], a: f32[], xs: f32[4], k: f32[]) {
  last: f32[], ws: f32[4] = rewind(n, c, a, xs, k) {adjoints=1, checkpoints=2, length=4${reverse}, states=1, xs=1} {
    func step(i: i32[], c: f32[], x: f32[], k: f32[]) {
      p: f32[] = mul(c, k)
      q: f32[] = add(p, x)
      return q
    }
    func back(i: i32[], c: f32[], a: f32[], x: f32[], k: f32[]) {
      p: f32[] = mul(a, k)
      q: f32[] = add(p, c)
      return q, c
    }
  }
  return last, ws
}
`;

describe("rewind of a loop that was not recorded", () => {
  // states 1, 2·1+1 = 3, 2·3+2 = 8, 2·8+3 = 19
  const first = (((10 * 2 + 19) * 2 + 8) * 2 + 3) * 2 + 1;

  test("runs back at every state from the last to the first", () => {
    expect(run(graphOf(FROM_FIRST("")), [4], [1], [10], [1, 2, 3, 4], [2])).toEqual([[first], [1, 3, 8, 19]]);
    expect(run(graphOf(FROM_FIRST("")), [0], [1], [10], [1, 2, 3, 4], [2])[0]).toEqual([10]);
  });

  test("goes over rows from the last to the first where the loop did", () => {
    const results = run(graphOf(FROM_FIRST(", reverse")), [4], [1], [10], [4, 3, 2, 1], [2]);
    expect(results).toEqual([[first], [19, 8, 3, 1]]);
  });

  test("prints as it is read, and verifies", () => {
    expect(print(graphOf(FROM_FIRST("")))).toBe(FROM_FIRST(""));
    expect(violations(graphOf(FROM_FIRST("")))).toEqual([]);
  });

  test("refuses regions and attributes that do not fit", () => {
    const step = graphOf("func step(i: i32[], c: f32[]) { return c }");
    const back = graphOf("func back(i: i32[], c: f32[], a: f32[]) { return a }");
    const attrs = { ...NOT_RECORDED, states: 1, adjoints: 1, xs: 0, length: 0, checkpoints: 4, wrt: [] };
    expect(rewind.infer([i, f, f], attrs, [step, back])).toEqual([f]);
    expect(() => rewind.infer([f, f, f], attrs, [step, back])).toThrow(
      "rewind: the count is (f32[]), expected (i32[])",
    );
    expect(() => rewind.infer([i, f, f], { ...attrs, checkpoints: -1 }, [step, back])).toThrow(
      "rewind: checkpoints=-1",
    );
    expect(() => rewind.infer([i, f, f], attrs, [back, back])).toThrow("rewind: region back takes");
    const online = { ...attrs, split: "online" };
    expect(() => rewind.infer([i, f, f], online, [step, back])).toThrow("of a loop that is not recorded");
  });
});
