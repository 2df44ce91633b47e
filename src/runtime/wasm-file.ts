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
import { teamBytes } from "../codegen/wasm/team.ts";
import type { DeviceMemory, LoadOptions, Machine, Target } from "./device.ts";
import { placesIn } from "./wasm-code.ts";
import { instanceOf, moduleFrom } from "./wasm-module.ts";
import { importsOf, type Sharing, sharingOf, type WasmMemory, type WasmRequest, wasmTarget } from "./wasm-target.ts";

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
  newMemory(pages: number, sharing: Sharing | null): M;
  isMemory(memory: DeviceMemory): memory is M;
  copies(memory: M, needed: CopiesNeeded): FileCopies;
}

const abandoned = new FinalizationRegistry<FileCopies>((copies) => copies.close());

/** The parts of a program and the copies between them, one after the other. */
function turns(
  { kernels, copies: finalCopies }: PlacedProgram,
  arena: WasmMemory,
  copies: FileCopies | null,
  call: (name: string) => void,
): () => void {
  if (!copies) return () => call("run");
  const groups = stepGroups(kernels).map((group, i): readonly [string, PlacedStep | undefined] => [
    `part${i}`,
    group[0],
  ]);
  return () => {
    for (const [part, first] of groups) {
      if (first && isTransfer(first)) copies.do(first);
      else call(part);
    }
    for (const { to, from, bytes } of finalCopies) arena.copy(to, from, bytes);
  };
}

function load<M extends WasmMemory>(
  placed: PlacedProgram,
  { stepwise, spill, memory }: LoadOptions,
  support: FileSupport<M>,
  { fma, threads = 1, devices, ...request }: FileRequest,
): Machine {
  const { kernels, copies: finalCopies, plan, base } = placed;
  const height = base + plan.height;
  const arena = memory ?? support.newMemory(pagesOf(wordsOf(threads) + height), sharingOf({ ...request, threads }));
  invariant(support.isMemory(arena), () => "a memory of another target");
  arena.reserve(height);
  const code = emitProgram(kernels, finalCopies, height, {
    fma,
    winograd: "paying",
    stepwise,
    inParts: support.memory,
    threads,
    placeOf: placesIn(placed),
    // step by step the caller is alone
    ...(stepwise ? { shareFrom: Number.POSITIVE_INFINITY } : {}),
  });
  const module = moduleFrom(code.bytes);
  const { env, enter } = importsOf(arena, { ...code, name: plan.program.name }, devices);
  const { exports } = instanceOf(module, env);
  const transfers = kernels.filter(isTransfer);
  const needed = { transfers, fileBytes: plan.others[0]?.height ?? 0, spill };
  const copies = transfers.length === 0 ? null : support.copies(arena, needed);
  const call = (name: string): void => (exports[name] as () => void)();
  const inTurn = turns(placed, arena, copies, call);
  const { team } = arena;
  const machine: Machine = {
    moduleBytes: code.bytes.length,
    kernelFunctions: code.functions,
    memory: arena,
    run() {
      enter();
      if (team && code.isShared) team.run({ module, memory: arena.memory }, inTurn);
      else inTurn();
      copies?.check();
    },
    step(i) {
      const step = kernels[i];
      if (step && isTransfer(step)) copies?.do(step);
      else call(`step${i}`);
    },
    close() {
      abandoned.unregister(machine);
      team?.dismiss();
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

/** Of the team, before the arena. */
const wordsOf = (threads: number): number => (threads > 1 ? teamBytes(threads) : 0);

/** How programs are computed; default: on one thread, with fused multiply-add where the engine has it. */
export type FileRequest = Pick<WasmRequest, "threads" | "workers" | "devices"> & { readonly fma: boolean };

/** WebAssembly whose programs have files. */
export function wasmWithFile<M extends WasmMemory>(
  support: FileSupport<M>,
  request: Omit<FileRequest, "fma"> = {},
): Target {
  const how = { ...request, fma: detectFeatures().relaxedMadd };
  const { loadCode: _, ...plain } = wasmTarget(how.fma, request);
  return {
    ...plain,
    spills: "file",
    load: (placed, options) => load(placed, options, support, how),
    allocate(budgetBytes = LARGEST_ARENA_BYTES) {
      const pages = Math.min(pagesOf(wordsOf(plain.threads) + budgetBytes), MOST_PAGES);
      return support.newMemory(pages, sharingOf(request));
    },
  };
}
