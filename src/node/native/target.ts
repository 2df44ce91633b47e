/**
 * @file The target `native`: C for this machine, compiled by its compiler, run on an arena of the process. Importing
 * `tidemark/node` makes it known under its name.
 */
import { isMainThread } from "node:worker_threads";
import { TidemarkError } from "../../base/errors.ts";
import { contractScratch } from "../../codegen/native/contract.ts";
import type { NativeEmitOptions } from "../../codegen/native/options.ts";
import { emitNativeProgram } from "../../codegen/native/program.ts";
import type { WinogradUse } from "../../kernel/winograd.ts";
import { type CostModel, DEFAULT_MODELS } from "../../plan/cost/model.ts";
import { DEFAULT_TILE } from "../../plan/cost/work.ts";
import type { PlacedProgram } from "../../runtime/assembler.ts";
import type { LoadOptions, Machine, Target, TargetAnswer, TargetRequest } from "../../runtime/target.ts";
import { type Compiler, systemCompiler } from "./compiler.ts";
import { foreignFunctions, libraryFor } from "./library.ts";

/** Bytes; the arena starts at a multiple, as the plan's offsets do. */
const ALIGNMENT = 64;

type Koffi = Exclude<ReturnType<typeof foreignFunctions>, string>;

/** Threads of programs that nobody can run any more are sent home, and all of a worker of Node when it ends. */
const abandoned = new FinalizationRegistry<() => void>((close) => close());
const closers = new Set<() => void>();
if (!isMainThread) {
  process.once("exit", () => {
    for (const close of closers) close();
  });
}

/** Sends a program's threads home when its machine is gone, or this thread of Node is. */
function closeWith(machine: Machine, close: () => void): void {
  const once = (): void => {
    if (closers.delete(once)) close();
  };
  closers.add(once);
  abandoned.register(machine, once);
}

function load(
  koffi: Koffi,
  compiler: Compiler,
  native: NativeEmitOptions,
  placed: PlacedProgram,
  { stepwise }: LoadOptions,
): Machine {
  const options = stepwise ? { ...native, threads: 1, stepwise } : native;
  const { text, functions } = emitNativeProgram(placed.kernels, placed.copies, options);
  const library = libraryFor(koffi, compiler, text, stepwise);
  const buffer = new ArrayBuffer(placed.plan.height + ALIGNMENT);
  const address = koffi.address(new Uint8Array(buffer, 0, 1));
  const start = (ALIGNMENT - Number(address % BigInt(ALIGNMENT))) % ALIGNMENT;
  const arena = address + BigInt(start);
  library.arena(arena, placed.plan.height);
  const team = library.open();
  if (team === null) {
    const summary = `${options.threads} threads could not be started`;
    throw new TidemarkError("TargetUnsupported", summary, {
      help: "ask for fewer threads, or raise the system's limit",
    });
  }
  const { run, step, close } = library;
  const machine: Machine = {
    moduleBytes: library.bytes,
    kernelFunctions: functions,
    buffer,
    start,
    run: () => run(team, arena),
    step: (i) => step?.(team, arena, i),
  };
  if (options.threads > 1) closeWith(machine, () => close(team));
  return machine;
}

/**
 * What tests ask for beside: no fused multiply-add, no Winograd (by default where there is no fused multiply-add, so that
 * without it results have the bits of every other target), all calls shared, code for another machine.
 */
export interface NativeRequest extends TargetRequest {
  readonly fma?: boolean;
  readonly winograd?: WinogradUse | "never";
  readonly shareFrom?: number;
  readonly compiler?: Compiler | string;
}

/** Speeds of the target, with convolutions as they are computed. */
function costsOf({ winograd, lanes }: NativeEmitOptions): CostModel {
  const { native } = DEFAULT_MODELS;
  const { tile = DEFAULT_TILE } = native;
  return { ...native, tile: { ...tile, winogradLanes: winograd ? lanes : 0 } };
}

/** Code for the machine at hand. */
export function nativeTarget(request: NativeRequest = {}): TargetAnswer {
  const { compiler = systemCompiler() } = request;
  if (typeof compiler === "string") return compiler;
  const koffi = foreignFunctions();
  if (typeof koffi === "string") return koffi;
  const { threads = 1, fma = compiler.fma, winograd = fma ? "paying" : "never", shareFrom } = request;
  const options: NativeEmitOptions = {
    ...{ lanes: compiler.lanes, fma, threads },
    ...(winograd === "never" ? {} : { winograd }),
    ...(shareFrom === undefined ? {} : { shareFrom }),
  };
  const target: Target = {
    name: "native",
    threads,
    traits: {
      key: `native ${JSON.stringify(options)}`,
      contractScratch: (_dtype, _m, _n, _k, nest, operands) => contractScratch(nest, operands, options),
    },
    costs: costsOf(options),
    arithmetic: `native, ${fma ? "fused multiply-add" : "plain"}`,
    load: (placed, how) => load(koffi, compiler, options, placed, how),
  };
  return target;
}
