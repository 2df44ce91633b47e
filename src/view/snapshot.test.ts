/** @file A small snapshot of PyTorch's allocator, laid out by hand and written by Python. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { liveColumns, VIEW_KINDS } from "./picture.ts";
import { entriesOfFile } from "./read-file.ts";
import { readSnapshot } from "./snapshot.ts";

const file = (): Uint8Array => readFileSync(new URL("../../tests/fixtures/snapshots/small.pickle", import.meta.url));
const MIB = 2 ** 20;

it("becomes a picture: blocks from alloc to free, addresses without the gaps between segments", () => {
  const [picture, ...more] = readSnapshot(file(), "small");
  expect(more).toEqual([]);
  expect(picture).toMatchObject({ name: "small, device 0", source: "snapshot", heightBytes: 6 * MIB, columns: 7 });
  const { start, end, from, bytes, kind } = picture!.rects;
  const rows = Array.from({ length: start.length }, (_, i) => [start[i], end[i], from[i], bytes[i]]);
  expect(rows).toEqual([
    [0, 7, 0, 512], // there before and after
    [0, 2, 1024, 2048], // there before
    [0, 4, 2 * MIB, MIB],
    [1, 7, 512, 512], // never freed
    [3, 5, 3 * MIB, 2 * MIB],
  ]);
  expect(Array.from(kind, (k) => VIEW_KINDS[k])[0]).toBe("persistent");
  const live = liveColumns(picture!).reduce((sum, mine) => sum.map((b, t) => b + (mine[t] ?? 0)), new Float64Array(8));
  expect(Math.max(...live)).toBe(picture!.boundBytes);
  expect(picture!.boundBytes).toBe(3 * MIB + 1024);
  expect(picture!.boundStep).toBe(3);
});

it("names what it knows: the line of Python that is not PyTorch's own", () => {
  const [picture] = readSnapshot(file(), "small");
  expect(picture!.steps[0]).toMatchObject({ text: "alloc 1 MiB", where: "train.py:21 in step", writes: [2] });
  expect(picture!.steps[2]).toMatchObject({ text: "free 2 KiB", reads: [1] });
  expect(picture!.values[2]!.story).toEqual(["given out at train.py:21 in step"]);
});

it("is found by the name of its file, and other pickles are refused", () => {
  expect(entriesOfFile("a/b/small.pickle", file()).map((e) => e.label)).toEqual(["small.pickle"]);
  expect(() => readSnapshot(Uint8Array.of(0x80, 4, 0x7d, 0x2e), "x")).toThrow("neither segments nor device_traces");
  expect(() => entriesOfFile("x.txt", file())).toThrow("not a kind of file that can be shown");
});
