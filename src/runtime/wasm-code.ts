/**
 * @file The code of a program for WebAssembly, apart from loading it: the bytes are the same wherever they are generated, so a
 * worker may do it (api/compile-worker.ts).
 */
import type { WinogradUse } from "../codegen/cpu/winograd-choice.ts";
import { type PlacedProgram, type PlacedStep, stepPlaces } from "../codegen/placed.ts";
import { MOST_PAGES } from "../codegen/wasm/encoder.ts";
import { emitProgram, pagesOf, type WasmModule } from "../codegen/wasm/program.ts";
import { teamBytes } from "../codegen/wasm/team.ts";
import { arenaRefused } from "./device.ts";

export interface WasmCodeOptions {
  /** Whether products use fused multiply-add. */
  readonly fma: boolean;
  readonly threads: number;
  /** Default: where it pays; null: never. */
  readonly winograd?: WinogradUse | null | undefined;
  /** For tests: 0 shares all calls. */
  readonly shareFrom?: number | undefined;
  /** Steps can be run one by one. */
  readonly stepwise: boolean;
  /** Whether it runs in a memory that other programs use too, and not in one of its own. */
  readonly sharesMemory: boolean;
}

/** Where steps are; found when it is first asked for, which programs of one device never do. */
export function placesIn(placed: PlacedProgram): (step: PlacedStep) => string {
  let places: ReadonlyMap<PlacedStep, string> | undefined;
  return (step) => {
    places ??= stepPlaces(placed);
    return places.get(step) ?? "";
  };
}

export function wasmCode(placed: PlacedProgram, options: WasmCodeOptions): WasmModule {
  const { fma, threads, winograd: use = "paying", shareFrom, stepwise, sharesMemory } = options;
  const height = placed.base + placed.plan.height;
  const start = threads > 1 ? teamBytes(threads) : 0;
  if (pagesOf(start + height) > MOST_PAGES) {
    throw arenaRefused(`the arena of ${height} bytes is beyond the 4 GiB of a WebAssembly memory`);
  }
  const emit = (threads: number, from: number | undefined): WasmModule => {
    const shared = from === undefined ? {} : { shareFrom: from };
    const winograd = use ?? undefined;
    const options = { fma, winograd, stepwise, threads, placeOf: placesIn(placed), ...shared };
    return emitProgram(placed.kernels, placed.copies, height, options);
  };
  if (threads === 1) return emit(1, undefined);
  // Step by step the caller is alone.
  if (sharesMemory) return emit(threads, stepwise ? Number.POSITIVE_INFINITY : shareFrom);
  const made = stepwise ? null : emit(threads, shareFrom);
  // Where nothing is worth sharing there is no need of words and workers.
  return made?.isShared ? made : emit(1, undefined);
}
