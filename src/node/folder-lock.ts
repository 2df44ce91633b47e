/**
 * @file A lock so that only one run uses a folder: two would remove each other's files. The first run creates a lock
 * file with its identity, and a second one is refused. A killed process leaves its lock behind; the next run detects
 * that the owner is gone and takes over:
 *
 *   create run.lock ─ was there? ─ its process lives ─→ refused
 *          ▲                       └ is gone: moved aside, removed ─╮
 *          ╰───────────────────────────────────────────────────────╯
 *
 * A process is identified by its pid and start time, since pids are reused. Processes on other machines cannot be
 * checked: their locks count as stale, because a run that moves to another machine must continue.
 *
 * Of a run on several processes the first one holds the lock for all, and it is held as long as one of them lives: a process whose
 * run was killed may still be writing.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { threadId } from "node:worker_threads";
import { TidemarkError } from "../base/errors.ts";
import type { Files } from "./files.ts";
import { storageError } from "./snapshot-file.ts";

export const LOCK = "run.lock";
/** A lock file has about a hundred bytes for each process. */
const LONGEST = 2 ** 20;

/** A process, or thread, that uses a folder. */
export interface Owner {
  readonly pid: number;
  readonly thread: number;
  readonly host: string;
  /** In clock ticks since boot; null if the system does not provide it. */
  readonly started: string | null;
  /** Of a run on several processes: all of them. */
  readonly ranks?: readonly Owner[];
}

/**
 * The start time of a process on Linux: field 22 of /proc/PID/stat, the 20th after the name, which may contain
 * anything.
 */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

/** Whether a process with this pid exists, of any user. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Folders locked by runs of this thread. */
const lockedFolders = new Set<string>();

/** This thread. */
export const ourselves = (): Owner => ({
  pid: process.pid,
  thread: threadId,
  host: hostname(),
  started: startOf(process.pid),
});

/** Whether the owner is another active thread or process; a lock of this thread that is not in `held` is stale. */
function isAlive({ pid, thread, host, started }: Owner): boolean {
  if (host !== hostname() || !isRunning(pid)) return false;
  const since = startOf(pid);
  // After a container restart a process often gets the pid of its predecessor.
  if (since !== null && started !== null && since !== started) return false;
  return pid !== process.pid || thread !== threadId;
}

/** The owner or, of several processes, the first that is alive; undefined where none is. */
const aliveOf = (owner: Owner): Owner | undefined => [owner, ...(owner.ranks ?? [])].find(isAlive);

/** The text of a folder's lock; empty where there is none. */
export async function lockText(files: Files, path: string): Promise<string> {
  try {
    const bytes = new Uint8Array(Math.min(await files.sizeOf(path), LONGEST));
    await files.read(path, bytes);
    return new TextDecoder().decode(bytes);
  } catch {
    return "";
  }
}

function parseOwner(given: unknown): Owner | null {
  const { pid, thread = 0, host, started = null, ranks = [] } = (given ?? {}) as Partial<Owner>;
  if (typeof pid !== "number" || typeof host !== "string" || !Array.isArray(ranks)) return null;
  return { pid, thread, host, started, ranks: ranks.flatMap((rank) => parseOwner(rank) ?? []) };
}

/** The owner in a lock file; null if the file is gone or incomplete. */
async function ownerIn(files: Files, path: string): Promise<Owner | null> {
  const text = await lockText(files, path);
  try {
    return parseOwner(JSON.parse(text));
  } catch {
    return null;
  }
}

function refuse(name: string, folder: string, pid: number): never {
  const who = pid === process.pid ? "another call in this process" : `process ${pid}`;
  throw new TidemarkError("StorageError", `${name}: ${folder} is in use by ${who}`, {
    help: `wait until that run ends, or give this one its own folder (${LOCK} names the process that holds it)`,
  });
}

/** Moves a stale lock away; if another run has replaced it meanwhile, moves that one back. */
async function clear(files: Files, path: string): Promise<void> {
  const aside = `${path}.${process.pid}.tmp`;
  await files.rename(path, aside).catch(() => undefined);
  const owner = await ownerIn(files, aside);
  if (owner && aliveOf(owner)) await files.rename(aside, path);
  else await files.remove(aside);
}

/** How long processes of a run of which one is gone may take to end: the others are ended within seconds. */
const ENDING_MS = 5000;
const LOOK_MS = 100;

const isEnding = (owner: Owner): boolean =>
  (owner.ranks ?? []).length > 0 && ![owner, ...(owner.ranks ?? [])].every(isAlive);

async function acquire(files: Files, name: string, folder: string, ranks: readonly Owner[]): Promise<string> {
  const path = join(folder, LOCK);
  const text = `${JSON.stringify({ ...ourselves(), ...(ranks.length > 0 && { ranks }) })}\n`;
  try {
    await files.makeFolder(folder);
    for (let waited = 0; !(await files.create(path, new TextEncoder().encode(text))); ) {
      const owner = await ownerIn(files, path);
      const alive = owner && aliveOf(owner);
      if (!alive) await clear(files, path);
      else if (waited >= ENDING_MS || !isEnding(owner)) refuse(name, folder, alive.pid);
      else {
        await sleep(LOOK_MS);
        waited += LOOK_MS;
      }
    }
    return text;
  } catch (error) {
    throw storageError("write", path, error, "then run again");
  }
}

/** Exclusive use of a folder. */
export interface FolderLock {
  /** What the lock file has. */
  readonly text: string;
  release(): Promise<void>;
}

/** Locks a folder, for this thread or for all processes of a run; throws `StorageError` if another run uses it. */
export async function lockFolder(
  files: Files,
  name: string,
  path: string,
  ranks: readonly Owner[] = [],
): Promise<FolderLock> {
  const folder = resolve(path);
  if (lockedFolders.has(folder)) refuse(name, folder, process.pid);
  lockedFolders.add(folder);
  try {
    const text = await acquire(files, name, folder, ranks);
    return {
      text,
      async release() {
        // The next run takes over a lock that could not be removed.
        await files.remove(join(folder, LOCK)).catch(() => undefined);
        lockedFolders.delete(folder);
      },
    };
  } catch (error) {
    lockedFolders.delete(folder);
    throw error;
  }
}

/** Runs `run` with exclusive use of a folder; throws `StorageError` if another run uses it. */
export async function inFolder<T>(files: Files, name: string, path: string, run: () => Promise<T>): Promise<T> {
  const lock = await lockFolder(files, name, path);
  try {
    return await run();
  } finally {
    await lock.release();
  }
}
