/**
 * @file Copies of programs on WebAssembly between their memory, which is shared, and a file, by threads of Node's (file-thread.ts).
 */
import { invariant } from "../base/invariant.ts";
import type { PlacedTransfer } from "../codegen/placed.ts";
import type { DeviceMemory, Target } from "../runtime/device.ts";
import { type CopiesNeeded, type FileCopies, wasmWithFile } from "../runtime/wasm-file.ts";
import { type Sharing, WasmMemory, type WasmRequest } from "../runtime/wasm-target.ts";
import { FileThread } from "./file-thread.ts";
import { reserveByWriting, SpillFile } from "./spill-file.ts";
import { fileOf, type HasFile, holdFile, type SpillStore, storeOf } from "./spill-store.ts";

/** A memory with the file of the programs that run in it. */
class FileMemory extends WasmMemory implements HasFile {
  file: SpillFile | null = null;
  store: SpillStore | null = null;

  constructor(maximumPages: number, sharing: Sharing | null) {
    super(sharing, 0, maximumPages, true);
  }
}

/** The copies of a program, on a thread for each queue. */
class Copies implements FileCopies {
  readonly #memory: FileMemory;
  readonly #file: SpillFile;
  readonly #release: () => void;
  readonly #threads = new Map<number, FileThread>();
  /** Numbers of copies that are under way. */
  readonly #started = new Map<number, number>();

  constructor(memory: FileMemory, { transfers, fileBytes, spill }: CopiesNeeded) {
    const folder = spill?.to;
    invariant(typeof folder === "string", () => "a program with copies to a file, and no folder");
    this.#memory = memory;
    this.#file = fileOf(memory, fileBytes, () => new SpillFile(folder, reserveByWriting));
    this.#release = holdFile(memory, this.#file);
    const options = {
      file: this.#file.descriptor,
      memory: memory.memory,
      limit: spill?.limit ?? 0,
      most: transfers.length,
    };
    for (const { queue } of transfers.filter(({ transfer }) => transfer === "start"))
      if (!this.#threads.has(queue)) this.#threads.set(queue, new FileThread(options));
  }

  get bytes(): number {
    return this.#file.bytes;
  }

  /** The file for what persists in it. */
  store(): SpillStore {
    return storeOf(this.#memory, this.#file);
  }

  do({ transfer, copy, queue, from, to, bytes }: PlacedTransfer): void {
    const thread = this.#threads.get(queue);
    invariant(thread, () => `queue ${queue} has no thread`);
    if (transfer === "wait") {
      thread.wait(this.#started.get(copy) ?? 0);
      return;
    }
    const isWrite = from.space === 0;
    const [inArena, inFile] = isWrite ? [from, to] : [to, from];
    this.#started.set(copy, thread.start(isWrite, this.#memory.start + inArena.address, inFile.address, bytes));
  }

  check(): void {
    const errors = [...this.#threads.values()].map((thread) => thread.error());
    const error = errors.find((number) => number !== 0);
    if (error !== undefined) throw this.#file.failure("cannot be read or written any more", error);
  }

  close(): void {
    for (const thread of this.#threads.values()) thread.close();
    this.#release();
  }
}

/** WebAssembly with a file of Node's. */
export const wasmWithNodeFile = (request: Pick<WasmRequest, "threads" | "workers" | "devices">): Target =>
  wasmWithFile(
    {
      memory: "shared",
      newMemory: (pages, sharing) => new FileMemory(pages, sharing),
      isMemory: (memory: DeviceMemory): memory is FileMemory => memory instanceof FileMemory,
      copies: (memory, needed) => new Copies(memory, needed),
    },
    request,
  );
