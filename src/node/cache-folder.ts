/**
 * @file The folder for files that can be recreated: `TIDEMARK_CACHE`, or `XDG_CACHE_HOME/tidemark`, or
 * `~/.cache/tidemark`.
 */
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** The reason if there is no cache folder. */
export const NO_CACHE_FOLDER = "this user has no home folder; set TIDEMARK_CACHE to a folder for cached files";

/**
 * The user's home folder, or null: users without an entry in the user database have none, nor does an empty HOME count.
 */
function homeFolder(): string | null {
  try {
    const home = homedir();
    return isAbsolute(home) ? home : null;
  } catch {
    return null;
  }
}

/** Null if the current directory no longer exists. */
function absolutePath(path: string): string | null {
  try {
    return resolve(path);
  } catch {
    return null;
  }
}

/** Null if there is none. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.TIDEMARK_CACHE) return absolutePath(env.TIDEMARK_CACHE);
  if (env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME)) return join(env.XDG_CACHE_HOME, "tidemark");
  const home = homeFolder();
  return home === null ? null : join(home, ".cache", "tidemark");
}
