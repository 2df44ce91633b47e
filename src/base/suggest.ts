/**
 * @file Names close to one that does not exist, by edit distance: letters inserted, deleted, replaced, or neighbours
 * swapped (optimal string alignment; Damerau 1964).
 */
import { at } from "./invariant.ts";

/** d[i][j]: edits from the first i letters of a to the first j of b. */
function distance(a: string, b: string): number {
  const d = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  const cell = (i: number, j: number): number => at(at(d, i), j);
  for (let j = 1; j <= b.length; j++) at(d, 0).push(j);
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const replaced = cell(i - 1, j - 1) + Number(a[i - 1] !== b[j - 1]);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? cell(i - 2, j - 2) + 1 : replaced;
      at(d, i).push(Math.min(replaced, swapped, cell(i - 1, j) + 1, cell(i, j - 1) + 1));
    }
  }
  return cell(a.length, b.length);
}

/** At most three known names, nearest first, with one edit for every three letters at most. */
export function nearest(name: string, known: readonly string[]): readonly string[] {
  const wanted = name.toLowerCase();
  return known
    .map((candidate) => ({ candidate, far: distance(wanted, candidate.toLowerCase()) }))
    .filter(({ candidate, far }) => far <= Math.max(1, Math.floor(Math.max(wanted.length, candidate.length) / 3)))
    .sort((a, b) => a.far - b.far)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** `did you mean a or b? `, or nothing. */
export function guess(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near.length > 0 ? `did you mean ${near.join(" or ")}? ` : "";
}
