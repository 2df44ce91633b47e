/** @file A canvas that fills its box at the screen's resolution, and axes. */
import { formatBytes } from "../../base/bytes.ts";

export interface Surface {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  /** In CSS pixels; `scale` device pixels each. */
  readonly width: number;
  readonly height: number;
  readonly scale: number;
}

/** Room around the plane, in CSS pixels: addresses on the left, steps below. */
export const MARGIN = { left: 66, right: 10, top: 8, bottom: 20 } as const;

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
export function plane({ width, height }: Surface): { x: number; y: number; w: number; h: number } {
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

/** Bytes on the left, steps below. */
export function drawAxes(
  surface: Surface,
  { a0, a1, t0, t1 }: { readonly a0: number; readonly a1: number; readonly t0: number; readonly t1: number },
  colours: { readonly quiet: string; readonly line: string },
): void {
  const { context } = surface;
  const { x, y, w, h } = plane(surface);
  context.font = FONT;
  context.fillStyle = colours.quiet;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const bytes of ticks(a0, a1, Math.max(2, h / 60), 2)) {
    const at = y + h - ((bytes - a0) / (a1 - a0)) * h;
    if (at < y + 4) continue;
    context.fillText(formatBytes(bytes), x - 8, at);
    context.fillRect(x - 5, at, 4, 1);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const step of ticks(t0, t1, Math.max(2, w / 90), 10)) {
    const at = x + ((step - t0) / (t1 - t0)) * w;
    context.fillText(`${step}`, Math.min(at, x + w - 8), y + h + 6);
    context.fillRect(at, y + h, 1, 4);
  }
}
