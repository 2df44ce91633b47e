/**
 * @file The file of programs as a memory of the host, for what persists in it between runs: state of a training step is written there
 * before the first run, and read when its user asks for it. No program runs meanwhile, and all its copies are done.
 */
import { readSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { TidemarkError } from "../base/errors.ts";
import type { DeviceMemory } from "../runtime/device.ts";
import type { SpillFile } from "./spill-file.ts";

/** Of a copy within the file. */
const PIECE_BYTES = 2 ** 20;

/** Of a part of an array; the bytes that were taken over. */
type Transfer = (part: Uint8Array, address: number) => number;

export class SpillStore implements DeviceMemory {
  readonly #file: SpillFile;
  #release: (() => void) | null;

  /** Keeps the file open until it is closed, whichever programs come and go. */
  constructor(memory: HasFile, file: SpillFile) {
    this.#file = file;
    const release = holdFile(memory, file);
    this.#release = () => {
      memory.store = null;
      release();
    };
  }

  get bytes(): number {
    return this.#file.bytes;
  }

  get allocatedBytes(): number {
    return this.#file.bytes;
  }

  reserve(bytes: number): void {
    this.#file.reserve(bytes);
  }

  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void {
    const content = new Uint8Array(bytes);
    fill(content);
    this.#transfer(this.#write, content, address);
  }

  read(address: number, bytes: number): Promise<Uint8Array> {
    const content = new Uint8Array(bytes);
    this.readInto(address, content);
    return Promise.resolve(content);
  }

  readInto(address: number, into: Uint8Array): void {
    this.#transfer(this.#read, into, address);
  }

  fill(address: number, bytes: number, value: number): void {
    this.write(address, bytes, (into) => into.fill(value));
  }

  copy(to: number, from: number, bytes: number): void {
    for (let done = 0; done < bytes; done += PIECE_BYTES) {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, bytes - done));
      this.readInto(from + done, piece);
      this.#transfer(this.#write, piece, to + done);
    }
  }

  close(): void {
    this.#release?.();
    this.#release = null;
  }

  readonly #read: Transfer = (part, address) => readSync(this.#file.hostDescriptor, part, 0, part.length, address);
  readonly #write: Transfer = (part, address) => writeSync(this.#file.hostDescriptor, part, 0, part.length, address);

  #transfer(transfer: Transfer, bytes: Uint8Array, address: number): void {
    try {
      for (let done = 0; done < bytes.length; ) {
        const count = transfer(bytes.subarray(done), address + done);
        if (count === 0) throw this.#file.failure("ends too soon", constants.errno.EIO);
        done += count;
      }
    } catch (error) {
      if (error instanceof TidemarkError) throw error;
      const { errno = -constants.errno.EIO } = error as NodeJS.ErrnoException;
      throw this.#file.failure("cannot be read or written any more", -errno);
    }
  }
}

/** A memory with the file of its programs: there while one of them may run, or something persists in it. */
export interface HasFile {
  file: SpillFile | null;
  store: SpillStore | null;
}

/** The file of a memory with room for so many bytes; opened where there is none. */
export function fileOf(memory: HasFile, bytes: number, open: () => SpillFile): SpillFile {
  const file = memory.file ?? open();
  file.reserve(bytes);
  memory.file = file;
  return file;
}

/** Keeps the file of a memory open until the function that is returned is called. */
export function holdFile(memory: HasFile, file: SpillFile): () => void {
  return file.hold(() => {
    memory.file = null;
  });
}

/** The file of a memory for what persists in it. */
export function storeOf(memory: HasFile, file: SpillFile): SpillStore {
  memory.store ??= new SpillStore(memory, file);
  return memory.store;
}
