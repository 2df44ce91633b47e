/**
 * @file A file of a browser, in the private file system of the page's origin, for values that wait for a later use. A worker of a page
 * reads and writes it at once, without waiting for the event loop (`FileSystemSyncAccessHandle`); so copies are done where they start,
 * and the program waits for them. Such files have names. They are removed when they are closed, and those of workers that have ended
 * when the next one is made: a file that is open cannot be removed, which tells them apart.
 */
import { formatBytes } from "../base/bytes.ts";
import { grouped, TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import type { PlacedTransfer } from "../codegen/placed.ts";
import type { DeviceMemory, OpenFile, Target } from "./device.ts";
import { type CopiesNeeded, type FileCopies, wasmWithFile } from "./wasm-file.ts";
import { WasmMemory } from "./wasm-target.ts";

/** The part of `FileSystemSyncAccessHandle` that is used. */
export interface SyncHandle {
  read(into: Uint8Array, options: { readonly at: number }): number;
  write(from: Uint8Array, options: { readonly at: number }): number;
  truncate(bytes: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

const problemOf = (error: unknown): string => (error instanceof Error ? error.name : String(error));

/** The storage that a file is in. */
export interface PageStorage {
  /** That the origin may still take; Infinity where that is not known. */
  readonly roomBytes: number;
  remove(): Promise<void>;
}

export class PageFile implements OpenFile {
  readonly name: string;
  readonly #handle: SyncHandle;
  readonly #roomBytes: number;
  readonly #remove: () => Promise<void>;
  /** Whose values are in it. */
  #owner: object | null = null;
  #rate: number | null = null;
  #isClosed = false;

  /** @param roomBytes that the origin may still take */
  constructor(name: string, handle: SyncHandle, { roomBytes, remove }: PageStorage) {
    this.name = name;
    this.#handle = handle;
    this.#roomBytes = roomBytes;
    this.#remove = remove;
  }

  get bytes(): number {
    return this.#isClosed ? 0 : this.#handle.getSize();
  }

  /** From now on it has values of these programs, and no others. */
  take(owner: object, bytes: number): void {
    if (this.#isClosed) throw this.#failure("was closed", "make another one: await pageFile()");
    if (this.#owner !== null && this.#owner !== owner) {
      throw this.#failure("belongs to another function", "make a file for each: await pageFile()");
    }
    this.#reserve(bytes);
    this.#owner = owner;
  }

  /** It may be given to another function. */
  leave(owner: object): void {
    if (this.#owner === owner) this.#owner = null;
  }

  /** By writing: a file that is only made longer takes no room until it is full. */
  #reserve(bytes: number): void {
    const size = this.#handle.getSize();
    if (size >= bytes) return;
    const help = "raise memory so that less is moved, or free storage of this origin";
    const refused = (why: string): TidemarkError =>
      this.#failure(`has no room for ${grouped(bytes)} bytes${why}`, help);
    if (bytes > this.#roomBytes) throw refused(`, ${grouped(this.#roomBytes)} are free`);
    const zeros = new Uint8Array(Math.min(bytes - size, 2 ** 20));
    try {
      for (let at = size; at < bytes; ) {
        const count = this.#handle.write(zeros.subarray(0, Math.min(zeros.length, bytes - at)), { at });
        if (count === 0) throw refused("");
        at += count;
      }
    } catch (error) {
      this.#handle.truncate(size);
      throw error instanceof TidemarkError ? error : refused(` (${problemOf(error)})`);
    }
  }

  read(into: Uint8Array, address: number): void {
    this.#transfer("read", into, address);
  }

  write(from: Uint8Array, address: number): void {
    this.#transfer("written", from, address);
  }

  #transfer(what: "read" | "written", bytes: Uint8Array, address: number): void {
    const help = "storage of this origin may be full, or was cleared; raise memory so that less is moved";
    try {
      const at = { at: address };
      const count = what === "read" ? this.#handle.read(bytes, at) : this.#handle.write(bytes, at);
      if (count === bytes.length) return;
    } catch (error) {
      throw this.#failure(`cannot be ${what} any more (${problemOf(error)})`, help);
    }
    throw this.#failure(`cannot be ${what} any more`, help);
  }

  /** Bytes a second, as one digit and a power of ten; measured once. */
  get bytesPerSecond(): number {
    this.#rate ??= this.#measured();
    return this.#rate;
  }

  #measured(): number {
    const size = this.bytes;
    const piece = new Uint8Array(MEASURED_BYTES / 8).fill(1);
    const started = performance.now();
    for (let at = 0; at < MEASURED_BYTES; at += piece.length) this.write(piece, size + at);
    this.#handle.flush();
    this.#handle.truncate(size);
    const rate = MEASURED_BYTES / (0.001 * Math.max(0.1, performance.now() - started));
    const power = 10 ** Math.floor(Math.log10(rate));
    return Math.floor(rate / power) * power;
  }

  /** Closes and removes it. Tensors that are still in it cannot be read any more. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handle.close();
    await this.#remove();
  }

  #failure(summary: string, help: string): TidemarkError {
    return new TidemarkError("StorageError", `spill: the file ${this.name} ${summary}`, { help });
  }

  toString(): string {
    return `${this.name}, ${formatBytes(this.bytes)}`;
  }
}

/** Written to measure a file. */
const MEASURED_BYTES = 2 ** 23;

/** A memory whose programs have a file. */
class PageMemory extends WasmMemory {
  file: PageFile | null = null;
  store: PageStore | null = null;
  /** Programs, and what persists in the file. */
  holders = 0;

  constructor(maximumPages: number) {
    super(null, 0, maximumPages);
  }

  release(): void {
    this.holders--;
    if (this.holders > 0) return;
    this.file?.leave(this);
    this.file = null;
  }
}

/** The file as a memory, for what persists in it between runs. */
class PageStore implements DeviceMemory {
  readonly #file: PageFile;
  #memory: PageMemory | null;

  constructor(memory: PageMemory, file: PageFile) {
    memory.holders++;
    this.#memory = memory;
    this.#file = file;
  }

  get bytes(): number {
    return this.#file.bytes;
  }

  get allocatedBytes(): number {
    return this.#file.bytes;
  }

  reserve(bytes: number): void {
    if (this.#memory) this.#file.take(this.#memory, bytes);
  }

  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void {
    const content = new Uint8Array(bytes);
    fill(content);
    this.#file.write(content, address);
  }

  read(address: number, bytes: number): Promise<Uint8Array> {
    const content = new Uint8Array(bytes);
    this.readInto(address, content);
    return Promise.resolve(content);
  }

  readInto(address: number, into: Uint8Array): void {
    this.#file.read(into, address);
  }

  fill(address: number, bytes: number, value: number): void {
    this.write(address, bytes, (into) => into.fill(value));
  }

  copy(to: number, from: number, bytes: number): void {
    const content = new Uint8Array(bytes);
    this.readInto(from, content);
    this.#file.write(content, to);
  }

  close(): void {
    if (!this.#memory) return;
    this.#memory.store = null;
    this.#memory.release();
    this.#memory = null;
  }
}

/** Copies that are done where they start. */
class PageCopies implements FileCopies {
  readonly #memory: PageMemory;
  readonly #file: PageFile;
  #isOpen = true;

  constructor(memory: PageMemory, { fileBytes, spill }: CopiesNeeded) {
    const file = memory.file ?? spill?.to;
    invariant(file instanceof PageFile, () => "a program with copies to a file of a page, and no such file");
    file.take(memory, fileBytes);
    memory.file = file;
    memory.holders++;
    this.#memory = memory;
    this.#file = file;
  }

  get bytes(): number {
    return this.#file.bytes;
  }

  do({ transfer, from, to, bytes }: PlacedTransfer): void {
    if (transfer === "wait") return;
    const isWrite = from.space === 0;
    const [inArena, inFile] = isWrite ? [from, to] : [to, from];
    const content = this.#memory.bytesAt(inArena.address, bytes);
    if (isWrite) this.#file.write(content, inFile.address);
    else this.#file.read(content, inFile.address);
  }

  check(): void {
    // copies throw
  }

  store(): DeviceMemory {
    this.#memory.store ??= new PageStore(this.#memory, this.#file);
    return this.#memory.store;
  }

  close(): void {
    if (this.#isOpen) this.#memory.release();
    this.#isOpen = false;
  }
}

/** WebAssembly on one thread, with a file of a page. */
export const wasmWithPageFile = (): Target =>
  wasmWithFile({
    memory: "own",
    newMemory: (pages) => new PageMemory(pages),
    isMemory: (memory: DeviceMemory): memory is PageMemory => memory instanceof PageMemory,
    copies: (memory, needed) => new PageCopies(memory, needed),
  });
