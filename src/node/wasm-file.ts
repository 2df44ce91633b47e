/**
 * @file The target `wasm` for programs whose values wait in a file. The module has a function for the steps between two copies; copies are
 * begun and waited for in between, by threads that share the memory (file-thread.ts).
 */
import { invariant } from "../base/invariant.ts";
import { isTransfer, type PlacedProgram, type PlacedStep, type PlacedTransfer } from "../codegen/placed.ts";
import { LARGEST_ARENA_BYTES } from "../codegen/wasm/description.ts";
import { MOST_PAGES } from "../codegen/wasm/encoder.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { emitProgram, pagesOf, stepGroups } from "../codegen/wasm/program.ts";
import { paramsElsewhere } from "../plan/space.ts";
import type { LoadOptions, Machine, Target } from "../runtime/device.ts";
import { instanceOf, moduleFrom } from "../runtime/wasm-module.ts";
import { WasmMemory, wasmTarget } from "../runtime/wasm-target.ts";
import { FileThread } from "./file-thread.ts";
import { reserveByWriting, SpillFile } from "./spill-file.ts";
import { fileOf, type HasFile, holdFile, type SpillStore, storeOf } from "./spill-store.ts";

/** A memory with the file of the programs that run in it. */
class FileMemory extends WasmMemory implements HasFile {
  file: SpillFile | null = null;
  store: SpillStore | null = null;

  constructor(maximumPages: number) {
    super(null, 0, maximumPages, true);
  }
}

/** The copies of a program, on a thread for each queue. */
class Copies {
  readonly #memory: FileMemory;
  readonly #file: SpillFile;
  readonly #release: () => void;
  readonly #threads = new Map<number, FileThread>();
  /** Numbers of copies that are under way. */
  readonly #started = new Map<number, number>();

  constructor(
    memory: FileMemory,
    transfers: readonly PlacedTransfer[],
    fileBytes: number,
    spill: LoadOptions["spill"],
  ) {
    invariant(spill, () => "a program with copies to a file, and no folder");
    this.#memory = memory;
    this.#file = fileOf(memory, fileBytes, () => new SpillFile(spill.to, reserveByWriting));
    this.#release = holdFile(memory, this.#file);
    const options = {
      file: this.#file.descriptor,
      memory: memory.memory,
      limit: spill.limit ?? 0,
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

const abandoned = new FinalizationRegistry<Copies>((copies) => copies.close());

function load(placed: PlacedProgram, fma: boolean, { stepwise, spill, memory }: LoadOptions): Machine {
  const { kernels, copies: finalCopies, plan, base } = placed;
  const height = base + plan.height;
  const arena = memory ?? new FileMemory(pagesOf(height));
  invariant(arena instanceof FileMemory, () => "a memory of another target");
  arena.reserve(height);
  const code = emitProgram(kernels, finalCopies, height, { fma, winograd: "paying", stepwise, inParts: true });
  const module = moduleFrom(code.bytes);
  const { exports } = instanceOf(module, { memory: arena.memory, check: () => undefined });
  const transfers = kernels.filter(isTransfer);
  const copies = transfers.length === 0 ? null : new Copies(arena, transfers, plan.others[0]?.height ?? 0, spill);
  const call = (name: string): void => (exports[name] as () => void)();
  const groups = stepGroups(kernels).map((group, i): readonly [string, PlacedStep | undefined] => [
    `part${i}`,
    group[0],
  ]);
  const machine: Machine = {
    moduleBytes: code.bytes.length,
    kernelFunctions: code.functions,
    memory: arena,
    run() {
      if (!copies) return call("run");
      for (const [part, first] of groups) {
        if (first && isTransfer(first)) copies.do(first);
        else call(part);
      }
      for (const { to, from, bytes } of finalCopies) arena.copy(to, from, bytes);
      copies.check();
    },
    step(i) {
      const step = kernels[i];
      if (step && isTransfer(step)) copies?.do(step);
      else call(`step${i}`);
    },
    close() {
      abandoned.unregister(machine);
      copies?.close();
    },
    ...(copies ? { spillBytes: () => copies.bytes } : {}),
    ...(copies && paramsElsewhere(plan.program).length > 0 ? { file: copies.store() } : {}),
  };
  if (copies) abandoned.register(machine, copies, machine);
  return machine;
}

/** On one thread. */
export function wasmWithFile(): Target {
  const fma = detectFeatures().relaxedMadd;
  const { loadCode: _, ...plain } = wasmTarget(fma);
  return {
    ...plain,
    spills: true,
    load: (placed, options) => load(placed, fma, options),
    allocate: (budgetBytes = LARGEST_ARENA_BYTES) => new FileMemory(Math.min(pagesOf(budgetBytes), MOST_PAGES)),
  };
}
