/**
 * @file Folders of compiled files: the cache, sealed (sealed-folder.ts), keyed by the hash of all inputs;
 * cache-files.ts evicts old files. If that folder is not private or not writable, a temporary folder of this thread is
 * used.
 */
import { cacheFolder, NO_CACHE_FOLDER } from "../cache-folder.ts";
import { SealedFolder } from "../sealed-folder.ts";

/** Bytes; enough for thousands of programs. */
export const LARGEST_CACHE = 512 * 2 ** 20;

/** The persistent folder of compiled files, or why there is none. */
export function persistentFolder(): SealedFolder | string {
  const cache = cacheFolder();
  return cache === null ? NO_CACHE_FOLDER : SealedFolder.open(cache, "native");
}

/** Made when it is first needed. */
let temporary: SealedFolder | undefined;

/** The temporary folder of compiled files, removed with this Node thread, or why there is none. */
export function transientFolder(): SealedFolder | string {
  if (temporary) return temporary;
  const folder = SealedFolder.temporary();
  if (typeof folder !== "string") temporary = folder;
  return folder;
}
