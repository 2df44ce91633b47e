/**
 * @file Where compiled files are: in the cache, sealed (sealed-folder.ts), by the hash of everything they depend on; see
 * cache-files.ts for when they go. Where that folder is not private or cannot be written, they are made in a temporary folder
 * of this thread's own.
 */
import { cacheFolder, NO_CACHE_FOLDER } from "../cache-folder.ts";
import { SealedFolder } from "../sealed-folder.ts";

/** Bytes; thousands of programs. */
export const LARGEST_CACHE = 512 * 2 ** 20;

/** The folder of compiled files that are kept, or why there is none. */
export function keptFolder(): SealedFolder | string {
  const cache = cacheFolder();
  return cache === null ? NO_CACHE_FOLDER : SealedFolder.open(cache, "native");
}

let temporary: SealedFolder | undefined;

/** The folder of compiled files that go with this thread of Node, or why there is none. */
export function passingFolder(): SealedFolder | string {
  if (temporary) return temporary;
  const made = SealedFolder.temporary();
  if (typeof made !== "string") temporary = made;
  return made;
}
