/**
 * @file A program and its arena, ready to run. Reading and writing of values by address, and a run that calls into the
 * target's code once and allocates nothing.
 */

import type { PlacedProgram } from "../codegen/placed.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import { elementsIn, type TypedArray } from "../kernel/dtype.ts";
import type { ArenaMemory, Machine, Target } from "./target.ts";

export type Elements = TypedArray;

/** The elements of a tensor that starts at a byte of a memory. */
export function elementsAt(buffer: ArrayBuffer, type: TensorType, start: number): Elements {
  return elementsIn(type.dtype, buffer, start, elementsOf(type.shape));
}

/** How a program is loaded. */
export interface LoadedAs {
  /** Kernel by kernel, to look at the arena in between. */
  readonly stepwise?: boolean;
  /** What its arena is in, maybe with others that run in turn with it; default: a memory of its own. */
  readonly arena?: ArenaMemory | undefined;
}

export class Executable<P extends PlacedProgram = PlacedProgram> {
  readonly placed: P;
  readonly target: Target;
  readonly machine: Machine;

  constructor(placed: P, target: Target, { stepwise = false, arena }: LoadedAs = {}) {
    this.placed = placed;
    this.target = target;
    this.machine = target.load(placed, { stepwise, memory: arena });
  }

  get moduleBytes(): number {
    return this.machine.moduleBytes;
  }

  /** What holds its arena. */
  get memory(): ArenaMemory {
    return this.machine.memory;
  }

  /** Of what holds the arena: whole pages on WebAssembly. */
  get memoryBytes(): number {
    return this.memory.buffer.byteLength;
  }

  /** Distinct kernel functions in the module. */
  get kernelFunctions(): number {
    return this.machine.kernelFunctions;
  }

  /** The elements at an address, in the arena itself: gone with the next run. */
  view(type: TensorType, address: number): Elements {
    const { buffer, start } = this.memory;
    return elementsAt(buffer, type, start + address);
  }

  write(type: TensorType, address: number, data: Elements): void {
    this.view(type, address).set(data);
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
    const bytes = this.#bytes();
    for (const copy of this.placed.copies) bytes.copyWithin(copy.to, copy.from, copy.from + copy.bytes);
  }

  /** Ends its threads. It cannot run again. */
  close(): void {
    this.machine.close();
  }

  /** Its memory up to the end of its arena. */
  #bytes(): Uint8Array {
    const { buffer, start } = this.memory;
    return new Uint8Array(buffer, start, this.placed.base + this.placed.plan.height);
  }

  /** Overwrites everything that does not survive between runs, to show that nothing depends on it. */
  poison(): void {
    const { plan, base } = this.placed;
    const bytes = this.#bytes().subarray(base);
    const kept = plan.problem.buffers.filter((b) => b.kind === "persistent");
    const saved = kept.map((b) => bytes.slice(plan.offsets[b.id], (plan.offsets[b.id] ?? 0) + b.bytes));
    bytes.fill(0xff);
    for (const [i, b] of kept.entries()) bytes.set(saved[i] as Uint8Array, plan.offsets[b.id]);
  }
}
