/** @file The child process that makes one plan and stores it in the cache (plan-in-process.ts). */
import { readFileSync } from "node:fs";
import { descriptionOf } from "../api/described.ts";
import { ProgramPlans } from "../compiler/assemble.ts";
import { NO_HOST } from "../compiler/host.ts";
import { OPS } from "../compiler/known-ops.ts";
import type { Entry, PlanTask } from "../compiler/plan-cache.ts";
import { PLAIN_REQUEST } from "../compiler/request.ts";
import { unpackGraph } from "../ir/pack.ts";
import { systemPlanStore } from "./plan-store.ts";

const { keys, graph, rebuild, settings, request: memory } = JSON.parse(readFileSync(0, "utf8")) as PlanTask;
const { rates, donated, persistent } = settings;
const store = systemPlanStore();
// a parsed graph numbers its values differently, in the same order: its key differs, its plan does not
const planStore = store && {
  ...store,
  leastMs: 0,
  read: () => null,
  write: (key: string, text: string) => store.write(keys[key.slice(0, key.indexOf(" ")) as Entry], text),
};
const description = descriptionOf(rebuild);
if (description) {
  const source = {
    graph: unpackGraph(graph, OPS),
    donated: new Map(donated),
    persistent: new Set(persistent),
  };
  const request = { ...PLAIN_REQUEST, memory, costs: rates };
  const plans = new ProgramPlans(source, description, request, { ...NO_HOST, planStore });
  plans.choose();
  // no further search now; reports of the plan ask for it
  if (memory.least) plans.minimumBudgetBytes();
}
