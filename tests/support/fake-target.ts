/**
 * @file A target as others would write one (docs/adding-a-target.md): a device with a small memory of its own that the host
 * cannot see, and a second memory on the host's side. Everything that is asked of it is put in a line and done on a later
 * tick, in order; reads are promises. Kernels run in the interpreter, control in a machine for scripts.
 *
 *   host      write  run  run  read ┐ one call after the other, none waits
 *   device                          └→ write · run · run · read → promise     on a later tick
 *
 * It checks what it is given: alignment, types, workspace and bounds of every kernel. What is wrong in a program is refused
 * when it is loaded; what goes wrong while it runs is known when something is read.
 */
import { grouped, TidemarkError } from "../../src/base/errors.ts";
import { at } from "../../src/base/invariant.ts";
import {
  isKernel,
  isTransfer,
  type PlacedProgram,
  type PlacedStep,
  type PlacedTransfer,
} from "../../src/codegen/placed.ts";
import { bytesOf, type DType, elementsIn, type ScalarType } from "../../src/kernel/dtype.ts";
import { interpretKernel } from "../../src/kernel/interpret.ts";
import type { Kernel } from "../../src/kernel/loops.ts";
import {
  arenaRefused,
  type DeviceMemory,
  type LoadOptions,
  type Machine,
  type Target,
} from "../../src/runtime/device.ts";
import { COMMON_ORDER, type TargetDescription, type UnplacedNest } from "../../src/target/description.ts";
import { memorySpace } from "../../src/target/space.ts";
import type { Work } from "../../src/target/work.ts";
import { ScriptMachine } from "./script-machine.ts";

// ---- what the compiler is told ------------------------------------------------------------------------------------

/** Bytes; of everything that a kernel outside of loops is given. */
const ALIGNMENT = 256;
const LARGEST = 2 ** 26;
const STORED: readonly DType[] = ["f32", "i32", "bool"];
const COMPUTED: readonly ScalarType[] = ["f32", "i32", "bool"];
/** Reductions have a partial result for each of so many threads. */
const THREADS = 48;

const workspaceOf = (nest: UnplacedNest): number => (nest.kind === "reduce" ? THREADS : 0);

const product = (extents: readonly { readonly extent: number }[]): number =>
  extents.reduce((n, { extent }) => n * extent, 1);

function workOf({ operands, nests }: Kernel): Work {
  const work = { productFlops: 0, arithmetic: 0, bytes: 0, calls: 1 };
  for (const { role, elements, dtype } of operands) if (role !== "scratch") work.bytes += elements * bytesOf(dtype);
  for (const nest of nests) {
    if (nest.kind === "contract") work.productFlops += 2 * product([...nest.batch, nest.rows, nest.cols, nest.depth]);
    else if (nest.kind === "reduce") work.arithmetic += product([...nest.loops, ...nest.reduce]);
    else if (nest.kind === "attend") work.arithmetic += product([...nest.batch, nest.group, nest.rows, nest.cols]);
    else if (nest.kind === "staged") work.arithmetic += product(nest.units);
    else work.arithmetic += "loops" in nest ? product(nest.loops) : nest.along.extent;
  }
  return work;
}

export interface FakeOptions {
  /** Bytes of the device that plans may use. */
  readonly capacity?: number;
  readonly largestArena?: number;
  /** When a copy between memories is done: as early or as late as the program allows. */
  readonly copies?: "at start" | "at wait";
  /** What its description says and should not. */
  readonly lies?: Partial<TargetDescription>;
}

export function fakeDescription(options: FakeOptions = {}): TargetDescription {
  const { capacity = Number.POSITIVE_INFINITY, largestArena = LARGEST, lies = {} } = options;
  return {
    name: "fake",
    key: `fake, ${capacity} and ${largestArena} bytes`,
    spaces: [
      memorySpace(ALIGNMENT, { name: "device", capacity, largestArena, hostVisible: false }),
      memorySpace(64, { name: "host" }),
    ],
    storageTypes: STORED,
    computeTypes: COMPUTED,
    fusion: { maxNodes: 12, maxPackedFlops: 4, maxEvaluations: 32, maxStored: 3 },
    arithmetic: { ...COMMON_ORDER, name: "plain", fusedMultiplyAdd: false },
    workspace: workspaceOf,
    shapeLoops: (kernel) => kernel,
    work: workOf,
    rates: { name: "fake", productRate: 1e12, arithmeticRate: 2e11, byteRate: 5e11, linkRate: 5e7, callSeconds: 2e-6 },
    ...lies,
  };
}

// ---- the device ---------------------------------------------------------------------------------------------------

/** Does what it is asked on a later tick, in order. After a failure it does nothing more, and says so to every read. */
class Device {
  #line: (() => void)[] = [];
  #failure: unknown = null;

  submit(task: () => void): void {
    if (this.#line.length === 0) setImmediate(() => this.#drain());
    this.#line.push(task);
  }

  #drain(): void {
    const tasks = this.#line;
    this.#line = [];
    for (const task of tasks) {
      try {
        task();
      } catch (error) {
        this.#failure ??= error;
      }
    }
  }

  /** For tasks that run programs. */
  unlessFailed(task: () => void): () => void {
    return () => {
      if (this.#failure === null) task();
    };
  }

  get failure(): unknown {
    return this.#failure;
  }
}

class FakeMemory implements DeviceMemory {
  readonly readInto = null;
  readonly device: Device;
  readonly #most: number;
  /** By memory space. Only tasks of the device touch them. */
  #spaces: readonly [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>] = [new Uint8Array(0), new Uint8Array(0)];
  #bytes = 0;

  constructor(device: Device, most: number) {
    this.device = device;
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get allocatedBytes(): number {
    return this.#bytes;
  }

  reserve(bytes: number): void {
    this.reserveAll([bytes, 0]);
  }

  /** The same for every space. */
  reserveAll(bytes: readonly [device: number, host: number]): void {
    if (bytes[0] > this.#most) {
      throw arenaRefused(`fake: an arena of ${grouped(bytes[0])} bytes, the device has ${grouped(this.#most)}`);
    }
    this.#bytes = Math.max(this.#bytes, bytes[0]);
    this.device.submit(() => {
      this.#spaces = [grown(this.#spaces[0], bytes[0]), grown(this.#spaces[1], bytes[1])];
    });
  }

  /** For tasks of the device. */
  view(space: number, address: number, bytes: number): Uint8Array<ArrayBuffer> {
    const memory = at(this.#spaces, space);
    if (address < 0 || address + bytes > memory.length) throw beyond(`${bytes} bytes`, address, memory.length);
    return memory.subarray(address, address + bytes);
  }

  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void {
    const staged = new Uint8Array(bytes);
    fill(staged);
    this.device.submit(() => this.view(0, address, bytes).set(staged));
  }

  read(address: number, bytes: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.device.submit(() => {
        if (this.device.failure !== null) reject(this.device.failure);
        else resolve(this.view(0, address, bytes).slice());
      });
    });
  }

  fill(address: number, bytes: number, value: number): void {
    this.device.submit(() => this.view(0, address, bytes).fill(value));
  }

  copy(to: number, from: number, bytes: number): void {
    this.device.submit(() => this.view(0, to, bytes).set(this.view(0, from, bytes)));
  }
}

function grown(memory: Uint8Array<ArrayBuffer>, bytes: number): Uint8Array<ArrayBuffer> {
  if (memory.length >= bytes) return memory;
  const larger = new Uint8Array(bytes).fill(0xa5);
  larger.set(memory);
  return larger;
}

const beyond = (what: string, address: number, bytes: number): TidemarkError =>
  new TidemarkError("TargetUnsupported", `fake: ${what} at ${address} are beyond the ${bytes} bytes of the memory`);

// ---- programs -----------------------------------------------------------------------------------------------------

/** Everything about a kernel that can be wrong before it runs; all of it at once. */
function faultsOf(name: string, { operands, nests }: Kernel, addresses: readonly number[], bytes: number): string[] {
  const faults: string[] = [];
  operands.forEach(({ dtype, elements, role }, i) => {
    const address = at(addresses, i);
    if (!STORED.includes(dtype)) faults.push(`${name}: operand ${i} is ${dtype}`);
    if (address % ALIGNMENT !== 0)
      faults.push(`${name}: operand ${i} is at ${address}, not a multiple of ${ALIGNMENT}`);
    const end = address + elements * bytesOf(dtype);
    if (end > bytes) faults.push(`${name}: operand ${i} (${role}) ends at ${end} of ${bytes} bytes`);
  });
  for (const nest of nests) {
    const [needed, scratch] = [workspaceOf(nest), operands[("scratch" in nest && nest.scratch) || -1]?.elements ?? 0];
    if (scratch < needed) faults.push(`${name}: ${nest.kind} has ${scratch} elements of workspace, it needs ${needed}`);
  }
  return faults;
}

class FakeProgram {
  readonly #placed: PlacedProgram;
  readonly #memory: FakeMemory;
  readonly #early: boolean;
  /** Copies that are started and not waited for. */
  readonly #flying = new Set<number>();

  constructor(placed: PlacedProgram, memory: FakeMemory, early: boolean) {
    this.#placed = placed;
    this.#memory = memory;
    this.#early = early;
  }

  run(): void {
    for (const [i, step] of this.#placed.kernels.entries()) this.step(step, i);
    for (const { to, from, bytes } of this.#placed.copies)
      this.#memory.view(0, to, bytes).set(this.#memory.view(0, from, bytes));
  }

  step(step: PlacedStep, i: number): void {
    const name = this.#placed.kernelNodes?.[i]?.op.name ?? `kernel ${i}`;
    if (isTransfer(step)) this.#transfer(step);
    else if (isKernel(step)) this.#kernel(name, step.kernel, step.addresses);
    else {
      const machine = new ScriptMachine({
        onKernel: (kernel, addresses) => this.#kernel(name, kernel, addresses),
        onCopy: (to, from, bytes) => this.#memory.view(0, to, bytes).set(this.#memory.view(0, from, bytes)),
        load: (address, bytes) => at(this.#words(address, bytes), 0),
        store: (address, value) => this.#words(address, 4).set([value]),
      });
      machine.run(step.script);
    }
  }

  #words(address: number, bytes: 1 | 4): Uint8Array | Int32Array {
    const view = this.#memory.view(0, address, bytes);
    return bytes === 1 ? view : new Int32Array(view.buffer, view.byteOffset, 1);
  }

  #transfer({ transfer, copy, from, to, bytes }: PlacedTransfer): void {
    if (transfer === "start") this.#flying.add(copy);
    else if (!this.#flying.delete(copy))
      throw new TidemarkError("TargetUnsupported", `fake: copy ${copy} never started`);
    if ((transfer === "start") !== this.#early) return;
    this.#memory.view(to.space, to.address, bytes).set(this.#memory.view(from.space, from.address, bytes));
  }

  /** Workspace holds noise before. */
  #kernel(name: string, kernel: Kernel, addresses: readonly number[]): void {
    try {
      const operands = kernel.operands.map(({ dtype, elements, role }, i) => {
        const view = this.#memory.view(0, at(addresses, i), elements * bytesOf(dtype));
        if (role === "scratch") view.fill(0xa5);
        return elementsIn(dtype, view.buffer, view.byteOffset, elements);
      });
      interpretKernel(kernel, operands);
    } catch (error) {
      throw new TidemarkError("TargetUnsupported", `fake: ${name}: ${(error as Error).message}`);
    }
  }
}

function load(placed: PlacedProgram, device: Device, options: FakeOptions, given: LoadOptions): Machine {
  const height = placed.base + placed.plan.height;
  const faults = placed.kernels.flatMap((step, i) =>
    isKernel(step)
      ? faultsOf(placed.kernelNodes?.[i]?.op.name ?? `kernel ${i}`, step.kernel, step.addresses, height)
      : [],
  );
  if (faults.length > 0)
    throw new TidemarkError("TargetUnsupported", `fake cannot run this:\n  ${faults.join("\n  ")}`);
  const memory = given.memory ?? new FakeMemory(device, options.largestArena ?? LARGEST);
  if (!(memory instanceof FakeMemory)) throw new TidemarkError("TargetUnsupported", "fake: a memory of another target");
  memory.reserveAll([height, placed.plan.others?.[0]?.height ?? 0]);
  const program = new FakeProgram(placed, memory, options.copies === "at start");
  return {
    moduleBytes: 0,
    kernelFunctions: new Set(placed.kernels.filter(isKernel).map(({ kernel }) => kernel)).size,
    memory,
    run: () => device.submit(device.unlessFailed(() => program.run())),
    step: (i) => device.submit(device.unlessFailed(() => program.step(at(placed.kernels, i), i))),
    close: () => undefined,
  };
}

/** A device of its own for every target. */
export function fakeTarget(options: FakeOptions = {}): Target {
  const device = new Device();
  const description = fakeDescription(options);
  return {
    description,
    threads: 1,
    code: "kernels for an interpreter",
    uses: "the interpreter, on a later tick",
    arenaIsArray: true,
    load: (placed, given) => load(placed, device, options, given),
    allocate: (most = Number.POSITIVE_INFINITY) =>
      new FakeMemory(device, Math.min(most, options.largestArena ?? LARGEST)),
  };
}
