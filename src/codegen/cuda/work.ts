/**
 * @file The work of kernels on a CUDA device: that of a processor (cpu/work.ts), but for nests whose time on a device was measured
 * (docs/lab/cuda.md) and follows from their form:
 *
 *   product on tensor cores    the time by which its tiles are chosen: whole waves of tiles, transposes and sums of parts included
 *   product in f32             operands are read where they are; where there are fewer blocks than multiprocessors the rest is idle,
 *                              and a block that has a multiprocessor to itself waits for memory more
 *   elements and sums          exponentials and roundings are instructions in programs with products on tensor cores
 *   attention                  its products at the rate of the whole kernel, functions included
 *
 * A time becomes flops at the target's rate, so that it follows that rate where a device is measured.
 */
import { bytesOf } from "../../kernel/dtype.ts";
import type { ContractNest, Kernel, MapNest, Nest, ReduceNest } from "../../kernel/loops.ts";
import { depthRun } from "../../kernel/loops.ts";
import type { Work } from "../../target/work.ts";
import { nestWork, type ProductTile } from "../cpu/nests.ts";
import { cpuWork } from "../cpu/work.ts";
import { product } from "../units.ts";
import { attendFactors } from "./attend-tiles.ts";
import { callsIn, copiedPlan } from "./copied-plan.ts";
import { deviceWork } from "./device-math.ts";
import { isTensorAttend } from "./tensor-attend.ts";
import { type TensorDevice, type TensorPlan, tensorPlan } from "./tensor-plan.ts";

/** Threads of a block share a product in squares of this side. */
const TILE: ProductTile = { rows: 16, columns: 16, blockBytes: Number.POSITIVE_INFINITY, even: true, inPlace: true };
/** Rows and columns of a block in a product that is large enough. */
const SIDE = 64;
/** How many times as long a block takes that has a multiprocessor to itself: products of 256 × 256 × 256. */
const ALONE = 1.36;

/** Flops a second of products in f32, of products on tensor cores, and of attention on those and in f32, of an H200. */
export const PRODUCT_RATE = 41e12;
export const TENSOR_RATE = 250e12;
const ATTEND_RATES = { tensor: 90e12, f32: 15e12 } as const;

/** Bytes a microsecond of the sums of parts, which are in caches. */
const PART_BYTES = 4.7e6;

/** Blocks that can work at one product at once: tiles, and runs of the depth. */
function blocksOf({ batch, rows, cols, depth }: ContractNest): number {
  const tiles = product(batch) * Math.ceil(rows.extent / SIDE) * Math.ceil(cols.extent / SIDE);
  return tiles * Math.max(1, Math.ceil(depth.extent / Math.max(1, depthRun(depth.extent))));
}

/** How many times the time of a device that is fully busy. */
function idleFactor(nest: ContractNest, multiprocessors: number): number {
  const blocks = Math.max(1, blocksOf(nest));
  return blocks > multiprocessors ? 1 : (ALONE * multiprocessors) / blocks;
}

/** What differs of a nest from what a processor would do. */
type Changed = Pick<Work, "productFlops" | "arithmetic" | "calls">;

class CudaWork {
  readonly #device: TensorDevice;
  readonly #isTensor: boolean;

  constructor(device: TensorDevice, isTensor: boolean) {
    this.#device = device;
    this.#isTensor = isTensor;
  }

  /** Null for nests that are no other than on a processor. */
  of(nest: Nest, kernel: Kernel): Changed | null {
    if (nest.kind === "attend") return this.#attend(nest);
    if (this.#isTensor && (nest.kind === "map" || nest.kind === "reduce")) return this.#elements(nest);
    if (nest.kind !== "contract") return null;
    const plan = this.#isTensor ? tensorPlan(nest, this.#device) : null;
    if (plan) return this.#tensor(nest, plan, kernel);
    const { productFlops, arithmetic } = nestWork(nest, TILE, bytesOf(nest.dtype));
    const idle = idleFactor(nest, this.#device.multiprocessors);
    return { productFlops: idle * this.#slower(PRODUCT_RATE) * productFlops, arithmetic, calls: 1 };
  }

  /** Functions that are instructions of the device count as such (device-math.ts). */
  #elements(nest: MapNest | ReduceNest): Changed {
    const stores = nest.stores.map((store) => ({ ...store, value: deviceWork(store.value) }));
    const counted = nest.kind === "map" ? { ...nest, stores } : { ...nest, stores, body: deviceWork(nest.body) };
    return { productFlops: 0, arithmetic: nestWork(counted, TILE, 4).arithmetic, calls: 1 };
  }

  #attend(nest: Extract<Nest, { kind: "attend" }>): Changed {
    const isTensor = this.#isTensor && isTensorAttend(nest);
    // factors of sixteen bits take half as many instructions
    const halves = isTensor && attendFactors(nest) !== "tf32" ? 2 : 1;
    const { productFlops } = nestWork(nest, TILE, bytesOf(nest.dtype));
    const rate = halves * ATTEND_RATES[isTensor ? "tensor" : "f32"];
    return { productFlops: this.#slower(rate) * productFlops, arithmetic: 0, calls: 1 };
  }

  /** Rounded up to whole waves of tiles. */
  #tensor(nest: ContractNest, plan: TensorPlan, { operands }: Kernel): Changed {
    const { batch, rows, cols, stores } = nest;
    const elements = product([...batch, rows, cols]);
    const copied = copiedPlan(nest, operands, plan, this.#device);
    const sums = plan.parts > 1 ? (4 * (plan.parts + 1) * elements) / PART_BYTES : 0;
    const microseconds = sums + (copied?.microseconds ?? plan.microseconds);
    const transposes = copied ? [copied.left, copied.right].filter(({ transposedAt }) => transposedAt !== null) : [];
    return {
      productFlops: 1e-6 * microseconds * TENSOR_RATE,
      arithmetic: elements * callsIn(stores),
      calls: 1 + transposes.length + (plan.parts > 1 ? 1 : 0),
    };
  }

  /** How much slower a rate is than that of the target's products. */
  #slower(rate: number): number {
    return (this.#isTensor ? TENSOR_RATE : PRODUCT_RATE) / rate;
  }
}

export function cudaWork(device: TensorDevice, isTensor: boolean): (kernel: Kernel, inPlace: boolean) => Work {
  const onProcessor = cpuWork(TILE);
  const own = new CudaWork(device, isTensor);
  const known = new WeakMap<Kernel, readonly Changed[]>();
  const changesOf = (kernel: Kernel): readonly Changed[] =>
    kernel.nests.flatMap((nest) => {
      const changed = own.of(nest, kernel);
      if (!changed) return [];
      const { productFlops, arithmetic } = nestWork(nest, TILE, "dtype" in nest ? bytesOf(nest.dtype) : 4);
      return [
        {
          productFlops: changed.productFlops - productFlops,
          arithmetic: changed.arithmetic - arithmetic,
          calls: changed.calls - 1,
        },
      ];
    });
  return (kernel, inPlace) => {
    const changes = known.get(kernel) ?? changesOf(kernel);
    known.set(kernel, changes);
    const work = onProcessor(kernel, inPlace);
    const sum = (field: keyof Changed): number =>
      Math.max(
        0,
        changes.reduce((total, change) => total + change[field], work[field]),
      );
    return { ...work, productFlops: sum("productFlops"), arithmetic: sum("arithmetic"), calls: sum("calls") };
  };
}
