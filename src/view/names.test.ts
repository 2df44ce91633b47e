/** @file Search and short names. */
import { expect, it } from "vitest";
import { trainingStep } from "../../tests/support/plan-programs.ts";
import { planJson } from "../plan/json.ts";
import { planProgram } from "../plan/plan.ts";
import { pictureOfPlan } from "./from-plan.ts";
import { fittingName, MISS, matchesOf } from "./names.ts";

it("a query matches names, then operations; all of its words must match", () => {
  const picture = pictureOfPlan(planJson(planProgram(trainingStep(2))));
  const namesOf = (query: string, rank: number): readonly string[] =>
    picture.values.filter((_, v) => matchesOf(picture, query)?.(v) === rank).map(({ name }) => name);
  const all = picture.values.map(({ name }) => name);
  expect(namesOf("D_W", 0)).toEqual(all.filter((name) => name.startsWith("d_w")));
  expect(namesOf("w d_", 1)).toEqual(all.filter((name) => name.includes("w") && name.includes("d_")));
  const products = picture.steps.filter(({ text }) => text.startsWith("matmul")).flatMap(({ writes }) => writes);
  expect(products.length).toBeGreaterThan(0);
  expect(namesOf("matmul", 2)).toEqual(products.map((v) => picture.values[v]?.name));
  expect(namesOf("matmul d_w1", 2)).toEqual(["d_w1"]);
  expect(namesOf("nothing of the kind", MISS)).toEqual(all);
  expect(matchesOf(picture, "  ")).toBeNull();
});

it("a name without room loses its first parts, then its end", () => {
  const shown = [30, 20, 15, 5, 4].map((room) => fittingName("d_block0.attention.qkv", room));
  expect(shown).toEqual(["d_block0.attention.qkv", "d_attention.qkv", "d_attention.qkv", "d_qkv", "d_q…"]);
});
