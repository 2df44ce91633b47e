/**
 * @file A program and its arena, ready to run. Reading and writing of values by address, and a run that calls into the
 * target's code once and allocates nothing.
 */

import { grouped, TidemarkError } from "../base/errors.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import { byteLength, elementsOf, type TensorType, typeText } from "../ir/type.ts";
import { elementsIn, type TypedArray } from "../kernel/dtype.ts";
import { arenaSpace, type TargetDescription } from "../target/description.ts";
import { sourceLocation } from "../trace/source-location.ts";
import {
  arenaRefused,
  type DeviceMemory,
  type LoadOptions,
  type Machine,
  type SpillFolder,
  secondMemoryOf,
  secondMemoryProblem,
  type Target,
} from "./device.ts";

export type Elements = TypedArray;

/** The elements of a tensor that starts at a byte of a memory. */
export function elementsAt(buffer: ArrayBuffer, type: TensorType, start: number): Elements {
  return elementsIn(type.dtype, buffer, start, elementsOf(type.shape));
}

/** A copy of the elements of a tensor. */
export function readElements(memory: DeviceMemory, type: TensorType, address: number): Elements {
  if (!memory.readInto) throw notReadable(type);
  const bytes = new Uint8Array(byteLength(type));
  memory.readInto(address, bytes);
  return elementsAt(bytes.buffer, type, 0);
}

/** The elements are on a device that has to be waited for. */
export const notReadable = (type: TensorType): TidemarkError =>
  new TidemarkError("NotReady", `${typeText(type)} is on a device and is read by waiting for it`, {
    where: sourceLocation(),
    help: "write `await x.dataAsync()`; once that is done, x.data() has the elements too",
  });

/** Elements that `fill` writes; the array is gone after the call. */
export function writeElements(
  memory: DeviceMemory,
  type: TensorType,
  address: number,
  fill: (into: Elements) => void,
): void {
  memory.write(address, byteLength(type), (into) => {
    fill(elementsAt(into.buffer as ArrayBuffer, type, into.byteOffset));
  });
}

/** Throws `TargetUnsupported` where the target cannot have an arena of this size at all. */
export function requireArena(bytes: number, target: TargetDescription): void {
  const { largestArena } = arenaSpace(target);
  if (bytes <= largestArena) return;
  throw arenaRefused(`the arena of ${grouped(bytes)} bytes is beyond the ${grouped(largestArena)} of ${target.name}`);
}

/** Throws where a target cannot have the second memory that is asked for. */
function requireSecondMemory(spill: SpillFolder, target: Target): void {
  const [problem, help] = secondMemoryProblem(secondMemoryOf(spill), target) ?? [];
  if (problem !== undefined) throw new TidemarkError("TargetUnsupported", problem, { help });
}

export class Executable<P extends PlacedProgram = PlacedProgram> {
  readonly placed: P;
  readonly target: Target;
  readonly machine: Machine;

  constructor(placed: P, target: Target, { stepwise = false, memory, spill }: Partial<LoadOptions> = {}) {
    requireArena(placed.base + placed.plan.height, target.description);
    this.placed = placed;
    this.target = target;
    if (spill) requireSecondMemory(spill, target);
    this.machine = target.load(placed, { stepwise, memory, spill });
  }

  get moduleBytes(): number {
    return this.machine.moduleBytes;
  }

  /** What holds its arena. */
  get memory(): DeviceMemory {
    return this.machine.memory;
  }

  /** Of what holds the arena: whole pages on WebAssembly. */
  get memoryBytes(): number {
    return this.memory.allocatedBytes;
  }

  /** Distinct kernel functions in the module. */
  get kernelFunctions(): number {
    return this.machine.kernelFunctions;
  }

  /** A copy of the elements at an address, on devices that can be read without waiting. */
  read(type: TensorType, address: number): Elements {
    return readElements(this.memory, type, address);
  }

  write(type: TensorType, address: number, data: ArrayLike<number>): void {
    writeElements(this.memory, type, address, (into) => into.set(data));
  }

  run(): void {
    this.machine.run();
  }

  /** Runs kernel by kernel, calling `after` in between; only for programs made `stepwise`. */
  runStepwise(after: (kernel: number) => void): void {
    this.placed.kernels.forEach((_, i) => {
      this.machine.step(i);
      after(i);
    });
    for (const { to, from, bytes } of this.placed.copies) this.memory.copy(to, from, bytes);
  }

  /** Ends its threads. It cannot run again. */
  close(): void {
    this.machine.close();
  }

  /** Overwrites everything that does not survive between runs, to show that nothing depends on it. */
  poison(): void {
    const { plan, base } = this.placed;
    const kept = plan.problem.buffers.filter((b) => b.kind === "persistent" && b.space === 0);
    const saved = kept.map(({ id, bytes }) => {
      const address = base + (plan.offsets[id] ?? 0);
      return { address, bytes: readElements(this.memory, { dtype: "bool", shape: [bytes] }, address) };
    });
    this.memory.fill(base, plan.height, 0xff);
    for (const { address, bytes } of saved) this.memory.write(address, bytes.length, (into) => into.set(bytes));
  }
}
