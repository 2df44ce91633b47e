/**
 * @file A software rasterizer for rectangles. Rectangles of a plan never overlap, so a frame costs one write per pixel
 * plus a test per rectangle at any zoom: a hundred thousand of them take a few milliseconds, faster than canvas paths
 * or DOM elements. A rectangle thinner than a pixel still gets one.
 *
 *     y = 0 ┌────────────┐  highest address of the window
 *           │  ▓▓▓▓▓▓    │  edge: a darker line left and below, if there is room for it
 *           │  ▓░░░░░    │
 *      rows └────────────┘  lowest
 *
 * Rectangles from a file may overlap: the total painted area is limited, so that no file can make a frame take minutes.
 *
 * Pixels are 0xAABBGGRR, the format of `ImageData` on little-endian machines. Textures distinguish kinds without
 * colour: stripes for recomputed values, dots for workspace.
 */
import type { Rects } from "./picture.ts";

/** The part of the plane that is shown: steps [t0, t1) and bytes [a0, a1). */
export interface Window {
  readonly t0: number;
  readonly t1: number;
  readonly a0: number;
  readonly a1: number;
}

export interface Raster {
  readonly pixels: Uint32Array;
  readonly width: number;
  readonly height: number;
}

export type Texture = "plain" | "stripes" | "dots";

/** The style of a kind: `faint` for rectangles that do not match a search. */
export interface Ink {
  readonly fill: number;
  readonly edge: number;
  readonly faint: number;
  readonly texture: Texture;
}

/** Inks by kind; if `bright` is given, rectangles without a 1 there are faint. */
export interface Paint {
  readonly inks: readonly Ink[];
  readonly background: number;
  readonly bright?: Uint8Array | null;
}

/** Repaints the raster; returns the number of rectangles in the window. */
export function drawRects(
  raster: Raster,
  rects: Rects,
  { t0, t1, a0, a1 }: Window,
  { inks, background, bright = null }: Paint,
): number {
  const { pixels, width, height } = raster;
  pixels.fill(background);
  const [across, up] = [width / (t1 - t0), height / (a1 - a0)];
  const { start, end, from, bytes, kind } = rects;
  const count = start.length;
  let drawn = 0;
  let room = 2 * width * height;
  for (let i = 0; i < count; i++) {
    const [left, right] = [((start[i] as number) - t0) * across, ((end[i] as number) - t0) * across];
    const low = from[i] as number;
    const [bottom, top] = [height - (low - a0) * up, height - (low + (bytes[i] as number) - a0) * up];
    if (right <= 0 || left >= width || bottom <= 0 || top >= height || bytes[i] === 0) continue;
    const ink = inks[kind[i] as number];
    if (!ink) continue;
    drawn += 1;
    const x0 = Math.max(0, Math.round(left));
    const x1 = Math.min(width, Math.max(x0 + 1, Math.round(right)));
    const y0 = Math.max(0, Math.min(height - 1, Math.round(top)));
    const y1 = Math.min(height, Math.max(y0 + 1, Math.round(bottom)));
    if (x1 - x0 > 1 && y1 - y0 > 1) room -= (x1 - x0) * (y1 - y0);
    if (room < 0) continue;
    const shown = bright === null || bright[i] === 1;
    const box = { x0, x1, y0, y1 };
    fillBox(raster, box, shown ? ink.fill : ink.faint);
    if (!shown) continue;
    if (ink.texture !== "plain") fillTexture(raster, box, ink);
    const edged = right - left >= 3 && bottom - top >= 3;
    if (edged && left >= 0) fillBox(raster, { ...box, x1: x0 + 1 }, ink.edge);
    if (edged && bottom <= height) fillBox(raster, { ...box, y0: y1 - 1 }, ink.edge);
  }
  return drawn;
}

/** Pixels from (x0, y0) up to, not including, (x1, y1). */
interface Box {
  readonly x0: number;
  readonly x1: number;
  readonly y0: number;
  readonly y1: number;
}

function fillBox({ pixels, width }: Raster, { x0, x1, y0, y1 }: Box, colour: number): void {
  if (x1 - x0 > 24) {
    for (let y = y0; y < y1; y++) pixels.fill(colour, y * width + x0, y * width + x1);
    return;
  }
  for (let y = y0; y < y1; y++) {
    const row = y * width;
    for (let x = row + x0; x < row + x1; x++) pixels[x] = colour;
  }
}

function fillTexture({ pixels, width }: Raster, { x0, x1, y0, y1 }: Box, { texture, edge }: Ink): void {
  const [period, rows] = texture === "stripes" ? [8, 1] : [6, 6];
  for (let y = y0; y < y1; y++) {
    if (y % rows !== 0) continue;
    // Diagonals for stripes; every other row of dots is shifted by half.
    const shift = texture === "stripes" ? period - (y % period) : ((y / rows) % 2) * 3;
    const first = x0 + ((((shift - x0) % period) + period) % period);
    for (let x = first; x < x1; x += period) pixels[y * width + x] = edge;
  }
}

/** The rectangle at a point of the plane, or -1. */
export function rectAt(rects: Rects, time: number, address: number): number {
  const { start, end, from, bytes } = rects;
  for (let i = start.length - 1; i >= 0; i--) {
    if (time < (start[i] as number) || time >= (end[i] as number)) continue;
    if (address >= (from[i] as number) && address < (from[i] as number) + (bytes[i] as number)) return i;
  }
  return -1;
}
