/** @file The process that makes one plan and keeps it in the cache (plan-elsewhere.ts). */
import { readFileSync } from "node:fs";
import { nativeDescription } from "../codegen/native/description.ts";
import type { NativeEmitOptions } from "../codegen/native/options.ts";
import { wasmDescription } from "../codegen/wasm/description.ts";
import { ProgramPlans } from "../compiler/assemble.ts";
import { OPS, type PlanTask, providePlanStore } from "../compiler/plan-cache.ts";
import { unpackGraph } from "../ir/pack.ts";
import type { TargetDescription } from "../target/description.ts";
import { systemPlanStore } from "./plan-store.ts";

/** The description that has a key: a target's name and its options. */
function descriptionOf(key: string): TargetDescription {
  const start = key.indexOf(" ");
  const options: unknown = JSON.parse(key.slice(start));
  if (key.slice(0, start) === "native") return nativeDescription(options as NativeEmitOptions);
  const { fma, threads } = options as { readonly fma: boolean; readonly threads: number };
  return wasmDescription(fma, threads);
}

const { key, graph, settings, request } = JSON.parse(readFileSync(0, "utf8")) as PlanTask;
const { target, rates, donated, persistent } = settings;
const store = systemPlanStore();
// values of a graph that was read have other numbers, in the same order: it has another key, and the same plan
providePlanStore(store && { ...store, leastMs: 0, read: () => null, write: (_, text) => store.write(key, text) });
new ProgramPlans(unpackGraph(graph, OPS), descriptionOf(target), {
  ...{ costs: rates, donated: new Map(donated), persistent: new Set(persistent) },
}).choose(request);
