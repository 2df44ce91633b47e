/**
 * @file Planning in a child process. The search for a plan within a budget compares many plans and can need more heap
 * than the arena it plans; in a child process that heap is released when the plan is ready. Only data is exchanged: the
 * task on standard input, the plan in the cache, where it is read and checked like any other. If anything fails, there
 * is no plan in the cache and this process plans itself.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { descriptionOf } from "../api/described.ts";
import type { PlanStore, PlanTask } from "../compiler/plan-cache.ts";

/** The child's script, next to the bundle that contains this file: the entry point itself, or a shared chunk. */
function processFile(): string | undefined {
  const places = ["./plan-process.js", "../node/plan-process.js"];
  return places.map((place) => fileURLToPath(new URL(place, import.meta.url))).find((path) => existsSync(path));
}

/** A store that has plans made in a child process. */
export function withProcess(store: PlanStore | null): PlanStore | null {
  return store && { ...store, planInProcess };
}

function planInProcess(task: PlanTask): void {
  const file = processFile();
  if (file === undefined || descriptionOf(task.rebuild) === null) return;
  // loader hooks and flags of this process concern its own code
  const env = { ...process.env, NODE_OPTIONS: "" };
  try {
    spawnSync(process.execPath, [file], { input: JSON.stringify(task), env, stdio: ["pipe", "ignore", "ignore"] });
  } catch {
    // spawning is not allowed, or the process limit is reached
  }
}
