/** @file Operations with regions: types, refusals, meaning, cost. */
import { describe, expect, test } from "vitest";
import { Build } from "../ir/build.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph } from "../ir/graph.ts";
import type { AnyOp } from "../ir/op.ts";
import { parse } from "../ir/parse.ts";
import { tensorType } from "../ir/type.ts";
import { allOps } from "./all.ts";
import { call, customJvp, customVjp, fused, graphCost } from "./control.ts";

const f4 = tensorType("f32", [4]);
const i4 = tensorType("i32", [4]);
const graphOf = (text: string): Graph => parse(text, allOps)[0]!;

const body = graphOf("func body(x: f32[4], k: i32[4]) { y: f32[4] = tanh(x) z: f32[4] = mul(x, y) return z, k }");

describe("call and fused", () => {
  test.each([
    ["call", (regions: readonly Graph[]) => call.infer([f4, i4], { checkpoint: true, name: "" }, regions)],
    ["fused", (regions: readonly Graph[]) => fused.infer([f4, i4], {}, regions)],
  ])("%s has the types of its region's results and refuses regions that do not fit", (name, infer) => {
    expect(infer([body])).toEqual([f4, i4]);
    expect(() => infer([])).toThrow(`${name}: has 0 regions, needs 1`);
    const other = graphOf("func other(x: f32[4]) { return x }");
    expect(() => infer([other])).toThrow(`${name}: region other takes (f32[4]), expected (f32[4], i32[4])`);
  });

  test("mean what their region means and cost what it costs", () => {
    const x = Float64Array.of(1, -2, 0.5, 0);
    const k = Float64Array.of(1, 2, 3, 4);
    for (const op of [call, fused] as readonly AnyOp[]) {
      const b = new Build("f");
      const results = b.callAll(op, [b.param(f4), b.param(i4)], { checkpoint: false, name: "" }, { regions: [body] });
      expect(evaluate(b.finish(results), [x, k])).toEqual([x.map((v) => v * Math.tanh(v)), k]);
      expect(op.cost([f4, i4], [f4, i4], { checkpoint: false, name: "" }, [body])).toEqual(graphCost(body));
    }
    expect(graphCost(body).flops).toBe(4 + 4 * 18);
  });

  test("cost counts regions within regions", () => {
    const nested = graphOf(`func f(x: f32[4]) {
      y: f32[4] = call(x) { func g(p: f32[4]) { q: f32[4] = add(p, p) return q } }
      z: f32[4] = neg(y)
      return z
    }`);
    expect(graphCost(nested)).toEqual({ flops: 8 });
  });
});

describe("custom_vjp", () => {
  const forward = graphOf("func fwd(x: f32[4], k: i32[4]) { e: f32[4] = exp(x) s: f32[4] = neg(x) return e, k, s }");
  const backward = graphOf("func bwd(s: f32[4], ct: f32[4]) { d: f32[4] = mul(s, ct) return d }");
  const infer = (results: number, regions: readonly Graph[]) => customVjp.infer([f4, i4], { results }, regions);

  test("has results and saved values; integers have no cotangents", () => {
    expect(infer(2, [forward, backward])).toEqual([f4, i4, f4]);
  });

  test("refuses regions that do not fit", () => {
    expect(() => infer(2, [forward])).toThrow("custom_vjp: has 1 regions, needs 2");
    expect(() => infer(4, [forward, backward])).toThrow("results=4, but the forward region gives 3");
    expect(() => infer(0, [forward, backward])).toThrow("results=0");
    expect(() => infer(3, [forward, backward])).not.toThrow();
    expect(() => infer(1, [forward, backward])).toThrow(
      "region bwd takes (f32[4], f32[4]), expected (i32[4], f32[4], f32[4])",
    );
    const none = graphOf("func bwd(s: f32[4], ct: f32[4]) { return }");
    expect(() => infer(2, [forward, none])).toThrow("region bwd returns (), expected (f32[4])");
  });

  test("computes its forward region", () => {
    const b = new Build("f");
    const results = b.callAll(customVjp, [b.param(f4), b.param(i4)], { results: 2 }, { regions: [forward, backward] });
    const x = Float64Array.of(1, 2, 3, 4);
    expect(evaluate(b.finish(results), [x, x])).toEqual([x.map(Math.exp), x, x.map((v) => -v)]);
  });
});

describe("custom_jvp", () => {
  const forward = graphOf("func fwd(x: f32[4], k: i32[4]) { s: f32[4] = square(x) return s, k }");
  const tangent = graphOf("func jvp(x: f32[4], k: i32[4], t: f32[4]) { p: f32[4] = mul(x, t) return p }");

  test("takes values and tangents of floats, and gives tangents of floats", () => {
    expect(customJvp.infer([f4, i4], {}, [forward, tangent])).toEqual([f4, i4]);
    expect(() => customJvp.infer([f4, i4], {}, [forward, forward])).toThrow(
      "custom_jvp: region fwd takes (f32[4], i32[4]), expected (f32[4], i32[4], f32[4])",
    );
  });
});
