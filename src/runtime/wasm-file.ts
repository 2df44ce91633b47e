/**
 * @file The target `wasm` for programs whose values wait in a file. The module has a function for the steps between two copies;
 * in between copies are begun and waited for: by threads of Node's, or done at once by a worker of a page.
 */
import { invariant } from "../base/invariant.ts";
import { isTransfer, type PlacedProgram, type PlacedStep, type PlacedTransfer } from "../codegen/placed.ts";
import { LARGEST_ARENA_BYTES } from "../codegen/wasm/description.ts";
import { MOST_PAGES } from "../codegen/wasm/encoder.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { emitProgram, pagesOf, stepGroups } from "../codegen/wasm/program.ts";
import type { DeviceMemory, LoadOptions, Machine, Target } from "./device.ts";
import { instanceOf, moduleFrom } from "./wasm-module.ts";
import { type WasmMemory, wasmTarget } from "./wasm-target.ts";

/** The copies of a program. */
export interface FileCopies {
  /** Of the file, as the system has it. */
  readonly bytes: number;
  /** Half of a copy. */
  do(step: PlacedTransfer): void;
  /** Throws what went wrong since it was asked last. */
  check(): void;
  /** The file for what persists in it. */
  store(): DeviceMemory;
  close(): void;
}

/** What a program with copies asks for. */
export interface CopiesNeeded {
  readonly transfers: readonly PlacedTransfer[];
  readonly fileBytes: number;
  readonly spill: LoadOptions["spill"];
}

/** Memories with files, and who copies. */
export interface FileSupport<M extends WasmMemory> {
  /** Whether threads that copy have the memory too. */
  readonly memory: "shared" | "own";
  newMemory(pages: number): M;
  isMemory(memory: DeviceMemory): memory is M;
  copies(memory: M, needed: CopiesNeeded): FileCopies;
}

const abandoned = new FinalizationRegistry<FileCopies>((copies) => copies.close());

function load<M extends WasmMemory>(
  placed: PlacedProgram,
  fma: boolean,
  { stepwise, spill, memory }: LoadOptions,
  support: FileSupport<M>,
): Machine {
  const { kernels, copies: finalCopies, plan, base } = placed;
  const height = base + plan.height;
  const arena = memory ?? support.newMemory(pagesOf(height));
  invariant(support.isMemory(arena), () => "a memory of another target");
  arena.reserve(height);
  const code = emitProgram(kernels, finalCopies, height, {
    fma,
    winograd: "paying",
    stepwise,
    inParts: support.memory,
  });
  const module = moduleFrom(code.bytes);
  const { exports } = instanceOf(module, { memory: arena.memory, check: () => undefined });
  const transfers = kernels.filter(isTransfer);
  const needed = { transfers, fileBytes: plan.others[0]?.height ?? 0, spill };
  const copies = transfers.length === 0 ? null : support.copies(arena, needed);
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
    get file() {
      return copies?.store() ?? null;
    },
  };
  if (copies) abandoned.register(machine, copies, machine);
  return machine;
}

/** On one thread. */
export function wasmWithFile<M extends WasmMemory>(support: FileSupport<M>): Target {
  const fma = detectFeatures().relaxedMadd;
  const { loadCode: _, ...plain } = wasmTarget(fma);
  return {
    ...plain,
    spills: true,
    load: (placed, options) => load(placed, fma, options, support),
    allocate: (budgetBytes = LARGEST_ARENA_BYTES) => support.newMemory(Math.min(pagesOf(budgetBytes), MOST_PAGES)),
  };
}
