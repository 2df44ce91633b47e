/** @file Differences of values in words. */
import { expect, it } from "vitest";
import { differences } from "./difference.ts";
import { differenceText } from "./difference-text.ts";
import type { Picture } from "./picture.ts";

type Row = readonly [name: string, start: number, end: number, from: number, again: boolean];

function pictureOf(rows: readonly Row[], source: Picture["source"]): Picture {
  const picture = {
    ...{ source, columns: 10 },
    rects: {
      start: rows.map((r) => r[1]),
      end: rows.map((r) => r[2]),
      from: rows.map((r) => r[3]),
      bytes: rows.map(() => 1536),
      kind: rows.map(() => 3),
    },
    values: rows.map(([name], rect) => ({ name, type: "f32[384]", rect, written: rect, over: null, story: [] })),
    steps: rows.map(([name, , , , again]) => ({ text: `f(${name})`, where: "net.py:3", again })),
  };
  return picture as unknown as Picture;
}

it("says what became of each value, with its name's side, size and time", () => {
  const a = pictureOf(
    [
      ["x", 0, 9, 0, false],
      ["y", 1, 3, 2048, false],
      ["gone", 2, 3, 0, false],
      ["same", 0, 1, 0, false],
    ],
    "plan",
  );
  const b = pictureOf(
    [
      ["x", 0, 2, 0, false],
      ["y", 1, 3, 4096, false],
      ["x_re", 7, 9, 0, true],
      ["same", 0, 1, 0, false],
    ],
    "plan",
  );
  const texts = new Map(differences(a, b).map((d) => [d.name, differenceText(d, a, b)]));
  expect(Object.fromEntries(texts)).toEqual({
    x: "1.5 KiB live for 9 steps in A, for 2 in B",
    y: "1.5 KiB at another address",
    gone: "only in A: 1.5 KiB for 1 step",
    x_re: "recomputed in B at step 2: 1.5 KiB for 2 steps",
    same: "1.5 KiB in the same place",
  });
});

it("names recorded allocations by their line", () => {
  const [a, b] = [pictureOf([["a1", 0, 2, 0, false]], "snapshot"), pictureOf([["a1", 0, 5, 0, false]], "snapshot")];
  const [only] = differences(a, b);
  expect(differenceText(only!, a, b)).toBe("1.5 KiB live for 2 events in A, for 5 in B, net.py:3");
});
