/** @file Rectangles that do not overlap, for tests and measurements of drawing: random ones, by cutting a plane in two again and again. */
import type { Rects } from "../../src/view/picture.ts";

type Row = readonly [start: number, end: number, from: number, bytes: number, kind: number];

export function draw(rows: readonly Row[]): Rects {
  const column = (i: number): number[] => rows.map((row) => row[i] as number);
  return { start: column(0), end: column(1), from: column(2), bytes: column(3), kind: column(4) };
}

/** At most `count` rectangles with whole corners in a plane of `steps` × `bytes`; about one in four is left out. */
export function seeded(seed: number, count: number, steps: number, bytes: number): Rects {
  let state = seed * 2654435761 + 1;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const open: Row[] = [[0, steps, 0, bytes, 0]];
  for (let cuts = 0; open.length < count && cuts < 20 * count; cuts++) {
    const at = Math.floor(random() * open.length);
    const [start, end, from, size] = open[at] as Row;
    const across = random() < 0.5;
    const length = across ? end - start : size;
    if (length < 2) continue;
    const cut = 1 + Math.floor(random() * (length - 1));
    const halves: readonly [Row, Row] = across
      ? [
          [start, start + cut, from, size, 0],
          [start + cut, end, from, size, 0],
        ]
      : [
          [start, end, from, cut, 0],
          [start, end, from + cut, size - cut, 0],
        ];
    open.splice(at, 1, ...halves);
  }
  return draw(open.filter(() => random() > 0.25).map(([s, e, f, b]) => [s, e, f, b, Math.floor(random() * 3)]));
}
