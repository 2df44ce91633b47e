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
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { threadId } from "node:worker_threads";
import { TidemarkError } from "../base/errors.ts";
import type { Files } from "./files.ts";
import { storageError } from "./snapshot-file.ts";

export const LOCK = "run.lock";
/** A lock file has about a hundred bytes. */
const LONGEST = 1024;

interface Owner {
  readonly pid: number;
  readonly thread: number;
  readonly host: string;
  /** In clock ticks since boot; null if the system does not provide it. */
  readonly started: string | null;
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

const ourselves = (): Owner => ({
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

/** The owner in a lock file; null if the file is gone or incomplete. */
async function ownerIn(files: Files, path: string): Promise<Owner | null> {
  try {
    const bytes = new Uint8Array(Math.min(await files.sizeOf(path), LONGEST));
    await files.read(path, bytes);
    const { pid, thread = 0, host, started = null } = JSON.parse(new TextDecoder().decode(bytes)) as Partial<Owner>;
    return typeof pid === "number" && typeof host === "string" ? { pid, thread, host, started } : null;
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
  if (owner && isAlive(owner)) await files.rename(aside, path);
  else await files.remove(aside);
}

async function acquire(files: Files, name: string, folder: string): Promise<void> {
  const path = join(folder, LOCK);
  const contents = new TextEncoder().encode(`${JSON.stringify(ourselves())}\n`);
  try {
    await files.makeFolder(folder);
    while (!(await files.create(path, contents))) {
      const owner = await ownerIn(files, path);
      if (owner && isAlive(owner)) refuse(name, folder, owner.pid);
      await clear(files, path);
    }
  } catch (error) {
    throw storageError("write", path, error, "then run again");
  }
}

/** Runs `run` with exclusive use of a folder; throws `StorageError` if another run uses it. */
export async function inFolder<T>(files: Files, name: string, path: string, run: () => Promise<T>): Promise<T> {
  const folder = resolve(path);
  if (lockedFolders.has(folder)) refuse(name, folder, process.pid);
  lockedFolders.add(folder);
  try {
    await acquire(files, name, folder);
    try {
      return await run();
    } finally {
      // The next run takes over a lock that could not be removed.
      await files.remove(join(folder, LOCK)).catch(() => undefined);
    }
  } finally {
    lockedFolders.delete(folder);
  }
}
