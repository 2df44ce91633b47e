/** @file The curve of memory against time of a network, and its plan within any budget. */

import type { ProgramPlans } from "../../../src/compiler/assemble.ts";
import type { PlanReply, ViewCurve, ViewEntry } from "../../../src/view/data.ts";
import type { LivePlans } from "../../../src/view/plans.ts";
import { growingCurves, livePlans } from "../../../src/view/plans.ts";
import { DRAWN_STRATEGIES } from "../../../src/view/strategy-curves.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";
import { plansFor, viewEntry } from "./plans.ts";

/** Points of a curve. */
const POINTS = 8;

/** The plans of the network that was asked for last. */
export class Tradeoff {
  #plans: ProgramPlans | null = null;
  #live: LivePlans | null = null;

  /** Everything stored. */
  network(name: NetworkName): ViewEntry {
    const plans = plansFor(NETWORKS[name]());
    const entry = { ...viewEntry(plans, plans.storeAll, "everything stored"), asks: "stored" };
    this.#plans = plans;
    this.#live = livePlans(plans, POINTS, new Map([["stored", plans.storeAll.result.plan]]));
    return entry;
  }

  within(budgetBytes: number): PlanReply {
    return this.#live?.within(budgetBytes) ?? { refusal: "no network was planned" };
  }

  story(asks: string, value: number): readonly string[] {
    return this.#live?.story(asks, value) ?? [];
  }

  *curves(): Generator<ViewCurve> {
    if (this.#plans) yield* growingCurves(this.#plans, POINTS, { strategies: DRAWN_STRATEGIES });
  }
}
