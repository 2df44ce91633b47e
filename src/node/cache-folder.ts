/** @file Where files are kept that can be made again: `TIDEMARK_CACHE`, or `XDG_CACHE_HOME/tidemark`, or `~/.cache/tidemark`. */
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** Why there is no cache where there is no place for it. */
export const NO_CACHE_FOLDER = "this user has no home folder; set TIDEMARK_CACHE to a folder for what is kept";

/** The user's, or null: users without an entry in the system's list have none, and an empty HOME is none. */
function homeFolder(): string | null {
  try {
    const home = homedir();
    return isAbsolute(home) ? home : null;
  } catch {
    return null;
  }
}

/** Null where the folder that it is relative to is gone. */
function absolutePath(path: string): string | null {
  try {
    return resolve(path);
  } catch {
    return null;
  }
}

/** Null where no place is known. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.TIDEMARK_CACHE) return absolutePath(env.TIDEMARK_CACHE);
  if (env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME)) return join(env.XDG_CACHE_HOME, "tidemark");
  const home = homeFolder();
  return home === null ? null : join(home, ".cache", "tidemark");
}
