/** @file Plans of several strategies: equal ones are one, and the best are those that no other beats. */
import { expect, it } from "vitest";
import { mergedPlans } from "./frontier.ts";

const plan = (strategy: string, arenaBytes: number, predictedMs: number) => ({ strategy, arenaBytes, predictedMs });

it("merges equal plans and finds those that no other beats", () => {
  const merged = mergedPlans([
    ...[plan("store-all", 100, 1), plan("sqrt", 50, 3), plan("auto", 100, 1), plan("auto", 50, 2), plan("auto", 50, 2)],
    ...[plan("every-k", 80, 1), plan("chain", 40, 2), plan("all", 30, 9), plan("look-ahead", 30, 9 + 1e-12)],
  ]);
  expect(merged.map((p) => `${p.arenaBytes} ${p.predictedMs} ${p.strategies.join("+")} ${p.isBest}`)).toEqual([
    "100 1 store-all+auto false",
    "80 1 every-k true",
    "50 2 auto false",
    "50 3 sqrt false",
    "40 2 chain true",
    "30 9 all+look-ahead true",
  ]);
  expect(merged[2]?.plans).toHaveLength(2);
});
