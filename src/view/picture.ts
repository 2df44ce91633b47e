/**
 * @file The data that the page draws: rectangles in the plane of time and addresses, the steps along the time axis, and
 * the values in the rectangles. Plans and recorded allocations of other programs both become pictures, so every view is
 * written once.
 *
 *   address
 *      │      ┌──────┐        rects: columns of numbers, one entry a rectangle
 *      │ ┌────┤  1   │        values: names; several may be in one rectangle, one after the other
 *      │ │ 0  └──────┘        steps: what happens at each moment; `columns` = steps + the return
 *      └─┴───────────── step
 *
 * Memory spaces of a plan lie on top of each other, the arena at the bottom: a rectangle is at its space's `from` and
 * its offset there. A picture is plain data, embedded in a page as JSON.
 */
import type { ExchangeJson } from "../plan/json.ts";

/** Kinds of rectangles, stacked in this order from the bottom. */
export const VIEW_KINDS = [
  "persistent",
  "parameter",
  "state",
  "input",
  "result",
  "kept",
  "forward",
  "recomputed",
  "gradient",
  "update",
  "scratch",
  "allocation",
] as const;
export type ViewKind = (typeof VIEW_KINDS)[number];

/** Labels of the kinds. */
export const KIND_LABELS: Readonly<Record<ViewKind, string>> = {
  persistent: "persistent",
  parameter: "parameter",
  state: "optimizer state",
  input: "input",
  result: "result",
  kept: "kept for backward",
  forward: "forward only",
  recomputed: "recomputed",
  gradient: "gradient",
  update: "update",
  scratch: "scratch",
  allocation: "allocation",
};

/** Columns of numbers; `kind` is an index into `VIEW_KINDS`. Half-open in time and in bytes. */
export interface Rects {
  readonly start: ArrayLike<number>;
  readonly end: ArrayLike<number>;
  readonly from: ArrayLike<number>;
  readonly bytes: ArrayLike<number>;
  readonly kind: ArrayLike<number>;
  /** Index into the picture's spaces, if there are several. */
  readonly space?: ArrayLike<number>;
}

/** A memory space, if there are several. */
export interface PictureSpace {
  readonly name: string;
  /** Its start in the picture, and its used bytes. */
  readonly from: number;
  readonly heightBytes: number;
  readonly boundBytes: number;
  readonly capacityBytes: number | null;
}

export interface PictureValue {
  readonly name: string;
  readonly type: string;
  /** The rectangle that holds it. */
  readonly rect: number;
  /** The value whose storage it took over. */
  readonly over: number | null;
  /** The step that writes it; null for parameters. */
  readonly written: number | null;
  readonly story: readonly string[];
}

export interface PictureStep {
  readonly text: string;
  readonly phase: string;
  readonly where: string | null;
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  /** Rectangles that are its workspace. */
  readonly scratch: readonly number[];
  readonly alias: boolean;
  /** Whether it recomputes a value. */
  readonly again: boolean;
  /** Pictures of its bodies: a loop's body, branches. */
  readonly bodies: readonly Picture[];
  /** For a loop over strips of rows: how many, and of how many rows. */
  readonly strips?: { readonly count: number; readonly rows: number };
  /** For a copy between spaces: its queue, and the step that is its other half. */
  readonly copy?: { readonly kind: "start" | "wait"; readonly queue: number; readonly other: number };
  /** For a collective: its queue, what it is over, and the step that is its other half. */
  readonly exchange?: ExchangeJson & { readonly queue: number };
}

/** Figures of memory are those of the first space. */
export interface Picture {
  readonly name: string;
  readonly source: "plan" | "snapshot";
  /** Present if there are several. */
  readonly spaces?: readonly PictureSpace[];
  readonly heightBytes: number;
  readonly boundBytes: number;
  readonly boundStep: number;
  readonly budgetBytes: number | null;
  /** Sizes are rounded up to it. */
  readonly alignment: number;
  readonly strategy: string;
  /** Moments in time: one more than steps. */
  readonly columns: number;
  readonly rects: Rects;
  readonly values: readonly PictureValue[];
  readonly steps: readonly PictureStep[];
}

export const rectCount = (rects: Rects): number => rects.start.length;

/** The highest address that is drawn. */
export function topBytes({ spaces, heightBytes }: Picture): number {
  const last = spaces?.at(-1);
  return last ? last.from + last.heightBytes : heightBytes;
}

/** The bytes of a rectangle as its space counts them: `0x40–0x80`, `host 0x0–0x40`. */
export function placeText({ rects, spaces }: Picture, rect: number): string {
  const space = spaces?.[rects.space?.[rect] ?? 0];
  const low = (rects.from[rect] ?? 0) - (space?.from ?? 0);
  const range = `0x${low.toString(16)}–0x${(low + (rects.bytes[rect] ?? 0)).toString(16)}`;
  return space ? `${space.name} ${range}` : range;
}

/** The picture with typed arrays as columns, instead of the lists parsed from JSON. */
export function withColumns(picture: Picture): Picture {
  const { start, end, from, bytes, kind, space } = picture.rects;
  const rects: Rects = {
    start: Float64Array.from(start),
    end: Float64Array.from(end),
    from: Float64Array.from(from),
    bytes: Float64Array.from(bytes),
    kind: Uint8Array.from(kind),
    ...(space ? { space: Uint8Array.from(space) } : {}),
  };
  return { ...picture, rects };
}

/** Per kind, live bytes of the arena at each moment; sizes rounded up as in the bound. */
export function liveColumns({ rects, columns, alignment }: Picture): readonly Float64Array[] {
  const live = VIEW_KINDS.map(() => new Float64Array(columns + 1));
  for (let i = 0; i < rectCount(rects); i++) {
    const mine = live[rects.kind[i] ?? 0];
    if (!mine || rects.space?.[i]) continue;
    const bytes = Math.ceil((rects.bytes[i] ?? 0) / alignment) * alignment;
    const [start, end] = [rects.start[i] ?? 0, Math.min(columns, rects.end[i] ?? 0)];
    mine[start] = (mine[start] ?? 0) + bytes;
    mine[end] = (mine[end] ?? 0) - bytes;
  }
  for (const mine of live) for (let t = 1; t <= columns; t++) mine[t] = (mine[t] ?? 0) + (mine[t - 1] ?? 0);
  return live;
}

/** Values of each rectangle, in the order in which they are written. */
export function valuesByRect({ rects, values }: Picture): readonly (readonly number[])[] {
  const lists: number[][] = Array.from({ length: rectCount(rects) }, () => []);
  values.forEach(({ rect }, v) => {
    lists[rect]?.push(v);
  });
  const when = (v: number): number => values[v]?.written ?? -1;
  for (const list of lists) list.sort((a, b) => when(a) - when(b) || a - b);
  return lists;
}

/** Steps that read each value. */
export function readersOf({ steps, values }: Picture): readonly (readonly number[])[] {
  const lists: number[][] = values.map(() => []);
  steps.forEach(({ reads }, s) => {
    for (const v of reads) lists[v]?.push(s);
  });
  return lists;
}

/** Rectangles in the same bytes at other times: those before and those after, nearest first. */
export function neighbours(rects: Rects, which: number): { readonly before: number[]; readonly after: number[] } {
  const num = (column: ArrayLike<number>, i: number): number => column[i] ?? 0;
  const [from, to] = [num(rects.from, which), num(rects.from, which) + num(rects.bytes, which)];
  const [start, end] = [num(rects.start, which), num(rects.end, which)];
  const before: number[] = [];
  const after: number[] = [];
  for (let i = 0; i < rectCount(rects); i++) {
    if (i === which || num(rects.from, i) >= to || num(rects.from, i) + num(rects.bytes, i) <= from) continue;
    if (num(rects.end, i) <= start) before.push(i);
    else if (num(rects.start, i) >= end) after.push(i);
  }
  before.sort((a, b) => num(rects.end, b) - num(rects.end, a) || a - b);
  after.sort((a, b) => num(rects.start, a) - num(rects.start, b) || a - b);
  return { before, after };
}
