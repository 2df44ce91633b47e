/**
 * @file The arena of a function: one memory in which its programs run in turn, and the tensors that live there between runs.
 *
 *   ├── what persists: state, constants ──┼── whatever the program that runs needs ──┤
 *   0                                                                                the largest program's height
 *
 * Plans lay what persists out from the bottom in the order of parameters, so programs for other shapes of a batch find state
 * and constants where the last one left them. Where programs do not agree about a part of it, what is there is moved out
 * before the next one runs over it: nothing that a user holds is ever overwritten.
 *
 * What persists in a file beside the arena (docs/spill.md) is in an arena of its own, with the file as its memory.
 */
import { byteLength, type TensorType } from "../ir/type.ts";
import { ArrayStorage, type TensorStorage } from "../trace/storage.ts";
import { BorrowedStorage } from "./borrowed.ts";
import type { DeviceMemory } from "./device.ts";
import { type Elements, elementsAt, notReadable, readElements, writeElements } from "./executable.ts";
import { PendingStorage, ResidentStorage } from "./resident.ts";

/** What a program leaves in the arena between runs (bytes by address), and up to where it overwrites everything else. */
export interface Tenant {
  readonly slots: ReadonlyMap<number, number>;
  readonly height: number;
}

interface Resident {
  readonly storage: TensorStorage;
  readonly bytes: number;
  /** It is the constant's copy; else the storage's own elements. */
  readonly isConstant: boolean;
}

export class Arena {
  readonly memory: DeviceMemory;
  /** By address. */
  readonly #residents = new Map<number, Resident>();
  /** Constants that had to make room and may have been donated elsewhere since: what they were. */
  readonly #aside = new Map<TensorStorage, TensorStorage>();
  #tenant: Tenant | null = null;
  /** What persists in a file of the same programs. */
  #inFile: Arena | null = null;
  /** Results stay here until the next run. */
  readonly #lends: boolean;
  #runs = 0;

  constructor(memory: DeviceMemory, lends = false) {
    this.memory = memory;
    this.#lends = lends && memory.bytesAt !== undefined;
  }

  /** What persists in a file beside this memory: one for all programs. */
  inFile(file: DeviceMemory): Arena {
    if (this.#inFile?.memory !== file) this.#inFile = new Arena(file);
    return this.#inFile;
  }

  /** How often a program has run here. */
  get runs(): number {
    return this.#runs;
  }

  /** A program runs from now on; its arguments have been read. */
  begin(): void {
    this.#runs += 1;
  }

  get readsAtOnce(): boolean {
    return this.memory.readInto !== null;
  }

  /** A copy of the elements at an address. */
  read(type: TensorType, address: number): Elements {
    return readElements(this.memory, type, address);
  }

  /** The elements at an address themselves. */
  view(type: TensorType, address: number): Elements {
    if (!this.memory.bytesAt && this.readsAtOnce) return this.read(type, address);
    const bytes = this.memory.bytesAt?.(address, byteLength(type));
    if (!bytes) throw notReadable(type);
    return elementsAt(bytes.buffer as ArrayBuffer, type, bytes.byteOffset);
  }

  /** Writes the elements at an address into an array of the same type. */
  readInto(type: TensorType, address: number, into: Elements): void {
    if (!this.memory.readInto) throw notReadable(type);
    this.memory.readInto(address, new Uint8Array(into.buffer, into.byteOffset, into.byteLength));
  }

  /** A copy of the elements at an address, once the runs before it are done. */
  async fetch(type: TensorType, address: number): Promise<Elements> {
    const bytes = await this.memory.read(address, byteLength(type));
    return elementsAt(bytes.slice().buffer, type, 0);
  }

  write(type: TensorType, address: number, fill: (into: Elements) => void): void {
    writeElements(this.memory, type, address, fill);
  }

  /** A result of the last run, in an array of its own: at once, or when it is there. */
  result(type: TensorType, address: number): TensorStorage {
    if (!this.memory.readInto) return new PendingStorage(type, this.fetch(type, address));
    return new ArrayStorage(type.dtype, type.shape, this.read(type, address));
  }

  /** A result of the last run as the function's caller has it. */
  output(type: TensorType, address: number): TensorStorage {
    return this.#lends ? new BorrowedStorage(type, this, address) : this.result(type, address);
  }

  /** Whether a constant is at an address. */
  hasConstant(address: number, storage: TensorStorage): boolean {
    return this.#residents.get(address)?.storage === storage;
  }

  /** The elements of a constant, which stays what it was even if it is donated elsewhere meanwhile. */
  readConstant(storage: TensorStorage): Elements {
    const aside = this.#aside.get(storage);
    if (aside || !storage.isConsumed) return (aside ?? storage).read();
    const [address] = [...this.#residents].find(([, own]) => own.isConstant && own.storage === storage) ?? [];
    if (address !== undefined) return this.read(storage, address);
    return this.#inFile?.readConstant(storage) ?? storage.read();
  }

  /** From now on a constant is at an address, which was vacated before. */
  putConstant(address: number, storage: TensorStorage, bytes: number): void {
    this.#aside.delete(storage);
    this.#residents.set(address, { storage, bytes, isConstant: true });
  }

  /** Constants of another arena, which goes: what they were, until they are written here. */
  takeConstants(from: Arena): void {
    for (const [storage, own] of from.#aside) this.#aside.set(storage, own);
    for (const [address, { storage, isConstant }] of from.#residents) {
      if (isConstant) this.#aside.set(storage, from.#spareOf(storage, address));
    }
    if (from.#inFile) this.takeConstants(from.#inFile);
  }

  /** What a constant at an address is: its own array as long as it is not donated, else a copy. */
  #spareOf(storage: TensorStorage, address: number): TensorStorage {
    const spare = storage instanceof ResidentStorage || storage.isConsumed ? null : storage.spare?.();
    return spare ?? this.result(storage, address);
  }

  /** A tensor that lives at an address, over what was there before. */
  put(type: TensorType, address: number): ResidentStorage {
    const storage = new ResidentStorage(type, this, address);
    const bytes = byteLength(type);
    // One without elements has the address of its neighbour.
    if (bytes > 0) this.#residents.set(address, { storage, bytes, isConstant: false });
    return storage;
  }

  /** A program is about to run: what lives where it has no slot for it is moved out. Whether it also was the last that ran. */
  enter(tenant: Tenant): boolean {
    if (this.#tenant === tenant) return true;
    this.#tenant = tenant;
    for (const [address, { bytes }] of this.#residents) {
      if (address >= tenant.height || tenant.slots.get(address) === bytes) continue;
      this.vacate(address);
    }
    return false;
  }

  /** An address is needed for something else: a tensor there goes on in an array of its own. */
  vacate(address: number): void {
    const resident = this.#residents.get(address);
    this.#residents.delete(address);
    if (!resident) return;
    const { storage, isConstant } = resident;
    if (isConstant) this.#aside.set(storage, this.#spareOf(storage, address));
    else if (storage instanceof ResidentStorage) storage.moveOut();
  }

  /** Nothing lives here any more, and the memory is given back. */
  clear(): void {
    for (const address of [...this.#residents.keys()]) this.vacate(address);
    this.#aside.clear();
    this.begin();
    this.#tenant = null;
    this.#inFile?.clear();
    this.#inFile = null;
    this.memory.close?.();
  }
}
