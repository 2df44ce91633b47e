/** @file What loops hold, in words, for the plans of one program from all rows to one state; and the curve that shows it. */
import { describe, expect, it } from "vitest";
import { grad, type Tensor, tensor, whileLoop } from "../api/index.ts";
import { plansOf } from "../api/plan.ts";
import type { MemoryRequest } from "../compiler/request.ts";
import type { AnyFunction } from "../trace/function.ts";
import { loopForms } from "../view/loop-text.ts";
import { lstm } from "./programs/lstm.ts";

const args = [lstm.init(), ...lstm.batch()] as const;
const { plans } = plansOf(lstm.step as AnyFunction, args, { donate: [0] });
const textOf = (request: MemoryRequest): readonly string[] => loopForms(plans.choose(request).result.graph);

describe("what loops hold", () => {
  it("goes from all rows over rows of some iterations to states", () => {
    expect(textOf({})).toEqual(["64 iterations: rows"]);
    expect(textOf({ budgetBytes: 12e6 })[0]).toMatch(
      /^64 iterations: rows of the last \d+, \d+ states for the others$/,
    );
    expect(textOf({ budgetBytes: 6e6 })[0]).toMatch(/^64 iterations: \d+ states$/);
    expect(textOf({ least: true })[0]).toMatch(/^64 iterations: \d+ states?$/);
  });

  it("is said of a loop without a bound", () => {
    const root = (x: Tensor): Tensor =>
      whileLoop(
        (s: Tensor) => s.sub(x).abs().greater(1e-3),
        (s: Tensor) => s.add(x).div(2),
        tensor(0),
      );
    const open = plansOf(grad(root) as AnyFunction, [tensor(2)], {}).plans;
    expect(loopForms(open.storeAll.result.graph)).toEqual(["while: 32 states"]);
  });

  it("is beside each plan of a curve, down to the bound", () => {
    const points = plans.curve("auto", 4);
    const arenas = points.map(({ plan }) => plan.arenaBytes);
    expect(arenas).toEqual([...arenas].sort((a, b) => b - a));
    expect(arenas.at(-1)).toBeGreaterThanOrEqual(plans.floorBytes());
    expect(arenas.at(-1)).toBeLessThan((arenas[0] as number) / 3);
  });
});
