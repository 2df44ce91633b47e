/**
 * @file A folder that only this user can change. Its files are used without checking their author (compiled code is
 * loaded into the process by path), so the folder itself must be trustworthy:
 *
 *   /            owned by root or this user, not writable by others: no one else can replace the next folder
 *   home         the same
 *   tidemark     owned by this user, not a link, not writable by others; created with mode 0700
 *
 * A world-writable parent is allowed if its sticky bit is set (`/tmp`): there only the owner of an entry can rename it.
 * Root is trusted. On systems without owners and modes (Windows), only links are refused.
 */
import { lstatSync, mkdtempSync, realpathSync, rmSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { makeFolder } from "./make-folder.ts";

/** A path without links, or why it is not private to this user. */
export type PrivateFolder = { readonly path: string } | { readonly problem: string };

const OTHERS_WRITE = 0o022;
const GROUP_WRITES = 0o020;
const STICKY = 0o1000;
const OURS_ALONE = 0o700;

/** Descriptions of system error codes; other codes are shown unchanged. */
const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such folder",
  ENOTDIR: "a part of the path is not a folder",
  EEXIST: "it is not a folder",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "it cannot be written",
  ENOSPC: "no space is left",
  EDQUOT: "no space is left to this user",
  EFBIG: "files may not be that large",
  ELOOP: "too many levels of links",
};

/** The text of a system error. */
export function systemProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return MEANINGS[code ?? ""] ?? code ?? message;
}

const modeText = ({ mode }: Stats): string => (mode & 0o7777).toString(8);

/** Why a parent folder would allow the folder to be replaced, or null. */
function problemAbove(path: string, uid: number): string | null {
  const stats = statSync(path);
  if (stats.uid !== uid && stats.uid !== 0) return `${path} belongs to user ${stats.uid}`;
  // a group with the user's id is the user's private group
  const others = stats.gid === uid ? OTHERS_WRITE & ~GROUP_WRITES : OTHERS_WRITE;
  if ((stats.mode & others) === 0 || stats.mode & STICKY) return null;
  return `others can write to ${path} (mode ${modeText(stats)})`;
}

/** Why a folder is not private, or null; only the last component of `path` may be a link. */
function problemOf(path: string): string | null {
  const stats = lstatSync(path);
  if (stats.isSymbolicLink()) return "it is a link";
  if (!stats.isDirectory()) return "it is not a folder";
  const uid = process.getuid?.();
  if (uid === undefined) return null;
  if (stats.uid !== uid) return `it belongs to user ${stats.uid}`;
  if (stats.mode & OTHERS_WRITE) return `others can write to it (mode ${modeText(stats)}; chmod 700)`;
  for (let above = dirname(path), below = path; above !== below; below = above, above = dirname(above)) {
    const problem = problemAbove(above, uid);
    if (problem !== null) return problem;
  }
  return null;
}

function checked(path: string, make: (path: string) => void): PrivateFolder {
  try {
    make(path);
    const real = join(realpathSync(dirname(path)), basename(path));
    const problem = problemOf(real);
    return problem === null ? { path: real } : { problem: `${path}: ${problem}` };
  } catch (error) {
    return { problem: `${path}: ${systemProblem(error)}` };
  }
}

/** The folder at a path, created if missing. */
export function privateFolder(path: string): PrivateFolder {
  return checked(resolve(path), (folder) => makeFolder(folder, OURS_ALONE));
}

/** The same for a folder that is only read: it is not created. */
export function existingPrivateFolder(path: string): PrivateFolder {
  return checked(resolve(path), () => {});
}

/** A new folder inside another, removed when this Node thread ends. */
export function temporaryFolder(within: string): PrivateFolder {
  try {
    const path = mkdtempSync(join(resolve(within), "tidemark-"));
    process.once("exit", () => rmSync(path, { recursive: true, force: true }));
    return checked(path, () => {});
  } catch (error) {
    return { problem: `${within}: ${systemProblem(error)}` };
  }
}
