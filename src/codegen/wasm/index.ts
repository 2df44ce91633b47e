/** @file `tidemark/wasm`: WebAssembly code for placed programs, and what the engine can do. */

export type { PlacedCopy, PlacedKernel } from "../placed.ts";
export { type Blocking, blockingOf, contractScratch } from "./blocking.ts";
export { detectFeatures, type Features } from "./features.ts";
export { emitProgram, type ProgramEmitOptions, pagesOf, type WasmModule } from "./program.ts";
