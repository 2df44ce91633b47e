/**
 * @file The file that values of programs wait in. It has no name: it never had one, or is removed from its folder as soon as it is
 * open, so that a process that is killed leaves nothing behind, and the system frees its room when the last program that uses it is closed. Room is
 * taken for all of it before a program runs: a full disk shows then, and not in the middle of a step.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  constants as fsConstants,
  fstatSync,
  openSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { constants } from "node:os";
import { join, resolve } from "node:path";
import { getSystemErrorName } from "node:util";
import { grouped, TidemarkError } from "../base/errors.ts";
import { LOCK } from "./folder-lock.ts";

const HELP = "give spill a folder on a local disk with room, or raise memory so that less is moved";

const spillError = (folder: string, summary: string, help = HELP): TidemarkError =>
  new TidemarkError("StorageError", `spill: ${folder} ${summary}`, { help });

/** Takes room for a file: an error number of the system, or 0. */
type Reserve = (descriptor: number, bytes: number) => number;

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

/** Throws unless files can be made in a folder. */
export function requireFolder(folder: string): void {
  const state = statSync(folder, { throwIfNoEntry: false });
  if (!state) throw spillError(folder, "does not exist", "create the folder, or give another one");
  if (!state.isDirectory()) throw spillError(folder, "is not a folder", "give the folder in which the file is made");
  if (statSync(join(folder, LOCK), { throwIfNoEntry: false })) {
    throw spillError(folder, `belongs to another run (${LOCK})`, "give spill a folder of its own");
  }
}

/** Linux makes files that never had a name, where the file system can; Node does not know this flag. */
const NEVER_NAMED = process.platform === "linux" ? 0o20000000 | fsConstants.O_DIRECTORY | fsConstants.O_RDWR : null;

/** Two descriptors of a new file of a folder, without a name. */
function openNameless(folder: string): readonly [number, number] {
  if (NEVER_NAMED !== null) {
    try {
      const descriptor = openSync(folder, NEVER_NAMED, 0o600);
      return [descriptor, openSync(`/proc/self/fd/${descriptor}`, "r+")];
    } catch {
      // this file system cannot: a name for a moment
    }
  }
  const path = join(folder, `tidemark-spill-${process.pid}-${randomBytes(8).toString("hex")}`);
  try {
    const descriptors = [openSync(path, "wx+", 0o600), openSync(path, "r+")] as const;
    unlinkSync(path);
    return descriptors;
  } catch (error) {
    throw spillError(folder, `cannot be written (${codeOf(error)})`, "give a folder that this user can write to");
  }
}

function closeBoth(descriptors: readonly [number, number]): void {
  for (const descriptor of descriptors) closeSync(descriptor);
}

/** Closes files of programs that were collected. */
const abandoned = new FinalizationRegistry<readonly [number, number]>(closeBoth);

export class SpillFile {
  readonly folder: string;
  /** For copies of programs, which may turn the system's cache off. */
  readonly descriptor: number;
  /** For reads and writes of the host between runs, which are of any size at any address. */
  readonly hostDescriptor: number;
  readonly #reserve: Reserve;
  #holders = 0;

  constructor(folder: string, reserve: Reserve) {
    this.folder = resolve(folder);
    requireFolder(this.folder);
    this.#reserve = reserve;
    const descriptors = openNameless(this.folder);
    [this.descriptor, this.hostDescriptor] = descriptors;
    abandoned.register(this, descriptors, this);
  }

  /** As the system has it. */
  get bytes(): number {
    return fstatSync(this.descriptor).size;
  }

  /** Makes it at least so large. */
  reserve(bytes: number): void {
    const more = bytes - this.bytes;
    if (more <= 0) return;
    // asked first: others would feel it if the disk were filled to find out
    const free = freeBytes(this.folder);
    const problem = free !== null && free < more ? constants.errno.ENOSPC : this.#reserve(this.descriptor, bytes);
    if (problem === 0) return;
    const room = free === null ? "" : `, ${grouped(free)} are free`;
    if (this.#holders === 0) this.#close();
    throw this.failure(`has no room for a file of ${grouped(bytes)} bytes${room}`, problem);
  }

  /** Keeps it open until the function that is returned is called; `closed` is called after the last of them. */
  hold(closed: () => void): () => void {
    this.#holders++;
    return () => {
      if (--this.#holders > 0) return;
      this.#close();
      closed();
    };
  }

  #close(): void {
    abandoned.unregister(this);
    closeBoth([this.descriptor, this.hostDescriptor]);
  }

  failure(what: string, errorNumber: number): TidemarkError {
    return spillError(this.folder, `${what} (${getSystemErrorName(-errorNumber)})`);
  }
}

/** Written to measure a folder. */
const MEASURED_BYTES = 32 * 2 ** 20;
const measured = new Map<string, number>();

/** Bytes a second that a folder takes, as one digit and a power of ten; measured once in a process. */
export function measureFolder(folder: string): number {
  const path = resolve(folder);
  const earlier = measured.get(path);
  if (earlier !== undefined) return earlier;
  requireFolder(path);
  const descriptors = openNameless(path);
  const [descriptor] = descriptors;
  try {
    const piece = new Uint8Array(2 ** 20).fill(1);
    const started = performance.now();
    for (let at = 0; at < MEASURED_BYTES; at += piece.length) writeSync(descriptor, piece, 0, piece.length, at);
    fdatasyncSync(descriptor);
    const rate = MEASURED_BYTES / (0.001 * Math.max(0.01, performance.now() - started));
    const power = 10 ** Math.floor(Math.log10(rate));
    const rounded = Math.floor(rate / power) * power;
    measured.set(path, rounded);
    return rounded;
  } catch (error) {
    const summary = `cannot be measured: of ${grouped(MEASURED_BYTES)} bytes not all could be written (${codeOf(error)})`;
    throw spillError(path, summary, 'give spill a bandwidth, { bandwidth: "1GB/s" }, or a folder with more room');
  } finally {
    closeBoth(descriptors);
  }
}

function freeBytes(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** Writes zeros, for systems in which room can be taken in no other way. */
export function reserveByWriting(descriptor: number, bytes: number): number {
  const zeros = new Uint8Array(Math.min(bytes, 2 ** 20));
  try {
    for (let at = fstatSync(descriptor).size; at < bytes; )
      at += writeSync(descriptor, zeros, 0, Math.min(zeros.length, bytes - at), at);
    return 0;
  } catch (error) {
    return -((error as NodeJS.ErrnoException).errno ?? -5);
  }
}
