/**
 * @file The target `cuda`: kernels as CUDA text, compiled for the device at hand, an arena in its memory. A run hands the
 * driver one graph for each part of the program that is the same every time, and returns at once; reads wait.
 */
import { at, invariant } from "../../base/invariant.ts";
import { CUDA_RATES, type CudaOptions, cudaDescription } from "../../codegen/cuda/description.ts";
import { type ExchangeCommand, exchangesIn } from "../../codegen/cuda/exchange.ts";
import type { LaunchCode } from "../../codegen/cuda/library.ts";
import {
  type Command,
  type CudaPart,
  type CudaProgram,
  emitCudaProgram,
  type LaunchCommand,
} from "../../codegen/cuda/program.ts";
import { isTransfer, type PlacedProgram, type PlacedTransfer, stepPlaces } from "../../codegen/placed.ts";
import { driveScript } from "../../codegen/script-run.ts";
import { groupText } from "../../kernel/device-group.ts";
import { printPlan } from "../../plan/print.ts";
import { exchangeText } from "../../runtime/communicator.ts";
import type { LoadOptions, Machine, Target, TargetAnswer } from "../../runtime/device.ts";
import { numberOnMachine } from "../mpi/launched.ts";
import { architectureOf, type CompilerPlaces, type CudaCompiler, cudaCompiler, machineCode } from "./compiler.ts";
import { CudaContext } from "./context.ts";
import { Driver } from "./driver.ts";
import { HostStore } from "./host-store.ts";
import { CudaMemory } from "./memory.ts";
import { type ConnectedProgram, type Connection, joined } from "./nccl-groups.ts";
import { TensorMaps } from "./tensor-maps.ts";

/** Compute capability 9.0: its tensor core instructions are in no other. */
const HOPPER = 90;
/** Number of `cuFuncSetAttribute`. */
const DYNAMIC_SHARED_BYTES = 8;

/** Code on a device, and the graphs that launch it. */
class LoadedModule {
  /** Ends the hold of the host's memory. */
  readonly #release: () => void;
  /** Of copies and exchanges that are under way while the driver is told what to do. */
  readonly #events = new Map<string, bigint>();
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

  event(name: string): bigint {
    const event = this.#events.get(name) ?? this.#context.event();
    this.#events.set(name, event);
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

/** What a program runs on. */
interface Surroundings {
  readonly memory: CudaMemory;
  /** Beside it; null where a program has no copies to the host's memory. */
  readonly host: HostStore | null;
  /** With other devices; null where it has no collectives. */
  readonly connection: Connection | null;
}

/** What goes on beside the kernels: the event behind each copy and exchange that is not waited for. */
type UnderWay = Set<string>;

const copyName = (copy: number): string => `copy ${copy}`;
const flightName = (slot: number): string => `exchange ${slot}`;

/** A program in a device's memory. */
class CudaMachine implements Machine {
  readonly moduleBytes: number;
  readonly memory: CudaMemory;
  readonly spillBytes?: () => number;
  readonly #context: CudaContext;
  readonly #program: CudaProgram;
  readonly #loaded: LoadedModule;
  readonly #host: HostStore | null;
  readonly #connection: Connection | null;
  /** Of the arena and the host's memory that the graphs are for. */
  #addresses: readonly bigint[] = [];

  constructor(context: CudaContext, program: CudaProgram, code: Uint8Array, around: Surroundings) {
    const { memory, host, connection } = around;
    this.#context = context;
    this.#program = program;
    this.memory = memory;
    this.moduleBytes = code.length;
    this.#host = host;
    this.#connection = connection;
    const release = host?.hold();
    const loaded = new LoadedModule(context, code, () => {
      release?.();
      memory.moves.delete(moving);
    });
    // graphs with exchanges may have made the memory known to other devices
    const moving = (): void => {
      context.driver.release("cuStreamSynchronize", context.stream);
      loaded.dropGraphs();
    };
    if (connection) memory.moves.add(moving);
    this.#loaded = loaded;
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
    this.#connection?.enter();
    this.#program.parts.forEach((_, i) => {
      this.#part(i);
    });
  }

  step(i: number): void {
    this.#connection?.enter();
    this.#part(i);
  }

  #part(i: number): void {
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
      return this.#context.graphOf(() => this.#runPart(part), this.#connection !== null);
    });
  }

  #runPart(part: CudaPart): void {
    if (part.kind === "row") {
      const underWay: UnderWay = new Set();
      for (const command of part.commands) this.#command(command, underWay);
      for (const name of [...underWay]) this.#arrived(name, underWay);
      return;
    }
    // in loops and branches everything is done when its step is
    const none: UnderWay = new Set();
    const word = new Uint8Array(4);
    driveScript(
      part.script,
      (action) => {
        if (action.kind === "wait") return;
        const isKernel = action.kind === "kernel";
        const commands = isKernel ? this.#program.commands(action.kernel, action.addresses) : [action];
        for (const command of commands) this.#command(command, none);
      },
      (address, bytes) => {
        this.memory.readInto(address, word.subarray(0, bytes));
        return bytes === 1 ? at(word, 0) : new DataView(word.buffer).getInt32(0, true);
      },
    );
  }

  /** Copies that are begun and waited for, beside the kernels. */
  #transfer({ transfer, copy, queue, from, to, bytes }: PlacedTransfer, underWay: UnderWay): void {
    const name = copyName(copy);
    if (transfer === "wait") {
      this.#arrived(name, underWay);
      return;
    }
    const { driver, stream } = this.#context;
    const beside = this.#context.copyStream(queue);
    this.#context.follow(beside, stream, this.#loaded.event(name));
    const host = (address: number): bigint => (this.#host?.address ?? 0n) + BigInt(address);
    const device = (address: number): bigint => this.memory.address + BigInt(address);
    if (from.space === 0) {
      driver.call("cuMemcpyDtoHAsync_v2", host(to.address), device(from.address), bytes, beside);
    } else driver.call("cuMemcpyHtoDAsync_v2", device(to.address), host(from.address), bytes, beside);
    driver.call("cuEventRecord", this.#loaded.event(name), beside);
    underWay.add(name);
  }

  /** What comes now waits for something beside the kernels, unless that was done at the end of an earlier row. */
  #arrived(name: string, underWay: UnderWay): void {
    if (!underWay.delete(name)) return;
    this.#context.driver.call("cuStreamWaitEvent", this.#context.stream, this.#loaded.event(name), 0);
  }

  #command(command: Command, underWay: UnderWay): void {
    switch (command.kind) {
      case "launch":
        this.#launch(command);
        return;
      case "copy":
        this.memory.copy(command.to, command.from, command.bytes);
        return;
      case "store":
        this.#store(command.at, command.value);
        return;
      case "device_index":
        this.#store(command.at, this.#connected().numberIn(command.group));
        return;
      case "exchange":
        this.#exchange(command, underWay);
        return;
      case "landed":
        this.#arrived(flightName(command.slot), underWay);
        return;
      case "transfer":
        this.#transfer(command.step, underWay);
    }
  }

  #store(address: number, value: number): void {
    const { driver, stream } = this.#context;
    driver.call("cuMemsetD32Async", this.memory.address + BigInt(address), value >>> 0, 1, stream);
  }

  #connected(): Connection {
    const connection = this.#connection;
    invariant(connection, () => "a collective of a program that is connected with no device");
    return connection;
  }

  /** In the stream of all collectives; one that is not in flight is waited for at once. */
  #exchange({ exchange, to, from, before, after, slot }: ExchangeCommand<LaunchCommand>, underWay: UnderWay): void {
    const { driver, stream, network } = this.#context;
    const name = slot === null ? "exchange" : flightName(slot);
    const event = this.#loaded.event(name);
    const device = (address: number): bigint => this.memory.address + BigInt(address);
    this.#context.follow(network, stream, event);
    for (const launch of before) this.#launch(launch, network);
    this.#connected().start(exchange, device(to), device(from), network);
    for (const launch of after) this.#launch(launch, network);
    driver.call("cuEventRecord", event, network);
    underWay.add(name);
    if (slot === null) this.#arrived(name, underWay);
  }

  #launch({ code, matrices, addresses }: LaunchCommand, stream = this.#context.stream): void {
    const { driver } = this.#context;
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

const isWait = (command: Command): boolean =>
  command.kind === "landed" || (command.kind === "transfer" && command.step.transfer === "wait");

interface Toolchain {
  readonly context: CudaContext;
  readonly options: CudaOptions;
  readonly compiler: CudaCompiler;
  /** A file. */
  readonly nccl: string | undefined;
}

/** The exchanges of a program, as all devices of their groups are told. */
function connectedProgram(placed: PlacedProgram, { text }: CudaProgram): ConnectedProgram | null {
  const all = placed.kernels.flatMap((step) => exchangesIn(step).map((exchange) => ({ exchange, step })));
  const [first] = all;
  if (!first) return null;
  const { plan } = placed;
  const said = exchangeText({ ...first.exchange, place: stepPlaces(placed).get(first.step) ?? "" });
  return {
    name: plan.program.name,
    text: `${text}${printPlan(plan)}`,
    groups: [...new Map(all.map(({ exchange: { group } }) => [groupText(group), group])).values()],
    places: [],
    onDevice: `whose ${all.length} collectives run on the device, the first of them ${said}`,
  };
}

function load(tools: Toolchain, placed: PlacedProgram, options: LoadOptions): Machine {
  const { context, compiler, options: cuda, nccl: library } = tools;
  const { stepwise, memory = new CudaMemory(context) } = options;
  invariant(memory instanceof CudaMemory, () => "a memory of another target");
  const program = emitCudaProgram(placed.kernels, placed.copies, { options: cuda, stepwise });
  const make = () => machineCode(compiler, program.text, architectureOf(context.facts.capability));
  const exchanging = connectedProgram(placed, program);
  const { connection, made: code } = exchanging
    ? joined(context, exchanging, { make, library })
    : { connection: null, made: make() };
  memory.reserve(placed.base + placed.plan.height);
  const hostBytes = placed.kernels.some(isTransfer) ? (placed.plan.others[0]?.height ?? 0) : 0;
  const host = hostBytes > 0 ? HostStore.of(memory, context, hostBytes) : null;
  return new CudaMachine(context, program, code, { memory, host, connection });
}

/**
 * `products`: default f32. Tests ask for the rest: driver, compiler and NCCL at other places, no fused multiply-add, tiles, and collectives
 * on the only device of a group.
 */
export interface CudaRequest extends Pick<CudaOptions, "tileCols"> {
  readonly products?: CudaOptions["products"];
  readonly driver?: string;
  readonly compilers?: CompilerPlaces;
  readonly fma?: boolean;
  readonly nccl?: string;
  /** Default: what TIDEMARK_NCCL_ALONE says. */
  readonly alone?: boolean;
}

/** By the driver's path: targets of one device share its stream and pinned memory. */
const contexts = new Map<string | undefined, CudaContext>();

function contextOf(path: string | undefined): CudaContext | string {
  const known = contexts.get(path);
  if (known) return known;
  const driver = Driver.open(path);
  if (typeof driver === "string") return driver;
  const made = new CudaContext(driver, numberOnMachine() % driver.devices);
  contexts.set(path, made);
  return made;
}

/** A CUDA device of this machine: the first one, or of several processes each its own. */
export function cudaTarget(request: CudaRequest = {}): TargetAnswer {
  const context = contextOf(request.driver);
  if (typeof context === "string") return context;
  const compiler = cudaCompiler(request.compilers);
  if (typeof compiler === "string") return compiler;
  const { facts } = context;
  const { multiprocessors, bytes } = facts;
  const { fma = true, products = "f32", tileCols, nccl } = request;
  const { alone = process.env.TIDEMARK_NCCL_ALONE === "1" } = request;
  if (products === "tf32" && facts.capability !== HOPPER) {
    return `products in tf32 need a GPU of the Hopper generation, ${facts.name} is none`;
  }
  const options: CudaOptions = {
    multiprocessors,
    bytes,
    fma,
    products,
    ...(tileCols ? { tileCols } : {}),
    ...(alone ? { alone } : {}),
  };
  const target: Target = {
    description: cudaDescription(options),
    threads: 1,
    code: "CUDA",
    uses: `${facts.name}, ${multiprocessors} multiprocessors, by ${compiler.name}`,
    arenaIsArray: false,
    spills: "host",
    load: (placed, how) => load({ context, compiler, options, nccl }, placed, how),
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
