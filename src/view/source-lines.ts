/** @file Recorded memory by source line: what each line holds at the peak, and over the whole run, in two snapshots. */
import { formatBytes } from "../base/bytes.ts";
import { type Picture, rectCount } from "./picture.ts";

export interface LineBytes {
  /** Of this line when the most bytes are live. */
  readonly atPeak: number;
  /** Averaged over the run. */
  readonly average: number;
}

export interface LineDifference {
  readonly line: string;
  readonly a: LineBytes;
  readonly b: LineBytes;
}

const NONE: LineBytes = { atPeak: 0, average: 0 };

/** Backward passes run in threads of PyTorch, without lines of Python. */
const NO_LINE = "no line of Python (backward pass)";
const BEFORE = "before the recording";

function byLine({ rects, values, steps, boundStep, columns }: Picture): ReadonlyMap<string, LineBytes> {
  const lines = new Map<string, LineBytes>();
  const written = new Map(values.map(({ rect, written: step }) => [rect, step]));
  for (let i = 0; i < rectCount(rects); i++) {
    const step = written.get(i) ?? null;
    const line = step === null ? BEFORE : (steps[step]?.where ?? NO_LINE);
    const [start, end, bytes] = [rects.start[i] ?? 0, rects.end[i] ?? 0, rects.bytes[i] ?? 0];
    const { atPeak, average } = lines.get(line) ?? NONE;
    lines.set(line, {
      atPeak: atPeak + (start <= boundStep && boundStep < end ? bytes : 0),
      average: average + (bytes * (end - start)) / Math.max(1, columns),
    });
  }
  return lines;
}

/** All lines of either snapshot, the largest change at the peak first. */
export function lineDifferences(a: Picture, b: Picture): readonly LineDifference[] {
  const [inA, inB] = [byLine(a), byLine(b)];
  const lines = [...new Set([...inA.keys(), ...inB.keys()])].sort();
  const rows = lines.map((line) => ({ line, a: inA.get(line) ?? NONE, b: inB.get(line) ?? NONE }));
  const weight = (row: LineDifference): number => Math.abs(row.b.atPeak - row.a.atPeak);
  const drift = (row: LineDifference): number => Math.abs(row.b.average - row.a.average);
  return rows.sort((x, y) => weight(y) - weight(x) || drift(y) - drift(x));
}

export const signedBytes = (bytes: number): string => `${bytes > 0 ? "+" : ""}${formatBytes(Math.round(bytes))}`;

/** The table of the command line. */
export function linesText(a: Picture, b: Picture): string {
  const rows = lineDifferences(a, b).map(({ line, a: mine, b: theirs }) => [
    formatBytes(mine.atPeak),
    formatBytes(theirs.atPeak),
    signedBytes(theirs.atPeak - mine.atPeak),
    line,
  ]);
  const head = ["A", "B", "B − A", "live at the peak, by line"];
  const total = [formatBytes(a.boundBytes), formatBytes(b.boundBytes), signedBytes(b.boundBytes - a.boundBytes), "all"];
  const table = [head, ...rows, total];
  const widths = [0, 1, 2].map((k) => Math.max(...table.map((row) => (row[k] as string).length)));
  const line = (row: readonly string[]): string =>
    [...widths.map((width, k) => (row[k] as string).padStart(width)), row[3]].join("  ");
  return `${table.map(line).join("\n")}\n`;
}
