/** @file WebGPU in Node: the package `webgpu`, which users install beside this one where they want it. */
import type { Gpu } from "../runtime/webgpu/gpu.ts";

interface WebgpuPackage {
  create(options: readonly string[]): Gpu;
}

/** Not written out below, so that bundlers leave it alone. */
const PACKAGE = "webgpu";

/** By the package's place. Devices end with what they came from, so it is kept for as long as the process runs. */
const found = new Map<string, Gpu>();

/**
 * WebGPU of this process, or one line that says what is missing; `from` is where the package is, `flags` are Dawn's. Without either,
 * a `navigator.gpu` that is there already is taken.
 */
export async function nodeGpu(from?: string, flags: readonly string[] = []): Promise<Gpu | string> {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: Gpu } };
  if (from === undefined && flags.length === 0 && navigator?.gpu) return navigator.gpu;
  return packageGpu(from ?? PACKAGE, flags);
}

async function packageGpu(from: string, flags: readonly string[]): Promise<Gpu | string> {
  const known = found.get(from);
  if (known) return known;
  try {
    const { create } = (await import(from)) as WebgpuPackage;
    const gpu = create(flags);
    found.set(from, gpu);
    return gpu;
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).split("\n", 1).join();
    return `the package webgpu cannot be loaded (${why}): npm install webgpu`;
  }
}
