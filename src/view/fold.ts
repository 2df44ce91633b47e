/**
 * @file Persistent buffers, folded out of the address axis. Parameters and optimizer state are live all the time, so no
 * other buffer is in their bytes, and a map without those bytes loses nothing:
 *
 *   0x80 ┌──┐  ┌───┐            0x80 ┌──┐  ┌───┐
 *   0x60 ┴──┴──┴───┴──          0x60 ┴──┴──┴───┴──
 *        │ w: persistent  │   →      ▒ persistent 96 B ▒
 *   0x00 └────────────────┘
 *
 * `shown` are addresses on the shortened axis, `real` those of the arena.
 */
import { type Picture, type Rects, rectCount, topBytes, VIEW_KINDS } from "./picture.ts";

export interface Fold {
  /** How many buffers are folded, and the bytes they take away from the axis. */
  readonly count: number;
  readonly bytes: number;
  /** The rectangles on the shortened axis; folded ones have no bytes. */
  readonly rects: Rects;
  readonly topBytes: number;
  shown(real: number): number;
  real(shown: number): number;
  has(rect: number): boolean;
}

/** Where folding takes less than this from the axis it is not worth a band. */
const WORTH = 0.04;

const PERSISTENT = VIEW_KINDS.indexOf("persistent");

/** Null if there is nothing to fold, or nothing else. */
export function foldOf(picture: Picture): Fold | null {
  const { rects, columns, alignment } = picture;
  const folded = new Uint8Array(rectCount(rects));
  const ranges: [number, number][] = [];
  for (let i = 0; i < folded.length; i++) {
    const whole = (rects.start[i] ?? 0) === 0 && (rects.end[i] ?? 0) >= columns;
    if (rects.kind[i] !== PERSISTENT || !whole) continue;
    folded[i] = 1;
    const from = rects.from[i] ?? 0;
    ranges.push([from, from + Math.ceil((rects.bytes[i] ?? 0) / alignment) * alignment]);
  }
  const pieces = joined(ranges);
  const bytes = pieces.reduce((sum, [from, to]) => sum + to - from, 0);
  const top = topBytes(picture);
  if (bytes < WORTH * top || bytes >= top) return null;
  const shown = shownIn(pieces);
  return {
    bytes,
    count: folded.reduce((sum, one) => sum + one, 0),
    rects: shortened(rects, folded, shown),
    topBytes: shown(top),
    shown,
    real(at) {
      let real = at;
      for (const [from, to] of pieces) if (real >= from) real += to - from;
      return real;
    },
    has: (rect) => folded[rect] === 1,
  };
}

/** Addresses without those of some pieces; by search, since there may be many of both. */
function shownIn(pieces: readonly (readonly [number, number])[]): (real: number) => number {
  const before = [0];
  for (const [from, to] of pieces) before.push((before.at(-1) ?? 0) + to - from);
  return (real) => {
    let [low, high] = [0, pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pieces[middle]?.[0] ?? 0) < real) low = middle + 1;
      else high = middle;
    }
    // `low` pieces begin below; the last of them may end above
    const [, end = 0] = pieces[low - 1] ?? [];
    return real - (before[low] ?? 0) + Math.max(0, end - real);
  };
}

/** Ranges in order, those that touch or overlap as one. */
function joined(ranges: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  const pieces: [number, number][] = [];
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = pieces.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else if (to > from) pieces.push([from, to]);
  }
  return pieces;
}

function shortened(rects: Rects, folded: Uint8Array, shown: (real: number) => number): Rects {
  const from = Float64Array.from(folded, (_, i) => shown(rects.from[i] ?? 0));
  const bytes = Float64Array.from(folded, (isFolded, i) =>
    isFolded ? 0 : shown((rects.from[i] ?? 0) + (rects.bytes[i] ?? 0)) - (from[i] ?? 0),
  );
  return { ...rects, from, bytes };
}
