/**
 * @file A budget in bytes is a contract. Whatever is computed again, and whoever decides it: the arena stays within the
 * budget, the plan passes the independent validator, and parameters after some steps have the very bits that they have
 * when everything is stored. That more bytes never cost time and fewer never cost bytes is budget-order.test.ts.
 */
import { describe, expect, test } from "vitest";
import {
  type Compiled,
  type CompileOptions,
  compile,
  type PlanInfo,
  type PlanningOptions,
  plan,
  scope,
  type Tensor,
  tensor,
  valueAndGrad,
  zeros,
} from "../src/api/index.ts";
import { stateHash } from "../src/cli/commands/bench.ts";
import { allNodes } from "../src/ir/walk.ts";
import { printPlan } from "../src/plan/print.ts";
import { STRATEGY_NAMES, type StrategyName } from "../src/plan/recompute/strategy.ts";
import { sharePlans } from "./support/shared-plans.ts";
import { residualChain, type TrainingStep, tinyConvNet, tinyTransformer } from "./support/training-steps.ts";

sharePlans();

const CHAIN = residualChain(6);
const STEPS: readonly TrainingStep[] = [tinyTransformer(), tinyConvNet(), CHAIN];

interface Outcome {
  readonly hash: string;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  readonly recomputed: number;
}

type CompiledStep = Compiled<[object, Tensor], readonly [object, Tensor]>;

const compiledStep = ({ step, name }: TrainingStep, options: CompileOptions): CompiledStep =>
  compile(step as never, { ...options, donate: [0], validate: true, name }) as unknown as CompiledStep;

/** Three steps, with the validator watching. */
function train(step: TrainingStep, options: CompileOptions): Outcome {
  const compiled = compiledStep(step, options);
  let state = step.init();
  const info = compiled.program(state, tensor(0, { dtype: "i32" }));
  for (let i = 0; i < 3; i++) [state] = compiled(state, tensor(i, { dtype: "i32" }));
  const recomputed = [...allNodes(info.graph)].filter((node) => node.replay > 0).length;
  return { hash: stateHash(state), arenaBytes: info.arenaBytes, predictedMs: info.predictedMs, recomputed };
}

/** The plan of a step, of those that all requests share. */
const shared = (step: TrainingStep, options: CompileOptions): PlanInfo =>
  compiledStep(step, { effort: "full", ...options }).program(step.init(), tensor(0, { dtype: "i32" }));

/** The same from a planner of its own. */
function planned({ step, init, name }: TrainingStep, options: PlanningOptions) {
  const planOf = plan(step as never, { donate: [0], name, ...options }) as (...args: unknown[]) => PlanInfo;
  return planOf(init(), tensor(0, { dtype: "i32" }));
}

/** Budgets at equal ratios from storing everything down to the smallest. */
function ladder(most: number, least: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => Math.ceil(most * (least / most) ** (i / (count - 1))));
}

/** Those that do not aim at bytes make the same plans for every budget. */
const strategies = STRATEGY_NAMES.filter((name) => !["optimal", "auto", "store-all", "recompute-all"].includes(name));

describe.each(STEPS)("$name", (step) => {
  const stored = train(step, { strategy: "store-all" });
  const least = train(step, { memory: "min" });

  test("keeps every bit at every budget, within each of them", () => {
    expect(least.hash).toBe(stored.hash);
    expect(least.arenaBytes).toBeLessThan(stored.arenaBytes);
    const outcomes = ladder(stored.arenaBytes, least.arenaBytes, step === CHAIN ? 10 : 4).map((memory) => {
      const outcome = train(step, { memory });
      expect(outcome.arenaBytes).toBeLessThanOrEqual(memory);
      expect(outcome.hash).toBe(stored.hash);
      return outcome;
    });
    // Where smaller kernels are enough, nothing is computed again.
    if (step === CHAIN) expect(outcomes.at(-1)?.recomputed).toBeGreaterThan(0);
  });

  test.each<StrategyName>(step === CHAIN ? [...strategies, "recompute-all"] : ["look-ahead", "selective"])(
    "keeps every bit under %s",
    (strategy) => {
      const smallest = train(step, { strategy, memory: "min" });
      expect(smallest.hash).toBe(stored.hash);
      expect(smallest.arenaBytes).toBeLessThanOrEqual(stored.arenaBytes);
      const middle = Math.ceil((smallest.arenaBytes + stored.arenaBytes) / 2);
      const outcome = train(step, { strategy, memory: middle });
      expect(outcome.arenaBytes).toBeLessThanOrEqual(middle);
      expect(outcome.hash).toBe(stored.hash);
    },
  );

  test("a tolerated slowdown is not passed and buys bytes", () => {
    const base = planned(step, { strategy: "store-all" });
    const outcome = train(step, { maxSlowdown: 1.3 });
    expect(outcome.hash).toBe(stored.hash);
    expect(outcome.predictedMs).toBeLessThanOrEqual(1.3 * base.predictedMs);
    expect(outcome.arenaBytes).toBeLessThan(stored.arenaBytes);
  });
});

describe("requests", () => {
  const step = CHAIN;
  test("are answered as if nothing had been asked before", () => {
    const { arenaBytes } = planned(step, { strategy: "store-all" });
    for (const memory of ["min", Math.ceil(0.8 * arenaBytes)] as const) {
      expect(printPlan(shared(step, { memory }).plan)).toBe(printPlan(planned(step, { memory }).plan));
    }
  });

  test("checkpoints are honoured without a budget, and are the planner's to decide with one", () => {
    const replays = (options: PlanningOptions): number =>
      [...allNodes(planned(step, options).graph)].filter((node) => node.replay > 0).length;
    expect(replays({})).toBeGreaterThan(0);
    expect(replays({ memory: "1GB" })).toBe(0);
    expect(replays({ strategy: "store-all" })).toBe(0);
  });

  test("a budget that no plan meets names the smallest that one does", () => {
    const { arenaBytes } = shared(step, { memory: "min" });
    expect(() => shared(step, { memory: arenaBytes - 64 })).toThrow(
      new RegExp(`needs ${arenaBytes.toLocaleString("en-US")} bytes[^]*tightest at[^]*raise the budget`),
    );
    expect(shared(step, { memory: arenaBytes }).arenaBytes).toBe(arenaBytes);
  });

  test.each([
    [{ memory: "min", maxSlowdown: 1.2 }, /both ask for few bytes/],
    [{ maxSlowdown: 0.5 }, /at least 1/],
    [{ strategy: "magic" }, /strategy is .*give one of/s],
    [{ segments: "galaxy" }, /give one of operation, layer, module, region/],
  ] as const)("refuses %j", (options, message) => {
    expect(() => planned(step, options as PlanningOptions)).toThrow(message);
  });

  test("segments end where named parts end", () => {
    const levels = (["operation", "layer", "module", "region"] as const).map((segments) =>
      planned(step, { strategy: "sqrt", segments }),
    );
    expect(new Set(levels.map(({ arenaBytes }) => arenaBytes)).size).toBeGreaterThan(1);
  });
});

test("a program without anything to compute again says so", () => {
  const f = (x: Tensor): Tensor => scope("only", () => x.mul(2).sum());
  expect(() => plan(f, { memory: 64 })(zeros([1024]))).toThrow(/PlanInfeasible|needs/);
  const step = (x: Tensor) => valueAndGrad((v: Tensor) => v.square().sum())(x);
  expect(plan(step, { memory: "min" })(zeros([0])).arenaBytes).toBeGreaterThanOrEqual(0);
});
