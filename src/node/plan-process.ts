/** @file The process that makes one plan and keeps it in the cache (plan-elsewhere.ts). */
import { readFileSync } from "node:fs";
import type { NativeEmitOptions } from "../codegen/native/options.ts";
import { ProgramPlans } from "../compiler/assemble.ts";
import { OPS, type PlanTask, providePlanStore } from "../compiler/plan-cache.ts";
import { unpackGraph } from "../ir/pack.ts";
import type { LowerTraits } from "../lower/lower.ts";
import { wasmTraits } from "../runtime/wasm-target.ts";
import { nativeTraits } from "./native/target.ts";
import { systemPlanStore } from "./plan-store.ts";

/** The traits that have a key: a target's name and its options. */
function traitsOf(key: string): LowerTraits {
  const start = key.indexOf(" ");
  const options: unknown = JSON.parse(key.slice(start));
  if (key.slice(0, start) === "native") return nativeTraits(options as NativeEmitOptions);
  const { fma, threads } = options as { readonly fma: boolean; readonly threads: number };
  return wasmTraits(fma, threads);
}

const { key, graph, settings, request } = JSON.parse(readFileSync(0, "utf8")) as PlanTask;
const { traits, costs, donated, persistent } = settings;
const store = systemPlanStore();
// values of a graph that was read have other numbers, in the same order: it has another key, and the same plan
providePlanStore(store && { ...store, leastMs: 0, read: () => null, write: (_, text) => store.write(key, text) });
new ProgramPlans(unpackGraph(graph, OPS), traitsOf(traits), {
  ...{ costs, donated: new Map(donated), persistent: new Set(persistent) },
}).choose(request);
