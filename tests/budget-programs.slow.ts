/**
 * @file The contract of a budget on the programs of the command line: every strategy, ten budgets from storing everything
 * to the smallest that the strategy finds. After five steps the parameters have the very bits that they have when
 * everything is stored; the WebAssembly memory has the pages that were planned; the arena is within the budget, and nothing
 * was ever written behind its end. The validator watches every plan. Budgets that get the same plan are trained once.
 *
 *   npm run test:budgets                            all: long
 *   npm run test:budgets -- -t "mlp under auto"     some
 *
 * Slow, so it is not among the tests of `npm test`; tests/budget.test.ts checks the same on small steps.
 */
import { describe, expect, test } from "vitest";
import { type Compiled, compile } from "../src/api/compile.ts";
import { plan, plansOf } from "../src/api/plan.ts";
import type { PlanningOptions } from "../src/api/request.ts";
import { formatBytes } from "../src/base/bytes.ts";
import { stateHash } from "../src/cli/commands/bench.ts";
import { type AnyProgram, BUILT_IN } from "../src/cli/programs/built-in.ts";
import { PAGE, pagesOf } from "../src/codegen/wasm/program.ts";
import { STRATEGY_NAMES } from "../src/plan/recompute/strategy.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { storageOf, type Tensor } from "../src/trace/tensor.ts";
import { flatten } from "../src/trace/tree.ts";
import { expectOrder } from "./support/expect-order.ts";

const STEPS = 5;
const BUDGETS = 10;
const HOUR = 3_600_000;

interface Outcome {
  readonly hash: string;
  readonly arenaBytes: number;
  /** The WebAssembly memory after the last step. */
  readonly memory: Uint8Array;
  readonly slowdown: number;
}

/** Trains, unless a plan with the same numbers has been trained under this strategy. */
function train(program: AnyProgram, options: PlanningOptions, trained: Map<string, Outcome> = new Map()): Outcome {
  const compiled = compile(program.step as never, { ...options, donate: [0], validate: true }) as unknown as Compiled<
    [object, ...Tensor[]],
    readonly [object, Tensor]
  >;
  const batch = program.batch();
  let state = program.init();
  const { arenaBytes, slowdown } = compiled.program(state, ...batch);
  const known = trained.get(`${arenaBytes} ${slowdown}`);
  if (known) return known;
  for (let i = 0; i < STEPS; i++) [state] = compiled(state, ...batch);
  // the state lives in the arena, so reading one of its tensors gives a view of the memory itself
  const { buffer } = storageOf(flatten(state, "state").leaves[0] as Tensor).read();
  const outcome = { hash: stateHash(state), arenaBytes, memory: new Uint8Array(buffer), slowdown };
  trained.set(`${arenaBytes} ${slowdown}`, outcome);
  return outcome;
}

/** Whether bytes are all 0, as a new memory has them. */
const untouched = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);

function check(outcome: Outcome, budgetBytes: number, storedHash: string): void {
  const { hash, arenaBytes, memory } = outcome;
  expect(hash).toBe(storedHash);
  expect(arenaBytes).toBeLessThanOrEqual(budgetBytes);
  expect(memory.length).toBe(pagesOf(arenaBytes) * PAGE);
  expect(untouched(memory.subarray(arenaBytes))).toBe(true);
}

/** Everything stored, trained once for all strategies of a program. */
const stored = new Map<string, Outcome>();
function storedOf(program: AnyProgram): Outcome {
  const known = stored.get(program.name) ?? train(program, { strategy: "store-all" });
  stored.set(program.name, known);
  return known;
}

const strategies = STRATEGY_NAMES.filter((name) => name !== "optimal");

describe.each(BUILT_IN)("$name", (program) => {
  test(
    `plans of ${program.name} are in order by bytes and by time`,
    () => {
      const args = program.specs?.() ?? [program.init(), ...program.batch()];
      expectOrder(plansOf(program.step as AnyFunction, args, { donate: [0] }).plans, 100);
    },
    HOUR,
  );

  test.each(strategies)(
    `${program.name} under %s keeps every bit and every budget`,
    (strategy) => {
      const { hash, arenaBytes: most, memory } = storedOf(program);
      expect(memory.length).toBe(pagesOf(most) * PAGE);
      const specs = program.specs?.() ?? [program.init(), ...program.batch()];
      const planOf = plan(program.step as never, { donate: [0], strategy, memory: "min" }) as (
        ...args: readonly unknown[]
      ) => { readonly arenaBytes: number };
      const least = planOf(...specs).arenaBytes;
      expect(least).toBeLessThanOrEqual(most);
      const budgets = Array.from({ length: BUDGETS }, (_, i) =>
        Math.ceil(most * (least / most) ** (i / (BUDGETS - 1))),
      );
      const trained = new Map<string, Outcome>();
      for (const [i, budget] of [...new Set(budgets)].entries()) {
        const outcome = train(program, { strategy, memory: budget }, trained);
        const { arenaBytes, slowdown } = outcome;
        const paid = `${formatBytes(arenaBytes)} of ${formatBytes(budget)}, ${slowdown.toFixed(3)} × predicted time`;
        console.log(`${program.name} ${strategy} ${i + 1}/${new Set(budgets).size}: ${paid}`);
        check(outcome, budget, hash);
      }
    },
    HOUR,
  );
});
