/** @file Products and attention of bf16 on tensor cores, as far as they can be tested without a device: plans, text, and what nvcc says of it. */
import { describe, expect, it } from "vitest";
import { at } from "../src/base/invariant.ts";
import { copiedPlan } from "../src/codegen/cuda/copied-plan.ts";
import { cudaDescription } from "../src/codegen/cuda/description.ts";
import { CudaLibrary } from "../src/codegen/cuda/library.ts";
import { tensorPlan } from "../src/codegen/cuda/tensor-plan.ts";
import { Build } from "../src/ir/build.ts";
import type { Value } from "../src/ir/graph.ts";
import { tensorType } from "../src/ir/type.ts";
import type { ContractNest, Kernel } from "../src/kernel/loops.ts";
import { lowerNode } from "../src/lower/lower.ts";
import { attend, attendBackward } from "../src/ops/attend.ts";
import { matmul } from "../src/ops/matmul.ts";
import { inDtype } from "../src/ops/select.ts";
import { fuseWithin } from "../src/passes/fuse.ts";
import { hasNvcc, saidOf } from "./support/nvcc.ts";
import { patience } from "./support/patience.ts";

const OPTIONS = { multiprocessors: 132, bytes: 2 ** 37, fma: true, products: "tf32" } as const;
const description = cudaDescription(OPTIONS);
const half = (...shape: number[]) => tensorType("bf16", shape);

function productOf([m, n, k]: readonly [number, number, number], ta: boolean, tb: boolean, wide = false): Kernel {
  const b = new Build("product");
  b.call(matmul, [b.param(ta ? half(k, m) : half(m, k)), b.param(tb ? half(n, k) : half(k, n))], { ta, tb, wide });
  return lowerNode(at(b.nodes, 0), description).kernel;
}

function plansOf(kernel: Kernel) {
  const nest = kernel.nests[0] as ContractNest;
  const plan = tensorPlan(nest, OPTIONS);
  return { plan, copied: plan && copiedPlan(nest, kernel.operands, plan, OPTIONS) };
}

describe("products of bf16", () => {
  it("go to tensor cores as they lie in memory, whatever their order, and need workspace for sums of parts alone", () => {
    for (const [ta, tb] of [
      [false, false],
      [false, true],
      [true, false],
      [true, true],
    ] as const) {
      const { plan, copied } = plansOf(productOf([8192, 3072, 768], ta, tb));
      expect(plan).toMatchObject({ factors: "bf16", parts: 1 });
      expect(copied).toMatchObject({ left: { isAcross: ta }, right: { isAcross: !tb }, workspace: 0 });
    }
    const { copied } = plansOf(productOf([3072, 768, 8192], true, false));
    expect(copied).toMatchObject({ workspace: 4 * 3072 * 768, isChanged: false });
  });

  it("are cut as those of f32 are", () => {
    const { plan } = plansOf(productOf([768, 768, 8192], true, false));
    expect(plan).toMatchObject({ parts: 8, partSteps: 32, steps: 256 });
    expect(description.sumOrder?.(productOf([768, 768, 8192], true, false).nests[0] as ContractNest)).toBe(
      "bf16, 8 × 32",
    );
  });

  it("are brought by threads where rows do not start at multiples of 16 bytes", () => {
    for (const [m, n, k] of [
      [8192, 768, 3068],
      [8192, 772, 3072],
    ] as const) {
      expect(plansOf(productOf([m, n, k], false, false)).copied).toBeNull();
    }
    const library = new CudaLibrary(OPTIONS);
    library.launches(productOf([8192, 772, 3068], false, false), true);
    expect(library.text).toContain("store_pairs(");
  });

  it("have boxes of 64 elements of a row, along the depth or across it", () => {
    const launches = new CudaLibrary(OPTIONS).launches(productOf([8192, 3072, 768], false, false), true);
    expect(launches.map(({ maps }) => maps)).toMatchObject([
      [
        { operand: 0, factors: "bf16", extents: [768, 8192], box: [64, 128], pitch: 768 },
        { operand: 1, factors: "bf16", extents: [3072, 768], box: [64, 64], pitch: 3072 },
      ],
    ]);
  });
});

/** Kernels of attention whose queries, keys and values are widened where they are read. */
function attention(isBackward: boolean): readonly Kernel[] {
  const b = new Build("attention");
  const [side, row] = [
    [2, 3, 130, 64],
    [2, 3, 130],
  ] as const;
  const widened = (): Value => inDtype(b, b.param(half(...side)), "f32");
  const more = isBackward ? [row, row, side].map((shape) => b.param(tensorType("f32", shape))) : [];
  const inputs = [widened(), widened(), widened(), ...more];
  const op = isBackward ? attendBackward : attend;
  const graph = b.finish(b.callAll(op, inputs, { scale: 0.125, causal: true, window: 0, rate: 0 }));
  return fuseWithin(description.fusion)
    .run(graph)
    .nodes.map((node) => lowerNode(node, description).kernel);
}

describe.skipIf(!hasNvcc)("CUDA text of bf16", { timeout: patience(120_000) }, () => {
  it("compiles, keeps its registers and does not wait for each instruction", () => {
    const library = new CudaLibrary(OPTIONS);
    for (const [ta, tb] of [
      [false, false],
      [true, false],
    ] as const) {
      library.launches(productOf([1024, 1024, 768], ta, tb), true);
    }
    library.launches(productOf([1024, 772, 3068], false, false, true), true);
    for (const kernel of [...attention(false), ...attention(true)]) library.launches(kernel, true);
    expect(library.text).toMatch(/pair_products_bf16<64, 36>/);
    const said = saidOf(library.text);
    expect(said).not.toMatch(/serializ/i);
    expect([...said.matchAll(/(\d+) bytes spill stores/g)].filter(([, bytes]) => bytes !== "0")).toEqual([]);
  });
});
