/** @file A canvas that fills its box at the screen's resolution, and axes. */
import { formatBytes } from "../../base/bytes.ts";
import type { Window } from "../raster.ts";

export interface Surface {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  /** In CSS pixels; `scale` device pixels each. */
  readonly width: number;
  readonly height: number;
  readonly scale: number;
}

/** Room around the plane, in CSS pixels: addresses on the left, steps below. */
export const MARGIN = { left: 80, right: 10, top: 8, bottom: 20 } as const;

/** A part of a canvas, in CSS pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** Fits the canvas to its box; null while the box is not shown. */
export function fitted(canvas: HTMLCanvasElement): Surface | null {
  const { clientWidth: width, clientHeight: height } = canvas;
  const context = canvas.getContext("2d");
  if (!context || width < MARGIN.left + MARGIN.right + 8 || height < MARGIN.top + MARGIN.bottom + 8) return null;
  const scale = Math.min(3, window.devicePixelRatio || 1);
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return { canvas, context, width, height, scale };
}

/** The plane inside the margins. */
export function plane({ width, height }: Pick<Surface, "width" | "height">): Box {
  const { left, right, top, bottom } = MARGIN;
  return { x: left, y: top, w: width - left - right, h: height - top - bottom };
}

export const FONT = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";

/** Round numbers between two: 1, 2 or 5 times a power of the base. */
export function ticks(low: number, high: number, count: number, base: 2 | 10): readonly number[] {
  const span = high - low;
  if (!(span > 0)) return [];
  const rough = span / Math.max(1, count);
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const factors = base === 10 ? [1, 2, 5, 10] : [1, 2];
  const step = Math.max((factors.find((f) => f * power >= rough) ?? base) * power, base === 10 ? 1 : 1 / 64);
  const marks: number[] = [];
  for (let t = Math.ceil(low / step) * step; t <= high && marks.length < 64; t += step) marks.push(t);
  return marks;
}

/** Axes around a box. */
export interface Axes {
  readonly box: Box;
  /** Bytes as they are drawn. */
  readonly view: Window;
  /** Where the time axis is, if not at the lower edge of the box. */
  readonly base?: number;
  readonly colours: { readonly quiet: string; readonly line: string };
  /** What the axes are of: addresses or bytes, steps or events. */
  readonly words: { readonly up: string; readonly across: string };
  /** For an axis without the bytes of folded buffers. */
  readonly fold?: { shown(real: number): number; real(shown: number): number } | null;
}

/** Bytes on the left, steps below, and a word for each. */
export function drawAxes(context: CanvasRenderingContext2D, axes: Axes): void {
  const { box, colours } = axes;
  const { x, y, w, h } = box;
  context.font = FONT;
  context.fillStyle = colours.quiet;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
  drawBytes(context, axes);
  drawSteps(context, axes);
}

function drawBytes(context: CanvasRenderingContext2D, { box, view, words, fold }: Axes): void {
  const { x, y, h } = box;
  const { a0, a1 } = view;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const [low, high] = fold ? [fold.real(a0), fold.real(a1)] : [a0, a1];
  let above = Number.POSITIVE_INFINITY;
  for (const bytes of ticks(low, high, Math.max(2, h / 60), 2)) {
    const shown = fold ? fold.shown(bytes) : bytes;
    const at = y + h - ((shown - a0) / (a1 - a0)) * h;
    // Folded bytes have no place on the axis.
    if (at < y + 4 || above - at < 14 || (fold && fold.real(shown) !== bytes)) continue;
    above = at;
    context.fillText(formatBytes(bytes), x - 8, at);
    context.fillRect(x - 5, at, 4, 1);
  }
  context.save();
  context.translate(9, y + h / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(words.up, 0, 0);
  context.restore();
}

function drawSteps(context: CanvasRenderingContext2D, { box, view, words, base = box.y + box.h }: Axes): void {
  const { x, w } = box;
  const { t0, t1 } = view;
  context.textBaseline = "top";
  context.textAlign = "right";
  context.fillText(words.across, x + w, base + 6);
  const free = x + w - context.measureText(words.across).width - 10;
  context.textAlign = "center";
  for (const step of ticks(t0, t1, Math.max(2, w / 90), 10)) {
    const at = x + ((step - t0) / (t1 - t0)) * w;
    const text = `${step}`;
    context.fillRect(at, base, 1, 4);
    if (at + context.measureText(text).width / 2 <= free) context.fillText(text, at, base + 6);
  }
}
