/** @file Where files are kept that can be made again: `TIDEMARK_CACHE`, or `XDG_CACHE_HOME/tidemark`, or `~/.cache/tidemark`. */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.TIDEMARK_CACHE) return env.TIDEMARK_CACHE;
  const base = env.XDG_CACHE_HOME;
  return join(base && isAbsolute(base) ? base : join(homedir(), ".cache"), "tidemark");
}
