/** @file What is forgotten, and when. */
import { expect, test } from "vitest";
import { Recent } from "./recent.ts";

test("forgets what was not asked for longest, and says what", () => {
  const dropped: string[] = [];
  const recent = new Recent<string, string>(2, (value) => dropped.push(value));
  const made: string[] = [];
  const get = (key: string): string =>
    recent.get(key, () => {
      made.push(key);
      return key.toUpperCase();
    });
  for (const key of ["a", "b", "a", "a", "c", "a", "b"]) expect(get(key)).toBe(key.toUpperCase());
  expect([made, dropped, recent.size]).toEqual([["a", "b", "c", "b"], ["B", "C"], 2]);
  expect([recent.find("a"), recent.find("c")]).toEqual(["A", undefined]);
  while (recent.dropOldest());
  expect([recent.find("a"), [...recent.values()]]).toEqual([undefined, []]);
});
