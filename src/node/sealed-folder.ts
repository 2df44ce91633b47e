/**
 * @file Authenticated cache files: a file is either as one of this user's processes wrote it, or it is ignored. Each
 * ends with a seal: HMAC-SHA256 over its folder's name, its own name and its content, with a key generated once per
 * machine and user.
 *
 *   CACHE/seal-key      32 random bytes, mode 0600
 *   CACHE/native/NAME   content, seal
 *   CACHE/plans/NAME    content, seal
 *
 * Folders are private (private-folder.ts): no other user can write here between check and use, so a file may be used by
 * its path after its bytes were checked. The seal covers other changes: a foreign backup or image, a disk error, a mode
 * that was too permissive for a while. It does not protect against programs that run as this user, which can read the
 * key. A key that is missing, or that others could have read, is replaced; files sealed with it are then recreated.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replaceFile, temporaryName, touch } from "./cache-files.ts";
import { privateFolder, systemProblem, temporaryFolder } from "./private-folder.ts";

const KEY_NAME = "seal-key";
const KEY_BYTES = 32;
const SEAL_BYTES = 32;
/** No cache file is larger. */
const LARGEST_FILE = 512 * 2 ** 20;
/** A folder counts as writable if a file of this size can be written: a typical compiled program. */
const TRIAL_BYTES = 2 ** 20;

/**
 * The bytes of a regular file owned by this user, not followed through a link; null if there is none, it is too large,
 * or it has one of the `forbidden` mode bits.
 */
function readOwnedFile(path: string, forbidden = 0o022): Buffer | null {
  let file: number | undefined;
  try {
    // opening a pipe must not block
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const stats = fstatSync(file);
    const uid = process.getuid?.();
    const ours = uid === undefined || (stats.uid === uid && (stats.mode & forbidden) === 0);
    return stats.isFile() && ours && stats.size <= LARGEST_FILE ? readFileSync(file) : null;
  } catch {
    return null;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

const readKey = (path: string): Buffer | null => {
  const bytes = readOwnedFile(path, 0o077);
  return bytes?.length === KEY_BYTES ? bytes : null;
};

/** Links a file to a new name; false if the name exists. */
function linkAs(file: string, path: string): boolean {
  try {
    linkSync(file, path);
    return true;
  } catch {
    // there is one, or the file system has no links
    return false;
  }
}

/** The key of a folder, created unless there is one that only this user can read. Throws system errors. */
function keyOf(folder: string): Buffer | null {
  const path = join(folder, KEY_NAME);
  const key = readKey(path);
  if (key) return key;
  const aside = temporaryName(path);
  try {
    writeFileSync(aside, randomBytes(KEY_BYTES), { mode: 0o600, flag: "wx" });
    // if several processes find no key, the first one's is used by all; an unusable key is replaced
    if (!linkAs(aside, path) && readKey(path) === null) renameSync(aside, path);
    return readKey(path);
  } finally {
    rmSync(aside, { force: true });
  }
}

export class SealedFolder {
  readonly path: string;
  readonly #key: Uint8Array;
  readonly #name: string;

  private constructor(path: string, name: string, key: Uint8Array) {
    this.path = path;
    this.#name = name;
    this.#key = key;
  }

  /** The folder of a name in a cache, or why there is none. */
  static open(cache: string, name: string): SealedFolder | string {
    const around = privateFolder(cache);
    if ("problem" in around) return around.problem;
    const inside = privateFolder(join(around.path, name));
    if ("problem" in inside) return inside.problem;
    try {
      // a compiler chooses the mode of its files, so the folder must exclude other users
      const { mode } = statSync(inside.path);
      if (mode & 0o077) chmodSync(inside.path, mode & 0o700);
      const key = keyOf(around.path);
      return key ? new SealedFolder(inside.path, name, key) : `${cache}: ${KEY_NAME} cannot be replaced`;
    } catch (error) {
      return `${cache}: ${systemProblem(error)}`;
    }
  }

  /** A temporary folder of this thread with a random key that is never stored, or why there is none. */
  static temporary(): SealedFolder | string {
    const folder = temporaryFolder(tmpdir());
    return "problem" in folder ? folder.problem : new SealedFolder(folder.path, "temporary", randomBytes(KEY_BYTES));
  }

  pathOf(name: string): string {
    return join(this.path, name);
  }

  /** The seal that follows the content of a file. */
  seal(name: string, content: Uint8Array): Buffer {
    return createHmac("sha256", this.#key).update(`${this.#name}/${name}\n`).update(content).digest();
  }

  /** The content of a file with a valid seal, or null. */
  read(name: string): Buffer | null {
    const bytes = readOwnedFile(this.pathOf(name));
    if (bytes === null || bytes.length < SEAL_BYTES) return null;
    const content = bytes.subarray(0, -SEAL_BYTES);
    if (!timingSafeEqual(this.seal(name, content), bytes.subarray(-SEAL_BYTES))) return null;
    touch(this.pathOf(name));
    return content;
  }

  /** Writes a file with its seal; returns whether it succeeded. */
  write(name: string, content: Uint8Array): boolean {
    return replaceFile(this.pathOf(name), Buffer.concat([content, this.seal(name, content)]));
  }

  /** Why a file of some size cannot be written here, or null. */
  writeProblem(): string | null {
    const path = temporaryName(this.pathOf("trial"));
    try {
      writeFileSync(path, new Uint8Array(TRIAL_BYTES), { flag: "wx" });
      return null;
    } catch (error) {
      return `${this.path}: ${systemProblem(error)}`;
    } finally {
      rmSync(path, { force: true });
    }
  }
}
