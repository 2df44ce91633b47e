/**
 * @file Files of a cache. Written beside and renamed, so that a reader finds all of a file or none of it, and two processes
 * that make the same do not disturb each other: the second one's file replaces an equal one.
 *
 * A folder does not grow for ever: when it is too large, the files that were used longest ago go. A process that has one of
 * them loaded keeps it; one that wants it again makes it again.
 */
import { lstatSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "node:worker_threads";

/** How long a file that was not renamed is left alone: whoever wrote it may still be at it. */
const ABANDONED_MS = 60 * 60 * 1000;
const BESIDE = /\.\d+-\d+-\d+\.tmp$/;

let written = 0;

/** A name beside a file that nobody else uses: no other process, and no other thread of this one. */
export function besideName(path: string): string {
  written += 1;
  return `${path}.${process.pid}-${threadId}-${written}.tmp`;
}

/** Writes a file whole, or leaves what was there; whether it could. */
export function replaceFile(path: string, content: Uint8Array | string): boolean {
  const aside = besideName(path);
  try {
    writeFileSync(aside, content, { mode: 0o600 });
    renameSync(aside, path);
    return true;
  } catch {
    rmSync(aside, { force: true });
    return false;
  }
}

/** Notes that a file was used. */
export function touch(path: string): void {
  try {
    const now = new Date();
    utimesSync(path, now, now);
  } catch {
    // somebody else's file, or gone: its age is then that of its making
  }
}

/** Removes the files that were used longest ago until the rest takes at most half of `most` bytes, if all take more. */
export function prune(folder: string, most: number): void {
  try {
    removeOldest(filesIn(folder), most);
  } catch {
    // a folder that cannot be tidied is tidied by another process, or another day
  }
}

interface FoundFile {
  readonly path: string;
  readonly bytes: number;
  /** When, in milliseconds. */
  readonly used: number;
}

/** Files of a folder, without those that a process left that was killed, which go. */
function filesIn(folder: string): readonly FoundFile[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found && BESIDE.test(name) && Date.now() - found.mtimeMs > ABANDONED_MS) {
      rmSync(path, { force: true });
      return [];
    }
    return found?.isFile() ? [{ path, bytes: found.size, used: found.mtimeMs }] : [];
  });
}

function removeOldest(files: readonly FoundFile[], most: number): void {
  let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= most) return;
  for (const { path, bytes } of files.toSorted((a, b) => a.used - b.used || (a.path < b.path ? -1 : 1))) {
    if (total <= most / 2) return;
    rmSync(path, { force: true });
    total -= bytes;
  }
}
