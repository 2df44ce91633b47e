/** @file Calls whose first result says whether the others count, over a batch: copies of small inputs, a loop for large ones. */
import { expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph } from "../ir/graph.ts";
import { tensorType } from "../ir/type.ts";
import { verify } from "../ir/verify.ts";
import { allNodes } from "../ir/walk.ts";
import { sum } from "../ops/broadcast.ts";
import { gated } from "../ops/control.ts";
import { fullLike } from "../ops/create.ts";
import { apply } from "../ops/define.ts";
import { gt, mul } from "../ops/elementwise.ts";
import { log } from "../ops/math.ts";
import { batch } from "./batch.ts";

/** x, w → x > 0, log(x) · Σ w: infinite where it does not count; nothing flows back there. */
function program(elements: number): Graph {
  const body = new Build("body");
  const [x, w] = [body.param(tensorType("f64", [])), body.param(tensorType("f64", [elements]))];
  const total = body.call(sum, [w], { axes: [0] });
  const region = body.finish([apply(body, gt, x, fullLike(body, x, 0)), apply(body, mul, apply(body, log, x), total)]);
  const b = new Build("program");
  const inputs = [b.param(x.type), b.param(w.type)];
  return b.finish([at(b.callAll(gated, inputs, {}, { regions: [region] }), 1)]);
}

for (const [what, elements, loops] of [
  ["copies", 4, 0],
  ["a loop", 60_000, 1],
] as const) {
  test(`a truth that varies lets nothing flow back where it is false: ${what}`, () => {
    const over = batch(program(elements), 3, { params: [true, false] }).graph;
    verify(over);
    expect([...allNodes(over)].filter(({ op }) => op.name === "scan")).toHaveLength(loops);
    const w = new Float64Array(elements).fill(1);
    const x = Float64Array.of(2, 0, 4);
    const [y, dx, dw] = evaluate(vjp(over, [true, true]), [x, w, Float64Array.of(1, 1, 1)]);
    expect(y).toEqual(Float64Array.of(Math.log(2) * elements, Number.NEGATIVE_INFINITY, Math.log(4) * elements));
    expect(dx).toEqual(Float64Array.of(elements / 2, 0, elements / 4));
    expect(dw?.[0]).toBeCloseTo(Math.log(2) + Math.log(4), 12);
  });
}
