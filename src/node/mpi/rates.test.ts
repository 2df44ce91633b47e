/** @file Rates from the times of sums, by the model that predicts them. */
import { expect, it } from "vitest";
import { exchangeWork } from "../../target/exchange.ts";
import { type CostModel, NO_WORK, networkMs } from "../../target/work.ts";
import { ratesOf } from "./rates.ts";

it.each([2, 3, 4])("predicts the times that it was measured with, on %i processes", (p) => {
  const [one, many, elements] = [3e-5, 2e-3, 1024];
  const rates = { ...ratesOf(p, one, many, 4 * elements), name: "test" } as CostModel;
  const group = { mesh: [["data", p]] as const, over: ["data"] };
  const work = { ...NO_WORK, ...exchangeWork({ what: "all_reduce", group, elements, storage: "f32" } as never) };
  expect(networkMs(work, rates)).toBeCloseTo(1000 * many, 9);
  expect(networkMs({ ...work, sentBytes: 0 }, rates)).toBeCloseTo(1000 * one, 9);
});

it("has a rate above 0 where the clock is too coarse", () => {
  expect(ratesOf(2, 1e-3, 1e-3, 4096).networkRate).toBeGreaterThan(0);
});
