/** @file Plans that move, that round, and that do whatever is faster, beside those that recompute. */
import { expect, it } from "vitest";
import "../../tests/support/host.ts";
import { spec } from "../api/create.ts";
import { valueAndGrad } from "../api/grad.ts";
import { lossyRequest } from "../api/lossy-options.ts";
import "../api/methods.ts";
import { plansOf } from "../api/plan.ts";
import { spilledPlans } from "../compiler/spill.ts";
import { adam } from "../optim/adam.ts";
import type { Tensor } from "../trace/tensor.ts";
import { strategyCurves } from "./strategy-curves.ts";

const optimizer = adam({ lr: 0.01 });
type State = ReturnType<typeof optimizer.init<readonly Tensor[]>>;

function train(state: State, x: Tensor): readonly [State, Tensor] {
  const lossOf = (weights: readonly Tensor[]): Tensor =>
    weights
      .reduce((h, w) => h.matmul(w).tanh(), x)
      .square()
      .mean();
  const [loss, d] = valueAndGrad(lossOf)(state.params);
  return [optimizer.update(state, d), loss];
}

const state = optimizer.init(Array.from({ length: 3 }, () => spec([64, 64])) as readonly Tensor[]);

it("are curves of their own, of which those with a file go below what persists", () => {
  const { plans } = plansOf(train, [state, spec([32, 64])], { donate: [0] });
  const { arenaBytes, predictedMs } = plans.storeAllFigures;
  const stored = { budgetBytes: arenaBytes, arenaBytes, predictedMs, entry: null };
  const allowed = {
    spill: { bytesPerSecond: 2e9, plans: spilledPlans },
    lossy: lossyRequest("lossy", { residuals: "auto" }),
  };
  const floorBytes = plans.floorBytes();
  const curves = [...strategyCurves(plans, { points: [stored], floorBytes, whole: true }, 3, { allowed })];
  const others = curves.at(-1)?.others ?? [];
  expect(others.map(({ name }) => name)).toEqual([
    "move",
    "move and recompute",
    "rounded",
    "move, recompute and round",
  ]);
  const least = new Map(others.map(({ name, points }) => [name, Math.min(...points.map((p) => p.arenaBytes))]));
  expect(least.get("move")).toBeLessThan(floorBytes);
  expect(least.get("move, recompute and round")).toBeLessThan(floorBytes);
  expect(least.get("rounded")).toBeGreaterThan(floorBytes);
  expect(curves.at(-1)?.floorBytes).toBe(Math.min(...least.values()));
  // all of it is never slower than moving alone, within the same budget
  const points = (name: string) => others.find((one) => one.name === name)?.points ?? [];
  for (const alone of points("move")) {
    const all = points("move, recompute and round").filter((p) => p.arenaBytes <= alone.arenaBytes);
    expect(Math.min(...all.map((p) => p.predictedMs))).toBeLessThanOrEqual(1.01 * alone.predictedMs);
  }
});
