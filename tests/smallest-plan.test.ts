/**
 * @file The smallest plan is at most what any strategy, any way to fuse and the user's own checkpoints come to, and no budget
 * at or above it is refused. Programs in which one kernel that stores several values is the tightest step: recomputation
 * alone does not undo it.
 */
import { describe, expect, test } from "vitest";
import { checkpoint, compile, forLoop, grad, plan, spec, type Tensor, zeros } from "../src/api/index.ts";
import { plansOf } from "../src/api/plan.ts";
import { TidemarkError } from "../src/base/errors.ts";
import type { ProgramPlans } from "../src/compiler/assemble.ts";
import { STRATEGY_NAMES } from "../src/plan/recompute/strategy.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import type { Tree } from "../src/trace/tree.ts";

interface Program {
  readonly name: string;
  readonly fn: (...args: never[]) => unknown;
  readonly args: readonly unknown[];
}

/** Ten maps on one large vector: forward is one kernel that stores what backward reads. */
const chain: Program = {
  name: "ten maps",
  fn: grad((x: Tensor) => {
    let h = x;
    for (let i = 0; i < 10; i++) h = h.tanh().mul(h);
    return h.sum();
  }),
  args: [spec([100_000])],
};

const residual: Program = {
  name: "six residual blocks",
  fn: grad((ws: readonly Tensor[], x: Tensor) => {
    let h = x;
    for (const w of ws) h = h.add(h.matmul(w).relu());
    return h.square().sum();
  }),
  args: [Array.from({ length: 6 }, () => spec([64, 64])), spec([128, 64])],
};

const block = (h: Tensor, w: Tensor): Tensor => h.layerNorm().gelu().matmul(w);

const norms: Program = {
  name: "five normalised products",
  fn: grad((ws: readonly Tensor[], x: Tensor) => ws.reduce(block, x).square().sum()),
  args: [Array.from({ length: 5 }, () => spec([32, 32])), spec([32, 32])],
};

const checkpointed: Program = {
  name: "steps in checkpoints",
  fn: grad((w: Tensor, x: Tensor) => {
    const step = checkpoint(block);
    let h = x;
    for (let i = 0; i < 6; i++) h = step(h, w) as Tensor;
    return h.square().sum();
  }),
  args: [spec([64, 64]), spec([256, 64])],
};

const loops: Program = {
  name: "a loop between maps",
  fn: grad((x: Tensor) => {
    const y = forLoop(6, x.sin(), (_, s) => s.mul(x).add(0.2).tanh());
    return y.mul(x.cos()).square().sum();
  }),
  args: [spec([64, 32])],
};

/** The kernel that stores several values is the tightest step here too, whatever the loop keeps. */
const mapsAndLoop: Program = {
  name: "ten maps before a loop",
  fn: grad((x: Tensor) => {
    let h = x;
    for (let i = 0; i < 10; i++) h = h.tanh().mul(h);
    return forLoop(4, h, (_, s) => s.mul(0.5).sin()).sum();
  }),
  args: [spec([1000])],
};

test("with loops, kernels that store one value each are tried too", () => {
  // Seven vectors; sixteen where the usual kernels were the only ones.
  expect(plansFor(mapsAndLoop).choose({ least: true }).arenaBytes).toBeLessThanOrEqual(7 * 4000);
});

/** All plans of a program: what was made for one question serves the next. */
const plansFor = ({ fn, args }: Program): ProgramPlans =>
  plansOf(fn as AnyFunction, args as readonly Tree[], { cache: false }).plans;

/** Strategies that need no solver. */
const strategies = STRATEGY_NAMES.filter((name) => name !== "optimal" && name !== "auto" && name !== "binomial");

describe.each([chain, residual, norms, checkpointed, loops, mapsAndLoop])("$name", (program) => {
  const plans = plansFor(program);
  const least = plans.choose({ least: true });

  test("the smallest plan is no larger than that of any strategy, or than what is written", () => {
    expect(least.arenaBytes).toBeLessThanOrEqual(plans.choose({}).arenaBytes);
    for (const strategy of strategies) {
      expect(least.arenaBytes, strategy).toBeLessThanOrEqual(plans.choose({ least: true, strategy }).arenaBytes);
    }
  });

  test("no budget from the smallest plan on is refused, and the refusal below it advises one that is not", () => {
    const most = plans.storeAll.arenaBytes;
    for (const share of [0, 0.01, 0.1, 0.3]) {
      const budgetBytes = Math.ceil(least.arenaBytes + share * (most - least.arenaBytes));
      expect(plans.choose({ budgetBytes }).arenaBytes).toBeLessThanOrEqual(budgetBytes);
    }
    const refusal = refused(() => plans.choose({ budgetBytes: 64 }));
    expect(refusal.code).toBe("PlanInfeasible");
    const advised = Number(/raise the budget to ([\d,]+)/.exec(refusal.message)?.[1]?.replaceAll(",", ""));
    expect(plans.choose({ budgetBytes: advised }).arenaBytes).toBeLessThanOrEqual(advised);
    // Arguments are there before the first step, whatever is planned.
    expect(refusal.message).toMatch(
      /arguments, or results and persistent values, take [\d,]+ bytes: no plan can be smaller/,
    );
  });

  test("a refusal claims that no plan can be smaller only where arguments or results alone take too much", () => {
    const floor = plans.floorBytes();
    expect(floor).toBeLessThan(least.arenaBytes);
    const refusal = refused(() => plans.choose({ budgetBytes: floor }));
    expect(refusal.message).not.toMatch(/no plan can|no order/);
  });
});

function refused(run: () => unknown): TidemarkError {
  try {
    run();
  } catch (error) {
    if (error instanceof TidemarkError) return error;
  }
  throw new Error("nothing was refused");
}

test("ten maps on a vector of 100,000 fit two vectors", () => {
  const plans = plansFor(chain);
  expect(plans.choose({ budgetBytes: 2_000_000 }).arenaBytes).toBeLessThanOrEqual(2_000_000);
  expect(plans.choose({ least: true }).arenaBytes).toBeLessThanOrEqual(800_000);
});

test("a program that computes nothing has a smallest plan", () => {
  const plans = plansFor({ name: "nothing", fn: (x: Tensor) => x, args: [spec([8])] });
  expect(plans.choose({ least: true }).arenaBytes).toBe(plans.storeAll.arenaBytes);
  for (const strategy of strategies) expect(plans.choose({ least: true, strategy }).strategy).toBeDefined();
});

test("with other kernels the gradient has the same bits", () => {
  const run = (memory?: "min"): Float32Array => {
    const fn = compile(chain.fn as (x: Tensor) => Tensor, memory ? { memory, validate: true } : {});
    return fn(zeros([100_000]).add(0.3)).data() as Float32Array;
  };
  expect(run("min")).toEqual(run());
});

test("who waits is told of every plan that is made", () => {
  const made: number[] = [];
  const progress = ({ arenaBytes }: { readonly arenaBytes: number }): number => made.push(arenaBytes);
  const { arenaBytes } = plan(loops.fn as (x: Tensor) => Tensor, { memory: "min", cache: false, progress })(
    spec([64, 32]),
  );
  expect(made.length).toBeGreaterThan(10);
  expect(made).toContain(arenaBytes);
});
