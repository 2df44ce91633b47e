/**
 * @file One run at a time in a folder. Two would remove each other's files, so the first leaves a file that says who it is,
 * and the second is refused. Of a process that was killed the file stays behind; whoever comes next finds that nobody is
 * there any more and takes the folder over:
 *
 *   create run.lock ─ was there? ─ its process lives ─→ refused
 *          ▲                       └ is gone: moved aside, removed ─╮
 *          ╰───────────────────────────────────────────────────────╯
 *
 * A process is known by its number and by when it started, since numbers are given out again. Processes of other machines
 * cannot be asked: their locks count as left behind, because a run that moves to another machine has to go on.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { threadId } from "node:worker_threads";
import { TidemarkError } from "../base/errors.ts";
import type { Files } from "./files.ts";
import { storageError } from "./snapshot-file.ts";

const LOCK = "run.lock";
/** Ours have a hundred bytes. */
const LONGEST = 1024;

interface Owner {
  readonly pid: number;
  readonly thread: number;
  readonly host: string;
  /** In ticks since the machine started; null where the system does not tell. */
  readonly started: string | null;
}

/** When a process started, as Linux tells it: the 22nd field, the 20th behind the name, which may contain anything. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

/** Whether a process of this number is there, whoever's it is. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Folders that runs of this thread hold. */
const held = new Set<string>();

const ourselves = (): Owner => ({
  pid: process.pid,
  thread: threadId,
  host: hostname(),
  started: startOf(process.pid),
});

/** Whether another thread or process is at work; what this thread left behind it does not hold any more. */
function isAlive({ pid, thread, host, started }: Owner): boolean {
  if (host !== hostname() || !isRunning(pid)) return false;
  const since = startOf(pid);
  // After a restart in a container a process often has the number of the one before.
  if (since !== null && started !== null && since !== started) return false;
  return pid !== process.pid || thread !== threadId;
}

/** What a lock says; null where it is not there any more, or was not written whole. */
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
    help: `wait until that run ends, or give this one a folder of its own (${LOCK} in it says who holds it)`,
  });
}

/** Moves a lock that was left behind out of the way; one that another run has put there meanwhile goes back. */
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

/** Runs `run` as the only one in a folder; throws `StorageError` where another is at work there. */
export async function inFolder<T>(files: Files, name: string, given: string, run: () => Promise<T>): Promise<T> {
  const folder = resolve(given);
  if (held.has(folder)) refuse(name, folder, process.pid);
  held.add(folder);
  try {
    await acquire(files, name, folder);
    try {
      return await run();
    } finally {
      // What stays behind is taken over by the next run.
      await files.remove(join(folder, LOCK)).catch(() => undefined);
    }
  } finally {
    held.delete(folder);
  }
}
