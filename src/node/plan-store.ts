/**
 * @file Plans on disk (compiler/plan-cache.ts), in `plans/` of the cache's folder: one sealed file per plan
 * (sealed-folder.ts), named by the digest of its key. An incomplete or foreign file is ignored.
 *
 * Plans belong to one version of the planner: every key includes a digest of the sources that the package was built
 * from, and the engine's version. Unbuilt sources have no such digest and cache no plans.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { OPS } from "../compiler/known-ops.ts";
import type { PlanStore } from "../compiler/plan-cache.ts";
import { prune } from "./cache-files.ts";
import { cacheFolder, NO_CACHE_FOLDER } from "./cache-folder.ts";
import { SealedFolder } from "./sealed-folder.ts";

/** Defined by the build. */
declare const TIDEMARK_SOURCES: string | undefined;

/** Bytes; enough for hundreds of large programs. */
const LARGEST = 256 * 2 ** 20;

/** Faster plans are not cached: reading them takes about as long. */
const LEAST_MS = 50;

/** The environment variable that switches the cache off. */
const VARIABLE = "TIDEMARK_PLAN_CACHE";

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A store in a folder that is opened on demand; if that fails, only time is lost. */
export function planStore(
  open: () => SealedFolder | string,
  planner: string,
  largestBytes: number = LARGEST,
): PlanStore {
  return {
    ops: OPS,
    planner,
    leastMs: LEAST_MS,
    digest: digestOf,
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

/** The identity of the planner for cache keys; null for unbuilt sources, or if the cache is off. */
function plannerIdentity(env: NodeJS.ProcessEnv): string | null {
  const off = ["0", "off", "false", "no"].includes(env[VARIABLE] ?? "");
  return off || typeof TIDEMARK_SOURCES === "undefined" ? null : `${TIDEMARK_SOURCES} ${process.versions.v8}`;
}

const FOLDER = "plans";

/** The folder of plans, or why there is none. */
function openPlans(env: NodeJS.ProcessEnv): SealedFolder | string {
  const cache = cacheFolder(env);
  return cache === null ? NO_CACHE_FOLDER : SealedFolder.open(cache, FOLDER);
}

/** The folder of plans; null if plans are not cached. */
export function plansFolder(env: NodeJS.ProcessEnv = process.env): string | null {
  const cache = cacheFolder(env);
  const isCached = cache !== null && plannerIdentity(env) !== null && typeof openPlans(env) !== "string";
  return isCached ? join(cache, FOLDER) : null;
}

/** The store of this process. */
export function systemPlanStore(env: NodeJS.ProcessEnv = process.env): PlanStore | null {
  const planner = plannerIdentity(env);
  return planner === null ? null : planStore(() => openPlans(env), planner);
}
