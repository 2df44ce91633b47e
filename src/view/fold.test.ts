/** @file Folding persistent buffers: other rectangles keep their bytes, and addresses go there and back. */
import { expect, it } from "vitest";
import { foldOf } from "./fold.ts";
import { type Picture, VIEW_KINDS } from "./picture.ts";

type Row = readonly [kind: (typeof VIEW_KINDS)[number], start: number, end: number, from: number, bytes: number];

function pictureOf(rows: readonly Row[], heightBytes: number): Picture {
  const rects = {
    start: rows.map((r) => r[1]),
    end: rows.map((r) => r[2]),
    from: rows.map((r) => r[3]),
    bytes: rows.map((r) => r[4]),
    kind: rows.map((r) => VIEW_KINDS.indexOf(r[0])),
  };
  return { rects, heightBytes, columns: 8, alignment: 64 } as unknown as Picture;
}

it("takes the bytes of persistent buffers from the axis, wherever they are", () => {
  const picture = pictureOf(
    [
      ["persistent", 0, 8, 0, 100],
      ["persistent", 0, 8, 128, 64],
      ["kept", 2, 5, 192, 64],
      ["persistent", 0, 8, 256, 128],
      ["gradient", 3, 8, 384, 256],
    ],
    640,
  );
  const fold = foldOf(picture)!;
  expect([fold.count, fold.bytes, fold.topBytes]).toEqual([3, 320, 320]);
  expect([...(fold.rects.from as Float64Array)]).toEqual([0, 0, 0, 64, 64]);
  expect([...(fold.rects.bytes as Float64Array)]).toEqual([0, 0, 64, 0, 256]);
  for (const real of [192, 200, 255, 384, 500, 640]) expect(fold.real(fold.shown(real))).toBe(real);
  expect([fold.has(0), fold.has(2)]).toEqual([true, false]);
});

it("folds nothing where there is nothing to gain", () => {
  expect(foldOf(pictureOf([["kept", 0, 8, 0, 64]], 64))).toBeNull();
  expect(foldOf(pictureOf([["persistent", 0, 8, 0, 64]], 64))).toBeNull();
  // a buffer that is not there all the time may share its bytes
  expect(
    foldOf(
      pictureOf(
        [
          ["persistent", 0, 4, 0, 64],
          ["kept", 4, 8, 0, 128],
        ],
        128,
      ),
    ),
  ).toBeNull();
  expect(
    foldOf(
      pictureOf(
        [
          ["persistent", 0, 8, 0, 64],
          ["kept", 4, 8, 64, 64000],
        ],
        64064,
      ),
    ),
  ).toBeNull();
});
