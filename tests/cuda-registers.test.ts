/** @file The kernels of the large built-in programs as CUDA: nvcc compiles them, and no function needs memory for registers. */
import { describe, expect, it } from "vitest";
import { cudaText } from "./support/cuda-texts.ts";
import "./support/host.ts";
import { hasNvcc, spillsOf } from "./support/nvcc.ts";
import { patience } from "./support/patience.ts";

describe.skipIf(!hasNvcc)("kernels of large training steps", { timeout: patience(600_000) }, () => {
  it.each([
    { program: "resnet50", products: "tf32" },
    { program: "gpt2-small", products: "tf32" },
    { program: "gpt2-small", products: "tf32", memory: "2324MiB" },
    { program: "gpt2-small", products: "tf32", memory: "2024MiB", half: true },
  ] as const)("keep their registers: $program, $memory", (what) => {
    const spills = spillsOf(cudaText(what));
    expect(spills.length).toBeGreaterThan(10);
    expect(spills.filter((bytes) => bytes > 0)).toEqual([]);
  });
});
