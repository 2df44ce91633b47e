/** @file Training in two places: plans that are sent and changed midway train to the bits of `compile`. */
import { describe, expect, it } from "vitest";
import { compile } from "../api/compile.ts";
import { stateHash } from "../cli/commands/bench.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import type { Tensor } from "../trace/tensor.ts";
import { batchTensors, type PlaygroundModel } from "./model.ts";
import { MODELS } from "./models.ts";
import { Planner, type SentPlan } from "./planner.ts";
import { Trainer } from "./trainer.ts";

const STEPS = 3;

/** The same steps by the library's own way of running; its bits are the page's where there is no fused multiply-add. */
function compiled(model: PlaygroundModel): { readonly losses: readonly number[]; readonly hash: string } {
  const step = compile((s: object, x: Tensor, y: Tensor) => model.step(s, x, y), { donate: [0] });
  let state = model.init();
  const losses = Array.from({ length: STEPS }, (_, i) => {
    const [next, loss] = step(state, ...batchTensors(model, model.batch(i)));
    state = next;
    return loss.item();
  });
  return { losses, hash: stateHash(state) };
}

describe.each(MODELS)("$name", (model) => {
  const planner = new Planner(model);
  const stored = planner.stored();

  it("trains to the same bits whatever the budget, changed midway, as compiled by the library", () => {
    const trainer = new Trainer(model, stored.program);
    const reports = [0.7, 0.6, 1].map((share) => {
      const plan = planner.within(Math.round(stored.program.arenaBytes * share)) as SentPlan;
      expect(plan.program.arenaBytes).toBeLessThanOrEqual(stored.program.arenaBytes * share);
      trainer.change(plan.program);
      return trainer.step();
    });
    for (const { loss, storedLoss } of reports) expect(loss).toBe(storedLoss);
    const { hash, storedHash } = trainer.hashes();
    expect(hash).toBe(storedHash);
    if (detectFeatures().relaxedMadd) return;
    const { losses, hash: expected } = compiled(model);
    expect(reports.map((r) => r.loss)).toEqual(losses);
    expect(hash).toBe(expected);
  });

  it("learns", () => {
    const trainer = new Trainer(model, stored.program);
    const losses = Array.from({ length: 15 }, () => trainer.step().loss);
    expect(losses.at(-1)).toBeLessThan(0.9 * (losses[0] as number));
  });

  it("has a story for every value, and none for others", () => {
    const { asks, picture } = stored.entry;
    expect(planner.story(asks ?? "", 0)[0]).toContain(picture.values[0]?.name);
    expect(planner.story(asks ?? "", picture.values.length)).toEqual([]);
    expect(planner.story("nothing", 0)).toEqual([]);
  });
});

it("a budget that no plan fits is refused in words", () => {
  const planner = new Planner(MODELS.find(({ name }) => name === "cnn") as PlaygroundModel);
  expect(planner.within(1000)).toContain("PlanInfeasible");
});
