/**
 * @file `effort: "quick"`: the first good plan within a budget takes a fraction of the plans of the whole search, is nearly as
 * fast, and every budget that the whole search meets is met.
 */
import { describe, expect, test } from "vitest";
import { compile, grad, plan, spec, type Tensor, zeros } from "../src/api/index.ts";
import { plansOf } from "../src/api/plan.ts";
import { TidemarkError } from "../src/base/errors.ts";
import type { Candidate } from "../src/plan/budget/budget-levels.ts";
import { printPlan } from "../src/plan/print.ts";
import { specsOfModel } from "../src/playground/model.ts";
import { MODELS } from "../src/playground/models.ts";
import type { AnyFunction } from "../src/trace/function.ts";

interface Answer {
  readonly plan: Pick<Candidate<unknown>, "arenaBytes" | "predictedMs">;
  readonly text: string;
  readonly made: number;
}

type Program = readonly [AnyFunction, readonly unknown[]];

/** The plan for a budget, made from nothing, and how many plans were compared for it. */
function answer([fn, args]: Program, budgetBytes: number, quick: boolean): Answer {
  let made = 0;
  const { plans } = plansOf(fn, args, { donate: [0], cache: false, progress: () => made++ });
  const chosen = plans.choose({ budgetBytes, quick });
  return { plan: chosen, text: printPlan(chosen.result.plan), made };
}

const chain: Program = [
  grad((x: Tensor) => {
    let h = x;
    for (let i = 0; i < 10; i++) h = h.tanh().mul(h);
    return h.sum();
  }) as AnyFunction,
  [spec([100_000])],
];

const transformer = MODELS.find(({ name }) => name === "transformer");
if (!transformer) throw new Error("the playground has no transformer");
const small: Program = [transformer.step as AnyFunction, specsOfModel(transformer)];

describe("the playground's transformer", () => {
  const all = plansOf(...small, { donate: [0], cache: false }).plans.storeAll;
  test.each([0.7])("at %d of the bytes has a plan after three", (share) => {
    const budget = Math.floor(share * all.arenaBytes);
    const [quick, full] = [answer(small, budget, true), answer(small, budget, false)];
    expect(quick.plan.arenaBytes).toBeLessThanOrEqual(budget);
    expect(quick.plan.predictedMs).toBeLessThan(full.plan.predictedMs * 1.03);
    expect(quick.made).toBeLessThanOrEqual(3);
    expect(full.made).toBeGreaterThan(3 * quick.made);
  });

  test("the same program has the same plan", () => {
    const budget = Math.floor(0.7 * all.arenaBytes);
    expect(answer(small, budget, true).text).toBe(answer(small, budget, true).text);
  });
});

describe("a budget that takes the whole search", () => {
  test("is met, by its plan", () => {
    // with the usual kernels nothing smaller than the eight vectors of storing everything is found
    const budget = 1_200_000;
    const [quick, full] = [answer(chain, budget, true), answer(chain, budget, false)];
    expect(quick.text).toBe(full.text);
  });

  test("is refused in the same words", () => {
    const messageOf = (quick: boolean): string => {
      try {
        answer(chain, 500_000, quick);
      } catch (error) {
        if (error instanceof TidemarkError) return error.message;
      }
      return "";
    };
    expect(messageOf(true)).toMatch(/needs 800,000 bytes/);
    expect(messageOf(true)).toBe(messageOf(false));
  });
});

const block = (h: Tensor, w: Tensor): Tensor => h.layerNorm().gelu().matmul(w);
const norms = grad((ws: readonly Tensor[], x: Tensor) => ws.reduce(block, x).square().sum());

test("compile takes the quick plan; plan, and compile with all effort, search on", () => {
  const args = [Array.from({ length: 4 }, () => spec([32, 32])), spec([64, 32])] as const;
  const memory = Math.floor(0.85 * plansOf(norms as AnyFunction, args, {}).plans.storeAll.arenaBytes);
  const made = { quick: 0, full: 0, plan: 0 };
  const options = (who: keyof typeof made) => ({ memory, cache: false, progress: () => made[who]++ });
  const { arenaBytes } = compile(norms, options("quick")).program(...args);
  const full = compile(norms, { ...options("full"), effort: "full" }).program(...args);
  const planned = plan(norms, options("plan"))(...args);
  expect(arenaBytes).toBeLessThanOrEqual(memory);
  expect(full.arenaBytes).toBe(planned.arenaBytes);
  expect(made.full).toBe(made.plan);
  expect(made.full).toBeGreaterThan(3 * made.quick);
});

test("an effort that does not exist is named", () => {
  const asked = () => compile((x: Tensor) => x.mul(2), { effort: "most" as never })(zeros([2]));
  expect(asked).toThrow(/effort is the string "most"/);
});
