/**
 * @file What the processor reports of its caches. Blocks of products are sized for a second-level cache of a mebibyte, which most servers
 * have or exceed; on a processor with a smaller one they are smaller. Linux lists the caches in files; elsewhere nothing is known.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Bytes, of the caches of one core. */
export interface Caches {
  readonly first: number;
  readonly second: number;
}

const FOLDER = "/sys/devices/system/cpu/cpu0/cache";
const LEVELS = [1, 2] as const;
/** More than any processor's core has of its own. */
const MOST_INDEXES = 8;
const LEAST_BYTES = 128 * 1024;
/** As fine as caches differ. */
const GRAIN = 64 * 1024;

function listed(folder: string, index: number): { readonly level: number; readonly bytes: number } | null {
  const [level, type, size] = ["level", "type", "size"].map((name) =>
    readFileSync(join(folder, `index${index}`, name), "utf8").trim(),
  );
  const kibibytes = /^(\d{1,7})K$/.exec(size ?? "")?.[1];
  if (kibibytes === undefined || !["Data", "Unified"].includes(type ?? "")) return null;
  return { level: Number(level), bytes: Number(kibibytes) * 1024 };
}

/** The caches that a folder lists; null where it does not list both levels. */
export function cachesIn(folder = FOLDER): Caches | null {
  const bytes = new Map<number, number>();
  try {
    for (let index = 0; index < MOST_INDEXES; index++) {
      const cache = listed(folder, index);
      if (cache) bytes.set(cache.level, cache.bytes);
    }
  } catch {
    // after the last
  }
  const [first, second] = LEVELS.map((level) => bytes.get(level));
  return first === undefined || second === undefined ? null : { first, second };
}

/** The second-level cache where it is smaller than what blocks are sized for by default; undefined elsewhere. */
export function smallSecondCache(caches: Caches | null, usual: number): number | undefined {
  if (!caches || caches.second >= usual) return undefined;
  return Math.max(LEAST_BYTES, Math.floor(caches.second / GRAIN) * GRAIN);
}
