/** @file The CUDA functions of a program: launches with equal text are one function, wherever their data is. */
import type { AttendNest, ContractNest, Kernel, Nest, Operand } from "../../kernel/loops.ts";
import type { DeviceClass, Launch } from "../block/program.ts";
import { blockProgram } from "../block/schedule.ts";
import { product } from "../units.ts";
import { attendFactors } from "./attend-tiles.ts";
import { type TensorMap, transposing } from "./copied-maps.ts";
import { copiedPlan } from "./copied-plan.ts";
import { type CudaOptions, deviceClass } from "./description.ts";
import { DEVICE_MATH } from "./device-math.ts";
import { CUDA_DIALECT, cudaPrelude, TENSOR_DIALECT } from "./dialect.ts";
import { printLaunch } from "./launch.ts";
import { isTensorAttend, printTensorAttend } from "./tensor-attend.ts";
import { printCopiedProduct } from "./tensor-copied.ts";
import { addingLaunch } from "./tensor-parts.ts";
import { type TensorPlan, tensorPlan } from "./tensor-plan.ts";
import { printTensorProduct } from "./tensor-product.ts";
import {
  ALONG,
  ATTEND_PRELUDE,
  COPY_PRELUDE,
  halfAttendText,
  ownWgmmaText,
  TENSOR_PRELUDE,
  wgmmaText,
} from "./tensor-text.ts";

/** A function of the module and how it is launched. */
export interface LaunchCode {
  readonly name: string;
  readonly blocks: number;
  readonly threads: number;
  /** Of shared memory beyond what its text declares. */
  readonly sharedBytes: number;
  /** What the copy engine reads: its first arguments. */
  readonly maps?: readonly TensorMap[];
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
  readonly #options: CudaOptions;
  readonly #device: DeviceClass;
  /** Names by text. */
  readonly #names = new Map<string, string>();
  /** Functions that others call, each once. */
  readonly #shared = new Set<string>();
  /** For operands that start at multiples of 16 bytes, and for those that do not. */
  readonly #byKernel = [new Map<Kernel, readonly LaunchCode[]>(), new Map<Kernel, readonly LaunchCode[]>()] as const;
  #isWide = false;

  constructor(options: CudaOptions) {
    this.#options = options;
    if (options.products === "tf32") this.#shared.add(DEVICE_MATH);
    this.#device = deviceClass(options);
  }

  get count(): number {
    return this.#names.size;
  }

  get text(): string {
    const functions = [...this.#names].map(([text, name]) => text.replace(NAME, name));
    return [cudaPrelude(this.#isWide), ...this.#shared, ...functions].join("\n");
  }

  /** `aligned`: all operands start at multiples of 16 bytes. */
  launches(kernel: Kernel, aligned: boolean): readonly LaunchCode[] {
    const known = this.#byKernel[aligned ? 0 : 1].get(kernel);
    if (known) return known;
    this.#isWide ||= kernel.operands.some(({ elements }) => elements > NARROW);
    const made = kernel.nests.flatMap((nest) => this.#nest(nest, kernel.operands, aligned));
    this.#byKernel[aligned ? 0 : 1].set(kernel, made);
    return made;
  }

  #nest(nest: Nest, operands: readonly Operand[], aligned: boolean): readonly LaunchCode[] {
    const tensor = this.#options.products === "tf32";
    if (tensor && nest.kind === "attend" && isTensorAttend(nest)) return this.#attend(nest, operands, aligned);
    const plan = nest.kind === "contract" && tensor ? tensorPlan(nest, this.#options) : null;
    if (!plan || nest.kind !== "contract" || product([...nest.batch, nest.rows, nest.cols]) === 0) {
      return blockProgram({ operands, nests: [nest] }, this.#device).launches.map((launch) => this.#code(launch));
    }
    const products = this.#product(nest, operands, plan, aligned);
    return plan.parts > 1
      ? [...products, this.#code(addingLaunch(nest, operands, plan.parts, this.#device))]
      : products;
  }

  /** A product on tensor cores, but for the sum of its parts. */
  #product(
    nest: ContractNest,
    operands: readonly Operand[],
    plan: TensorPlan,
    aligned: boolean,
  ): readonly LaunchCode[] {
    this.#shared.add(TENSOR_PRELUDE);
    const copied = aligned ? copiedPlan(nest, operands, plan, this.#options) : null;
    if (copied) {
      const { cols, left, right } = copied;
      const isOwn = left.isAcross && plan.factors === "tf32";
      const multiply = isOwn ? ownWgmmaText(cols) : wgmmaText(cols, plan.factors, [left.isAcross, right.isAcross]);
      this.#shared.add(COPY_PRELUDE).add(multiply);
      const before = blockProgram({ operands, nests: transposing(nest, copied) }, this.#device).launches;
      const { text, ...printed } = printCopiedProduct(nest, operands, plan, copied);
      const bounds = `__launch_bounds__(${printed.threads}, 1)`;
      const name = this.#name(`extern "C" __global__ void ${bounds} ${NAME}${text}`);
      return [...before.map((launch) => this.#code(launch)), { ...printed, name }];
    }
    const { grid, text, ...printed } = printTensorProduct(nest, operands, plan, () => aligned);
    if (printed.maps) this.#shared.add(COPY_PRELUDE).add(ownWgmmaText(plan.width));
    else this.#shared.add(wgmmaText(plan.width, plan.factors, ALONG));
    const bounds = `__launch_bounds__(${printed.threads}, 1)`;
    return [
      { ...printed, name: this.#name(`extern "C" __global__ void ${bounds} ${NAME}${text}`), blocks: product(grid) },
    ];
  }

  /** Attention on tensor cores. */
  #attend(nest: AttendNest, operands: readonly Operand[], aligned: boolean): readonly LaunchCode[] {
    const factors = attendFactors(nest);
    this.#shared.add(TENSOR_PRELUDE).add(ATTEND_PRELUDE);
    if (factors !== "tf32") this.#shared.add(halfAttendText(factors));
    return printTensorAttend(nest, operands, () => aligned).map(({ grid, threads, text, ...printed }) => ({
      ...printed,
      name: this.#name(`extern "C" __global__ void __launch_bounds__(${threads}) ${NAME}${text}`),
      blocks: product(grid),
      threads,
    }));
  }

  #code(launch: Launch): LaunchCode {
    const threads = launch.thread.extent;
    const isTensor = this.#options.products === "tf32";
    const { text, operands } = printLaunch(launch, isTensor ? TENSOR_DIALECT : CUDA_DIALECT);
    const { skipIfAliased } = launch;
    return {
      name: this.#name(`extern "C" __global__ void __launch_bounds__(${threads}) ${NAME}${text}`),
      blocks: product(launch.grid),
      ...{ threads, operands, sharedBytes: 0, ...(skipIfAliased ? { skipIfAliased } : {}) },
    };
  }

  #name(text: string): string {
    const name = this.#names.get(text) ?? `tide_launch_${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}
