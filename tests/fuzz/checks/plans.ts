/**
 * @file What plans of one program are to each other, without running them: `min` is the smallest of all, every budget from
 * there up is kept and not refused, and bytes and time are in order.
 */
import { plan, type Tree } from "../../../src/api/index.ts";
import { plansOf } from "../../../src/api/plan.ts";
import type { ProgramPlans } from "../../../src/compiler/assemble.ts";
import type { PlannedProgram } from "../../../src/compiler/assembler.ts";
import { OPS } from "../../../src/compiler/known-ops.ts";
import { PATIENCE, SMALL } from "../../../src/compiler/loop-forms.ts";
import type { PlanStore } from "../../../src/compiler/plan-cache.ts";
import type { MemoryRequest } from "../../../src/compiler/request.ts";
import type { Candidate } from "../../../src/plan/budget/budget-levels.ts";
import { STRATEGY_NAMES, type StrategyName } from "../../../src/plan/recompute/strategy.ts";
import type { AnyFunction } from "../../../src/trace/function.ts";
import { testHost } from "../../support/host.ts";
import type { Arguments } from "../program.ts";
import { isRefusal, type Session, textOf } from "./session.ts";

/** All that need no solver of integer programs; `auto` is what they are compared with. */
export const COMPARED = STRATEGY_NAMES.filter((name) => name !== "optimal" && name !== "auto");

/** Predicted times are sums in different orders. */
const SLACK = 1 + 1e-9;

type Found = Candidate<PlannedProgram>;

/** Bytes of the smallest plan and of storing everything. */
export interface Range {
  readonly least: number;
  readonly most: number;
}

class PlanChecks {
  readonly #session: Session;
  readonly #plans: ProgramPlans;

  constructor(session: Session) {
    const { program, target } = session;
    this.#session = session;
    this.#plans = plansOf(program.fn as AnyFunction, program.args(0), { target, cache: false }).plans;
  }

  #ask(request: MemoryRequest): Found | string {
    const { counts, begin } = this.#session;
    begin(`plan ${textOf(request)}`);
    try {
      const found = this.#plans.choose(request);
      counts.plans++;
      return found;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      counts.refusals++;
      return error.message + (error.help ?? "");
    }
  }

  /** `min` beside storing everything and the user's own checkpoints. */
  range(): Range {
    const { found } = this.#session;
    const written = this.#ask({}) as Found;
    const { storeAll } = this.#plans;
    const smallest = this.#ask({ least: true });
    if (typeof smallest === "string") {
      found("refused", `min: ${smallest.split("\n")[0]}`);
      return { least: storeAll.arenaBytes, most: storeAll.arenaBytes };
    }
    for (const [name, { arenaBytes }] of Object.entries({ "as written": written, "store-all": storeAll })) {
      if (arenaBytes < smallest.arenaBytes) found("min", `${smallest.arenaBytes} bytes, ${name} takes ${arenaBytes}`);
    }
    return { least: smallest.arenaBytes, most: Math.max(storeAll.arenaBytes, smallest.arenaBytes) };
  }

  /** Budgets from large to small, none of which is below the minimum. */
  budgets({ least, most }: Range, drawn: readonly number[]): void {
    const { found } = this.#session;
    const budgets = [...new Set([most * 2, most, ...drawn, least + 1, least])].sort((a, b) => b - a);
    let before: Found | null = null;
    for (const budgetBytes of budgets) {
      const made = this.#ask({ budgetBytes });
      if (typeof made === "string") {
        found("refused", `${budgetBytes} with min ${least}: ${made.split("\n")[0]}`);
        continue;
      }
      const { arenaBytes, predictedMs } = made;
      if (arenaBytes > budgetBytes) found("budget", `${arenaBytes} bytes for a budget of ${budgetBytes}`);
      if (arenaBytes < least) found("min", `${least} bytes, the budget ${budgetBytes} gets ${arenaBytes}`);
      if (before && arenaBytes > before.arenaBytes) {
        found("order-bytes", `the budget ${budgetBytes} gets ${arenaBytes} bytes, a larger one ${before.arenaBytes}`);
      }
      if (before && this.#timesAreOrdered(before) && predictedMs * SLACK < before.predictedMs) {
        found("order-time", `the budget ${budgetBytes} takes ${predictedMs} ms, a larger one ${before.predictedMs}`);
      }
      before = made;
    }
  }

  /** Whether everything was tried for a plan, so that none for a smaller budget is faster. */
  #timesAreOrdered(before: Found): boolean {
    const { storeAll } = this.#plans;
    const { program, controls } = storeAll.result;
    return before !== storeAll && program.steps.length <= SMALL && controls.size === 0;
  }

  /** A budget that is too small: what the refusal advises is accepted. */
  refusal(budgetBytes: number, least: number): void {
    const { found } = this.#session;
    const made = this.#ask({ budgetBytes });
    if (typeof made !== "string") {
      // `min` does not repeat loops for the last few states; an explicit budget may
      const { arenaBytes, predictedMs } = made;
      const smallest = this.#ask({ least: true }) as Found;
      if (predictedMs > PATIENCE * smallest.predictedMs) return;
      found("min", `${least} bytes, the budget ${budgetBytes} gets ${arenaBytes}`);
      return;
    }
    const advised = Number(/raise the budget to ([\d,]+)/.exec(made)?.[1]?.replaceAll(",", ""));
    const again = this.#ask({ budgetBytes: advised });
    if (typeof again === "string") found("advice", `${advised} is advised for ${budgetBytes}, and refused`);
    else if (again.arenaBytes > advised) found("budget", `${again.arenaBytes} for the advised ${advised}`);
    if (advised > least) found("advice", `${advised} is advised for ${budgetBytes}, ${least} would do`);
  }

  /** A strategy at its smallest is no smaller than `min`, and at its bytes no faster than `auto`. */
  strategy(strategy: StrategyName, least: number): void {
    const { found } = this.#session;
    const made = this.#ask({ least: true, strategy });
    if (typeof made === "string") return;
    const { arenaBytes, predictedMs } = made;
    if (arenaBytes < least) found("min", `${least} bytes, ${strategy} takes ${arenaBytes}`);
    const auto = this.#ask({ budgetBytes: arenaBytes });
    if (typeof auto === "string") {
      if (arenaBytes >= least) found("refused", `${arenaBytes}, which ${strategy} takes; min is ${least}`);
    } else if (auto.predictedMs > predictedMs * SLACK) {
      found("strategy-time", `${auto.predictedMs} ms in ${arenaBytes} bytes, ${strategy} takes ${predictedMs}`);
    }
  }

  slowdown(maxSlowdown: number): void {
    const made = this.#ask({ maxSlowdown });
    if (typeof made === "string") return;
    const limit = this.#plans.storeAll.predictedMs * maxSlowdown;
    if (made.predictedMs > limit * SLACK) {
      this.#session.found("slowdown", `${made.predictedMs} ms, ${maxSlowdown} times storing everything is ${limit}`);
    }
  }

  /** Planned anew, and from a cache: the same plan. */
  repeated(budgetBytes: number): void {
    const { program, target, found, counts, begin } = this.#session;
    const made = this.#ask({ budgetBytes });
    if (typeof made === "string") return;
    begin(`plan again ${budgetBytes}`);
    const before = testHost.planStore;
    testHost.planStore = storeInMemory();
    try {
      const again = [0, 1].map(() => {
        const planned = plan<Arguments, Tree>(program.fn, { target, memory: budgetBytes })(...program.args(0));
        counts.plans++;
        return { bytes: planned.arenaBytes, ms: planned.predictedMs, cached: planned.planCached };
      });
      for (const { bytes, ms, cached } of again) {
        if (bytes === made.arenaBytes && ms === made.predictedMs) continue;
        const what = `${budgetBytes}: ${bytes} bytes, ${ms} ms; before ${made.arenaBytes}, ${made.predictedMs}`;
        found(cached ? "cache" : "repeat", what);
      }
      if (!again[1]?.cached) found("cache", `${budgetBytes}: the plan was not kept`);
    } finally {
      testHost.planStore = before;
    }
  }
}

function storeInMemory(): PlanStore {
  const kept = new Map<string, string>();
  return {
    ops: OPS,
    planner: "fuzz",
    leastMs: 0,
    read: (key) => kept.get(key) ?? null,
    write: (key, text) => void kept.set(key, text),
  };
}

/** For who asks for bits alone: budgets from here up, some of which no plan may keep. */
export function roughRange({ program, target }: Session): Range {
  const { plans } = plansOf(program.fn as AnyFunction, program.args(0), { target, cache: false });
  const most = plans.storeAll.arenaBytes;
  return { least: Math.floor(0.7 * most), most };
}

/** All of them; gives the range for budgets that are compiled and run. */
export function checkPlans(session: Session): Range {
  const { random } = session;
  const checks = new PlanChecks(session);
  const range = checks.range();
  const { least, most } = range;
  const between = (): number => least + random.int(most - least + 1);
  const drawn = [between(), between(), between()];
  const [strategy, other] = random.shuffled(COMPARED) as [StrategyName, StrategyName];
  const [repeats, slows, second] = [random.chance(0.25), random.chance(0.2), random.chance(0.3)];
  checks.budgets(range, drawn);
  if (least > 1) checks.refusal(random.chance(0.5) ? least - 1 : random.int(least), least);
  checks.strategy(strategy, least);
  if (second) checks.strategy(other, least);
  if (slows) checks.slowdown(1 + random.next());
  if (repeats) checks.repeated(drawn[0] as number);
  return range;
}
