/** @file Pixels against the definition: a pixel has the colour of the rectangle that its middle lies in. */
import { describe, expect, it } from "vitest";
import { draw as drawsOf, seeded } from "../../tests/support/random-rects.ts";
import { drawRects, type Ink, rectAt } from "./raster.ts";

const INKS: readonly Ink[] = [1, 2, 3].map((fill) => ({ fill, edge: fill + 10, faint: fill + 20, texture: "plain" }));

describe("the rasterizer", () => {
  it("paints each rectangle's pixels with its colour or its edge, and leaves the rest", () => {
    for (let seed = 0; seed < 20; seed++) {
      const rects = seeded(seed, 40, 64, 48);
      const raster = { pixels: new Uint32Array(64 * 48), width: 64, height: 48 };
      const drawn = drawRects(raster, rects, { t0: 0, t1: 64, a0: 0, a1: 48 }, { inks: INKS, background: 0 });
      expect(drawn).toBe(rects.start.length);
      const expected = Array.from({ length: 64 * 48 }, (_, at) => {
        const rect = rectAt(rects, (at % 64) + 0.5, 48 - Math.floor(at / 64) - 0.5);
        return rect < 0 ? 0 : (rects.kind[rect] as number) + 1;
      });
      expect(
        Array.from(raster.pixels, (colour) => colour % 10),
        `seed ${seed}`,
      ).toEqual(expected);
    }
  });

  it("shows what is thinner than a pixel, and draws nothing outside of the window", () => {
    const rects = drawsOf([
      [10, 10.001, 10, 0.001, 0],
      [90, 95, 90, 5, 1],
    ]);
    const raster = { pixels: new Uint32Array(100), width: 10, height: 10 };
    expect(drawRects(raster, rects, { t0: 0, t1: 50, a0: 0, a1: 50 }, { inks: INKS, background: 0 })).toBe(1);
    expect(raster.pixels.filter((p) => p !== 0)).toEqual(Uint32Array.of(1));
  });

  it("stops painting where a file claims that everything overlaps", () => {
    const rects = drawsOf(Array.from({ length: 1000 }, (_, i) => [0, 8, 0, 8, i < 2 ? 0 : 1] as const));
    const raster = { pixels: new Uint32Array(64), width: 8, height: 8 };
    expect(drawRects(raster, rects, { t0: 0, t1: 8, a0: 0, a1: 8 }, { inks: INKS, background: 0 })).toBe(1000);
    expect(new Set(raster.pixels)).toEqual(new Set([1, 11]));
  });

  it("dims what is not searched for, and textures tell kinds apart without colour", () => {
    const rects = drawsOf([
      [0, 16, 0, 8, 0],
      [0, 16, 8, 8, 1],
    ]);
    const raster = { pixels: new Uint32Array(256), width: 16, height: 16 };
    const window = { t0: 0, t1: 16, a0: 0, a1: 16 };
    drawRects(raster, rects, window, { inks: INKS, background: 0, bright: Uint8Array.of(0, 1) });
    expect(new Set(raster.pixels)).toEqual(new Set([21, 2, 12]));
    const textured = INKS.map((ink, i): Ink => ({ ...ink, texture: i === 0 ? "stripes" : "dots" }));
    drawRects(raster, rects, window, { inks: textured, background: 0 });
    const marks = (from: number, edge: number) =>
      raster.pixels.slice(from, from + 112).filter((p) => p === edge).length;
    expect(marks(0, 12)).toBeGreaterThan(0);
    expect(marks(128, 11)).toBeGreaterThan(marks(0, 12));
  });
});
