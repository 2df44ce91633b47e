/**
 * @file WebGPU for tests: the package `webgpu` on lavapipe, which needs no GPU (lavapipe.mjs). A machine without it skips the tests with a
 * word; under CI they fail.
 */
import { nodeGpu } from "../../src/node/webgpu.ts";
import type { Gpu, GpuAdapter } from "../../src/runtime/webgpu/gpu.ts";

interface Driver {
  driverProblem(): string | null;
  lavapipeFile(): string | null;
}
interface Library {
  library(name: string): { readonly file?: string; readonly missing?: string };
}

const here = (file: string): string => new URL(file, import.meta.url).href;
const { driverProblem, lavapipeFile } = (await import(here("lavapipe.mjs"))) as Driver;
const { library } = (await import(here("tool.mjs"))) as Library;

/** The package's file; not installed where the driver is missing. */
const problem = driverProblem();
const found =
  problem === null ? library("webgpu") : { missing: `lavapipe: ${problem} (npm run pretest says how to get it)` };

/** Why WebGPU cannot be tested; null where it can, and under CI, where tests fail instead. */
export const missingGpu: string | null = process.env.CI ? null : (found.missing ?? null);
if (missingGpu !== null) console.warn(`tests of webgpu are skipped: ${missingGpu}`);

export const packageFile: string = found.file ?? "webgpu";

export async function gpuHere(): Promise<Gpu> {
  if (found.missing !== undefined) throw new Error(`webgpu cannot be tested: ${found.missing}`);
  // read by the loader of Vulkan, when the first adapter is asked for
  process.env.VK_ICD_FILENAMES = lavapipeFile() ?? "";
  // most of the time goes into compiling, and kernels run once or twice
  if (process.env.WEBGPU_ALL !== "1") process.env.GALLIVM_PERF = "nopt";
  const gpu = await nodeGpu(packageFile);
  if (typeof gpu === "string") throw new Error(gpu);
  return gpu;
}

export async function adapterHere(): Promise<GpuAdapter> {
  const adapter = await (await gpuHere()).requestAdapter();
  if (!adapter) throw new Error("lavapipe has no adapter");
  return adapter;
}
