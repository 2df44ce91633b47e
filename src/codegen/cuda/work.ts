/**
 * @file The work of kernels on a CUDA device: that of a processor (cpu/work.ts) whose products read operands where they are, and whose
 * products of few tiles leave multiprocessors idle, which counts as if they worked.
 */
import type { ContractNest, Kernel } from "../../kernel/loops.ts";
import { depthRun } from "../../kernel/loops.ts";
import type { Work } from "../../target/work.ts";
import type { ProductTile } from "../cpu/nests.ts";
import { cpuWork } from "../cpu/work.ts";
import { product } from "../units.ts";

/** Threads of a block share a product in squares of this side. */
const TILE: ProductTile = { rows: 16, columns: 16, blockBytes: Number.POSITIVE_INFINITY, even: true, inPlace: true };
/** Rows and columns of a block in a product that is large enough. */
const SIDE = 64;

/** Blocks that can work at one product at once: tiles, and runs of the depth. */
function blocksOf({ batch, rows, cols, depth }: ContractNest): number {
  const tiles = product(batch) * Math.ceil(rows.extent / SIDE) * Math.ceil(cols.extent / SIDE);
  return tiles * Math.max(1, Math.ceil(depth.extent / Math.max(1, depthRun(depth.extent))));
}

/** How many times the time of a device that is fully busy. */
function idleFactor({ nests }: Kernel, multiprocessors: number): number {
  const blocks = nests.flatMap((nest) => (nest.kind === "contract" ? [blocksOf(nest)] : []));
  return Math.max(1, multiprocessors / Math.max(1, Math.min(multiprocessors, ...blocks)));
}

export function cudaWork(multiprocessors: number): (kernel: Kernel, inPlace: boolean) => Work {
  const onProcessor = cpuWork(TILE);
  return (kernel, inPlace) => {
    const work = onProcessor(kernel, inPlace);
    return { ...work, productFlops: work.productFlops * idleFactor(kernel, multiprocessors) };
  };
}
