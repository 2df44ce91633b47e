/**
 * @file Compiled files on disk, by the hash of everything they depend on; see cache-files.ts for how they are written and when
 * they go. Where the folder cannot be written, files are made in the system's folder for temporary ones.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { besideName, replaceFile } from "../cache-files.ts";
import { cacheFolder } from "../cache-folder.ts";

/** Bytes; thousands of programs. */
export const LARGEST_CACHE = 512 * 2 ** 20;

let temporary: string | undefined;

/** A folder for this process alone, gone with it. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The folder of compiled files: made if it is not there, and elsewhere if it cannot be. */
export function nativeFolder(): string {
  const folder = join(cacheFolder(), "native");
  try {
    mkdirSync(folder, { recursive: true });
    const test = besideName(join(folder, ".writable"));
    writeFileSync(test, "");
    rmSync(test);
    return folder;
  } catch {
    temporary ??= temporaryFolder();
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

/** Puts a file into the cache; where that fails there is no file, and it will be made again. */
export function writeCached(name: string, bytes: Uint8Array): void {
  replaceFile(join(nativeFolder(), name), bytes);
}
