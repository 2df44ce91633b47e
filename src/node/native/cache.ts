/**
 * @file Compiled files on disk, by the hash of everything they depend on. Written beside and renamed, so that a reader finds
 * all of a file or none of it and two processes that compile the same text do not disturb each other: the second one's file
 * replaces an equal one. Where the folder cannot be written, files are made in the system's folder for temporary ones.
 *
 * The folder does not grow for ever: when it is too large, the files that were used longest ago go. A process that has one of
 * them loaded keeps it; one that wants it again makes it again.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheFolder } from "../cache-folder.ts";

/** Thousands of programs. */
export const LARGEST_CACHE = 512 * 2 ** 20;

let temporary: string | undefined;

/** The folder of compiled files: made if it is not there, and elsewhere if it cannot be. */
export function nativeFolder(): string {
  const folder = join(cacheFolder(), "native");
  try {
    mkdirSync(folder, { recursive: true });
    const test = join(folder, `.writable-${process.pid}`);
    writeFileSync(test, "");
    rmSync(test);
    return folder;
  } catch {
    temporary ??= mkdtempSync(join(tmpdir(), "tidemark-"));
    return temporary;
  }
}

/** A file of the cache, or null. */
export function readCached(name: string): Uint8Array | null {
  try {
    return readFileSync(join(cacheFolder(), "native", name));
  } catch {
    return null;
  }
}

let written = 0;

/** A name beside a file that nobody else uses. */
export function besideName(path: string): string {
  written += 1;
  return `${path}.${process.pid}-${written}.tmp`;
}

/** Puts a file into the cache; where that fails there is no file, and it will be made again. */
export function writeCached(name: string, bytes: Uint8Array): void {
  const path = join(nativeFolder(), name);
  const aside = besideName(path);
  try {
    writeFileSync(aside, bytes);
    renameSync(aside, path);
  } catch {
    rmSync(aside, { force: true });
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
export function prune(folder: string, most: number = LARGEST_CACHE): void {
  const files = readdirSync(folder).flatMap((name) => {
    const found = statSync(join(folder, name), { throwIfNoEntry: false });
    return found?.isFile() ? [{ path: join(folder, name), bytes: found.size, used: found.mtimeMs }] : [];
  });
  let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= most) return;
  for (const { path, bytes } of files.sort((a, b) => a.used - b.used || (a.path < b.path ? -1 : 1))) {
    if (total <= most / 2) return;
    rmSync(path, { force: true });
    total -= bytes;
  }
}
