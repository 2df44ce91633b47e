/** @file The reference evaluator: doubles, rounding on request, wrapping integers, regions, and what it refuses. */
import { describe, expect, test } from "vitest";
import { allOps } from "../ops/all.ts";
import { neg } from "../ops/elementwise.ts";
import { evaluate } from "./evaluate.ts";
import { parse } from "./parse.ts";

const graphOf = (body: string) => parse(body, allOps)[0]!;
const run = (text: string, inputs: readonly (readonly number[])[], options = {}) =>
  evaluate(
    graphOf(text),
    inputs.map((x) => Float64Array.from(x)),
    options,
  ).map((x) => [...x]);

describe("evaluate", () => {
  test("computes f32 in doubles, or rounded after every operation", () => {
    const text = "func f(a: f32[1], b: f32[1]) { c: f32[1] = add(a, b) d: f32[1] = sub(c, a) return d }";
    expect(run(text, [[2 ** 30], [1]])).toEqual([[1]]);
    expect(run(text, [[2 ** 30], [1]], { round: true })).toEqual([[0]]);
    expect(run("func f(a: f32[1]) { return a }", [[0.1]], { round: true })).toEqual([[Math.fround(0.1)]]);
  });

  test("wraps i32 exactly, products included", () => {
    const text =
      "func f(a: i32[2]) { s: i32[2] = add(a, a) p: i32[2] = mul(a, a) q: i32[2] = square(a) return s, p, q }";
    const big = 0x7fffffff;
    const low = Math.imul(123456789, 123456789);
    expect(run(text, [[big, 123456789]])).toEqual([
      [-2, 246913578],
      [1, low],
      [1, low],
    ]);
  });

  test("gives bools as 0 and 1", () => {
    expect(
      run("func f(a: f32[3]) { n: f32[3] = neg(a) b: bool[3] = lt(a, n) return b }", [[-1, 0, Number.NaN]]),
    ).toEqual([[1, 0, 0]]);
  });

  test("runs regions, with the rounding of the outside", () => {
    const text = `func f(a: f32[1]) {
      s: f32[1], t: f32[1] = call(a) { func g(x: f32[1]) { y: f32[1] = sqrt(x) z: f32[1] = mul(y, y) return y, z } }
      return s, t
    }`;
    const y = Math.fround(Math.sqrt(2));
    expect(run(text, [[2]], { round: true })).toEqual([[y], [Math.fround(y * y)]]);
    expect(run(text, [[2]])).toEqual([[Math.SQRT2], [Math.SQRT2 * Math.SQRT2]]);
  });

  test("returns parameters and repeated results", () => {
    expect(run("func f(a: f32[1]) { b: f32[1] = neg(a) c: f32[1] = neg(b) return b, a, b }", [[3]])).toEqual([
      [-3],
      [3],
      [-3],
    ]);
  });

  test("refuses inputs that do not fit", () => {
    const graph = graphOf("func f(a: f32[2,2]) { return a }");
    expect(() => evaluate(graph, [])).toThrow("InvalidArgument: f takes 1 inputs, got 0");
    expect(() => evaluate(graph, [new Float64Array(3)])).toThrow("f: expected 4 elements for a: f32[2,2], got 3");
  });

  test("catches an operation that gives too few elements", () => {
    const short = { ...neg, name: "short", evaluate: () => [new Float64Array(1)] };
    const [graph] = parse("func f(a: f32[2]) { b: f32[2] = short(a) return b }", [short]);
    expect(() => evaluate(graph!, [new Float64Array(2)])).toThrow("b = short(a) gave 1 elements, f32[2] has 2");
  });
});
