/**
 * @file Compiled files on disk, by the hash of everything they depend on. Written beside and renamed, so that a reader finds
 * all of a file or none of it and two processes that compile the same text do not disturb each other: the second one's file
 * replaces an equal one. Where the folder cannot be written, files are made in the system's folder for temporary ones.
 */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheFolder } from "../cache-folder.ts";

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
