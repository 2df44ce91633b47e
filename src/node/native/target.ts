/**
 * @file The target `native`: C for this machine, compiled by the system's compiler, run on an arena of the process. It is part
 * of the host of Node (node/host.ts).
 */
import { isMainThread } from "node:worker_threads";
import { TidemarkError } from "../../base/errors.ts";
import { invariant } from "../../base/invariant.ts";
import type { WinogradUse } from "../../codegen/cpu/winograd-choice.ts";
import { nativeDescription } from "../../codegen/native/description.ts";
import { exchangePlaces, groupsIn } from "../../codegen/native/exchange.ts";
import { type NativeEmitOptions, USUAL_SECOND_CACHE } from "../../codegen/native/options.ts";
import { emitNativeProgram, type NativeSource } from "../../codegen/native/program.ts";
import { isTransfer, type PlacedProgram } from "../../codegen/placed.ts";
import {
  allocated,
  type LoadOptions,
  type Machine,
  type ProgramCode,
  type TargetAnswer,
  type TargetRequest,
} from "../../runtime/device.ts";
import { HostMemory } from "../../runtime/host-memory.ts";
import { arenaSpace, type TargetDescription } from "../../target/description.ts";
import { communicatorOf, type RankProgram } from "../mpi/communicator.ts";
import { SpillFile } from "../spill-file.ts";
import { fileOf, type HasFile, holdFile, type SpillStore, storeOf } from "../spill-store.ts";
import { persistentFolder } from "./cache.ts";
import { type Compiler, systemCompiler } from "./compiler.ts";
import {
  foreignFunctions,
  type LibraryRequest,
  libraryFor,
  loadProblem,
  prepareLibrary,
  type SpillLibrary,
} from "./library.ts";
import { cachesIn, smallSecondCache } from "./processor.ts";

type Koffi = Exclude<ReturnType<typeof foreignFunctions>, string>;

/** Joins the threads of programs whose machines were garbage-collected. */
const abandoned = new FinalizationRegistry<() => void>((close) => close());
/** End the threads of programs; a worker of Node calls them all when it ends. */
const closers = new Set<() => void>();

function closeAll(): void {
  for (const close of closers) close();
}

/** Closes once, at the latest when this Node thread ends. */
function closingOnce(close: () => void): () => void {
  if (!isMainThread) process.off("exit", closeAll).once("exit", closeAll);
  const once = (): void => {
    if (closers.delete(once)) close();
  };
  closers.add(once);
  return once;
}

/** A resizable buffer; ES2023's types do not have it yet. */
interface Resizable {
  readonly maxByteLength: number;
  resize(bytes: number): void;
}

/** Memory of the process. With a limit it grows in place; without one, or if the limit cannot be reserved, it moves. */
class NativeMemory extends HostMemory implements HasFile {
  readonly #koffi: Koffi;
  /** Bytes; arenas start at a multiple, as the plan's offsets do. */
  readonly #alignment: number;
  #buffer: ArrayBuffer;
  #start = 0;
  #bytes = 0;
  /** Of the arena's first byte. */
  address = 0n;
  file: SpillFile | null = null;
  store: SpillStore | null = null;

  constructor(koffi: Koffi, alignment: number, most = 0) {
    super();
    this.#koffi = koffi;
    this.#alignment = alignment;
    this.#buffer = (most > 0 ? growableBuffer(most + alignment) : null) ?? new ArrayBuffer(0);
  }

  get buffer(): ArrayBuffer {
    return this.#buffer;
  }

  get start(): number {
    return this.#start;
  }

  get bytes(): number {
    return this.#bytes;
  }

  reserve(bytes: number): void {
    if (bytes <= this.#bytes && this.address !== 0n) return;
    const room = bytes + this.#alignment;
    const resizable = this.#buffer as ArrayBuffer & Resizable;
    if (room <= resizable.maxByteLength && room > this.#buffer.byteLength)
      allocated(bytes, () => resizable.resize(room));
    const old = new Uint8Array(this.#buffer, this.#start, this.#bytes);
    if (room > this.#buffer.byteLength) this.#buffer = allocated(bytes, () => new ArrayBuffer(room));
    this.address = this.#koffi.address(new Uint8Array(this.#buffer, 0, 1));
    this.#start = (this.#alignment - Number(this.address % BigInt(this.#alignment))) % this.#alignment;
    this.address += BigInt(this.#start);
    if (old.buffer !== this.#buffer) new Uint8Array(this.#buffer, this.#start, old.length).set(old);
    this.#bytes = bytes;
  }
}

/** An empty buffer that can grow to `most` bytes without moving; null if that cannot be reserved. */
function growableBuffer(most: number): ArrayBuffer | null {
  const Growing = ArrayBuffer as unknown as new (bytes: number, options: { maxByteLength: number }) => ArrayBuffer;
  try {
    return new Growing(0, { maxByteLength: most });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** A target whose programs are C. */
export interface CProgram {
  readonly description: TargetDescription;
  readonly options: NativeEmitOptions;
  /** Features of the machine that it uses, in one line. */
  readonly uses: string;
  /** Whether its programs can have a file as second memory. */
  readonly hasFiles?: boolean;
  emit(placed: PlacedProgram, options: NativeEmitOptions): NativeSource;
}

/** Compiles C and calls it. */
interface Toolchain {
  readonly koffi: Koffi;
  readonly compiler: Compiler;
}

/** Where a program's arena lies in its memory, and the bytes of its file. */
interface Extent extends RankProgram {
  readonly base: number;
  readonly height: number;
  readonly fileBytes?: number;
}

function load(tools: Toolchain, program: CProgram, placed: PlacedProgram, how: LoadOptions): Machine {
  const { stepwise } = how;
  const options = stepwise ? { ...program.options, threads: 1, stepwise } : program.options;
  const source = program.emit(placed, options);
  return loadSource(tools, { ...program, options }, source, { ...how, ...extentOf(placed) });
}

const extentOf = (placed: PlacedProgram): Extent => ({
  name: placed.plan.program.name,
  places: exchangePlaces(placed),
  ...memoryOf(placed),
});

const memoryOf = ({ base, plan, kernels }: PlacedProgram): Pick<Extent, "base" | "height" | "fileBytes"> => ({
  base,
  height: plan.height,
  fileBytes: kernels.some(isTransfer) ? (plan.others[0]?.height ?? 0) : 0,
});

/** Loads code that was generated elsewhere, once it is compiled beside this thread. */
async function loadLater(tools: Toolchain, program: CProgram, code: ProgramCode, how: LoadOptions & Extent) {
  const text = Buffer.from(code.bytes).toString("utf8");
  // with other processes, one compiles for all of a machine
  if (groupsIn(text).length === 0) await prepareLibrary({ compiler: tools.compiler, text });
  return loadSource(tools, program, { text, functions: code.functions }, how);
}

function loadSource(
  { koffi, compiler }: Toolchain,
  target: CProgram,
  { text, functions }: Pick<NativeSource, "text" | "functions">,
  {
    name,
    places,
    stepwise,
    spill,
    base,
    height,
    fileBytes = 0,
    memory = memoryFor(target, koffi),
  }: LoadOptions & Extent,
): Machine {
  const { options } = target;
  invariant(memory instanceof NativeMemory, () => "a memory of another target");
  const request = { koffi, compiler, text, stepwise, hasFile: fileBytes > 0 };
  const { library, enter } = loadedLibrary({ name, places }, request);
  memory.reserve(base + height);
  library.arena(memory.address + BigInt(base), height);
  const team = library.open();
  if (team === null) {
    const summary = `${options.threads} threads could not be started`;
    throw new TidemarkError("TargetUnsupported", summary, {
      help: "ask for fewer threads, or raise the system's limit",
    });
  }
  const { run, step } = library;
  const file = library.spill && openFile(library.spill, team, memory, { spill, fileBytes });
  const hasThreads = options.threads > 1 || file !== null;
  const end = (): void => {
    file?.close();
    library.close(team);
  };
  const close = hasThreads ? closingOnce(end) : () => undefined;
  const machine: Machine = {
    moduleBytes: library.bytes,
    kernelFunctions: functions,
    memory,
    run() {
      enter();
      run(team, memory.address);
      file?.check();
    },
    step(i) {
      enter();
      step?.(team, memory.address, i);
      file?.check();
    },
    close,
    ...(file ? { spillBytes: () => file.bytes } : {}),
    get file() {
      return file?.store() ?? null;
    },
  };
  if (hasThreads) abandoned.register(machine, close);
  return machine;
}

/** A library, joined with the other processes that run the program; `enter` says that it runs from now on. */
function loadedLibrary(program: RankProgram, request: LibraryRequest) {
  const groups = groupsIn(request.text);
  if (groups.length === 0) return { library: libraryFor(request), enter: () => undefined };
  const processes = communicatorOf(program.name, groups);
  const enter = (): void => processes.enter(program);
  enter();
  const numbers = processes.join(program, request.text, groups);
  const library = processes.inTurn(groups, () => libraryFor({ ...request, hasExchanges: true }));
  library.exchanges?.(processes.functions, numbers);
  return { library, enter };
}

interface OpenFile {
  readonly bytes: number;
  /** Throws what went wrong in the last run. */
  check(): void;
  /** For what persists in it. */
  store(): SpillStore;
  close(): void;
}

/** The file of a memory, with room for a program. */
function openFile(
  library: SpillLibrary,
  team: unknown,
  memory: NativeMemory,
  { spill, fileBytes }: Pick<LoadOptions, "spill"> & { readonly fileBytes: number },
): OpenFile {
  const folder = spill?.to;
  invariant(typeof folder === "string", () => "a program with copies to a file, and no folder");
  const file = fileOf(memory, fileBytes, () => new SpillFile(folder, library.reserve));
  const release = holdFile(memory, file);
  const problem = library.open(team, file.descriptor, spill?.limit ?? 0);
  if (problem !== 0) {
    release();
    throw file.failure("a thread for its copies cannot be started", problem);
  }
  return {
    get bytes() {
      return file.bytes;
    },
    check() {
      const error = library.error(team);
      if (error !== 0) throw file.failure("cannot be read or written any more", error);
    },
    store: () => storeOf(memory, file),
    close() {
      library.close(team);
      release();
    },
  };
}

const memoryFor = ({ description }: CProgram, koffi: Koffi, most?: number): NativeMemory =>
  new NativeMemory(koffi, arenaSpace(description).alignment, most);

/** What compiles and calls C on this machine, or why nothing does. */
function toolchain(compiler: Compiler | string = systemCompiler()): Toolchain | string {
  if (typeof compiler === "string") return compiler;
  const koffi = foreignFunctions();
  if (typeof koffi === "string") return koffi;
  return loadProblem(koffi, compiler) ?? { koffi, compiler };
}

/** A target of C for the machine at hand. */
export function cTarget(
  programOf: (compiler: Compiler) => CProgram,
  wanted: Compiler | string | undefined,
): TargetAnswer {
  const tools = toolchain(wanted);
  if (typeof tools === "string") return tools;
  const program = programOf(tools.compiler);
  const folder = persistentFolder();
  return {
    description: program.description,
    threads: program.options.threads,
    code: "machine code",
    uses: `${program.uses}, by ${tools.compiler.command}`,
    arenaIsArray: true,
    ...(program.hasFiles ? { spills: "file" } : {}),
    note: typeof folder === "string" ? `compiled programs are not cached: ${folder}` : null,
    load: (placed, how) => load(tools, program, placed, how),
    loadCode: (code, height, how) =>
      loadLater(tools, program, code, { ...how, name: "a program", places: [], base: 0, height }),
    allocate: (most) => memoryFor(program, tools.koffi, most),
  };
}

/**
 * Additional options for tests: no fused multiply-add, no Winograd (the default without fused multiply-add, so that
 * results then have the bits of every other target), all calls split among threads, blocks for another cache, code for another
 * machine.
 */
export interface NativeRequest extends TargetRequest {
  readonly fma?: boolean;
  readonly winograd?: WinogradUse | "never";
  readonly shareFrom?: number;
  readonly secondCache?: number;
  readonly compiler?: Compiler | string;
}

/** Code for the machine at hand. */
export function nativeTarget(request: NativeRequest = {}): TargetAnswer {
  return cTarget((compiler) => {
    const { threads = 1, fma = compiler.fma, winograd = fma ? "paying" : "never", shareFrom } = request;
    const { secondCache = smallSecondCache(cachesIn(), USUAL_SECOND_CACHE) } = request;
    const options: NativeEmitOptions = {
      ...{ lanes: compiler.lanes, fma, threads },
      ...(winograd === "never" ? {} : { winograd }),
      ...(shareFrom === undefined ? {} : { shareFrom }),
      ...(secondCache === undefined ? {} : { secondCache }),
    };
    return {
      description: nativeDescription(options),
      options,
      hasFiles: true,
      uses: `${compiler.lanes} lanes of 32 bits, ${fma ? "fused multiply-add" : "no fused multiply-add"}`,
      emit: (placed, how) => emitNativeProgram(placed.kernels, placed.copies, how),
    };
  }, request.compiler);
}
