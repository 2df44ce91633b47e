/** @file The kernels of the small built-in programs as CUDA: nvcc compiles them, and no function needs memory for registers. */
import { describe, expect, it } from "vitest";
import { cudaText } from "./support/cuda-texts.ts";
import "./support/host.ts";
import { hasNvcc, spillsOf } from "./support/nvcc.ts";
import { patience } from "./support/patience.ts";

describe.skipIf(!hasNvcc)("kernels of training steps", { timeout: patience(120_000) }, () => {
  it.each([
    { program: "mlp" },
    { program: "cnn", products: "tf32" },
    { program: "lstm" },
    { program: "gpt", products: "tf32" },
    { program: "gpt", products: "tf32", half: true },
  ] as const)("keep their registers: $program", (what) => {
    const spills = spillsOf(cudaText(what));
    expect(spills.length).toBeGreaterThan(10);
    expect(spills.filter((bytes) => bytes > 0)).toEqual([]);
  });
});
