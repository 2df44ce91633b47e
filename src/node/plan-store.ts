/**
 * @file Plans on disk (runtime/plan-cache.ts), in `plans/` of the cache's folder: a file for each, named by the digest of its
 * key, with the digest of its content before it. A file that is not whole, or not what was written, is no file.
 *
 * Plans are those of one planner: part of every key is a digest of the sources that the package was built from, and the
 * engine's version. Sources that are run as they are have no such digest, and keep no plans.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PlanStore } from "../runtime/plan-cache.ts";
import { prune, replaceFile, touch } from "./cache-files.ts";
import { cacheFolder } from "./cache-folder.ts";

/** Put here by the build. */
declare const TIDEMARK_SOURCES: string | undefined;

/** Bytes; hundreds of large programs. */
const LARGEST = 256 * 2 ** 20;

/** What takes less is about as fast as reading it. */
const LEAST_MS = 50;

/** Switches it off. */
const VARIABLE = "TIDEMARK_PLAN_CACHE";

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A store in a folder, which is looked for when it is needed and made when there is something to write. */
export function planStore(folderOf: () => string, planner: string, largestBytes: number = LARGEST): PlanStore {
  const fileOf = (key: string): string => join(folderOf(), digestOf(key));
  return {
    planner,
    leastMs: LEAST_MS,
    read(key) {
      try {
        const path = fileOf(key);
        const content = readFileSync(path, "utf8");
        const end = content.indexOf("\n");
        const text = content.slice(end + 1);
        if (content.slice(0, end) !== digestOf(text)) return null;
        touch(path);
        return text;
      } catch {
        // not there, or not to be read: it will be planned
        return null;
      }
    },
    write(key, text) {
      try {
        const folder = folderOf();
        mkdirSync(folder, { recursive: true });
        if (replaceFile(fileOf(key), `${digestOf(text)}\n${text}`)) prune(folder, largestBytes);
      } catch {
        // a disk that is full or read-only costs time, and nothing else
      }
    },
  };
}

/** The planner that plans are kept of, or null: sources that nobody built, or switched off. */
function keptPlanner(env: NodeJS.ProcessEnv): string | null {
  const off = ["0", "off", "false", "no"].includes(env[VARIABLE] ?? "");
  return off || typeof TIDEMARK_SOURCES === "undefined" ? null : `${TIDEMARK_SOURCES} ${process.versions.v8}`;
}

/** Where plans are kept; null where they are not. */
export function plansFolder(env: NodeJS.ProcessEnv = process.env): string | null {
  return keptPlanner(env) === null ? null : join(cacheFolder(env), "plans");
}

/** The store of this process. */
export function systemPlanStore(env: NodeJS.ProcessEnv = process.env): PlanStore | null {
  const planner = keptPlanner(env);
  return planner === null ? null : planStore(() => join(cacheFolder(env), "plans"), planner);
}
