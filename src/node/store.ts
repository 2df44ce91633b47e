/**
 * @file A folder of independent snapshots of a run: the state before step 700, the cotangents after steps from 400 on
 * were reversed. Snapshots do not depend on each other, so files may become durable in any order and any of them may be
 * missing: each file found is valid by itself, and missing ones are recomputed. No consistency across files is needed,
 * so a kill at any moment is harmless.
 *
 * Writing overlaps with computing, through a window of buffers that are allocated once:
 *
 * ```
 *   arena ─ copy ─→ buffer 0 ─ write, fsync, rename, fsync ─→ state-700.tide
 *                   buffer 1 ─ write, …
 *                   none free: the next write waits
 * ```
 *
 * The first failed write stops the run at its next call here; durable files stay.
 */
import { join } from "node:path";
import { invariant } from "../base/invariant.ts";
import type { Files } from "./files.ts";
import { isRunning } from "./folder-lock.ts";
import {
  checksumIn,
  damaged,
  fileName,
  HEADER_BYTES,
  type Kind,
  type Label,
  labelOf,
  type Part,
  problemOf,
  seal,
  storageError,
} from "./snapshot-file.ts";

/** Buffers of the window. */
export const WINDOW = 2;

export interface StoreOptions {
  readonly folder: string;
  readonly fingerprint: Uint8Array;
  /** Bytes of the contents, by kind. */
  readonly sizes: Readonly<Record<Kind, number>>;
  /** Advice for the error of a failed write. */
  readonly afterFailure: string;
  /** The files hold this part of each snapshot; default: all of it. */
  readonly part?: Part;
  /** Default: those of the window. */
  readonly buffers?: number;
}

/** Bytes of a store's buffers. */
export function windowBytes(sizes: Readonly<Record<Kind, number>>): number {
  return WINDOW * (HEADER_BYTES + Math.max(...Object.values(sizes)));
}

export class Store {
  /** Of the last write that became durable. */
  writeMs = 0;
  written = 0;
  read = 0;
  readonly #files: Files;
  readonly #options: StoreOptions;
  readonly #free: Uint8Array[];
  readonly #waiting: (() => void)[] = [];
  /** By name; each resolves, whether the write succeeds or not. */
  readonly #inFlight = new Map<string, Promise<void>>();
  /** Of the same files. */
  readonly #checksums = new Map<string, string>();
  #failure: unknown = null;

  constructor(files: Files, options: StoreOptions) {
    this.#files = files;
    this.#options = options;
    const bytes = windowBytes(options.sizes) / WINDOW;
    this.#free = Array.from({ length: options.buffers ?? WINDOW }, () => new Uint8Array(bytes));
  }

  get busy(): boolean {
    return this.#inFlight.size > 0;
  }

  pathOf(label: Label): string {
    return join(this.#options.folder, this.#nameOf(label));
  }

  #nameOf(label: Label): string {
    return fileName(label, this.#options.part);
  }

  /** All files, readable or not. Temporary files of dead writers are removed. */
  async labels(): Promise<readonly Label[]> {
    const names = await namesIn(this.#files, this.#options.folder);
    return names.flatMap((name) => labelOf(name) ?? []);
  }

  /** Fills a block and starts writing it; returns the file's checksum when the block is filled. */
  async put(label: Label, fill: (block: Uint8Array) => void): Promise<string> {
    const name = this.#nameOf(label);
    // the same snapshot is already being written
    const known = this.#checksums.get(name);
    if (known !== undefined) return known;
    const buffer = await this.#buffer();
    const file = buffer.subarray(0, HEADER_BYTES + this.#options.sizes[label.kind]);
    fill(file.subarray(HEADER_BYTES));
    seal(file, label, this.#options.fingerprint);
    const checksum = checksumIn(file);
    this.#checksums.set(name, checksum);
    const started = performance.now();
    const done = this.#write(name, file)
      .then(() => {
        this.written++;
        this.writeMs = performance.now() - started;
      })
      .catch((error: unknown) => {
        this.#failure ??= storageError("write", this.pathOf(label), error, this.#options.afterFailure);
      })
      .finally(() => {
        this.#inFlight.delete(name);
        this.#checksums.delete(name);
        this.#release(buffer);
      });
    this.#inFlight.set(name, done);
    return checksum;
  }

  async #write(name: string, file: Uint8Array): Promise<void> {
    const { folder } = this.#options;
    const path = join(folder, name);
    const aside = `${path}.${process.pid}.tmp`;
    try {
      await this.#files.write(aside, file);
      await this.#files.rename(aside, path);
    } catch (error) {
      // a partial file takes space that may be needed
      await this.#files.remove(aside).catch(() => undefined);
      throw error;
    }
    await this.#files.syncFolder(folder);
  }

  /** Reads and checks a file; throws `StorageError` if there is no intact one. */
  async get(label: Label, use: (block: Uint8Array, checksum: string) => void): Promise<void> {
    await this.#inFlight.get(this.#nameOf(label));
    const buffer = await this.#buffer();
    try {
      const path = this.pathOf(label);
      const file = buffer.subarray(0, HEADER_BYTES + this.#options.sizes[label.kind]);
      const size = await this.#fill(path, file);
      const problem = problemOf(file, size, label, this.#options.fingerprint);
      if (problem !== null) throw damaged(path, problem);
      use(file.subarray(HEADER_BYTES), checksumIn(file));
      this.read++;
    } finally {
      this.#release(buffer);
    }
  }

  async #fill(path: string, file: Uint8Array): Promise<number> {
    try {
      const size = await this.#files.sizeOf(path);
      return size === file.length ? await this.#files.read(path, file) : size;
    } catch (error) {
      throw storageError("read", path, error, "its content is recomputed from the remaining files");
    }
  }

  async remove(label: Label): Promise<void> {
    await this.#inFlight.get(this.#nameOf(label));
    await this.#files.remove(this.pathOf(label));
  }

  /** Waits until a file is durable. */
  async durable(label: Label): Promise<void> {
    await this.#inFlight.get(this.#nameOf(label));
    this.check();
  }

  /** Waits until everything is durable. */
  async settled(): Promise<void> {
    await Promise.all(this.#inFlight.values());
    this.check();
  }

  /** Resets the counts. */
  resetCounts(): void {
    this.written = 0;
    this.read = 0;
  }

  /** Throws the error of a failed write. */
  check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  async #buffer(): Promise<Uint8Array> {
    this.check();
    while (this.#free.length === 0) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      this.check();
    }
    const buffer = this.#free.pop();
    invariant(buffer, () => "no buffer");
    return buffer;
  }

  #release(buffer: Uint8Array): void {
    this.#free.push(buffer);
    this.#waiting.shift()?.();
  }
}

/** The files of a folder. Temporary ones of dead writers are removed. */
export async function namesIn(files: Files, folder: string): Promise<readonly string[]> {
  const names = await files.list(folder);
  for (const name of names) if (isLeftover(name)) await files.remove(join(folder, name));
  return names.filter((name) => !isLeftover(name));
}

/** Temporary files of a dead process, or earlier ones of this process; all other files stay, whatever their suffix. */
function isLeftover(name: string): boolean {
  const match = /^(?:run\.json|run\.lock|(?:state|adjoint)-\d+(?:\.\d+-of-\d+)?\.tide)\.(\d+)\.tmp$/.exec(name);
  if (!match) return false;
  const pid = Number(match[1]);
  return pid === process.pid || !isRunning(pid);
}
