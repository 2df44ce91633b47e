/** @file WebAssembly as the compiler sees it (target/description.ts). */

import { COMMON_FUSION, COMMON_ORDER, rebuildable, type TargetDescription } from "../../target/description.ts";
import { memorySpace } from "../../target/space.ts";
import type { CostModel } from "../../target/work.ts";
import { CPU_SCALARS } from "../cpu/limits.ts";
import { DEFAULT_TILE, type ProductTile } from "../cpu/nests.ts";
import { routineScratch } from "../cpu/routine.ts";
import { sortScratch } from "../cpu/sort.ts";
import { tileLoops } from "../cpu/tile.ts";
import type { WinogradUse } from "../cpu/winograd-choice.ts";
import { cpuWork } from "../cpu/work.ts";
import { attendScratch } from "./attend.ts";
import { contractScratch } from "./blocking.ts";
import { STORAGE_TYPES } from "./elements.ts";
import { MOST_PAGES } from "./encoder.ts";
import { detectFeatures } from "./features.ts";
import { PAGE } from "./program.ts";
import { winogradOrder, winogradScratch, winogradWork } from "./winograd-plan.ts";

/** Of a WebAssembly memory with addresses of 32 bits. */
export const LARGEST_ARENA_BYTES = MOST_PAGES * PAGE;

const MEMORY = memorySpace(64, { largestArena: LARGEST_ARENA_BYTES });

/** On one thread of a server (AMD EPYC, Node 20), without and with fused multiply-add. */
const RATES: CostModel = {
  name: "wasm",
  productRate: 39e9,
  arithmeticRate: 34e9,
  byteRate: 45e9,
  cachedByteRate: 70e9,
  cacheBytes: 4 * 2 ** 20,
  callSeconds: 4e-9,
};
const FUSED_RATES: CostModel = { ...RATES, name: "wasm-relaxed", productRate: 50e9 };

/** How products are blocked (micro-kernel.ts), and whether some convolutions are computed by Winograd's algorithm. */
export function wasmTile(fma: boolean, winograd?: WinogradUse | undefined): ProductTile {
  const tile = fma ? { ...DEFAULT_TILE, rows: 6 } : DEFAULT_TILE;
  return winograd ? { ...tile, otherAlgorithm: (nest) => winogradWork(nest, fma) } : tile;
}

/** The properties of an engine, and of a request, that code and workspace depend on. */
export interface WasmOptions {
  readonly threads?: number;
  /** Default: where it pays; null: never. */
  readonly winograd?: WinogradUse | null | undefined;
}

/** With or without relaxed SIMD's fused multiply-add, by default as the engine can; workspace depends on the number of threads. */
export function wasmDescription(
  fma: boolean = detectFeatures().relaxedMadd,
  { threads = 1, winograd: use = "paying" }: WasmOptions = {},
): TargetDescription {
  const winograd = use ?? undefined;
  const options = { fma, winograd };
  return rebuildable(
    "wasm",
    { fma, threads, winograd: use },
    {
      spaces: [MEMORY],
      storageTypes: STORAGE_TYPES,
      computeTypes: CPU_SCALARS,
      fusion: COMMON_FUSION,
      arithmetic: { ...COMMON_ORDER, name: fma ? "fused multiply-add" : "plain", fusedMultiplyAdd: fma },
      threads,
      collectives: true,
      workspace(nest, operands) {
        if (nest.kind === "attend") return attendScratch(nest, operands, { fma, threads });
        if (nest.kind === "sort") return sortScratch(nest, threads);
        if (nest.kind === "routine") return routineScratch(nest, threads);
        if (nest.kind !== "contract") return 0;
        const { dtype, rows, cols, depth } = nest;
        return (
          winogradScratch(nest, options, threads) ??
          contractScratch(dtype, fma, [rows.extent, cols.extent, depth.extent], threads)
        );
      },
      shapeLoops: tileLoops,
      sumOrder: (nest) => (winograd ? winogradOrder(nest, fma) : null),
      work: cpuWork(wasmTile(fma, winograd)),
      rates: fma ? FUSED_RATES : RATES,
    },
  );
}
