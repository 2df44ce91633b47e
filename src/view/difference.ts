/**
 * @file Compares two pictures: which values are in both, and how they changed. Named values are matched by name and
 * type; numbered ones (`v12` is another value in another plan) by operation and source line, in order of occurrence.
 */
import type { Picture } from "./picture.ts";

export type Change = "only in A" | "only in B" | "moved" | "lives longer" | "lives shorter" | "same";

export interface ValueDifference {
  readonly name: string;
  /** Index into each picture's values; null if missing. */
  readonly a: number | null;
  readonly b: number | null;
  readonly change: Change;
  /** Bytes times steps, B minus A: the change of memory over time. */
  readonly byteSteps: number;
}

/** Keys by value, unique within a picture. */
function keysOf({ values, steps, source }: Picture): readonly string[] {
  const seen = new Map<string, number>();
  return values.map(({ name, type, written }) => {
    const step = written === null ? undefined : steps[written];
    const call = step ? `${step.text.replace(/\(.*$/s, "")}@${step.where}` : "start";
    const size = type.replace(/ at 0x.*$/, "");
    const isNumbered = source === "snapshot" || /^[a-z]\d+$/.test(name);
    const base = isNumbered ? `${call}:${size}:${step?.again ?? false}` : `${name}:${type}`;
    const n = seen.get(base) ?? 0;
    seen.set(base, n + 1);
    return `${base}#${n}`;
  });
}

/** Per value of `a`, the matching value of `b`; -1 if there is none. */
export function matchValues(a: Picture, b: Picture): Int32Array {
  const inB = new Map(keysOf(b).map((key, v) => [key, v]));
  return Int32Array.from(keysOf(a), (key) => inB.get(key) ?? -1);
}

function weight({ rects, values }: Picture, v: number): { steps: number; bytes: number; from: number } {
  const rect = values[v]?.rect ?? -1;
  const steps = (rects.end[rect] ?? 0) - (rects.start[rect] ?? 0);
  return { steps, bytes: rects.bytes[rect] ?? 0, from: rects.from[rect] ?? 0 };
}

/** Every value of either picture, largest change first. */
export function differences(a: Picture, b: Picture): readonly ValueDifference[] {
  const toB = matchValues(a, b);
  const changes: ValueDifference[] = a.values.map(({ name }, v) => {
    const other = toB[v] ?? -1;
    const mine = weight(a, v);
    if (other < 0) return { name, a: v, b: null, change: "only in A", byteSteps: -mine.steps * mine.bytes };
    const theirs = weight(b, other);
    const byteSteps = theirs.steps * theirs.bytes - mine.steps * mine.bytes;
    return { name, a: v, b: other, change: changeOf(mine, theirs), byteSteps };
  });
  const matched = new Set(toB);
  b.values.forEach(({ name }, v) => {
    if (matched.has(v)) return;
    const { steps, bytes } = weight(b, v);
    changes.push({ name, a: null, b: v, change: "only in B", byteSteps: steps * bytes });
  });
  return changes.sort((x, y) => Math.abs(y.byteSteps) - Math.abs(x.byteSteps) || (x.a ?? 0) - (y.a ?? 0));
}

function changeOf(mine: ReturnType<typeof weight>, theirs: ReturnType<typeof weight>): Change {
  if (theirs.steps > mine.steps) return "lives longer";
  if (theirs.steps < mine.steps) return "lives shorter";
  return theirs.from === mine.from && theirs.bytes === mine.bytes ? "same" : "moved";
}
