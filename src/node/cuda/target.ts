/**
 * @file The target `cuda`: kernels as CUDA text, compiled for the device at hand, an arena in its memory. A run hands the
 * driver one graph for each part of the program that is the same every time, and returns at once; reads wait.
 */
import { at, invariant } from "../../base/invariant.ts";
import { CUDA_RATES, type CudaOptions, cudaDescription } from "../../codegen/cuda/description.ts";
import type { LaunchCode } from "../../codegen/cuda/library.ts";
import { type Command, type CudaPart, type CudaProgram, emitCudaProgram } from "../../codegen/cuda/program.ts";
import { isTransfer, type PlacedProgram, type PlacedTransfer } from "../../codegen/placed.ts";
import { driveScript } from "../../codegen/script-run.ts";
import type { LoadOptions, Machine, Target, TargetAnswer } from "../../runtime/device.ts";
import { architectureOf, type CompilerPlaces, type CudaCompiler, cudaCompiler, machineCode } from "./compiler.ts";
import { CudaContext } from "./context.ts";
import { Driver } from "./driver.ts";
import { HostStore } from "./host-store.ts";
import { CudaMemory } from "./memory.ts";
import { TensorMaps } from "./tensor-maps.ts";

/** Compute capability 9.0: its tensor core instructions are in no other. */
const HOPPER = 90;
/** Number of `cuFuncSetAttribute`. */
const DYNAMIC_SHARED_BYTES = 8;

/** Code on a device, and the graphs that launch it. */
class LoadedModule {
  /** Ends the hold of the host's memory. */
  readonly #release: () => void;
  /** Of copies that are under way while the driver is told what to do, by their numbers. */
  readonly #events = new Map<number, bigint>();
  readonly #context: CudaContext;
  readonly #module: bigint;
  readonly #functions = new Map<string, bigint>();
  graphs: readonly (bigint | null)[] = [];
  /** Host memory that the driver reads in the present call. */
  read: readonly unknown[] = [];
  #isOpen = true;

  constructor(context: CudaContext, code: Uint8Array, release: () => void) {
    this.#context = context;
    this.#release = release;
    this.#module = context.driver.handle("cuModuleLoadData", code);
  }

  function({ name, sharedBytes }: LaunchCode): bigint {
    const known = this.#functions.get(name);
    if (known !== undefined) return known;
    const made = this.#context.driver.handle("cuModuleGetFunction", this.#module, name);
    if (sharedBytes > 0) this.#context.driver.call("cuFuncSetAttribute", made, DYNAMIC_SHARED_BYTES, sharedBytes);
    this.#functions.set(name, made);
    return made;
  }

  event(copy: number): bigint {
    const event = this.#events.get(copy) ?? this.#context.event();
    this.#events.set(copy, event);
    return event;
  }

  dropGraphs(): void {
    for (const graph of this.graphs) if (graph !== null) this.#context.driver.release("cuGraphExecDestroy", graph);
    this.graphs = [];
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { driver, stream } = this.#context;
    driver.release("cuStreamSynchronize", stream);
    this.dropGraphs();
    for (const event of this.#events.values()) driver.release("cuEventDestroy_v2", event);
    driver.release("cuModuleUnload", this.#module);
    this.#release();
  }
}

/** The device has code back that no program can run any more. */
const unreachable = new FinalizationRegistry<LoadedModule>((code) => code.close());

interface Memories {
  readonly memory: CudaMemory;
  /** Beside it; null where a program has no copies to the host's memory. */
  readonly host: HostStore | null;
}

/** A program in a device's memory. */
class CudaMachine implements Machine {
  readonly moduleBytes: number;
  readonly memory: CudaMemory;
  readonly spillBytes?: () => number;
  readonly #context: CudaContext;
  readonly #program: CudaProgram;
  readonly #loaded: LoadedModule;
  readonly #host: HostStore | null;
  /** Of the arena and the host's memory that the graphs are for. */
  #addresses: readonly bigint[] = [];

  constructor(context: CudaContext, program: CudaProgram, code: Uint8Array, { memory, host }: Memories) {
    this.#context = context;
    this.#program = program;
    this.memory = memory;
    this.moduleBytes = code.length;
    this.#host = host;
    this.#loaded = new LoadedModule(context, code, host?.hold() ?? (() => undefined));
    if (host) this.spillBytes = () => host.bytes;
    unreachable.register(this, this.#loaded);
  }

  get kernelFunctions(): number {
    return this.#program.functions;
  }

  get file(): HostStore | null {
    return this.#host?.asMemory() ?? null;
  }

  run(): void {
    this.#program.parts.forEach((_, i) => {
      this.step(i);
    });
  }

  step(i: number): void {
    const [arena, host] = this.#addresses;
    if (arena !== this.memory.address || host !== (this.#host?.address ?? 0n)) this.#makeGraphs();
    const graph = at(this.#loaded.graphs, i);
    if (graph !== null) this.#context.driver.call("cuGraphLaunch", graph, this.#context.stream);
    else this.#runPart(at(this.#program.parts, i));
  }

  close(): void {
    this.#loaded.close();
  }

  #makeGraphs(): void {
    this.#loaded.dropGraphs();
    this.#addresses = [this.memory.address, this.#host?.address ?? 0n];
    this.#loaded.graphs = this.#program.parts.map((part) => {
      if (part.kind === "script" || part.commands.every(isWait)) return null;
      return this.#context.graphOf(() => this.#runPart(part));
    });
  }

  #runPart(part: CudaPart): void {
    if (part.kind === "row") {
      const underWay = new Map<number, bigint>();
      for (const command of part.commands) {
        if (command.kind === "transfer") this.#transfer(command.step, underWay);
        else this.#command(command);
      }
      for (const copy of [...underWay.keys()]) this.#arrived(copy, underWay);
      return;
    }
    const word = new Uint8Array(4);
    driveScript(
      part.script,
      (action) => {
        if (action.kind !== "kernel") this.#command(action);
        else for (const command of this.#program.launches(action.kernel, action.addresses)) this.#command(command);
      },
      (address, bytes) => {
        this.memory.readInto(address, word.subarray(0, bytes));
        return bytes === 1 ? at(word, 0) : new DataView(word.buffer).getInt32(0, true);
      },
    );
  }

  /** Copies that are begun and waited for, beside the kernels; `underWay` has their streams. */
  #transfer({ transfer, copy, queue, from, to, bytes }: PlacedTransfer, underWay: Map<number, bigint>): void {
    if (transfer === "wait") {
      this.#arrived(copy, underWay);
      return;
    }
    const { driver, stream } = this.#context;
    const beside = this.#context.copyStream(queue);
    this.#context.follow(beside, stream, this.#loaded.event(copy));
    const host = (address: number): bigint => (this.#host?.address ?? 0n) + BigInt(address);
    const device = (address: number): bigint => this.memory.address + BigInt(address);
    if (from.space === 0) {
      driver.call("cuMemcpyDtoHAsync_v2", host(to.address), device(from.address), bytes, beside);
    } else driver.call("cuMemcpyHtoDAsync_v2", device(to.address), host(from.address), bytes, beside);
    driver.call("cuEventRecord", this.#loaded.event(copy), beside);
    underWay.set(copy, beside);
  }

  /** What comes now waits for a copy, unless that was done at the end of an earlier row. */
  #arrived(copy: number, underWay: Map<number, bigint>): void {
    if (!underWay.delete(copy)) return;
    this.#context.driver.call("cuStreamWaitEvent", this.#context.stream, this.#loaded.event(copy), 0);
  }

  #command(command: Exclude<Command, { kind: "transfer" }>): void {
    const { driver, stream } = this.#context;
    if (command.kind === "copy") this.memory.copy(command.to, command.from, command.bytes);
    else if (command.kind === "store") {
      driver.call("cuMemsetD32Async", this.memory.address + BigInt(command.at), command.value >>> 0, 1, stream);
    } else this.#launch(command);
  }

  #launch({ code, matrices, addresses }: Extract<Command, { kind: "launch" }>): void {
    const { driver, stream } = this.#context;
    // the driver copies arguments before it returns
    const args = BigUint64Array.from(addresses, (address) => this.memory.address + BigInt(address));
    const first = driver.addressOf(args);
    const maps = new TensorMaps(
      driver,
      code.maps ?? [],
      matrices.map((address) => this.memory.address + BigInt(address)),
    );
    const pointers = BigUint64Array.from([...maps.addresses, ...addresses.map((_, i) => first + BigInt(8 * i))]);
    this.#loaded.read = [args, maps];
    const shape = [code.blocks, 1, 1, code.threads, 1, 1];
    driver.call("cuLaunchKernel", this.#loaded.function(code), ...shape, code.sharedBytes, stream, pointers, null);
  }
}

const isWait = (command: Command): boolean => command.kind === "transfer" && command.step.transfer === "wait";

interface Toolchain {
  readonly context: CudaContext;
  readonly options: CudaOptions;
  readonly compiler: CudaCompiler;
}

function load({ context, compiler, options: cuda }: Toolchain, placed: PlacedProgram, options: LoadOptions): Machine {
  const { stepwise, memory = new CudaMemory(context) } = options;
  invariant(memory instanceof CudaMemory, () => "a memory of another target");
  const program = emitCudaProgram(placed.kernels, placed.copies, { options: cuda, stepwise });
  const code = machineCode(compiler, program.text, architectureOf(context.facts.capability));
  memory.reserve(placed.base + placed.plan.height);
  const hostBytes = placed.kernels.some(isTransfer) ? (placed.plan.others[0]?.height ?? 0) : 0;
  const host = hostBytes > 0 ? HostStore.of(memory, context, hostBytes) : null;
  return new CudaMachine(context, program, code, { memory, host });
}

/** `products`: default f32. Tests ask for the rest: driver and compiler at other places, no fused multiply-add, tiles. */
export interface CudaRequest extends Pick<CudaOptions, "tileCols"> {
  readonly products?: CudaOptions["products"];
  readonly driver?: string;
  readonly compilers?: CompilerPlaces;
  readonly fma?: boolean;
}

/** By the driver's path: targets of one device share its stream and pinned memory. */
const contexts = new Map<string | undefined, CudaContext>();

function contextOf(path: string | undefined): CudaContext | string {
  const known = contexts.get(path);
  if (known) return known;
  const driver = Driver.open(path);
  if (typeof driver === "string") return driver;
  const made = new CudaContext(driver);
  contexts.set(path, made);
  return made;
}

/** The first CUDA device of this machine. */
export function cudaTarget(request: CudaRequest = {}): TargetAnswer {
  const context = contextOf(request.driver);
  if (typeof context === "string") return context;
  const compiler = cudaCompiler(request.compilers);
  if (typeof compiler === "string") return compiler;
  const { facts } = context;
  const { multiprocessors, bytes } = facts;
  const { fma = true, products = "f32", tileCols } = request;
  if (products === "tf32" && facts.capability !== HOPPER) {
    return `products in tf32 need a GPU of the Hopper generation, ${facts.name} is none`;
  }
  const options: CudaOptions = { multiprocessors, bytes, fma, products, ...(tileCols ? { tileCols } : {}) };
  const target: Target = {
    description: cudaDescription(options),
    threads: 1,
    code: "CUDA",
    uses: `${facts.name}, ${multiprocessors} multiprocessors, by ${compiler.name}`,
    arenaIsArray: false,
    spills: "host",
    load: (placed, how) => load({ context, compiler, options }, placed, how),
    allocate: () => new CudaMemory(context),
  };
  return target;
}

/** Of a copy that is timed. */
const LINK_BYTES = 2 ** 26;

let linkRate: number | null = null;

/** Bytes a second between the device and pinned memory of the host, the slower way; of an H200 where there is no device. */
export function measureLink(driver?: string): number {
  const context = contextOf(driver);
  if (typeof context === "string") return CUDA_RATES.linkRate ?? CUDA_RATES.byteRate;
  linkRate ??= measuredLink(context);
  return linkRate;
}

function measuredLink(context: CudaContext): number {
  const memory = new CudaMemory(context);
  memory.reserve(LINK_BYTES);
  const block = context.pinned(LINK_BYTES);
  const seconds = (copy: () => void): number => {
    copy();
    context.wait();
    const started = performance.now();
    copy();
    context.wait();
    return (performance.now() - started) / 1000;
  };
  const { driver, stream } = context;
  const out = seconds(() => driver.call("cuMemcpyDtoHAsync_v2", block.address, memory.address, LINK_BYTES, stream));
  const back = seconds(() => driver.call("cuMemcpyHtoDAsync_v2", memory.address, block.address, LINK_BYTES, stream));
  memory.close();
  return LINK_BYTES / Math.max(out, back);
}
