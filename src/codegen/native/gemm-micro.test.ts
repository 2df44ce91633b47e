/** @file Tiles of products: those that differ in their steps along the depth alone are one function. That they compute right: contract.test.ts. */
import { describe, expect, it } from "vitest";
import { Build } from "../../ir/build.ts";
import { tensorType } from "../../ir/type.ts";
import { sharedLowering } from "../../lower/share.ts";
import { matmul } from "../../ops/matmul.ts";
import { nativeDescription } from "./description.ts";
import { NativeLibrary } from "./kernel.ts";
import type { NativeOptions } from "./options.ts";

/** A machine with AVX-512. */
const OPTIONS: NativeOptions = { lanes: 16, fma: true, threads: 1 };

/** The names of tiles of products [rows, depth] × [depth, columns]. */
function tilesOf(...sizes: readonly (readonly [rows: number, depth: number, columns: number])[]): readonly string[] {
  const lower = sharedLowering(nativeDescription(OPTIONS));
  const library = new NativeLibrary(OPTIONS);
  for (const [rows, depth, columns] of sizes) {
    const b = new Build("f");
    const [x, w] = [b.param(tensorType("f32", [rows, depth])), b.param(tensorType("f32", [depth, columns]))];
    b.call(matmul, [x, w], { ta: false, tb: false });
    for (const node of b.nodes) library.functions(lower(node).kernel);
  }
  return [...library.text().matchAll(/FUNCTION void (tide_tile_\w+)/g)].map(([, name]) => name as string);
}

describe("tiles of products", () => {
  it("are one function for rows of any length on the side of the vectors", () => {
    const [one, two] = [tilesOf([56, 128, 384]), tilesOf([56, 128, 384], [56, 128, 512], [56, 128, 640])];
    expect(one.length).toBeGreaterThan(0);
    expect(two).toEqual(one);
  });

  it("are another function for other rows on the side that is broadcast, whose offsets are constants", () => {
    const [one, two] = [tilesOf([56, 128, 384]), tilesOf([56, 128, 384], [56, 256, 384])];
    expect(two.length).toBeGreaterThan(one.length);
    expect(new Set(two).size).toBe(two.length);
  });
});
