/** @file The CUDA functions of a program: launches with equal text are one function, wherever their data is. */
import type { Kernel } from "../../kernel/loops.ts";
import type { DeviceClass, Launch } from "../block/program.ts";
import { blockProgram } from "../block/schedule.ts";
import { product } from "../units.ts";
import { cudaPrelude } from "./dialect.ts";
import { printLaunch } from "./launch.ts";

/** A function of the module and how it is launched. */
export interface LaunchCode {
  readonly name: string;
  readonly blocks: number;
  readonly threads: number;
  /** The operands of its kernel that it is given the addresses of. */
  readonly operands: readonly number[];
  /** Operands of its kernel: where both are in one place it is not launched. */
  readonly skipIfAliased?: readonly [number, number];
}

/** Elements of an operand that indices of 32 bits reach, with room for the last block's threads beyond. */
const NARROW = 2 ** 31 - 2 ** 20;

/** Stands for the name of a function in its text. */
const NAME = "NAME";

export class CudaLibrary {
  readonly #device: DeviceClass;
  /** Names by text. */
  readonly #names = new Map<string, string>();
  readonly #byKernel = new Map<Kernel, readonly LaunchCode[]>();
  #isWide = false;

  constructor(device: DeviceClass) {
    this.#device = device;
  }

  get count(): number {
    return this.#names.size;
  }

  get text(): string {
    const functions = [...this.#names].map(([text, name]) => text.replace(NAME, name));
    return [cudaPrelude(this.#isWide), ...functions].join("\n");
  }

  launches(kernel: Kernel): readonly LaunchCode[] {
    const known = this.#byKernel.get(kernel);
    if (known) return known;
    this.#isWide ||= kernel.operands.some(({ elements }) => elements > NARROW);
    const made = blockProgram(kernel, this.#device).launches.map((launch) => this.#code(launch));
    this.#byKernel.set(kernel, made);
    return made;
  }

  #code(launch: Launch): LaunchCode {
    const threads = launch.thread.extent;
    const { text, operands } = printLaunch(launch);
    const { skipIfAliased } = launch;
    return {
      name: this.#name(`extern "C" __global__ void __launch_bounds__(${threads}) ${NAME}${text}`),
      blocks: product(launch.grid),
      ...{ threads, operands, ...(skipIfAliased ? { skipIfAliased } : {}) },
    };
  }

  #name(text: string): string {
    const name = this.#names.get(text) ?? `tide_launch_${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}
