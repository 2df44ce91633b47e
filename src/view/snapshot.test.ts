/**
 * @file Snapshots of PyTorch's allocator: a small one laid out by hand, and a training step on a model of the allocator, in
 * the forms of PyTorch 1 and 2 (tests/fixtures/snapshots/make.py).
 */
import { existsSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { differences, type ValueDifference } from "./difference.ts";
import { liveColumns, type Picture, VIEW_KINDS } from "./picture.ts";
import { entriesOfFile } from "./read-file.ts";
import { readSnapshot } from "./snapshot.ts";
import { lineDifferences, linesText } from "./source-lines.ts";

const file = (name = "small"): Uint8Array =>
  readFileSync(new URL(`../../tests/fixtures/snapshots/${name}.pickle`, import.meta.url));
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
  expect(entriesOfFile("a/b/small.pickle", file()).map((e) => e.label)).toEqual([
    "small.pickle",
    "small.pickle, placed by Tidemark",
  ]);
  expect(() => readSnapshot(Uint8Array.of(0x80, 4, 0x7d, 0x2e), "x")).toThrow("neither segments nor device_traces");
  expect(() => entriesOfFile("x.txt", file())).toThrow("not a kind of file that can be shown");
});

it("of a training step in the form of PyTorch 2 has what was live when, with what was there before", () => {
  const [picture, ...more] = readSnapshot(file("traced"), "traced");
  expect(more).toEqual([]);
  // Weights 6 × 4 MiB, the batch and six activations of 16 MiB, the loss, the first gradient of 4 MiB.
  expect(picture!.boundBytes).toBe((24 + 7 * 16 + 4) * MIB + 512);
  expect(picture!.steps[picture!.boundStep]).toMatchObject({ text: "alloc 4 MiB", where: "train.py:28 in backward" });
  const kinds = Array.from(picture!.rects.kind, (k) => VIEW_KINDS[k]);
  expect(kinds.filter((kind) => kind === "persistent")).toHaveLength(6);
  expect(picture!.values[0]!.story).toEqual(["given out at train.py:9 in init"]);
});

it("compared with another one says which lines keep less", () => {
  const [a, b] = ["traced", "checkpointed"].map((name) => readSnapshot(file(name), name)[0]!) as [Picture, Picture];
  expect(b.boundBytes).toBe((24 + 5 * 16 + 4) * MIB + 512);
  const all = differences(a, b);
  const placeOf = ({ a: inA, b: inB }: ValueDifference): string | null | undefined =>
    inA === null ? b.steps[b.values[inB!]!.written!]!.where : a.steps[a.values[inA]!.written ?? -1]?.where;
  // Four of the six activations are given back early, and given out again by another line.
  const shorter = all.filter(({ change }) => change === "lives shorter").map(placeOf);
  expect(shorter.filter((place) => place === "train.py:21 in step")).toHaveLength(4);
  const added = all.filter(({ change }) => change === "only in B").map(placeOf);
  expect(added).toEqual(Array(4).fill("train.py:23 in recompute"));
  expect(all.filter(({ change }) => change === "only in A")).toEqual([]);
});

it("in the form of PyTorch 1 is what was there at its end, with the lines of its history", () => {
  const [picture, ...more] = readSnapshot(file("segments"), "segments");
  expect(more).toEqual([]);
  expect(picture).toMatchObject({ columns: 1, boundBytes: 24 * MIB });
  expect(picture!.values.map(({ story }) => story[0])).toEqual(Array(6).fill("given out at train.py:9 in init"));
});

it("with numbers beyond measure, or with more segments than a call has arguments, is read all the same", () => {
  const text = (word: string): number[] => [0x8c, word.length, ...Buffer.from(word)];
  const float = (n: number): number[] => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(n);
    return [0x47, ...bytes];
  };
  /** A segment of one block that is in use. */
  const segment = (size: number): number[] => {
    const block = [0x7d, 0x28, ...text("size"), ...float(size), ...text("state"), ...text("active_allocated"), 0x75];
    return [0x7d, 0x28, ...text("blocks"), 0x5d, ...block, 0x61, ...text("total_size"), ...float(size), 0x75];
  };
  /** Segments, and the first one so many times more. */
  const snapshot = ([first = 0, ...others]: readonly number[], more = 0): Uint8Array => {
    const again = Array.from({ length: more }, () => [0x68, 0]);
    const segments = [...segment(first), 0x94, ...others.flatMap(segment)];
    return Uint8Array.from([0x80, 4, 0x5d, 0x28, segments, again, 0x65, 0x2e].flat(2));
  };
  const [huge] = readSnapshot(snapshot([1.7e308, Number.POSITIVE_INFINITY, Number.NaN, -5, 64]), "x");
  expect(huge).toMatchObject({ heightBytes: 64, boundBytes: 64 });
  expect(readSnapshot(snapshot([64], 150_000), "x")).toHaveLength(1);
});

/** The instructions of a pickle as bytes. */
const pickled = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "latin1"));
const byte = (n: number): string => String.fromCharCode(n);
const word = (text: string): string => `\x8c${byte(text.length)}${text}`;
const dict = (entries: Readonly<Record<string, string>>): string =>
  `}(${Object.entries(entries)
    .map(([key, value]) => `${word(key)}${value}`)
    .join("")}u`;

it("whose lists stand in each other many times over is drawn or refused, not written out", () => {
  // [], [a, a], [b, b] …, each remembered and paired with itself: as a text, 2^60 commas
  const pairs = Array.from({ length: 60 }, (_, i) => `\x94h${byte(i)}\x86`);
  const nested = `]${pairs.join("")}`;
  const block = dict({ size: "K\x08", state: nested, frames: `](${dict({ name: nested })}e` });
  const segment = dict({ device: "K\x00", address: "K\x10", total_size: "K\x08", blocks: `](${block}e` });
  const bytes = pickled(`\x80\x04${dict({ segments: `](${segment}e` })}.`);
  expect(() => readSnapshot(bytes, "x")).toThrow("no device has memory or a history in it");
});

it("with more events than can be drawn is refused, however few bytes they are written in", () => {
  const trace = `](${"}".repeat(10_000)}e\x94`;
  const traces = `](${trace}${"h\x00".repeat(1000)}e`;
  const bytes = pickled(`\x80\x04${dict({ device_traces: traces })}.`);
  expect(() => readSnapshot(bytes, "x")).toThrow("snapshot: 10,010,000 events and blocks");
});

const MODELS = new URL("../../../shared/bench/models/", import.meta.url);
const hasModels = existsSync(new URL("snapshot.pickle.gz", MODELS));

it.skipIf(!hasModels)("of two real steps tells kinds apart, and is placed at the most bytes live", () => {
  const read = (name: string) => entriesOfFile(name, readFileSync(new URL(name, MODELS)));
  const [recorded, placed] = read("snapshot.pickle.gz").map(({ picture }) => picture) as [Picture, Picture];
  const counts = (picture: Picture): Record<string, number> => {
    const all: Record<string, number> = {};
    for (const k of Array.from(picture.rects.kind)) all[VIEW_KINDS[k]!] = (all[VIEW_KINDS[k]!] ?? 0) + 1;
    return all;
  };
  // 75 parameters, a gradient of each in either step, two moments of Adam
  expect(counts(recorded)).toMatchObject({ parameter: 75, state: 150, gradient: 150, input: 1 });
  expect(counts(recorded).recomputed).toBe(undefined);
  expect(recorded.heightBytes).toBeGreaterThan(1.14 * recorded.boundBytes);
  expect(placed.heightBytes).toBeLessThan(1.001 * recorded.boundBytes);
  expect(placed.values).toEqual(recorded.values);
  expect(recorded.values.some(({ name }) => name === "forward:169 layer_norm")).toBe(true);
  const [other] = read("snapshot-checkpointed.pickle.gz").map(({ picture }) => picture) as [Picture];
  expect(counts(other)).toMatchObject({ parameter: 75, state: 150, gradient: 150 });
  expect(counts(other).recomputed).toBe(217);
  const [first] = lineDifferences(recorded, other);
  expect(first?.line).toBe("train.py:169 in forward");
  expect(first!.b.atPeak - first!.a.atPeak).toBeLessThan(-100 * MIB);
  expect(linesText(recorded, other)).toContain("live at the peak, by line");
});

it("is unpacked, and a damaged archive is refused", () => {
  const packed = gzipSync(file());
  expect(entriesOfFile("small.pickle.gz", packed)[0]!.picture.boundBytes).toBe(3 * MIB + 1024);
  expect(() => entriesOfFile("x.pickle.gz", packed.subarray(0, 40))).toThrow("InvalidFile");
  const lying = Uint8Array.from(packed);
  lying.set([0xff, 0xff, 0xff, 0x7f], lying.length - 4);
  expect(() => entriesOfFile("x.pickle.gz", lying)).toThrow("would become 2,147,483,647");
  lying.set(packed.subarray(-4), lying.length - 4);
  lying[lying.length - 8] = (lying[lying.length - 8] ?? 0) ^ 1;
  expect(() => entriesOfFile("x.pickle.gz", lying)).toThrow("checksum");
});
