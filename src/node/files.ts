/**
 * @file The file-system operations used by durable storage, as an interface so that tests can simulate a full disk or a
 * crash. A file is either complete under its name or absent:
 *
 *   write NAME.PID.tmp ─→ fsync ─→ rename to NAME ─→ fsync of the folder
 *
 * A crash before the rename leaves a `.tmp`, which is never read; a crash after it leaves the complete file.
 */
import { constants } from "node:fs";
import { open, readdir, rename, rm } from "node:fs/promises";
import { makeFolder } from "./make-folder.ts";

export interface Files {
  makeFolder(path: string): Promise<void>;
  list(folder: string): Promise<readonly string[]>;
  /** Creates or overwrites; on return the contents are on the disk. */
  write(path: string, contents: Uint8Array): Promise<void>;
  /** Creates a new file; false if it exists. */
  create(path: string, contents: Uint8Array): Promise<boolean>;
  rename(from: string, to: string): Promise<void>;
  /** Makes renames in a folder durable. */
  syncFolder(path: string): Promise<void>;
  sizeOf(path: string): Promise<number>;
  /** Fills the buffer from the start of the file; returns the number of bytes read. */
  read(path: string, into: Uint8Array): Promise<number>;
  /** A file that is not there counts as removed. */
  remove(path: string): Promise<void>;
}

/** Systems that cannot open a folder cannot sync it either, and need not. */
const NO_FOLDER_SYNC: ReadonlySet<string> = new Set(["EISDIR", "EPERM", "EACCES", "EINVAL"]);

/** Symbolic links are not followed, and pipes do not block. */
const PLAIN = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
const READ = constants.O_RDONLY | PLAIN;
const WRITE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | PLAIN;

async function withFile<T>(
  path: string,
  flags: string | number,
  use: (file: Awaited<ReturnType<typeof open>>) => Promise<T>,
) {
  const file = await open(path, flags);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

export const NODE_FILES: Files = {
  async makeFolder(path) {
    makeFolder(path);
  },
  list: (folder) => readdir(folder),
  write: (path, contents) =>
    withFile(path, WRITE, async (file) => {
      // a write may be partial
      for (let done = 0; done < contents.length; ) done += (await file.write(contents, done)).bytesWritten;
      await file.sync();
    }),
  async create(path, contents) {
    try {
      await withFile(path, "wx", (file) => file.writeFile(contents));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    }
  },
  rename,
  async syncFolder(path) {
    try {
      await withFile(path, "r", (folder) => folder.sync());
    } catch (error) {
      if (!NO_FOLDER_SYNC.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  },
  sizeOf: (path) => withFile(path, READ, async (file) => (await file.stat()).size),
  read: (path, into) =>
    withFile(path, READ, async (file) => {
      let done = 0;
      for (let got = -1; got !== 0 && done < into.length; done += got) {
        got = (await file.read(into, done, into.length - done, done)).bytesRead;
      }
      return done;
    }),
  remove: (path) => rm(path, { force: true }),
};
