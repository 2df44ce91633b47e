/**
 * @file Plans on disk (compiler/plan-cache.ts), in `plans/` of the cache's folder: a sealed file for each (sealed-folder.ts),
 * named by the digest of its key. A file that is not whole, or not what was written here, is no file.
 *
 * Plans are those of one planner: part of every key is a digest of the sources that the package was built from, and the
 * engine's version. Sources that are run as they are have no such digest, and keep no plans.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { PlanStore } from "../compiler/plan-cache.ts";
import { prune } from "./cache-files.ts";
import { cacheFolder, NO_CACHE_FOLDER } from "./cache-folder.ts";
import { SealedFolder } from "./sealed-folder.ts";

/** Put here by the build. */
declare const TIDEMARK_SOURCES: string | undefined;

/** Bytes; hundreds of large programs. */
const LARGEST = 256 * 2 ** 20;

/** What takes less is about as fast as reading it. */
const LEAST_MS = 50;

/** Switches it off. */
const VARIABLE = "TIDEMARK_PLAN_CACHE";

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A store in a folder, which is opened when it is needed: that it cannot be costs time, and nothing else. */
export function planStore(
  open: () => SealedFolder | string,
  planner: string,
  largestBytes: number = LARGEST,
): PlanStore {
  return {
    planner,
    leastMs: LEAST_MS,
    read(key) {
      const folder = open();
      return typeof folder === "string" ? null : (folder.read(digestOf(key))?.toString("utf8") ?? null);
    },
    write(key, text) {
      const folder = open();
      if (typeof folder === "string" || !folder.write(digestOf(key), Buffer.from(text))) return;
      prune(folder.path, largestBytes);
    },
  };
}

/** The planner that plans are kept of, or null: sources that nobody built, or switched off. */
function keptPlanner(env: NodeJS.ProcessEnv): string | null {
  const off = ["0", "off", "false", "no"].includes(env[VARIABLE] ?? "");
  return off || typeof TIDEMARK_SOURCES === "undefined" ? null : `${TIDEMARK_SOURCES} ${process.versions.v8}`;
}

const FOLDER = "plans";

/** The folder of plans, or why there is none. */
function openPlans(env: NodeJS.ProcessEnv): SealedFolder | string {
  const cache = cacheFolder(env);
  return cache === null ? NO_CACHE_FOLDER : SealedFolder.open(cache, FOLDER);
}

/** Where plans are kept; null where they are not. */
export function plansFolder(env: NodeJS.ProcessEnv = process.env): string | null {
  const cache = cacheFolder(env);
  const kept = cache !== null && keptPlanner(env) !== null && typeof openPlans(env) !== "string";
  return kept ? join(cache, FOLDER) : null;
}

/** The store of this process. */
export function systemPlanStore(env: NodeJS.ProcessEnv = process.env): PlanStore | null {
  const planner = keptPlanner(env);
  return planner === null ? null : planStore(() => openPlans(env), planner);
}
