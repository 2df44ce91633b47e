/** @file The result in one sentence: saved, not saved, smallest, refused, with loops, of a snapshot, of two plans. */
import { expect, it } from "vitest";
import type { ViewEntry } from "./data.ts";
import type { Picture } from "./picture.ts";
import { comparisonOf, lessText, sentenceOf, timeText } from "./sentence.ts";

const MIB = 2 ** 20;
const stored = { arenaBytes: 57.1 * MIB, predictedMs: 183 };
const none = { stored, leastBytes: null, refusedBytes: null };

function entryWith(mib: number, predictedMs: number | null, more: Partial<ViewEntry> = {}): ViewEntry {
  const picture = { source: "plan", heightBytes: mib * MIB, boundBytes: mib * MIB, steps: [] } as unknown as Picture;
  return { label: "", budgetBytes: null, predictedMs, asks: null, picture, ...more };
}

it("says what was saved and what it costs", () => {
  const entry = entryWith(25.3, 212.5, { budgetBytes: 26 * MIB });
  const { main, rest } = sentenceOf({ ...none, entry });
  expect(main).toBe("25.3 MiB instead of 57.1: 2.3 times less, for 16 % more time.");
  expect(rest).toBe("It fits the budget of 26 MiB.");
  expect(sentenceOf({ ...none, entry, leastBytes: 17 * MIB }).rest).toContain("A budget can go down to 17 MiB.");
  expect(sentenceOf({ ...none, entry, leastBytes: 25.3 * MIB }).rest).toBe("No smaller plan was found.");
  const small = { ...none, stored: { arenaBytes: 8.1e6, predictedMs: 11 }, entry: entryWith(199 / 1024, 28) };
  expect(sentenceOf(small).main).toBe("199 KiB instead of 7.72 MiB: 40 times less, for 2.5 times the time.");
});

it("is plain where nothing was saved", () => {
  const { main, rest } = sentenceOf({ ...none, entry: entryWith(57.1, 183), leastBytes: 17 * MIB });
  expect(main).toBe("57.1 MiB with everything stored: nothing is recomputed.");
  expect(rest).toBe("A budget can go down to 17 MiB.");
  expect(sentenceOf({ ...none, stored: null, entry: entryWith(3, null) }).main).toBe("3 MiB in one arena.");
});

it("says that no plan fits, and what is shown instead", () => {
  const refused = { ...none, entry: entryWith(57.1, 183), leastBytes: 17.4 * MIB, refusedBytes: 3 * MIB };
  expect(sentenceOf(refused)).toEqual({
    main: "No plan fits 3 MiB: the smallest plan takes 17.4 MiB.",
    rest: "Shown is the previous plan: 57.1 MiB with everything stored: nothing is recomputed.",
  });
});

it("tells of loops, and of recorded allocations", () => {
  const entry = entryWith(1, 183, { loops: ["64 iterations: 8 states"] });
  expect(sentenceOf({ ...none, entry }).rest).toBe("A loop of 64 iterations keeps 8 states.");
  const forms = ["2 × 10000 iterations: rows", "while: 32 states", "while of 9 at most: rows", "something else"];
  expect(sentenceOf({ ...none, entry: { ...entry, loops: forms } }).rest).toBe(
    "2 loops of 10,000 iterations keep the rows of every iteration. A while loop keeps 32 states. " +
      "A while loop of 9 at most keeps the rows of every iteration. something else.",
  );
  const recorded = entryWith(150, null);
  const picture = { ...recorded.picture, source: "snapshot", boundBytes: 140 * MIB } as Picture;
  const { main } = sentenceOf({ ...none, stored: null, entry: { ...recorded, picture } });
  expect(main).toBe("At most 140 MiB live at once, in 150 MiB of addresses.");
});

it("compares two plans, the smaller one by the larger one", () => {
  expect(comparisonOf(entryWith(25.3, 212.5), entryWith(57.1, 183))).toMatch(
    /^A takes 25\.3 MiB instead of 57\.1 of B/,
  );
  expect(comparisonOf(entryWith(57.1, 183), entryWith(25.3, 212.5))).toBe(
    "B takes 25.3 MiB instead of 57.1 of A: 2.3 times less, for 16 % more time.",
  );
  expect(comparisonOf(entryWith(3, 100), entryWith(3, 100))).toBe("A and B both take 3 MiB; A runs in the same time.");
});

it("uses percent for small changes and factors for large ones", () => {
  expect(lessText(92, 100)).toBe("8 % less");
  expect(lessText(120, 100)).toBe("20 % more");
  expect(lessText(10, 1000)).toBe("100 times less");
  expect(timeText(97, 100)).toBe("in 3 % less time");
  expect(timeText(101.5, 100)).toBe("for 1.5 % more time");
});
