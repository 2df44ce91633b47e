/** @file Native code as the compiler sees it (target/description.ts). */

import type { ContractNest } from "../../kernel/loops.ts";
import { COMMON_FUSION, COMMON_ORDER, rebuildable, type TargetDescription } from "../../target/description.ts";
import { memorySpace } from "../../target/space.ts";
import type { CostModel } from "../../target/work.ts";
import { CPU_SCALARS } from "../cpu/limits.ts";
import { DEFAULT_TILE, type ProductCycles, type ProductTile } from "../cpu/nests.ts";
import { routineScratch } from "../cpu/routine.ts";
import { sortScratch } from "../cpu/sort.ts";
import { tileLoops } from "../cpu/tile.ts";
import { winogradCycles } from "../cpu/winograd-choice.ts";
import { winogradWeightsCycles } from "../cpu/winograd-weights-choice.ts";
import { cpuWork } from "../cpu/work.ts";
import { attendScratch } from "./attend.ts";
import { contractScratch } from "./contract.ts";
import { STORAGE_TYPES } from "./elements.ts";
import type { NativeEmitOptions } from "./options.ts";

/** Memory of the process. */
const MEMORY = memorySpace(64);

/** On one thread of a server (AMD EPYC). */
export const NATIVE_RATES: CostModel = {
  name: "native",
  productRate: 127e9,
  arithmeticRate: 100e9,
  byteRate: 44e9,
  cachedByteRate: 160e9,
  cacheBytes: 4 * 2 ** 20,
  callSeconds: 7e-9,
  // shared memory between processes
  networkRate: 2e9,
  messageSeconds: 2e-6,
};

/**
 * Time of Winograd's algorithm in cycles that are counted: transforms wait for memory more than products do. Fitted to the kernels of
 * convolutional networks (bench/cost.ts); which algorithm is chosen does not depend on it.
 */
const IMAGE_TIME = 1.2;
const WEIGHTS_TIME = 1.3;

const winogradOf =
  (lanes: number) =>
  (nest: ContractNest): ProductCycles | null => {
    const image = winogradCycles(nest, lanes);
    if (image !== null) return { cycles: IMAGE_TIME * image, lanes };
    const weights = winogradWeightsCycles(nest, lanes);
    return weights === null ? null : { cycles: WEIGHTS_TIME * weights, lanes };
  };

/** Sums of an image are its own, those of weights go over all images. */
function winogradOrder(nest: Omit<ContractNest, "scratch">, lanes: number): string | null {
  if (winogradWeightsCycles(nest, lanes) !== null) return `winograd of ${nest.depth.extent}`;
  return winogradCycles(nest, lanes) === null ? null : "winograd";
}

/** How products are blocked, and whether some convolutions are computed by Winograd's algorithm. */
export function nativeTile({ winograd, lanes }: Pick<NativeEmitOptions, "winograd" | "lanes">): ProductTile {
  const tile: ProductTile = { ...DEFAULT_TILE, even: false, rows: 14 };
  return winograd ? { ...tile, otherAlgorithm: winogradOf(lanes) } : tile;
}

export function nativeDescription(options: NativeEmitOptions): TargetDescription {
  return rebuildable("native", options, {
    spaces: [MEMORY],
    storageTypes: STORAGE_TYPES,
    computeTypes: CPU_SCALARS,
    fusion: COMMON_FUSION,
    arithmetic: {
      ...COMMON_ORDER,
      name: `native, ${options.fma ? "fused multiply-add" : "plain"}`,
      fusedMultiplyAdd: options.fma,
    },
    threads: options.threads,
    collectives: true,
    overlapsCollectives: true,
    workspace(nest, operands) {
      if (nest.kind === "attend") return attendScratch(nest, operands, options);
      if (nest.kind === "sort") return sortScratch(nest, options.threads);
      if (nest.kind === "routine") return routineScratch(nest, options.threads);
      return nest.kind === "contract" ? contractScratch(nest, operands, options) : 0;
    },
    sumOrder: (nest) => (options.winograd ? winogradOrder(nest, options.lanes) : null),
    shapeLoops: tileLoops,
    work: cpuWork(nativeTile(options)),
    rates: NATIVE_RATES,
  });
}
