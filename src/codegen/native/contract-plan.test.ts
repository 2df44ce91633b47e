/** @file Which way products are computed, and what workspace that takes: facts that the plan of a program rests on. */

import { describe, expect, it } from "vitest";
import { at } from "../../base/invariant.ts";
import { Build } from "../../ir/build.ts";
import type { OpDef } from "../../ir/op.ts";
import { tensorType } from "../../ir/type.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import { lowerNode } from "../../lower/lower.ts";
import { conv, convInput } from "../../ops/conv.ts";
import { matmul } from "../../ops/matmul.ts";
import { PLAIN_LOWERING } from "../../target/plain.ts";
import { type ProductPlan, planProduct, workspaceElements } from "./contract-plan.ts";
import { nativeDescription } from "./description.ts";
import type { NativeOptions } from "./options.ts";

const WIDE: NativeOptions = { lanes: 16, fma: true, threads: 1 };

/** The plan of an operation's first product. */
function planOf<A>(op: OpDef<A>, shapes: readonly (readonly number[])[], attrs: A, options = WIDE): ProductPlan {
  const b = new Build("test");
  b.callAll(
    op,
    shapes.map((shape) => b.param(tensorType("f32", shape))),
    attrs,
  );
  const { kernel } = lowerNode(at(b.nodes, 0), PLAIN_LOWERING);
  return planProduct(at(kernel.nests, 0) as ContractNest, kernel.operands, options);
}

const plain = { ta: false, tb: false };

describe("matrix products", () => {
  it("of whole vectors are read where they lie and take no workspace", () => {
    for (const n of [16, 64, 128, 256, 512]) {
      const plan = planOf(
        matmul,
        [
          [n, n],
          [n, n],
        ],
        plain,
      );
      expect(plan).toMatchObject({ swapped: false, sums: "result", s: { kind: "in-place" }, v: { kind: "in-place" } });
      expect(workspaceElements(plan)).toBe(0);
    }
  });

  it("turn a transposed right side round, a panel at a time", () => {
    const plan = planOf(
      matmul,
      [
        [200, 200],
        [200, 200],
      ],
      { ta: false, tb: true },
    );
    expect(plan.v.kind).toBe("transposed");
    expect(workspaceElements(plan)).toBe(200 * 32 + 16);
  });

  const kindsOf = (m: number, k: number, n: number, attrs = plain): readonly [string, string, number] => {
    const [left, right] = [attrs.ta ? [k, m] : [m, k], attrs.tb ? [n, k] : [k, n]];
    const { s, v, tiling } = planOf(matmul, [left, right], attrs);
    return [s.kind, v.kind, Math.max(...tiling.sizes)];
  };

  it("pack rows that push each other out of the cache, or take as few of them at a time as stay in it", () => {
    expect(kindsOf(64, 1000, 256)).toEqual(["in-place", "in-place", 13]);
    expect(kindsOf(64, 1024, 256)).toEqual(["row-major", "in-place", 13]);
    expect(kindsOf(64, 1024, 64)).toEqual(["in-place", "in-place", 8]);
  });

  it("pack a side whose steps push each other out, if it is not in a cache anyway", () => {
    const left = { ta: true, tb: false };
    const packed = (...kinds: readonly unknown[]): boolean => kinds.includes("depth-major");
    // 4 MiB, 12 MiB, and 12 MiB whose rows lie elsewhere
    expect(packed(...kindsOf(1024, 1024, 32, left))).toBe(false);
    expect(packed(...kindsOf(1024, 3072, 32, left))).toBe(true);
    expect(packed(...kindsOf(1040, 3072, 32, left))).toBe(false);
    // one tile reads it once
    expect(kindsOf(8, 3072, 1024)[1]).toBe("in-place");
  });

  it("of a short depth store low tiles one beside the other where rows of the result collide", () => {
    const shapes = (n: number): readonly (readonly number[])[] => [
      [n, 32],
      [n, 32],
    ];
    const transposed = { ta: false, tb: true };
    expect(planOf(matmul, shapes(1000), transposed)).toMatchObject({ resident: true, blockTiles: 1 });
    expect(Math.max(...planOf(matmul, shapes(1000), transposed).tiling.sizes)).toBe(14);
    expect(planOf(matmul, shapes(1024), transposed)).toMatchObject({ resident: true, blockTiles: 1 });
    expect(Math.max(...planOf(matmul, shapes(1024), transposed).tiling.sizes)).toBe(8);
  });

  it("have tiles that fit the registers", () => {
    for (const [lanes, sums] of [
      [16, 28],
      [8, 12],
      [4, 12],
    ] as const) {
      for (const m of [2, 3, 5, 8, 13, 14, 15, 100]) {
        const { tiling, panels } = planOf(
          matmul,
          [
            [m, 64],
            [64, 200],
          ],
          plain,
          { ...WIDE, lanes },
        );
        const widest = Math.max(panels.widths.length, panels.tail.length);
        expect(Math.max(...tiling.sizes) * widest).toBeLessThanOrEqual(sums);
        expect(tiling.sizes.reduce((a, b) => a + b, 0)).toBe(m);
      }
    }
  });

  it("have blocks that fit a smaller second-level cache", () => {
    const bytes = (
      shapes: readonly (readonly number[])[],
      attrs: { ta: boolean; tb: boolean },
      secondCache?: number,
    ) => {
      const plan = planOf(matmul, shapes, attrs, { ...WIDE, ...(secondCache === undefined ? {} : { secondCache }) });
      const { tiling, blockTiles, run, sumsWidth, sums } = plan;
      const rows = blockTiles * Math.max(...tiling.sizes);
      return { block: 4 * rows * run, sums: sums === "block" ? 4 * rows * sumsWidth : 0 };
    };
    const large = [
      [2048, 2048],
      [2048, 2048],
    ];
    for (const attrs of [plain, { ta: true, tb: false }, { ta: false, tb: true }]) {
      const usual = bytes(large, attrs);
      for (const secondCache of [256 * 1024, 512 * 1024]) {
        const { block, sums } = bytes(large, attrs, secondCache);
        expect(block + sums).toBeLessThanOrEqual(secondCache * 1.25);
        expect(block + sums).toBeGreaterThan(secondCache / 8);
        expect(block).toBeLessThan(usual.block);
      }
    }
    expect(bytes(large, plain, 1024 * 1024)).toEqual(bytes(large, plain));
  });

  it("take a workspace for each thread", () => {
    const b = new Build("test");
    const [x, w] = [b.param(tensorType("f32", [30, 40])), b.param(tensorType("f32", [50, 40]))];
    b.call(matmul, [x, w], { ta: false, tb: true });
    const elements = (threads: number): number => {
      const target = nativeDescription({ ...WIDE, threads });
      return at(lowerNode(at(b.nodes, 0), target).kernel.operands, 3).elements;
    };
    expect(elements(1)).toBeGreaterThan(0);
    expect(elements(3)).toBe(3 * elements(1));
  });
});

describe("convolutions", () => {
  const window = { stride: [1, 1], lo: [1, 1], hi: [1, 1], dilation: [1, 1], groups: 1 };
  const image = [8, 32, 28, 28];

  it("read images where they lie, all of them against weights packed once", () => {
    const plan = planOf(conv, [image, [64, 32, 3, 3]], { ...window, lo: [0, 0], hi: [0, 0] });
    expect(plan).toMatchObject({ swapped: true, s: { kind: "in-place" }, v: { kind: "permuted" }, resident: true });
    expect(plan.mergedBatch.map((b) => b.extent)).toEqual([8]);
  });

  it("copy a padded image once, with its zeros around it", () => {
    const plan = planOf(conv, [image, [64, 32, 3, 3]], window);
    expect(plan).toMatchObject({ swapped: true, s: { kind: "padded", padding: { elements: 32 * 30 * 30 } } });
    const back = planOf(
      convInput,
      [
        [8, 64, 28, 28],
        [64, 32, 3, 3],
      ],
      { ...window, size: [28, 28] },
    );
    expect(back).toMatchObject({ swapped: true, s: { kind: "padded", padding: { elements: 64 * 30 * 30 } } });
  });
});
