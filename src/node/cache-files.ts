/**
 * @file Files of a cache. A file is written under a temporary name and renamed, so readers see a complete file or none,
 * and two processes that write the same file do not interfere: the second replaces the first with an equal one.
 *
 * The size of a folder is bounded: when it is too large, the least recently used files are removed. A process that has
 * loaded one keeps it; a process that needs it later recreates it.
 */
import { lstatSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "node:worker_threads";

/** The minimum age of a temporary file before it is removed: its writer may still be active. */
const ABANDONED_MS = 60 * 60 * 1000;
const TEMPORARY = /\.\d+-\d+-\d+\.tmp$/;

/** Counts names, so that each is new. */
let written = 0;

/** A temporary name next to a file, unique across processes and threads. */
export function temporaryName(path: string): string {
  written += 1;
  return `${path}.${process.pid}-${threadId}-${written}.tmp`;
}

/** Replaces a file atomically; returns whether it succeeded. */
export function replaceFile(path: string, content: Uint8Array | string): boolean {
  const aside = temporaryName(path);
  try {
    writeFileSync(aside, content, { mode: 0o600 });
    renameSync(aside, path);
    return true;
  } catch {
    rmSync(aside, { force: true });
    return false;
  }
}

/** Marks a file as recently used. */
export function touch(path: string): void {
  try {
    const now = new Date();
    utimesSync(path, now, now);
  } catch {
    // owned by another user, or removed: its age then counts from its creation
  }
}

/** If the files take more than `most` bytes, removes the least recently used ones until half of that is left. */
export function prune(folder: string, most: number): void {
  try {
    removeOldest(filesIn(folder), most);
  } catch {
    // another process, or a later run, will prune the folder
  }
}

interface CacheFile {
  readonly path: string;
  readonly bytes: number;
  /** Time of last use, in milliseconds. */
  readonly used: number;
}

/** Files of a folder; temporary files abandoned by killed processes are removed. */
function filesIn(folder: string): readonly CacheFile[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats && TEMPORARY.test(name) && Date.now() - stats.mtimeMs > ABANDONED_MS) {
      rmSync(path, { force: true });
      return [];
    }
    return stats?.isFile() ? [{ path, bytes: stats.size, used: stats.mtimeMs }] : [];
  });
}

function removeOldest(files: readonly CacheFile[], most: number): void {
  let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= most) return;
  for (const { path, bytes } of files.toSorted((a, b) => a.used - b.used || (a.path < b.path ? -1 : 1))) {
    if (total <= most / 2) return;
    rmSync(path, { force: true });
    total -= bytes;
  }
}
