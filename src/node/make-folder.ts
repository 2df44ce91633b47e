/**
 * @file Creates folders. Node's recursive `mkdir` never returns where a folder exists but nothing can be created in it and
 * the system reports that as a missing parent, as Linux does for /proc; this one throws the system's error.
 */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function make(path: string, mode: number | undefined): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (isFolder(path)) return;
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || existsSync(above)) throw error;
    make(above, mode);
    make(path, mode);
  }
}

/** Creates a folder and those above it that are missing, each with the mode; nothing where it exists. */
export function makeFolder(path: string, mode?: number): void {
  make(resolve(path), mode);
}
