/** @file How sides of products are found to lie in memory: strides, windows, taps of a channel, weights in another order. */
import { describe, expect, it } from "vitest";
import { at } from "../../base/invariant.ts";
import { type Expr, type Index, type LoopVar, load } from "../../kernel/expr.ts";
import {
  addIndex,
  divIndex,
  modIndex,
  offsetIndex,
  scaleIndex,
  valueIndex,
  varIndex,
} from "../../kernel/index-math.ts";
import type { Operand } from "../../kernel/loops.ts";
import { Interner } from "../intern.ts";
import { type Access, accessOf, depthStride, evenSizes, stretchesOf, tilingOf } from "./contract-access.ts";
import { paddingOf } from "./contract-padded.ts";

const loop = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });
const [LANE, TAPS, CHANNELS] = [loop("n", 36), loop("k0", 9), loop("k1", 4)];
const [n, k0, k1] = [varIndex(LANE), varIndex(TAPS), varIndex(CHANNELS)];
const DEPTH = loop("k", 36);
const SPLIT = [TAPS, CHANNELS] as const;
const OPERANDS: readonly Operand[] = [{ dtype: "f32", elements: 10_000, role: "in" }];
const read = (index: Index): Expr => load("f32", 0, index);
const SIDE = { lane: LANE, depth: SPLIT, operands: OPERANDS };
const accessTo = (index: Index): Access | null => accessOf(new Interner(), { ...SIDE, expr: read(index) });

function found(access: Access | null): Access {
  return access ?? expect.fail("cannot be read in place");
}

describe("a side", () => {
  it("can be read in place where its index is a sum of its counter and the depth, and not where they mix", () => {
    expect(accessTo(addIndex(scaleIndex(n, 36), scaleIndex(k0, 4), k1))).not.toBeNull();
    expect(accessTo(divIndex(addIndex(n, k1), 7))).toBeNull();
    expect(accessTo(addIndex(n, valueIndex(read(k1), 0, 9)))).toBeNull();
  });

  it("has one stride along the depth where two counters of it make one", () => {
    const along = found(accessTo(addIndex(scaleIndex(n, 36), scaleIndex(k0, 4), k1)));
    expect(depthStride(along.depth, DEPTH, SPLIT)).toBe(1);
    const uneven = found(accessTo(addIndex(scaleIndex(n, 36), scaleIndex(k0, 5), k1)));
    expect(depthStride(uneven.depth, DEPTH, SPLIT)).toBeNull();
  });
});

describe("tiles", () => {
  it("are as equal as can be", () => {
    expect(evenSizes(100, 14)).toEqual([13, 13, 13, 13, 12, 12, 12, 12]);
    expect(evenSizes(28, 14)).toEqual([14, 14]);
    expect(evenSizes(5, 14)).toEqual([5]);
  });

  it("of an image do not run over the end of a row", () => {
    const rows = found(accessTo(addIndex(scaleIndex(divIndex(n, 12), 28), modIndex(n, 12), scaleIndex(k1, 784))));
    const tiling = tilingOf(rows, LANE, 14);
    expect(tiling?.period).toBe(12);
    expect(tiling?.patterns).toEqual([Array.from({ length: 12 }, (_, i) => i)]);
  });

  it("of taps take those of a channel together, wherever they lie", () => {
    const tap = modIndex(n, 9);
    const index = addIndex(scaleIndex(divIndex(n, 9), 784), scaleIndex(divIndex(tap, 3), 28), modIndex(tap, 3));
    const tiling = tilingOf(found(accessTo(index)), LANE, 9);
    expect(tiling).toMatchObject({ period: 9, uneven: true });
    expect(tiling?.patterns).toEqual([[0, 1, 2, 28, 29, 30, 56, 57, 58]]);
  });
});

describe("the depth", () => {
  it("of weights walks one stretch of memory in another order", () => {
    const weights = found(accessTo(addIndex(scaleIndex(n, 36), scaleIndex(k1, 9), k0)));
    expect(stretchesOf(weights.depth, DEPTH, SPLIT)).toEqual({ first: 0, count: 1, length: 36, stride: 36 });
  });

  it("of transposed weights walks a stretch of taps for each channel", () => {
    const weights = found(accessTo(addIndex(scaleIndex(n, 9), scaleIndex(k1, 324), k0)));
    expect(stretchesOf(weights.depth, DEPTH, SPLIT)).toEqual({ first: 0, count: 4, length: 9, stride: 324 });
  });

  it("that visits an element twice walks none", () => {
    const twice = found(accessTo(addIndex(scaleIndex(n, 36), k1, k0)));
    expect(stretchesOf(twice.depth, DEPTH, SPLIT)).toBeNull();
  });
});

describe("a padded image", () => {
  /** Rows of 6 seen through 3 × 3 taps around them, of images of 6 × 6 with `k1` for the channel. */
  const y = offsetIndex(addIndex(divIndex(n, 6), divIndex(k0, 3)), -1);
  const x = offsetIndex(addIndex(modIndex(n, 6), modIndex(k0, 3)), -1);
  const bounds = [y, x].map((index) => ({ index, lo: 0, hi: 6 }));
  const image = addIndex(scaleIndex(k1, 36), scaleIndex(y, 6), x);
  const zero: Expr = { kind: "const", dtype: "f32", value: 0 };
  const padded = (otherwise: Expr, most: number) =>
    paddingOf(
      new Interner(),
      { ...SIDE, expr: { kind: "guard", dtype: "f32", bounds, then: read(image), otherwise } },
      most,
    );

  it("is copied with a row and a column of zeros on each side, channel by channel", () => {
    const padding = padded(zero, 1000);
    expect(padding?.elements).toBe(4 * 8 * 8);
    expect(padding?.axes.map(({ stride, copyStride, least, extent }) => [stride, copyStride, least, extent])).toEqual([
      [36, 64, 0, 4],
      [6, 8, -1, 8],
      [1, 1, -1, 8],
    ]);
    const tiling = padding && tilingOf(padding.access, LANE, 14);
    expect(at(tiling?.patterns ?? [], 0)).toEqual([0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13].slice(0, tiling?.sizes[0]));
  });

  it("is not copied where that takes too much, or where something else than zero is around it", () => {
    expect(padded(zero, 100)).toBeNull();
    expect(padded({ kind: "const", dtype: "f32", value: 1 }, 1000)).toBeNull();
  });
});
