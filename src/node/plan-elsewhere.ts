/**
 * @file Plans that a process of its own makes. The search for a plan within a budget compares many plans, and the heap that
 * it takes can be larger than the arena that is asked for; in another process it is gone when the plan is there. What is
 * handed over is data on both ways: the task on the standard input, the plan in the cache, where it is read and checked like
 * any other. Whatever goes wrong, the plan is not there, and is made in this process.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { PlanStore, PlanTask } from "../compiler/plan-cache.ts";
import { descriptionOf } from "./described.ts";

/** The process, beside the file that this is part of: the entry point itself, or one that several share. */
function processFile(): string | undefined {
  const places = ["./plan-process.js", "../node/plan-process.js"];
  return places.map((place) => fileURLToPath(new URL(place, import.meta.url))).find((path) => existsSync(path));
}

/** A store that has plans made elsewhere. */
export function withProcess(store: PlanStore | null): PlanStore | null {
  return store && { ...store, makeElsewhere: planInProcess };
}

function planInProcess(task: PlanTask): void {
  const file = processFile();
  if (file === undefined || descriptionOf(task.settings.target) === null) return;
  // hooks and flags of this process are about its own code
  const env = { ...process.env, NODE_OPTIONS: "" };
  try {
    spawnSync(process.execPath, [file], { input: JSON.stringify(task), env, stdio: ["pipe", "ignore", "ignore"] });
  } catch {
    // not allowed here, or no process left
  }
}
