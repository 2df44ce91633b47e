/**
 * @file A planner that keeps the plans of every program that it was asked for: a test that runs one program under many budgets
 * searches once. What is chosen does not depend on earlier requests, which budget.test.ts checks with this planner.
 */
import { afterAll } from "vitest";
import { budgetPlanner, ProgramPlans } from "../../src/compiler/assemble.ts";
import type { Planner } from "../../src/compiler/host.ts";
import { graphKey } from "../../src/ir/pack.ts";
import { testHost } from "./host.ts";

function sharedPlanner(): Planner {
  const known = new Map<string, ProgramPlans>();
  return {
    assemble(source, target, request, host) {
      const { memory, passes, progress, solver, ...others } = request;
      if (passes || progress || solver || !request.cache || target.key === undefined)
        return budgetPlanner.assemble(source, target, request, host);
      const { graph, donated = [], persistent = [] } = source;
      const key = JSON.stringify([target.key, others, [...donated], [...persistent]]) + graphKey(graph);
      const started = performance.now();
      const plans = known.get(key) ?? new ProgramPlans(source, target, request, host);
      known.set(key, plans);
      return plans.placed(plans.choose(memory), performance.now() - started);
    },
  };
}

/** Shares plans among all tests of the file that calls it at its top; `plan` and requests without a cache plan by themselves. */
export function sharePlans(): void {
  const { planner } = testHost;
  testHost.planner = sharedPlanner();
  afterAll(() => {
    testHost.planner = planner;
  });
}
