/** @file The difference of a value between two pictures, in words. */
import { formatBytes } from "../base/bytes.ts";
import type { ValueDifference } from "./difference.ts";
import type { Picture } from "./picture.ts";

const plural = (n: number, word: string): string => `${n} ${word}${n === 1 ? "" : "s"}`;

interface Life {
  readonly bytes: number;
  readonly steps: number;
  readonly written: number | null;
  readonly isAgain: boolean;
  readonly where: string | null;
}

function lifeOf({ rects, values, steps }: Picture, v: number): Life {
  const { rect = -1, written = null } = values[v] ?? {};
  const step = written === null ? undefined : steps[written];
  return {
    bytes: rects.bytes[rect] ?? 0,
    steps: (rects.end[rect] ?? 0) - (rects.start[rect] ?? 0),
    written,
    isAgain: step?.again ?? false,
    where: step?.where ?? null,
  };
}

/** `1.5 MiB live for 12 steps in A, for 140 in B`. */
export function differenceText({ a, b, change }: ValueDifference, first: Picture, second: Picture): string {
  const mine = a === null ? null : lifeOf(first, a);
  const theirs = b === null ? null : lifeOf(second, b);
  // Recorded allocations have no names, so their source line identifies them.
  const where = first.source === "snapshot" ? ((mine ?? theirs)?.where ?? null) : null;
  const place = where === null ? "" : `, ${where}`;
  const unit = first.source === "snapshot" ? "event" : "step";
  if (mine && theirs) return `${changeText(mine, theirs, change, unit)}${place}`;
  const [only, letter] = mine ? [mine, "A"] : [theirs as Life, "B"];
  const life = `${formatBytes(only.bytes)} for ${plural(only.steps, unit)}`;
  if (only.isAgain) return `recomputed in ${letter} at step ${only.written ?? 0}: ${life}${place}`;
  return `only in ${letter}: ${life}${place}`;
}

function changeText(mine: Life, theirs: Life, change: ValueDifference["change"], unit: string): string {
  const size =
    mine.bytes === theirs.bytes
      ? formatBytes(mine.bytes)
      : `${formatBytes(mine.bytes)} in A and ${formatBytes(theirs.bytes)} in B`;
  if (change === "moved") return `${size} at another address`;
  if (change === "same") return `${size} in the same place`;
  return `${size} live for ${plural(mine.steps, unit)} in A, for ${theirs.steps} in B`;
}
