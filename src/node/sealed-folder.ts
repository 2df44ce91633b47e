/**
 * @file Files of a cache that are what this user's processes wrote, or are not there. Each ends with a seal: HMAC-SHA256 over
 * its folder's name, its own and its content, with a key that is made once for a machine and user.
 *
 *   CACHE/seal-key      32 random bytes, mode 0600
 *   CACHE/native/NAME   content, seal
 *   CACHE/plans/NAME    content, seal
 *
 * Folders are private (private-folder.ts): nobody else can write here while a file is checked and then used, so a file may be
 * used by its path after its bytes were checked. The seal is for what was put there otherwise: by a backup or an image that
 * somebody else made, by a disk error, under a mode that was too wide for a while. It does not protect from programs that
 * run as this user, which can read the key. A key that is missing, or that others could have read, is replaced; what was
 * sealed with it is then made again.
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
import { besideName, replaceFile, touch } from "./cache-files.ts";
import { privateFolder, systemProblem, temporaryFolder } from "./private-folder.ts";

const KEY_NAME = "seal-key";
const KEY_BYTES = 32;
const SEAL_BYTES = 32;
/** No file of ours is larger. */
const LARGEST_FILE = 512 * 2 ** 20;
/** What a file must be able to grow to where a folder counts as writable: a compiled program of some size. */
const TRIAL_BYTES = 2 ** 20;

/** The bytes of a file of this user, not through a link; null where it is none, too large, or has one of `forbidden` modes. */
function readOwn(path: string, forbidden = 0o022): Buffer | null {
  let file: number | undefined;
  try {
    // a pipe in its place must not be waited for
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const found = fstatSync(file);
    const uid = process.getuid?.();
    const ours = uid === undefined || (found.uid === uid && (found.mode & forbidden) === 0);
    return found.isFile() && ours && found.size <= LARGEST_FILE ? readFileSync(file) : null;
  } catch {
    return null;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

const readKey = (path: string): Buffer | null => {
  const bytes = readOwn(path, 0o077);
  return bytes?.length === KEY_BYTES ? bytes : null;
};

/** Puts a file under a name that has none; false where it has one already. */
function linkAs(file: string, path: string): boolean {
  try {
    linkSync(file, path);
    return true;
  } catch {
    // there is one, or the file system has no links
    return false;
  }
}

/** The key of a folder; made if there is none that only this user can read. Throws what the system says. */
function keyOf(folder: string): Buffer | null {
  const path = join(folder, KEY_NAME);
  const known = readKey(path);
  if (known) return known;
  const aside = besideName(path);
  try {
    writeFileSync(aside, randomBytes(KEY_BYTES), { mode: 0o600, flag: "wx" });
    // of several processes that find no key, the first one's is everybody's; a key that is of no use is replaced
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
      // what a compiler writes has the mode that it likes: nobody else may come that far
      const { mode } = statSync(inside.path);
      if (mode & 0o077) chmodSync(inside.path, mode & 0o700);
      const key = keyOf(around.path);
      return key ? new SealedFolder(inside.path, name, key) : `${cache}: ${KEY_NAME} cannot be replaced`;
    } catch (error) {
      return `${cache}: ${systemProblem(error)}`;
    }
  }

  /** A folder of this thread's own, with a key that nobody else ever has, or why there is none. */
  static temporary(): SealedFolder | string {
    const made = temporaryFolder(tmpdir());
    return "problem" in made ? made.problem : new SealedFolder(made.path, "temporary", randomBytes(KEY_BYTES));
  }

  pathOf(name: string): string {
    return join(this.path, name);
  }

  /** What follows the content of a file. */
  seal(name: string, content: Uint8Array): Buffer {
    return createHmac("sha256", this.#key).update(`${this.#name}/${name}\n`).update(content).digest();
  }

  /** The content of a file that was written here, or null. */
  read(name: string): Buffer | null {
    const bytes = readOwn(this.pathOf(name));
    if (bytes === null || bytes.length < SEAL_BYTES) return null;
    const content = bytes.subarray(0, -SEAL_BYTES);
    if (!timingSafeEqual(this.seal(name, content), bytes.subarray(-SEAL_BYTES))) return null;
    touch(this.pathOf(name));
    return content;
  }

  /** Whether it could be written. */
  write(name: string, content: Uint8Array): boolean {
    return replaceFile(this.pathOf(name), Buffer.concat([content, this.seal(name, content)]));
  }

  /** Why a file of some size cannot be written here, or null. */
  writeProblem(): string | null {
    const path = besideName(this.pathOf("trial"));
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
