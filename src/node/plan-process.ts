/** @file The child process that makes one plan and stores it in the cache (plan-elsewhere.ts). */
import { readFileSync } from "node:fs";
import { ProgramPlans } from "../compiler/assemble.ts";
import { OPS, type PlanTask, providePlanStore } from "../compiler/plan-cache.ts";
import { unpackGraph } from "../ir/pack.ts";
import { descriptionOf } from "./described.ts";
import { systemPlanStore } from "./plan-store.ts";

const { key, graph, settings, request } = JSON.parse(readFileSync(0, "utf8")) as PlanTask;
const { target, rates, donated, persistent } = settings;
const store = systemPlanStore();
// a parsed graph numbers its values differently, in the same order: its key differs, its plan does not
providePlanStore(store && { ...store, leastMs: 0, read: () => null, write: (_, text) => store.write(key, text) });
const description = descriptionOf(target);
if (description) {
  new ProgramPlans(unpackGraph(graph, OPS), description, {
    ...{ costs: rates, donated: new Map(donated), persistent: new Set(persistent) },
  }).choose(request);
}
